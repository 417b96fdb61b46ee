"""Managers that decide rightly, or not at all, and do what a target must not do."""

from __future__ import annotations

from typing import Any

from mmcache import EncoderCacheManager, Request

__all__ = ["CannotBeMade", "Exits", "Hidden", "Prints", "Raises", "not_a_class"]


class Raises(EncoderCacheManager):
    """A call fails, with a message of two lines that looks like markup."""

    def allocate(self, request: Request, input_id: int) -> None:
        raise ValueError("[red]no\nroom[/red]")


class Exits(EncoderCacheManager):
    """A call asks the process to end, and to call that a success."""

    def allocate(self, request: Request, input_id: int) -> None:
        raise SystemExit(0)


class Prints(EncoderCacheManager):
    """A call prints to where the answers go."""

    def allocate(self, request: Request, input_id: int) -> None:
        print("allocating")
        super().allocate(request, input_id)


class CannotBeMade:
    """There is no making one."""

    def __init__(self, cache_size: int) -> None:
        raise RuntimeError("no GPU here")


class Hidden:
    """Shows no state, and has only the calls that every vLLM since 0.10.2 has."""

    def __init__(self, cache_size: int) -> None:
        self._inner = EncoderCacheManager(cache_size)

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        return self._inner.check_and_update_cache(request, input_id)

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_tokens_to_schedule: int,
    ) -> bool:
        return self._inner.can_allocate(
            request, input_id, encoder_compute_budget, num_tokens_to_schedule
        )

    def allocate(self, request: Request, input_id: int) -> None:
        self._inner.allocate(request, input_id)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        self._inner.free_encoder_input(request, input_id)

    def free(self, request: Request) -> None:
        self._inner.free(request)

    def get_freed_mm_hashes(self) -> list[str]:
        return self._inner.get_freed_mm_hashes()


not_a_class: Any = EncoderCacheManager(1)
