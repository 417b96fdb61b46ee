"""The repairs, put on a vLLM scheduler at run time. Upstream's files stay as they are.

Each is as small as a patch to the release would be, and uses what the release has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["REPAIRS", "give_back_when_skipped", "resend_payloads", "withdraw_encodings"]


def withdraw_encodings(scheduler: Any) -> None:
    """What is allocated in a pass and preempted in it is undone, or handed to who has hit it.

    The clause is S2; the specification's switch is `withdrawal = hands_over_or_undoes`.
    """
    allocated: dict[str, list[int]] = {}
    """By request: the inputs that this pass has allocated."""
    inherited: list[tuple[str, int]] = []
    """Encodings that changed hands in this pass."""
    manager = scheduler.encoder_cache_manager
    withdraw = getattr(manager, "withdraw", None) or _withdrawal(scheduler)
    allocate = manager.allocate
    preempt, schedule = scheduler._preempt_request, scheduler.schedule
    updates = getattr(scheduler, "_get_encoder_input_updates", None)

    def allocating(request: Any, input_id: int) -> None:
        allocate(request, input_id)
        allocated.setdefault(request.request_id, []).append(input_id)

    def preempting(request: Any, *more: Any, **named: Any) -> Any:
        request_id = request.request_id
        lost = allocated.pop(request_id, [])
        lost += [i for r, i in inherited if r == request_id]
        inherited[:] = [place for place in inherited if place[0] != request_id]
        for input_id in lost:
            heir = withdraw(request, input_id)
            if heir is not None:
                inherited.append(heir)
        return preempt(request, *more, **named)

    def hand_over(ordered: dict[str, list[int]]) -> None:
        for request_id, input_id in inherited:
            ordered.setdefault(request_id, []).append(input_id)
        inherited.clear()

    def updating(scheduled: Any, new_requests: Any, ordered: dict[str, list[int]]) -> Any:
        hand_over(ordered)
        return updates(scheduled, new_requests, ordered)  # type: ignore[misc]

    def scheduling(*arguments: Any, **named: Any) -> Any:
        allocated.clear()
        inherited.clear()
        output = schedule(*arguments, **named)
        hand_over(output.scheduled_encoder_inputs)
        return output

    manager.allocate = allocating
    scheduler._preempt_request = preempting
    scheduler.schedule = scheduling
    if updates is not None:
        scheduler._get_encoder_input_updates = updating


def _withdrawal(scheduler: Any) -> Any:
    """`withdraw`, for vLLM's own manager."""
    manager = scheduler.encoder_cache_manager

    def positions(request: Any, mm_hash: str) -> list[int]:
        held = manager.get_cached_input_ids(request)
        return sorted(i for i in held if request.mm_features[i].identifier == mm_hash)

    def withdraw(request: Any, input_id: int) -> tuple[str, int] | None:
        mm_hash = request.mm_features[input_id].identifier
        for position in positions(request, mm_hash):
            manager.free_encoder_input(request, position)
        if references := manager.cached[mm_hash]:
            heir = min(references)
            return heir, positions(scheduler.requests[heir], mm_hash)[0]
        del manager.cached[mm_hash]
        manager.num_free_slots += manager.freeable.pop(mm_hash)
        getattr(manager, "num_embeds_by_hash", {}).pop(mm_hash, None)
        return None

    return withdraw


def resend_payloads(scheduler: Any) -> None:
    """A raw item that was left out under a prefix hit travels with the order to encode it.

    The clause is S8; the specification's switch is `payload = with_the_encoding`. It travels in
    `encoder_input_updates`, a field that 0.33.0 has and fills for the second runner; outputs
    of earlier releases get it here. The first runner must take it in, as the second does.
    """
    left_out: dict[str, set[int]] = {}
    """By request: the inputs whose raw item the worker did not get."""
    schedule = scheduler.schedule

    def scheduling(*arguments: Any, **named: Any) -> Any:
        output = schedule(*arguments, **named)
        for request_id in output.finished_req_ids:
            left_out.pop(request_id, None)
        for new in output.scheduled_new_reqs:
            own = scheduler.requests[new.req_id].mm_features
            pairs = enumerate(zip(new.mm_features, own, strict=True))
            left_out[new.req_id] = {i for i, (sent, mine) in pairs if sent.data is not mine.data}
        updates: dict[str, dict[int, Any]] = getattr(output, "encoder_input_updates", None) or {}
        for request_id, input_ids in output.scheduled_encoder_inputs.items():
            missing = left_out.get(request_id, set())
            for input_id in missing.intersection(input_ids):
                data = scheduler.requests[request_id].mm_features[input_id].data
                updates.setdefault(request_id, {})[input_id] = data
            missing.difference_update(input_ids)
        output.encoder_input_updates = updates
        return output

    scheduler.schedule = scheduling


def give_back_when_skipped(scheduler: Any) -> None:
    """A waiting request that no tokens are left for gives back what it has hit.

    The clause is S5; the specification's switch is `skipped = gives_back`. It is what the release
    does for a waiting request that is refused its blocks.
    """
    manager, schedule = scheduler.encoder_cache_manager, scheduler.schedule
    considered: list[Any] = []
    look_up = scheduler._try_schedule_encoder_inputs

    def looking_up(request: Any, *more: Any, **named: Any) -> Any:
        considered.append(request)
        return look_up(request, *more, **named)

    def scheduling(*arguments: Any, **named: Any) -> Any:
        considered.clear()
        output = schedule(*arguments, **named)
        for request in considered:
            # One that waits for a remote KV cache has blocks, and keeps what it has hit.
            if request.status.name in ("WAITING", "PREEMPTED"):
                manager.free(request)
        return output

    scheduler._try_schedule_encoder_inputs = looking_up
    scheduler.schedule = scheduling


REPAIRS: dict[str, Callable[[Any], None]] = {
    "withdraw": withdraw_encodings,
    "payload": resend_payloads,
    "skip": give_back_when_skipped,
}
"""By the word that asks for each in the name of a target."""
