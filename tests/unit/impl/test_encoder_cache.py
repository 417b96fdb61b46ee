"""The shared encoder cache, clause by clause."""

from __future__ import annotations

from typing import Any

import pytest

from mmcache import EncoderCacheManager
from tests.support.requests import request_of

ANY_BUDGET = 10**9


def admit(manager: EncoderCacheManager, request: Any, input_id: int, pending: int = 0) -> bool:
    """What a scheduler does with an item that it wants: look it up, ask for room, allocate."""
    if manager.check_and_update_cache(request, input_id):
        return True
    if not manager.can_allocate(request, input_id, ANY_BUDGET, pending):
        return False
    manager.allocate(request, input_id)
    return True


@pytest.fixture
def manager() -> EncoderCacheManager:
    return EncoderCacheManager(10)


def test_a_new_ledger_is_empty(manager: EncoderCacheManager) -> None:
    """L10: what a reset comes back to."""
    assert manager.cache_size == manager.num_free_slots == manager.num_freeable_slots == 10
    assert manager.cached == {}
    assert manager.freeable == {}
    assert manager.freed == []
    assert manager.get_freed_mm_hashes() == []
    answer: object = getattr(manager, "get_manager_metadata")()  # noqa: B009  # typed as no answer
    assert answer is None


class TestL1ReportDisjointFromCached:
    def test_evicted_and_allocated_again_in_one_pass_is_not_reported(
        self, manager: EncoderCacheManager
    ) -> None:
        old = request_of("r1", "A4", "B4")
        assert admit(manager, old, 0)
        assert admit(manager, old, 1)
        manager.free(old)
        new = request_of("r2", "C6", "A4")
        assert admit(manager, new, 0)
        assert "A" not in manager.cached
        assert admit(manager, new, 1)
        assert manager.get_freed_mm_hashes() == ["B"]
        assert set(manager.cached) == {"C", "A"}


class TestL2ReportCompleteAndCleared:
    def test_reports_in_order_of_eviction_and_only_once(self, manager: EncoderCacheManager) -> None:
        old = request_of("r1", "A3", "B3", "C4")
        for i in range(3):
            assert admit(manager, old, i)
        for i in (1, 2, 0):
            manager.free_encoder_input(old, i)
        assert admit(manager, request_of("r2", "D9"), 0)
        assert manager.get_freed_mm_hashes() == ["B", "C", "A"]
        assert manager.get_freed_mm_hashes() == []

    def test_a_hash_evicted_twice_is_reported_once(self, manager: EncoderCacheManager) -> None:
        for name in ("r1", "r2"):
            for item in ("A9", "B9"):
                request = request_of(name, item)
                assert admit(manager, request, 0)
                manager.free(request)
        assert manager.freed == ["A", "B", "A"]
        assert manager.get_freed_mm_hashes() == ["A"]

    def test_the_report_belongs_to_the_caller(self, manager: EncoderCacheManager) -> None:
        for item in ("A9", "B9"):
            request = request_of("r1", item)
            assert admit(manager, request, 0)
            manager.free(request)
        report = manager.get_freed_mm_hashes()
        manager.reset()
        assert report == ["A"]


class TestL3FreeSlotsConserved:
    def test_an_item_is_charged_once_however_often_it_is_used(
        self, manager: EncoderCacheManager
    ) -> None:
        twice = request_of("r1", "A6", "A6")
        manager.allocate(twice, 0)
        manager.allocate(twice, 1)
        manager.allocate(request_of("r2", "A6"), 0)
        assert manager.num_free_slots == 4
        assert manager.num_freeable_slots == 4
        assert manager.cached == {"A": {"r1", "r2"}}

    def test_room_is_charged_until_the_eviction(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A6")
        assert admit(manager, request, 0)
        manager.free(request)
        assert manager.num_free_slots == 4
        assert manager.can_allocate(request_of("r2", "B5"), 0, ANY_BUDGET, 0)
        assert manager.num_free_slots == 10


class TestL4FreeableSlotsConserved:
    def test_freeable_slots_follow_references(self, manager: EncoderCacheManager) -> None:
        request, other = request_of("r1", "A6"), request_of("r2", "A6")
        assert admit(manager, request, 0)
        assert manager.num_freeable_slots == 4
        manager.free(request)
        assert manager.num_freeable_slots == 10
        assert manager.check_and_update_cache(other, 0)
        assert manager.num_freeable_slots == 4


class TestL5FreeableIffUnreferenced:
    def test_freeable_after_the_last_of_the_requests(self, manager: EncoderCacheManager) -> None:
        first, second = request_of("r1", "A4"), request_of("r2", "A4")
        assert admit(manager, first, 0)
        assert admit(manager, second, 0)
        manager.free(first)
        assert manager.cached == {"A": {"r2"}}
        assert manager.freeable == {}
        manager.free(second)
        assert manager.cached == {"A": set()}
        assert manager.freeable == {"A": 4}

    @pytest.mark.parametrize("call", ["check_and_update_cache", "allocate"])
    def test_a_new_reference_takes_it_out_of_the_freeable(
        self, manager: EncoderCacheManager, call: str
    ) -> None:
        first = request_of("r1", "A4")
        assert admit(manager, first, 0)
        manager.free(first)
        getattr(manager, call)(request_of("r2", "A4"), 0)
        assert manager.freeable == {}
        assert not manager.can_allocate(request_of("r3", "B7"), 0, ANY_BUDGET, 0)
        assert manager.cached == {"A": {"r2"}}


class TestL6EvictionIsOldestFirstAndMinimal:
    @pytest.mark.parametrize(
        ("wanted", "evicted"),
        [("E1", []), ("E2", ["B"]), ("E3", ["B"]), ("E4", ["B", "C"]), ("E9", ["B", "C", "A"])],
    )
    def test_evicts_no_more_than_it_must(
        self, manager: EncoderCacheManager, wanted: str, evicted: list[str]
    ) -> None:
        old = request_of("r1", "A4", "B2", "C3")
        for i in range(3):
            assert admit(manager, old, i)
        for i in (1, 2, 0):
            manager.free_encoder_input(old, i)
        assert manager.can_allocate(request_of("r2", wanted), 0, ANY_BUDGET, 0)
        assert manager.freed == evicted

    def test_a_hit_makes_a_hash_young_again(self, manager: EncoderCacheManager) -> None:
        old = request_of("r1", "A4", "B4")
        assert admit(manager, old, 0)
        assert admit(manager, old, 1)
        manager.free(old)
        again = request_of("r2", "A4")
        assert manager.check_and_update_cache(again, 0)
        manager.free(again)
        assert list(manager.freeable) == ["B", "A"]

    def test_an_item_without_embeddings_needs_no_eviction(self) -> None:
        manager = EncoderCacheManager(0)
        assert admit(manager, request_of("r1", "A0"), 0)
        assert manager.cached == {"A": {"r1"}}


class TestL7AdmissionIsExact:
    @pytest.mark.parametrize(
        ("item", "budget", "pending", "admitted"),
        [
            ("B6", 6, 0, True),
            ("B6", 5, 0, False),
            ("B6", 6, 1, False),
            ("B5", 9, 1, True),
            ("B0", 0, 6, True),
            ("B0", -1, 0, False),
        ],
    )
    def test_budget_and_room(
        self, manager: EncoderCacheManager, item: str, budget: int, pending: int, admitted: bool
    ) -> None:
        assert admit(manager, request_of("r1", "A4"), 0)
        assert manager.can_allocate(request_of("r2", item), 0, budget, pending) is admitted

    def test_a_refusal_evicts_nothing(self, manager: EncoderCacheManager) -> None:
        kept, old = request_of("r1", "A4"), request_of("r2", "B5")
        assert admit(manager, kept, 0)
        assert admit(manager, old, 0)
        manager.free(old)
        assert not manager.can_allocate(request_of("r3", "C7"), 0, ANY_BUDGET, 0)
        assert manager.freeable == {"B": 5}
        assert manager.get_freed_mm_hashes() == []


class TestL8ReferenceUntilLastOccurrence:
    def test_released_one_by_one(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4", "A4", "A4")
        for i in range(3):
            assert admit(manager, request, i)
        for i in (1, 0):
            manager.free_encoder_input(request, i)
            assert manager.cached == {"A": {"r1"}}
        manager.free_encoder_input(request, 2)
        assert manager.freeable == {"A": 4}

    @pytest.mark.parametrize("taken", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
    def test_released_together_they_age_by_their_last_position(
        self, manager: EncoderCacheManager, taken: tuple[int, ...]
    ) -> None:
        request = request_of("r1", "A4", "B4", "A4")
        for i in taken:
            assert admit(manager, request, i)
        manager.free(request)
        assert list(manager.freeable) == ["B", "A"]

    def test_positions_age_by_number_and_not_by_the_order_of_a_set(
        self, manager: EncoderCacheManager
    ) -> None:
        request = request_of("r1", "A0", "B1", *["C0"] * 6, "I1")
        for i in (8, 1):
            assert admit(manager, request, i)
        assert list(manager.get_cached_input_ids(request)) == [1, 8]
        manager.free(request)
        assert list(manager.freeable) == ["B", "I"]


class TestL9ReleaseIsIdempotent:
    def test_a_second_release_changes_nothing(self, manager: EncoderCacheManager) -> None:
        request, other = request_of("r1", "A4", "B2"), request_of("r2", "A4")
        for r, i in ((request, 0), (request, 1), (other, 0)):
            assert admit(manager, r, i)
        for _ in range(2):
            manager.free_encoder_input(request, 0)
            assert manager.cached == {"A": {"r2"}, "B": {"r1"}}
        for _ in range(2):
            manager.free(request)
            assert manager.cached == {"A": {"r2"}, "B": set()}
            assert (manager.num_free_slots, manager.num_freeable_slots) == (4, 6)

    def test_a_position_that_was_never_taken_releases_nothing(
        self, manager: EncoderCacheManager
    ) -> None:
        request = request_of("r1", "A4", "A4")
        assert admit(manager, request, 0)
        manager.free_encoder_input(request, 1)
        assert manager.cached == {"A": {"r1"}}

    def test_a_repeated_hit_is_one_reference(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4")
        for _ in range(3):
            assert admit(manager, request, 0)
        manager.free_encoder_input(request, 0)
        assert manager.freeable == {"A": 4}

    def test_nothing_is_remembered_of_requests_that_hold_nothing(
        self, manager: EncoderCacheManager
    ) -> None:
        for k in range(3):
            request = request_of(f"r{k}", "A2", "A2", "B1")
            for i in (2, 0, 1):
                assert admit(manager, request, i)
            if k == 1:
                manager.free(request)
            for i in (2, 1, 0):
                manager.free_encoder_input(request, i)
        assert manager.can_allocate(request_of("r9", "C9"), 0, ANY_BUDGET, 1)
        manager.get_freed_mm_hashes()
        assert vars(manager) == vars(EncoderCacheManager(10))


class TestL10ResetIsInitial:
    def test_reset_and_late_releases(self, manager: EncoderCacheManager) -> None:
        request, old = request_of("r1", "A4", "A4"), request_of("r2", "B4")
        for r, i in ((request, 1), (request, 0), (old, 0)):
            assert admit(manager, r, i)
        manager.free(old)
        assert manager.can_allocate(request_of("r3", "C5"), 0, ANY_BUDGET, 0)
        manager.reset()
        initial = vars(EncoderCacheManager(10))
        assert vars(manager) == initial
        manager.free_encoder_input(request, 0)
        manager.free(request)
        assert vars(manager) == initial


class TestL11HitIsExact:
    def test_a_miss_changes_nothing(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4")
        assert manager.check_and_update_cache(request, 0) is False
        assert vars(manager) == vars(EncoderCacheManager(10))

    def test_a_hit_holds_the_position(self, manager: EncoderCacheManager) -> None:
        assert admit(manager, request_of("r1", "A4"), 0)
        other = request_of("r2", "B1", "A4")
        assert manager.check_and_update_cache(other, 1) is True
        assert manager.cached == {"A": {"r1", "r2"}}
        assert manager.get_cached_input_ids(other) == {1}

    def test_a_hit_goes_by_the_hash_and_the_size_is_there_to_compare(
        self, manager: EncoderCacheManager
    ) -> None:
        assert admit(manager, request_of("r1", "A4"), 0)
        other = request_of("r2", "A7")
        assert manager.get_cached_num_encoder_embeds(other, 0) == 4
        assert manager.get_cached_num_encoder_embeds(request_of("r3", "B7"), 0) is None
        assert manager.check_and_update_cache(other, 0)
        manager.free(other)
        assert manager.num_free_slots == 6


class TestL14NeededIsCached:
    def test_no_eviction_takes_what_a_request_needs(self, manager: EncoderCacheManager) -> None:
        """Two positions need A, and one is given up: all the rest may go, and A may not."""
        needs = request_of("r1", "A4", "A4", "B6")
        for i in range(3):
            assert admit(manager, needs, i)
        manager.free_encoder_input(needs, 0)
        manager.free_encoder_input(needs, 2)
        assert not manager.can_allocate(request_of("r2", "C7"), 0, ANY_BUDGET, 0)
        assert admit(manager, request_of("r2", "C6"), 0)
        assert manager.freed == ["B"]
        assert not manager.can_allocate(request_of("r3", "D1"), 0, ANY_BUDGET, 0)
        assert manager.cached == {"A": {"r1"}, "C": {"r2"}}
        assert manager.check_and_update_cache(needs, 0) is True


def test_held_positions_are_a_set_in_ascending_order(manager: EncoderCacheManager) -> None:
    """L12."""
    request = request_of("r1", "A1", "B1", "C1", "D1")
    assert manager.get_cached_input_ids(request) == set()
    for i in (3, 0, 2):
        assert admit(manager, request, i)
    held = manager.get_cached_input_ids(request)
    assert held == {0, 2, 3}
    assert list(held) == [0, 2, 3]
    manager.free_encoder_input(request, 2)
    assert list(held) == [0, 3]
