"""The clauses of an engine, checked on what its passes did. It knows no engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from mmcache_vectors.engine import EngineClause, EngineVector

from .progress import Progress
from .protocol import PassRecord

__all__ = ["Breach", "breaches", "judge", "unplayed"]


class Breach(msgspec.Struct, frozen=True):
    """A clause that a pass did not keep."""

    pass_number: int
    clause: str
    says: str
    """What was found, for people."""


def judge(vector: EngineVector, records: Sequence[PassRecord]) -> tuple[Breach, ...]:
    """The first breach of each expected clause, in the order of the passes.

    An engine that raises breaks whatever it was about to do: the clause is then `error`.
    """
    found: dict[str, Breach] = {}
    sizes, progress = _sizes(vector), Progress(vector)
    for record in records:
        wrong: dict[str, str] = {}
        wrong.update(breaches(record, sizes, vector.engine.cache_size).items())
        if record.error is not None:
            wrong = {"error": record.error}
        if (stalled := progress.observe(record)) is not None:
            wrong["S7"] = stalled
        for clause in ("error", *vector.expect.every_pass):
            if clause in wrong and clause not in found:
                found[clause] = Breach(record.number, clause, wrong[clause])
    last = records[-1] if records else None
    # After a miss nothing is expected any more.
    if last is not None and (last.running or last.waiting) and not found:
        says = f"unfinished after the last pass: {_unfinished(last)}"
        found["S7"] = Breach(last.number, "S7", says)
    return tuple(found.values())


def unplayed(vector: EngineVector, records: Sequence[PassRecord]) -> str | None:
    """What of the workload the passes leave out, so that no clause could be judged on it.

    A target that makes no pass breaks nothing, which must not count as keeping everything.
    """
    numbers = [record.number for record in records]
    if numbers != list(range(len(records))):
        return f"the passes are numbered {numbers}, not one after the other from 0"
    last = records[-1] if records else None
    if last is not None and (last.missed or last.error is not None):
        return None
    late = [r.request_id for r in vector.requests if r.arrival >= len(records)]
    if late and len(records) < vector.expect.max_passes:
        return f"the engine made {len(records)} passes, and never came to {', '.join(late)}"
    return None


def _unfinished(record: PassRecord) -> str:
    return ", ".join((*record.running, *record.waiting))


def breaches(
    record: PassRecord, sizes: Mapping[str, int], cache_size: int
) -> dict[EngineClause, str]:
    """The clauses that this one pass breaks, each with what was found."""
    found: dict[EngineClause, str] = {}
    held, cached = set(record.worker), set(record.cached)
    if record.missed:
        found["S1"] = f"Encoder cache miss for {', '.join(record.missed)}."
    if both := sorted(set(record.report) & cached):
        found["L1"] = f"reported as freed and cached: {', '.join(both)}"
    if phantom := sorted(cached - held):
        found["S2"] = f"cached, and not at the worker: {', '.join(phantom)}"
    if held != cached:
        found["S3"] = f"the worker holds {sorted(held)}, the ledger has cached {sorted(cached)}"
    if (size := sum(sizes[h] for h in held)) > cache_size:
        found["S4"] = f"the worker holds {size} embeddings of {cache_size}"
    orphans = sorted({r for rs in record.references.values() for r in rs} - set(record.running))
    if orphans:
        found["S5"] = f"referring without running: {', '.join(orphans)}"
    if record.without_payload:
        found["S8"] = f"to be encoded without its raw item: {', '.join(record.without_payload)}"
    return found


def _sizes(vector: EngineVector) -> dict[str, int]:
    return {i.identifier: i.num_embeds for r in vector.requests for i in r.items}
