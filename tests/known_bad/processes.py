"""Engines for these tests: the reference, made wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

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


class Dies(EncoderCacheManager):
    """Takes its process down, whatever is asked."""

    def can_allocate(self, *arguments: object) -> bool:
        os._exit(9)


class Prints(EncoderCacheManager):
    def can_allocate(self, *arguments: object) -> bool:
        print("asked")
        return super().can_allocate(*arguments)  # type: ignore[arg-type]


class Slow(EncoderCacheManager):
    """Says that it has begun, and takes its time."""

    def can_allocate(self, *arguments: object) -> bool:
        Path(os.environ["SLOW_MARK"]).touch()
        time.sleep(1)
        return super().can_allocate(*arguments)  # type: ignore[arg-type]
