"""The tested side of a search: a manager that can be brought back into a state it was in.

A class in this process is copied. A program keeps snapshots if it can; otherwise the calls that led
to a state are made again, on a new manager.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mmcache_vectors.manager import Call, Manager, Observed, Parameters

from ..errors import AdapterError, TargetError, describe_exception
from ..targets.command import CommandTarget, Posted, posted
from ..targets.protocol import Answer, Case, ManagerTarget
from ..targets.python import PythonTarget, plain_answer
from .snapshots import Opaque, Snapshots, snapshots_for

__all__ = ["Arrival", "Side", "side_of"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a call brought: its answer, and the state behind it, which `keep` makes a place of."""

    returns: Any
    error: str | None
    unchanged: bool
    """The state is surely that before the call."""
    fingerprint: Hashable
    orders: Callable[[], frozenset[Hashable]]
    """The orders of lists and dicts, which may differ between states of one fingerprint."""
    reached: Any


class Side(Protocol):
    """One target in one world. A *place* is a state that can be gone on from."""

    @property
    def opaque(self) -> bool:
        """Its states are told apart by what they show, and by no more."""

    @property
    def how(self) -> str:
        """How its states are kept, for people."""

    def start(self) -> Arrival | None:
        """The initial state; None where a state shows itself after a call only."""

    def initial(self) -> Any:
        """The place where nothing was called yet."""

    def arrivals(self, place: Any, calls: Sequence[int]) -> Iterator[Arrival]:
        """Make each call, by its index, from this place. Raises `TargetError`."""

    def keep(self, arrival: Arrival) -> Any:
        """The place. Raises `NotPlain`, `TargetError`."""

    def shown(self, arrival: Arrival) -> Observed:
        """What the state shows. Raises whatever the manager raises."""

    def plain(self, returns: Any) -> bool | tuple[str, ...] | str | None:
        """What was returned, as an answer has it."""

    def leave(self, place: Any) -> None:
        """Nothing is called from there any more."""


def side_of(
    target: ManagerTarget,
    manager: Manager,
    parameters: Parameters,
    calls: Sequence[Call],
    *,
    opaque: bool = False,
) -> Side:
    """The side of a started target.

    Raises `TargetError` if it is of no kind that can be searched, or if no manager can be made.
    """
    if isinstance(target, PythonTarget):
        return _ClassSide(target, manager, parameters, calls, opaque=opaque)
    if isinstance(target, CommandTarget):
        return _CommandSide(target, manager, parameters, calls)
    raise TargetError("only a class or a command can be exhausted")


# --- a class in this process -------------------------------------------------------------------


class _ClassSide:
    """States as copies of the object. A place is a copy that is never changed."""

    how = "copies"

    def __init__(
        self,
        target: PythonTarget,
        manager: Manager,
        parameters: Parameters,
        calls: Sequence[Call],
        *,
        opaque: bool,
    ) -> None:
        try:
            self._live = target.open(manager, parameters)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise TargetError(describe_exception(error)) from None
        first = self._live.manager
        self._snapshots: Snapshots = Opaque() if opaque else snapshots_for(first)
        self._calls = [self._live.bind(call) for call in calls]
        self._initial = self._snapshots.take(first)
        self._fingerprints: dict[bytes, Hashable] = {}
        self._orders: dict[bytes, frozenset[Hashable]] = {}
        self._numbers: dict[Hashable, int] = {}
        """Of each fingerprint that was met, a number that stands for it."""

    @property
    def opaque(self) -> bool:
        return not self._snapshots.plain

    def start(self) -> Arrival | None:
        return self._arrival(self._initial, None, self._snapshots.mark(self._initial))

    def initial(self) -> Any:
        return self._initial

    def arrivals(self, place: Any, calls: Sequence[int]) -> Iterator[Arrival]:
        snapshots = self._snapshots
        mark_before = snapshots.mark(place)
        before = self._fingerprint(place, mark_before)
        scratch = None
        for k in calls:
            if scratch is None:
                scratch = self._copied(place)
            try:
                got = self._calls[k](snapshots.manager(scratch))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a SystemExit is a call that failed, too
                yield Arrival(None, describe_exception(error), False, None, _unordered, None)
                scratch = None
                continue
            mark = None if mark_before is None else snapshots.mark(scratch)
            if (mark is not None and mark == mark_before) or snapshots.same(scratch, place):
                yield Arrival(got, None, True, before, _unordered, place)
            else:
                yield self._arrival(scratch, got, mark)
                scratch = None

    def keep(self, arrival: Arrival) -> Any:
        self._snapshots.learn(arrival.reached)
        return arrival.reached

    def shown(self, arrival: Arrival) -> Observed:
        return self._observe(self._copied(arrival.reached))

    def plain(self, returns: Any) -> bool | tuple[str, ...] | str | None:
        return plain_answer(returns)

    def leave(self, place: Any) -> None:
        """It goes with the last who knows it."""

    def _arrival(self, reached: Any, got: Any, mark: bytes | None) -> Arrival:
        found = self._fingerprint(reached, mark)
        return Arrival(got, None, False, found, lambda: self._orders_in(reached, mark), reached)

    def _fingerprint(self, reached: Any, mark: bytes | None) -> Hashable:
        """The number of its fingerprint, which is worked out once for each mark."""
        known = None if mark is None else self._fingerprints.get(mark)
        if known is None:
            found = self._snapshots.fingerprint(reached, self._observe)
            known = self._numbers.setdefault(found, len(self._numbers))
            if mark is not None:
                if len(self._fingerprints) > _MOST_MARKS:
                    self._fingerprints.clear()
                self._fingerprints[mark] = known
        return known

    def _orders_in(self, reached: Any, mark: bytes | None) -> frozenset[Hashable]:
        known = None if mark is None else self._orders.get(mark)
        if known is None:
            known = self._snapshots.orders(reached)
            if mark is not None:
                if len(self._orders) > _MOST_MARKS:
                    self._orders.clear()
                self._orders[mark] = known
        return known

    def _copied(self, snapshot: Any) -> Any:
        try:
            return self._snapshots.copy(snapshot)
        except (KeyboardInterrupt, TypeError) as error:
            if isinstance(error, KeyboardInterrupt) or not self.opaque:
                raise
            raise TargetError(f"its state cannot be copied: {describe_exception(error)}") from None
        except BaseException as error:
            raise TargetError(f"its state cannot be copied: {describe_exception(error)}") from None

    def _observe(self, snapshot: Any) -> Observed:
        return self._live.around(self._snapshots.manager(snapshot)).observed()


_MOST_MARKS = 100_000
"""States of which what was worked out is kept: some hundred bytes each."""


def _unordered() -> frozenset[Hashable]:
    return frozenset()


# --- a program ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """A state of a program: the calls that lead there, and the snapshot that is kept of it."""

    path: tuple[int, ...]
    number: int | None
    process: int
    """Of the processes of this search, the one that keeps the snapshot."""


_INITIAL, _SCRATCH = 0, 1
"""The numbers of the first snapshots: of a new manager, and of what nobody goes back to."""


class _CommandSide:
    """States as numbers of snapshots, or else as the calls that lead there.

    After a breakdown there is a new process, without snapshots: the calls are made again.
    """

    def __init__(
        self,
        target: CommandTarget,
        manager: Manager,
        parameters: Parameters,
        calls: Sequence[Call],
    ) -> None:
        self._target, self._manager, self._parameters = target, manager, parameters
        self._calls = list(calls)
        self._keeps = target.keeps_snapshots
        self._numbers, self._process = _SCRATCH, 0
        self._to_drop: list[int] = []
        self._to_keep: list[tuple[_Place, Arrival]] = []
        """Places that are to be kept before the next calls, each with what its call brought."""
        self._told_all = True
        self._initial = _Place((), _INITIAL if self._keeps else None, 0)

    @property
    def how(self) -> str:
        return "snapshots" if self._keeps else "calls made again"

    @property
    def opaque(self) -> bool:
        return not (self._keeps and self._told_all)

    def start(self) -> Arrival | None:
        if self._keeps:
            _, wrong = self._exchange([posted(self._case(()), snapshot=_INITIAL)])
            if wrong is not None:
                raise TargetError(f"it keeps no snapshot: {wrong}")
        return None

    def initial(self) -> Any:
        return self._initial

    def arrivals(self, place: Any, calls: Sequence[int]) -> Iterator[Arrival]:
        self._keep_now()
        todo = list(calls)
        while todo:
            came, wrong = self._exchange([self._from(place, k) for k in todo])
            yield from (self._arrival(place, k, *a) for k, a in zip(todo, came, strict=False))
            todo = todo[len(came) :]
            if wrong is None:
                continue
            if not todo:  # it spoke after its last reply
                raise TargetError(str(wrong))
            yield Arrival(None, f"the adapter broke down: {wrong}", False, None, _unordered, None)
            todo = todo[1:]

    def keep(self, arrival: Arrival) -> Any:
        path = arrival.reached[0]
        if not self._keeps:
            return _Place(path, None, self._process)
        self._numbers += 1
        place = _Place(path, self._numbers, self._process)
        self._to_keep.append((place, arrival))
        return place

    def shown(self, arrival: Arrival) -> Observed:
        shown: Observed = arrival.reached[1]
        return shown

    def plain(self, returns: Any) -> bool | tuple[str, ...] | str | None:
        return tuple(sorted(returns)) if isinstance(returns, tuple) else returns

    def leave(self, place: Any) -> None:
        if self._is_kept(place):
            self._to_drop.append(place.number)

    def _is_kept(self, place: _Place) -> bool:
        return place.number is not None and place.process == self._process

    def _from(self, place: _Place, call: int, number: int | None = None) -> Posted:
        """The call from this place, perhaps keeping the state behind it."""
        if self._is_kept(place):
            return posted(self._case((call,)), restore=place.number, snapshot=number)
        if self._keeps and number is None:
            number = _SCRATCH  # or nothing would be said of the state
        return posted(self._case((*place.path, call)), snapshot=number)

    def _case(self, path: Sequence[int]) -> Case:
        calls = tuple(self._calls[k] for k in path)
        return Case("exhaust", self._manager, self._parameters, calls)

    def _keep_now(self) -> None:
        """The calls of what is to be kept, once more: by themselves they cost few of many."""
        if not self._to_keep and not self._to_drop:
            return
        wanted = [(p, a) for p, a in self._to_keep if self._is_kept(p)]
        dropped, self._to_keep, self._to_drop = self._to_drop, [], []
        requests = [self._from(a.reached[2], p.path[-1], p.number) for p, a in wanted]
        if dropped:
            requests.append(posted(self._case(()), drop=dropped))
        came, wrong = self._exchange(requests)
        if wrong is not None:
            raise TargetError(f"it keeps no snapshot: {wrong}")
        for (_, arrival), (answer, state) in zip(wanted, came, strict=False):
            if _fingerprint(answer, state) != arrival.fingerprint:
                raise TargetError(
                    "the same call from the same snapshot brought something else: a snapshot that "
                    "is restored is not what was kept (see `mmcache-conformance smoke`)"
                )

    def _exchange(
        self, requests: Sequence[Posted]
    ) -> tuple[list[tuple[Answer, str | None]], AdapterError | None]:
        """The last answer to each, and what is said of the state, as far as they came."""
        try:
            self._target.post(requests)
        except AdapterError as error:
            raise TargetError(str(error)) from None
        answers, wrong = self._target.collect()
        states = self._target.told_states
        if wrong is not None:
            self._process += 1
        came = [
            (a[-1] if a else Answer(), state) for a, state in zip(answers, states, strict=False)
        ]
        return came, wrong

    def _arrival(self, place: _Place, call: int, answer: Answer, state: str | None) -> Arrival:
        if answer.error is not None:
            return Arrival(None, answer.error, False, None, _unordered, None)
        path = (*place.path, call)
        self._told_all = self._told_all and (state is not None or not self._is_kept(place))
        found = _fingerprint(answer, state)
        reached = path, answer.observed, place
        return Arrival(answer.returns, None, False, found, _unordered, reached)


def _fingerprint(answer: Answer, state: str | None) -> Hashable:
    """What the state shows, and the text that tells it from others."""
    seen = answer.observed
    cached = {h: tuple(sorted(r)) for h, r in (seen.cached or {}).items()}
    held = {r: tuple(sorted(i)) for r, i in (seen.held or {}).items() if i}
    return (
        state,
        seen.num_free_slots,
        seen.num_freeable_slots,
        seen.freeable,
        tuple(sorted(cached.items())),
        tuple(sorted(held.items())),
    )
