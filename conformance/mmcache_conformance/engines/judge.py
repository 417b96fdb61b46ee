"""The clauses of the system, checked on what a pass did. It knows no engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from mmcache_vectors.engine import Clause, ResetBothSides, Situation, SystemVector

from .protocol import PassRecord

__all__ = ["Breach", "breaches", "judge", "reaches"]


class Breach(msgspec.Struct, frozen=True):
    """A clause that a pass did not keep."""

    pass_number: int
    clause: str
    says: str
    """What was found, for people."""


def judge(vector: SystemVector, records: Sequence[PassRecord]) -> tuple[Breach, ...]:
    """The first breach of each expected clause, in the order of the passes.

    An engine that raises breaks whatever it was about to do: the clause is then `error`.
    """
    found: dict[str, Breach] = {}
    sizes, idle = _sizes(vector), 0
    for record in records:
        wrong: dict[str, str] = {}
        wrong.update(breaches(record, sizes, vector.engine.cache_size).items())
        if record.error is not None:
            wrong = {"error": record.error}
        unfinished = bool(record.running or record.waiting)
        idle = idle + 1 if unfinished and not any(record.num_scheduled_tokens.values()) else 0
        if idle == vector.expect.stall_after:
            wrong["S7"] = f"{idle} passes without a token; unfinished: {_unfinished(record)}"
        for clause in ("error", *vector.expect.every_pass):
            if clause in wrong and clause not in found:
                found[clause] = Breach(record.number, clause, wrong[clause])
    last = records[-1] if records else None
    # After a miss nothing is expected any more.
    if last is not None and (last.running or last.waiting) and not found:
        says = f"unfinished after the last pass: {_unfinished(last)}"
        found["S7"] = Breach(last.number, "S7", says)
    return tuple(found.values())


def _unfinished(record: PassRecord) -> str:
    return ", ".join((*record.running, *record.waiting))


def breaches(record: PassRecord, sizes: Mapping[str, int], cache_size: int) -> dict[Clause, str]:
    """The clauses that this one pass breaks, each with what was found."""
    found: dict[Clause, str] = {}
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


def _sizes(vector: SystemVector) -> dict[str, int]:
    return {i.identifier: i.num_embeds for r in vector.requests for i in r.items}


# --- situations --------------------------------------------------------------------------------


def reaches(vector: SystemVector, records: Sequence[PassRecord]) -> bool | None:
    """Whether the passes came to the situation that the vector is about; None if it has none."""
    if vector.situation is None:
        return None
    return _SITUATIONS[vector.situation](vector, records)


def _withdrawn(record: PassRecord) -> set[tuple[str, int]]:
    ordered = {(r, i) for r, ids in record.scheduled_encoder_inputs.items() for i in ids}
    return {place for place in record.allocated if place not in ordered} & {
        (r, i) for r, i in record.allocated if r in record.preempted
    }


def _hash(vector: SystemVector, place: tuple[str, int]) -> str:
    (request,) = (r for r in vector.requests if r.request_id == place[0])
    return request.items[place[1]].identifier


def _encoding_withdrawn(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    return any(_withdrawn(record) for record in records)


def _encoding_shared(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    return any(
        _hash(vector, place) in {_hash(vector, hit) for hit in record.hits if hit[0] != place[0]}
        for record in records
        for place in _withdrawn(record)
    )


def _encoded_hashes(vector: SystemVector, record: PassRecord) -> set[str]:
    ordered = record.scheduled_encoder_inputs.items()
    return {_hash(vector, (r, i)) for r, ids in ordered for i in ids}


def _encoded_while_held(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    return any(_encoded_hashes(vector, r) & set(r.held_before) for r in records)


def _encoded_after_prefix_hit(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    first: dict[str, int] = {}
    for record in records:
        for request_id, ids in record.scheduled_encoder_inputs.items():
            (request,) = (r for r in vector.requests if r.request_id == request_id)
            for i in ids:
                item = request.items[i]
                if first.get(request_id, 0) >= item.position + item.num_embeds:
                    return True
        for request_id, start in record.starts.items():
            first.setdefault(request_id, start)
    return False


def _hit_while_waiting(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    return any(hit[0] in record.waiting for record in records for hit in record.hits)


def _hash_dropped(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    held = [set(record.held_before) | set(record.worker) for record in records]
    cached = [set(record.cached) for record in records]
    return any(h - c for h, c in zip(held, cached, strict=True))


def _reset_while_held(vector: SystemVector, records: Sequence[PassRecord]) -> bool:
    when = {e.before_pass for e in vector.events if isinstance(e, ResetBothSides)}
    return any(record.number + 1 in when and record.worker for record in records)


_SITUATIONS: dict[Situation, Callable[[SystemVector, Sequence[PassRecord]], bool]] = {
    "encoding_withdrawn": _encoding_withdrawn,
    "encoding_shared_when_withdrawn": _encoding_shared,
    "encoded_while_held": _encoded_while_held,
    "encoded_after_prefix_hit": _encoded_after_prefix_hit,
    "hit_while_waiting": _hit_while_waiting,
    "hash_dropped": _hash_dropped,
    "reset_while_held": _reset_while_held,
}
