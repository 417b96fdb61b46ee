"""A failing vector as two lanes, step by step: what the ledger says, and what a worker then holds.

The worker is not run: it is the obedient one of the protocol, which encodes what is allocated and
drops what is reported. Up to the failing step the lanes follow the expected answers, which were
given; at that step they show both, what should have come back and what did.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mmcache_vectors.manager import (
    Allocate,
    Call,
    Expect,
    GetFreedMmHashes,
    Item,
    Parameters,
    Reset,
    Vector,
)

from ..verdicts.model import Failure
from .story import call_text, value_text

__all__ = ["Row", "rows"]


class Row(msgspec.Struct, frozen=True):
    """One step. Ledger and worker are as they should be after it."""

    number: int
    """Counted from 1."""
    call: str
    returns: str | None
    cached: tuple[tuple[str, str], ...] | None
    """Each cached hash and who references it; nothing if the vector does not look."""
    worker: tuple[str, ...]
    change: str
    """What the step does to the worker."""
    instead: tuple[str, ...] | None = None
    """At the failing step: what the worker holds after the answer that was given, if it differs."""


def rows(vector: Vector, failure: Failure) -> tuple[Row, ...]:
    """The steps up to the failing one. A call that failed changes no worker."""
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
                _cached(step.expect),
                tuple(worker),
                _change(before, tuple(worker)),
                instead,
            )
        )
    return tuple(found)


def _got(failure: Failure) -> tuple[str, ...] | None:
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


def _cached(expect: Expect) -> tuple[tuple[str, str], ...] | None:
    cached = expect.observe.cached
    if cached is None:
        return None
    return tuple((h, ", ".join(users) or "nobody") for h, users in cached.items())
