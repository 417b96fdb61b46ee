"""The situations that engine vectors are about: whether the passes of an engine came to them.

What is scheduled when is the engine's own affair. One that never comes to the situation passes, but
its passing says little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmcache_vectors.engine import EngineVector, ResetBothSides, Situation

from .protocol import PassRecord, Place

__all__ = ["reaches"]


def reaches(vector: EngineVector, records: Sequence[PassRecord]) -> bool | None:
    """Whether the passes came to the situation that the vector is about; None if it has none."""
    if vector.situation is None:
        return None
    return _SITUATIONS[vector.situation](vector, records)


def _withdrawn(record: PassRecord) -> set[Place]:
    ordered = {(r, i) for r, ids in record.scheduled_encoder_inputs.items() for i in ids}
    return {place for place in record.allocated if place not in ordered} & {
        (r, i) for r, i in record.allocated if r in record.preempted
    }


def _hash(vector: EngineVector, place: Place) -> str:
    (request,) = (r for r in vector.requests if r.request_id == place[0])
    return request.items[place[1]].identifier


def _encoding_withdrawn(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
    return any(_withdrawn(record) for record in records)


def _encoding_shared(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
    return any(
        _hash(vector, place) in {_hash(vector, hit) for hit in record.hits if hit[0] != place[0]}
        for record in records
        for place in _withdrawn(record)
    )


def _encoded_hashes(vector: EngineVector, record: PassRecord) -> set[str]:
    ordered = record.scheduled_encoder_inputs.items()
    return {_hash(vector, (r, i)) for r, ids in ordered for i in ids}


def _encoded_while_held(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
    return any(_encoded_hashes(vector, r) & set(r.held_before) for r in records)


def _encoded_after_prefix_hit(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
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


def _hit_while_waiting(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
    return any(hit[0] in record.waiting for record in records for hit in record.hits)


def _hash_dropped(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
    held = [set(record.held_before) | set(record.worker) for record in records]
    cached = [set(record.cached) for record in records]
    return any(h - c for h, c in zip(held, cached, strict=True))


def _reset_while_held(vector: EngineVector, records: Sequence[PassRecord]) -> bool:
    when = {e.before_pass for e in vector.events if isinstance(e, ResetBothSides)}
    return any(record.number + 1 in when and record.worker for record in records)


_SITUATIONS: dict[Situation, Callable[[EngineVector, Sequence[PassRecord]], bool]] = {
    "encoding_withdrawn": _encoding_withdrawn,
    "encoding_shared_when_withdrawn": _encoding_shared,
    "encoded_while_held": _encoded_while_held,
    "encoded_after_prefix_hit": _encoded_after_prefix_hit,
    "hit_while_waiting": _hit_while_waiting,
    "hash_dropped": _hash_dropped,
    "reset_while_held": _reset_while_held,
}
