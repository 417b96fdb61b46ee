"""A count of so few bits that it begins again within some hundred calls, whatever it counts.

Each foe is the reference, and takes the call or the entry at which its count is 0 again for one
that was not. The vectors that turn notice it.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import pytest

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager, Request
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.protocol import case_of
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.verdicts.judge import first_difference
from mmcache_vectors.manager import Vector

WHEELS = {v.manager: v for v in load_suite() if v.id.startswith("wheel-")}


class Counting(EncoderCacheManager):
    """At every `period`-th of what it counts, it does as if nothing had been asked."""

    counts: ClassVar[str]
    period: ClassVar[int]

    def __init__(self, cache_size: int) -> None:
        self.counted: Counter[object] = Counter()
        super().__init__(cache_size)

    def is_zero(self, what: str, of: object = None) -> bool:
        """Whether this is what it counts, and the count begins again."""
        if not self.counts.startswith(what):
            return False
        self.counted[of] += 1
        return self.counted[of] % self.period == 0

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        mm_hash = request.mm_features[input_id].identifier
        if mm_hash not in self.cached:
            return self.is_zero("misses")
        of = mm_hash if self.counts == "hits of a hash" else None
        if self.is_zero("hits", of):
            return True
        return super().check_and_update_cache(request, input_id)

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        before, kept = set(self.cached), len(self.freed)
        admitted = super().can_allocate(request, input_id, budget, pending)
        if not admitted:
            return self.is_zero("refusals")
        if self.is_zero("admissions"):
            return False
        for mm_hash in before - set(self.cached):
            if self.is_zero("evictions", mm_hash if self.counts.endswith("hash") else None):
                del self.freed[kept:]
        return True

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        if self.is_zero("allocations"):
            self.num_free_slots += 1
            self.num_freeable_slots += 1

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        of = request.request_id if self.counts.endswith("request") else None
        if self.is_zero("releases", of):
            return
        super().free_encoder_input(request, input_id)
        if self.is_zero("ages"):  # the newest is taken for the oldest
            self.freeable.move_to_end(request.mm_features[input_id].identifier, last=False)

    def get_freed_mm_hashes(self) -> list[str]:
        told = super().get_freed_mm_hashes()
        return [] if self.is_zero("reports") else told


class Charging(EncoderDecoderCacheManager):
    """The same of the manager of encoder-decoder models."""

    counts: ClassVar[str]
    period: ClassVar[int]

    def __init__(self, cache_size: int) -> None:
        self.counted = 0
        super().__init__(cache_size)

    def is_zero(self, what: str) -> bool:
        self.counted += self.counts == what
        return self.counts == what and self.counted % self.period == 0

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        admitted = super().can_allocate(request, input_id, budget, pending)
        return admitted != self.is_zero("admissions" if admitted else "refusals")

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        if not self.is_zero("releases"):
            super().free_encoder_input(request, input_id)

    def get_freed_mm_hashes(self) -> list[str]:
        told = super().get_freed_mm_hashes()
        return [] if self.is_zero("reports") else told


EVERY_ROUND = (
    "hits",
    "admissions",
    "allocations",
    "evictions",
    "releases",
    "ages",
    "reports",
)
"""Counts that each round moves. Those below move in some rounds only."""

CASES = [
    *((Counting, counts, width) for counts in EVERY_ROUND for width in (8, 9, 10)),
    *(
        (Counting, counts, 8)
        for counts in (
            "misses",
            "refusals",
            "hits of a hash",
            "evictions of a hash",
            "releases of a request",
        )
    ),
    *(
        (Charging, counts, w)
        for counts in ("admissions", "releases", "reports")
        for w in (8, 9, 10)
    ),
    (Charging, "refusals", 8),
]


def first_wrong(foe: type[Counting | Charging], counts: str, period: int) -> int | None:
    """The call of the wheel at which the foe is noticed, if it is."""
    made = type("Foe", (foe,), {"counts": counts, "period": period})
    vector = WHEELS["encoder_cache" if foe is Counting else "encoder_decoder"]
    return noticed(made, vector)


def noticed(made: type, vector: Vector) -> int | None:
    ledger = made if vector.manager == "encoder_cache" else None
    target = PythonTarget(
        "foe", lambda: ManagerClasses("foe", ledger, None if ledger is made else made)
    )
    target.start()
    wrong = first_difference(vector.steps, target.run(case_of(vector)))
    return None if wrong is None else wrong[0]


@pytest.mark.parametrize(("foe", "counts", "width"), CASES)
def test_a_count_that_begins_again_is_noticed(
    foe: type[Counting | Charging], counts: str, width: int
) -> None:
    assert first_wrong(foe, counts, 1 << width) is not None


@pytest.mark.parametrize(("foe", "counts"), [(Counting, "releases"), (Charging, "releases")])
def test_a_count_that_never_begins_again_is_right(
    foe: type[Counting | Charging], counts: str
) -> None:
    """Else the foes would be noticed for something else."""
    assert first_wrong(foe, counts, 1 << 40) is None
