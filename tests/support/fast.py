"""The fast model of `check` as managers, so that `exhaust` can compare it with the spec."""

from __future__ import annotations

from typing import Any

from mmcache_conformance.logs.follow import FastEncoderDecoder, FastLedger
from mmcache_conformance.logs.format import (
    Allocated,
    Asked,
    Event,
    Freed,
    FreedInput,
    LookedUp,
    Reported,
    WasReset,
)


class _Driven:
    """Turns calls into the events that a recorder would write, and gives back the answers."""

    conformance_capabilities = ("allocate_again",)

    def _do(self: Any, event: Event) -> Any:
        answer = self.answer(event)
        self.apply(event)
        return answer

    def _item(self, request: Any, input_id: int) -> tuple[str, int, str, int]:
        identifier = request.mm_features[input_id].identifier
        return request.request_id, input_id, identifier, request.get_num_encoder_embeds(input_id)

    def check_and_update_cache(self, request: Any, input_id: int) -> Any:
        return self._do(LookedUp("", 0, *self._item(request, input_id), False))

    def can_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> Any:
        return self._do(Asked("", 0, *self._item(request, input_id), budget, pending, False))

    def allocate(self, request: Any, input_id: int) -> Any:
        return self._do(Allocated("", 0, *self._item(request, input_id)))

    def free_encoder_input(self, request: Any, input_id: int) -> Any:
        return self._do(FreedInput("", 0, request.request_id, input_id))

    def free(self, request: Any) -> Any:
        return self._do(Freed("", 0, request.request_id))

    def get_freed_mm_hashes(self) -> Any:
        return self._do(Reported("", 0, ()))

    def reset(self) -> Any:
        return self._do(WasReset("", 0))


class Ledger(_Driven, FastLedger):
    @property
    def num_free_slots(self) -> int:
        return self.free_slots

    @property
    def num_freeable_slots(self) -> int:
        return self.freeable_slots

    @property
    def cached(self) -> dict[str, set[str]]:
        return {mm_hash: set(users) for mm_hash, users in self.references.items()}

    def get_cached_input_ids(self, request: Any) -> set[int]:
        return set(self.held.get(request.request_id, ()))


class EncoderDecoder(_Driven, FastEncoderDecoder):
    @property
    def num_free_slots(self) -> int:
        return self.free_slots


TARGET = f"{__name__}:Ledger,{__name__}:EncoderDecoder"
