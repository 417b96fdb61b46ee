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

    A target that makes no pass breaks nothing, which must not count as keeping everything; nor is
    anything known of one that tells of requests or items which the workload does not have.
    """
    for record in records:
        if (strange := _strange(vector, record)) is not None:
            return f"pass {record.number} tells of {strange}, which the workload does not have"
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


def _strange(vector: EngineVector, record: PassRecord) -> str | None:
    """A request, a place or a hash that is none of the workload's.

    What only the worker holds, or only the ledger has cached, is left to the clauses, and so is who
    references it.
    """
    items = {r.request_id: len(r.items) for r in vector.requests}
    ordered = [(r, i) for r, ids in record.scheduled_encoder_inputs.items() for i in ids]
    places = [*record.allocated, *record.hits, *ordered]
    requests = {
        *record.num_scheduled_tokens,
        *record.starts,
        *record.preempted,
        *record.running,
        *record.waiting,
        *(r for r, _ in places),
    }
    if unknown := sorted(requests - items.keys()):
        return f"request {unknown[0]!r}"
    for request, k in places:
        if not 0 <= k < items[request]:
            return f"item {k} of request {request!r}"
    both = set(record.cached) & set(record.worker)
    hashes = {*record.report, *record.gathered, *record.missed, *record.without_payload, *both}
    if unknown := sorted(hashes - _sizes(vector).keys()):
        return f"hash {unknown[0]!r}"
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
    # What it holds beyond all items of the workload breaks S3, and has no size that is known.
    if (size := sum(sizes.get(h, 0) for h in held)) > cache_size:
        found["S4"] = f"the worker holds {size} embeddings of {cache_size}"
    orphans = sorted({r for rs in record.references.values() for r in rs} - set(record.running))
    if orphans:
        found["S5"] = f"referring without running: {', '.join(orphans)}"
    if record.without_payload:
        found["S8"] = f"to be encoded without its raw item: {', '.join(record.without_payload)}"
    return found


def _sizes(vector: EngineVector) -> dict[str, int]:
    return {i.identifier: i.num_embeds for r in vector.requests for i in r.items}
