"""Small managers with vLLM's API that are right, and share no code with the reference.

They recompute everything from two plain structures, so that there is little to get wrong.
"""

from __future__ import annotations

from typing import Any


class Manager:
    """The specified manager, slow and simple."""

    def __init__(self, cache_size: int) -> None:
        self.cache_size = cache_size
        self.reset()

    def reset(self) -> None:
        self.sizes: dict[str, int] = {}
        self.uses: list[tuple[str, str, int]] = []  # (hash, request, input), as they were taken
        self.idle: list[str] = []  # unreferenced hashes, oldest first
        self.gone: list[str] = []

    @property
    def cached(self) -> dict[str, set[str]]:
        return {h: {r for g, r, _ in self.uses if g == h} for h in self.sizes}

    @property
    def freeable(self) -> list[str]:
        return list(self.idle)

    @property
    def num_free_slots(self) -> int:
        return self.cache_size - sum(self.sizes.values())

    @property
    def num_freeable_slots(self) -> int:
        return self.num_free_slots + sum(self.sizes[h] for h in self.idle)

    def get_cached_input_ids(self, request: Any) -> set[int]:
        return {i for _, r, i in self.uses if r == request.request_id}

    def _take(self, request: Any, input_id: int) -> None:
        h = request.mm_features[input_id].identifier
        use = (h, request.request_id, input_id)
        if use not in self.uses:
            self.uses.append(use)
        if h in self.idle:
            self.idle.remove(h)

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        if request.mm_features[input_id].identifier not in self.sizes:
            return False
        self._take(request, input_id)
        return True

    def can_allocate(
        self, request: Any, input_id: int, encoder_compute_budget: int, num_embeds_to_schedule: int
    ) -> bool:
        size = request.get_num_encoder_embeds(input_id)
        need = size + num_embeds_to_schedule
        if size > encoder_compute_budget or need > self.num_freeable_slots:
            return False
        while need > self.num_free_slots:
            h = self.idle.pop(0)
            del self.sizes[h]
            self.gone.append(h)
        return True

    def allocate(self, request: Any, input_id: int) -> None:
        h = request.mm_features[input_id].identifier
        self.sizes[h] = request.get_num_encoder_embeds(input_id)
        self._take(request, input_id)

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        h = request.mm_features[input_id].identifier
        use = (h, request.request_id, input_id)
        if use in self.uses:
            self.uses.remove(use)
            if not self.cached[h]:
                self.idle.append(h)

    def free(self, request: Any) -> None:
        for input_id in sorted(self.get_cached_input_ids(request)):
            self.free_encoder_input(request, input_id)

    def get_freed_mm_hashes(self) -> list[str]:
        report = [h for h in self.gone if h not in self.sizes]
        self.gone = []
        return report


class Attaches(Manager):
    """It says that an allocation of what is resident is a hit."""

    conformance_capabilities = ("allocate_again",)


class EncoderDecoder:
    """The specified manager of encoder-decoder models."""

    def __init__(self, cache_size: int) -> None:
        self.cache_size = cache_size
        self.reset()

    def reset(self) -> None:
        self.charged: dict[tuple[str, int], int] = {}
        self.this_pass: list[str] = []
        self.last_pass: list[str] = []

    @property
    def num_free_slots(self) -> int:
        return self.cache_size - sum(self.charged.values())

    def get_cached_input_ids(self, request: Any) -> set[int]:
        return set(range(len(request.mm_features)))

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        return False

    def can_allocate(
        self, request: Any, input_id: int, encoder_compute_budget: int, num_embeds_to_schedule: int
    ) -> bool:
        size = request.get_num_encoder_embeds(input_id)
        fits = size + num_embeds_to_schedule <= self.num_free_slots
        return bool(size <= encoder_compute_budget and fits)

    def allocate(self, request: Any, input_id: int) -> None:
        self.charged[request.request_id, input_id] = request.get_num_encoder_embeds(input_id)
        self.this_pass.append(request.mm_features[input_id].identifier)

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        self.charged.pop((request.request_id, input_id), None)

    def free(self, request: Any) -> None:
        for input_id in self.get_cached_input_ids(request):
            self.free_encoder_input(request, input_id)

    def get_freed_mm_hashes(self) -> list[str]:
        report, self.last_pass, self.this_pass = self.last_pass, self.this_pass, []
        return report
