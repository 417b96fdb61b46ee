"""What a worker holds, by its own account or by the orders that it was given, beside the ledger."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from .explain import Wrong, names
from .format import PassEnded, WorkerStepped
from .gaps import Gaps

__all__ = [
    "DROPS",
    "ENCODES",
    "PASS_BEGINS",
    "PAYLOADS",
    "Order",
    "Orders",
    "Worked",
    "Worker",
]

DROPS, ENCODES, PAYLOADS, PASS_BEGINS = "drops", "encodes", "payloads", "begins"
"""What a pass may say, or not: the names of its gaps."""


@dataclass(frozen=True)
class Order:
    """What a pass has decided, as of its report."""

    report: frozenset[str]
    cached: Mapping[str, int]
    """Each hash that the ledger has cached then, with its size."""
    allocated: frozenset[str]
    """What became cached since the report or pass before, and so is to be made."""
    encode: frozenset[str] | None = None
    """What the output orders to encode, if the log says it."""


@dataclass(frozen=True)
class Worked:
    """What a worker was told, or did: `load` is None where nobody knows."""

    drop: Collection[str]
    encode: Collection[str]
    load: Collection[str] | None = ()


class Orders:
    """What an obedient worker holds, from the orders of the passes alone.

    It shows an entry that nobody makes in the pass that leaves it so, long before a step gathers
    it. A pass that does not say what it orders to encode is taken to order all that it allocated:
    what is wrong with it is not seen, which is said, and the next one is judged again.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._holds: dict[str, int] = {}
        """With its size."""
        self.gaps = Gaps()
        self.loads_unknown = False

    def reset(self) -> None:
        self._holds = {}

    def take(self, event: PassEnded, order: Order, line: int, *, certain: bool) -> Wrong | None:
        """Judge the order that a pass sends.

        Args:
            event: The end of the pass.
            order: What the pass has decided.
            line: Where it is in the log.
            certain: Whether the log shows where the pass began. If not, nobody is accused.
        """
        wrong = self._judge(event, order, line)
        if wrong is not None and certain:
            return wrong
        if not certain:
            self.gaps.unsaid(PASS_BEGINS, line)
        else:
            self.gaps.said(PASS_BEGINS)
        self._holds = dict(order.cached)
        return None

    def _judge(self, event: PassEnded, order: Order, line: int) -> Wrong | None:
        gaps = self.gaps
        if event.drop is None:
            gaps.unsaid(DROPS, line)
        elif frozenset(event.drop) != order.report:
            return Wrong(
                "the output does not name for dropping what the ledger has reported",
                tuple(sorted(frozenset(event.drop) ^ order.report)),
                ("S3",),
                expected=names(order.report),
                got=names(event.drop),
            )
        else:
            gaps.said(DROPS)
        if event.without_payload:
            return Wrong(
                "a hash is to be encoded, and its raw item was never sent",
                event.without_payload,
                ("S8",),
                got=names(event.without_payload),
            )
        if event.without_payload is not None:
            gaps.said(PAYLOADS)
        elif event.encode != ():
            gaps.unsaid(PAYLOADS, line)
        if event.encode is None:
            gaps.unsaid(ENCODES, line)
            return None
        gaps.said(ENCODES)
        self.loads_unknown |= event.load is None
        worked = Worked(order.report, event.encode, event.load)
        return _ordered_wrongly(event.encode, order) or _left_with(
            self._holds, worked, order, self._capacity, "the pass orders nobody to make"
        )


class Worker:
    """What a worker holds, by its own account of its steps."""

    def __init__(self, capacity: int, *, shares: bool) -> None:
        """A worker that holds nothing.

        Args:
            capacity: In embeddings.
            shares: Whether the ledger counts what the worker holds, which that of encoder-decoder
                models does not.
        """
        self._capacity = capacity
        self._shares = shares
        self._holds: dict[str, int] = {}
        self._orders: deque[Order] = deque()
        """Those that no step has obeyed yet."""
        self.steps = 0

    @property
    def waiting(self) -> int:
        """How many reports no step has obeyed yet."""
        return len(self._orders)

    def reset(self) -> None:
        self._holds, self._orders = {}, deque()

    def order(self, order: Order) -> None:
        """A report was made; a step will obey it."""
        self._orders.append(order)

    def told_to_encode(self, encode: Collection[str]) -> None:
        """The pass of the last report is over, and this is what its output orders."""
        if self._orders:
            self._orders[-1] = replace(self._orders[-1], encode=frozenset(encode))

    def step(self, event: WorkerStepped) -> Wrong | None:
        """Judge a step: against its order, and against the ledger as of then."""
        order = self._orders.popleft() if self._orders else None
        told = frozenset[str]() if order is None else order.report
        dropped = frozenset(event.drop)
        if dropped != told:
            return Wrong(
                "the worker did not drop what it was told to",
                tuple(sorted(told ^ dropped)),
                expected=names(told),
                got=names(dropped),
            )
        self.steps += 1
        before = self._holds
        sizes = {} if order is None else order.cached
        after = {h: size for h, size in before.items() if h not in dropped}
        after |= {h: sizes.get(h, 0) for h in event.encode}
        missing = tuple(sorted(set(event.gather) - after.keys()))
        if missing:
            return Wrong(
                "the worker gathers what it does not hold",
                missing,
                ("S1",),
                expected=f"it holds {names(after.keys() & set(event.gather))}",
                got=f"it gathers {names(event.gather)}",
            )
        if order is None:
            return Wrong("a step that no report orders", tuple(sorted(event.encode)))
        wrong = self._judge(before, event, order) if self._shares else None
        self._holds = after
        return wrong

    def _judge(self, before: Mapping[str, int], event: WorkerStepped, order: Order) -> Wrong | None:
        encoded = frozenset(event.encode)
        # A worker that still holds what it is told to encode need not encode it again.
        if order.encode is not None and not (
            order.encode - before.keys() <= encoded <= order.encode
        ):
            return Wrong(
                "the worker did not encode what it was told to",
                tuple(sorted(order.encode ^ encoded)),
                ("S2",) if order.encode - before.keys() - encoded else ("S10",),
                expected=names(order.encode),
                got=names(encoded),
            )
        return _ordered_wrongly(event.encode, order) or _left_with(
            before, Worked(order.report, encoded), order, self._capacity, "no step has made"
        )


def _ordered_wrongly(encode: Collection[str], order: Order) -> Wrong | None:
    """Something twice, or something that the pass has not allocated."""
    twice = tuple(sorted({h for h in encode if list(encode).count(h) > 1}))
    if twice:
        return Wrong("a hash is to be encoded twice in one pass", twice, ("S10",), got=names(twice))
    strange = tuple(sorted(set(encode) - order.allocated))
    if strange:
        return Wrong(
            "a hash is encoded that the pass has not allocated",
            strange,
            ("S11",),
            expected=names(order.allocated),
            got=names(encode),
        )
    return None


def _left_with(
    before: Mapping[str, int], worked: Worked, order: Order, capacity: int, nobody: str
) -> Wrong | None:
    """What is wrong with what the worker holds afterwards."""
    sizes = {**before, **order.cached}
    loaded = order.allocated if worked.load is None else worked.load
    after = (before.keys() - set(worked.drop)) | set(worked.encode) | set(loaded)
    cached = order.cached.keys()
    if worked.load is None:  # it may have been loaded, and need not have been
        after &= cached | before.keys() | set(worked.encode)
    missing = tuple(sorted(cached - after))
    surplus = tuple(sorted(after - cached))
    held = sum(sizes.get(h, 0) for h in after)
    clauses = []
    if missing:
        clauses.append("S2")
    if missing or surplus:
        clauses.append("S3")
    if held > capacity:
        clauses.append("S4")
    if not clauses:
        return None
    if missing:
        reason = f"the ledger has cached what {nobody}: {names(missing)}"
    elif surplus:
        reason = f"the worker is left with what the ledger has not cached: {names(surplus)}"
    else:
        reason = f"the worker holds {held} embeddings of {capacity}"
    return Wrong(
        reason,
        (*missing, *surplus),
        tuple(clauses),
        expected=f"the worker holds {names(cached)}",
        got=f"it holds {names(after)}, {held} embeddings of {capacity}",
        unmade=missing,
    )
