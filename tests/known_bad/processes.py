"""Managers for these tests: the reference, made wrong or noisy."""

from __future__ import annotations

from mmcache import EncoderCacheManager


class Unfiltered(EncoderCacheManager):
    """Reports every hash that was evicted."""

    conformance_capabilities = ("allocate_again",)

    def get_freed_mm_hashes(self) -> list[str]:
        freed, self.freed = self.freed, []
        return freed


class RefusesEverything(EncoderCacheManager):
    def can_allocate(self, *arguments: object) -> bool:
        return False


class Prints(EncoderCacheManager):
    def can_allocate(self, *arguments: object) -> bool:
        print("asked")
        return super().can_allocate(*arguments)  # type: ignore[arg-type]
