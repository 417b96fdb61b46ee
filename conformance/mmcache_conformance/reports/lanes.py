"""A failing vector as two lanes, step by step: what the ledger says, and what a worker then holds.

The worker is not run: it is the obedient one of the protocol, which encodes what is allocated and
drops what is reported. Up to the failing step the lanes follow the expected answers, which were
given, as far as the target shows them. At that step they show both: the ledger as specified and the
target's own, what should have come back and what did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgspec

from mmcache_vectors.manager import (
    Allocate,
    Call,
    GetFreedMmHashes,
    Item,
    Observed,
    Parameters,
    Reset,
    Vector,
)

from ..verdicts.model import CallFailure
from .story import call_text, value_text

__all__ = ["Ledger", "Row", "rows"]


@dataclass(frozen=True)
class Ledger:
    """A ledger as it shows itself after a step; None stands for what it does not show."""

    cached: tuple[tuple[str, str], ...] | None
    """Each cached hash and who references it."""
    freeable: tuple[str, ...] | None
    """The hashes that may be evicted, the next one first."""
    free_slots: int | None
    """Embeddings that are not in use."""

    def counts_on(self, mm_hash: str) -> bool | None:
        """Whether the hash is cached; None if the ledger does not show that."""
        if self.cached is None:
            return None
        return any(mm_hash == cached for cached, _ in self.cached)


@dataclass(frozen=True)
class Row:
    """One step. Ledger and worker are as they should be after it."""

    number: int
    """Counted from 1."""
    call: str
    returns: str | None
    ledger: Ledger
    """As specified."""
    worker: tuple[str, ...]
    change: str
    """What the step does to the worker."""
    own: Ledger | None = None
    """At the failing step: the ledger that the target shows; nothing if the call failed."""
    instead: tuple[str, ...] | None = None
    """At the failing step: what the worker holds after the answer that was given, if it differs."""


def rows(vector: Vector, failure: CallFailure, shown: Collection[str]) -> tuple[Row, ...]:
    """The steps up to the failing one. A call that failed changes no worker.

    Args:
        vector: The vector that failed.
        failure: Where, and what came instead.
        shown: The observables that the target has.
    """
    worker: dict[str, None] = {}
    found: list[Row] = []
    for k, step in enumerate(vector.steps[: failure.step + 1]):
        before = tuple(worker)
        worker = _obey(before, step.call, step.expect.returns, vector.parameters)
        got = _got(failure) if k == failure.step else None
        instead = None
        if got is not None:
            after = _obey(before, step.call, got, vector.parameters)
            instead = tuple(after) if set(after) != set(worker) else None
        returns = step.expect.returns
        found.append(
            Row(
                k + 1,
                call_text(step.call, vector.parameters),
                None if returns is None else value_text(returns),
                _ledger(step.expect.observe),
                tuple(worker),
                _change(before, tuple(worker)),
                _own(step.expect.observe, failure, shown) if k == failure.step else None,
                instead,
            )
        )
    return tuple(found)


def _got(failure: CallFailure) -> tuple[str, ...] | None:
    """The report that was given, where it is the wrong one."""
    if not isinstance(failure.call, GetFreedMmHashes):
        return None
    wrong = next((d.got for d in failure.differences if d.what == "returns"), None)
    if not isinstance(wrong, tuple) or not all(isinstance(h, str) for h in wrong):
        return None
    return wrong


def _obey(
    before: Iterable[str], call: Call, returns: object, parameters: Parameters
) -> dict[str, None]:
    worker = dict.fromkeys(before)
    if isinstance(call, Allocate):
        worker[_item(call, parameters).identifier] = None
    elif isinstance(call, GetFreedMmHashes) and isinstance(returns, tuple):
        for mm_hash in returns:
            worker.pop(mm_hash, None)
    elif isinstance(call, Reset):
        worker.clear()
    return worker


def _item(call: Allocate, parameters: Parameters) -> Item:
    request = next(r for r in parameters.requests if r.request_id == call.request)
    return request.items[call.input_id]


def _change(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    encoded = [h for h in after if h not in before]
    dropped = [h for h in before if h not in after]
    words = [f"encodes {h}" for h in encoded] + [f"drops {h}" for h in dropped]
    return ", ".join(words)


def _ledger(observed: Observed) -> Ledger:
    cached = observed.cached
    return Ledger(
        None
        if cached is None
        else tuple((h, ", ".join(users) or "nobody") for h, users in cached.items()),
        observed.freeable,
        observed.num_free_slots,
    )


def _own(expected: Observed, failure: CallFailure, shown: Collection[str]) -> Ledger | None:
    """What the target shows: as expected, but for what differs and what it does not show."""
    got = {d.what: d.got for d in failure.differences}
    if "error" in got:
        return None
    seen = Observed()
    for name in shown:
        value = got.get(name, getattr(expected, name, None))
        try:
            seen = msgspec.convert({**msgspec.structs.asdict(seen), name: value}, Observed)
        except msgspec.ValidationError:
            continue
    return _ledger(seen)
