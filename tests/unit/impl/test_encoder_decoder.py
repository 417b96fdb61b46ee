"""The ledger of encoder-decoder models, clause by clause."""

from __future__ import annotations

from copy import deepcopy

import pytest

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from tests.support.requests import request_of

ANY_BUDGET = 10**9


@pytest.fixture
def manager() -> EncoderDecoderCacheManager:
    return EncoderDecoderCacheManager(10)


def test_it_is_an_encoder_cache_in_which_nothing_is_cached(manager: EncoderCacheManager) -> None:
    """E1: what is allocated is charged, and never cached."""
    assert isinstance(manager, EncoderCacheManager)
    request = request_of("r1", "A4")
    manager.allocate(request, 0)
    assert manager.check_and_update_cache(request, 0) is False
    assert manager.get_cached_num_encoder_embeds(request, 0) is None
    assert manager.cached == {}
    assert manager.freeable == {}
    assert manager.num_freeable_slots == manager.num_free_slots == 6
    answer: object = getattr(manager, "get_manager_metadata")()  # noqa: B009  # typed as no answer
    assert answer is None


class TestE1CreditOnce:
    def test_decode_steps_credit_an_input_once(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4", "B3")
        manager.allocate(request, 0)
        manager.allocate(request, 1)
        assert manager.num_free_slots == 3
        for _ in range(4):
            manager.free_encoder_input(request, 0)
            assert manager.num_free_slots == 7
        for _ in range(2):
            manager.free(request)
            assert manager.num_free_slots == 10

    def test_an_input_that_was_never_charged_credits_nothing(
        self, manager: EncoderCacheManager
    ) -> None:
        charged, other = request_of("r1", "A4", "B3"), request_of("r2", "A4")
        manager.allocate(charged, 0)
        manager.free_encoder_input(charged, 1)
        manager.free_encoder_input(other, 0)
        manager.free(other)
        assert manager.num_free_slots == 6

    def test_released_and_allocated_again_in_one_pass(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4")
        manager.allocate(request, 0)
        manager.free(request)
        manager.allocate(request, 0)
        assert manager.num_free_slots == 6
        manager.free_encoder_input(request, 0)
        assert manager.num_free_slots == 10

    def test_what_is_left_to_release(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4", "B3")
        assert manager.get_cached_input_ids(request) == set()
        manager.allocate(request, 1)
        assert manager.get_cached_input_ids(request) == {1}
        manager.free_encoder_input(request, 1)
        assert not manager.get_cached_input_ids(request)

    def test_nothing_is_remembered_of_requests_that_hold_nothing(
        self, manager: EncoderCacheManager
    ) -> None:
        first, second = request_of("r1", "A4", "B3"), request_of("r2", "A2")
        for request, i in ((first, 0), (first, 1), (second, 0)):
            manager.allocate(request, i)
        for i in (0, 1):
            manager.free_encoder_input(first, i)
        manager.free(second)
        for _ in range(2):
            manager.get_freed_mm_hashes()
        assert vars(manager) == vars(EncoderDecoderCacheManager(10))


class TestE2NoticeAfterTheStep:
    def test_reported_one_pass_after_its_allocation_and_once(
        self, manager: EncoderCacheManager
    ) -> None:
        request = request_of("r1", "A4", "B3")
        manager.allocate(request, 0)
        assert manager.get_freed_mm_hashes() == []
        manager.allocate(request, 1)
        assert manager.get_freed_mm_hashes() == ["A"]
        assert manager.get_freed_mm_hashes() == ["B"]
        assert manager.get_freed_mm_hashes() == []

    def test_allocated_by_two_requests_in_one_pass_is_reported_once(
        self, manager: EncoderCacheManager
    ) -> None:
        manager.allocate(request_of("r1", "B1", "A4"), 1)
        manager.allocate(request_of("r2", "B1"), 0)
        manager.allocate(request_of("r3", "A4"), 0)
        assert manager.get_freed_mm_hashes() == []
        assert manager.get_freed_mm_hashes() == ["A", "B"]

    def test_released_and_allocated_again_in_one_pass_is_reported_once(
        self, manager: EncoderCacheManager
    ) -> None:
        request = request_of("r1", "A4")
        manager.allocate(request, 0)
        manager.free(request)
        manager.allocate(request, 0)
        assert manager.get_freed_mm_hashes() == []
        assert manager.get_freed_mm_hashes() == ["A"]
        assert manager.get_freed_mm_hashes() == []

    def test_a_release_does_not_hasten_the_report(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4")
        manager.allocate(request, 0)
        manager.free(request)
        assert manager.get_freed_mm_hashes() == []
        assert manager.get_freed_mm_hashes() == ["A"]

    def test_the_report_belongs_to_the_caller(self, manager: EncoderCacheManager) -> None:
        manager.allocate(request_of("r1", "A4"), 0)
        manager.get_freed_mm_hashes()
        report = manager.get_freed_mm_hashes()
        manager.reset()
        assert report == ["A"]


class TestL7AdmissionIsExact:
    @pytest.mark.parametrize(
        ("item", "budget", "pending", "admitted"),
        [("B6", 6, 0, True), ("B6", 5, 0, False), ("B6", 6, 1, False), ("B5", 5, 1, True)],
    )
    def test_budget_and_room(
        self, manager: EncoderCacheManager, item: str, budget: int, pending: int, admitted: bool
    ) -> None:
        manager.allocate(request_of("r1", "A4"), 0)
        before = deepcopy(vars(manager))
        assert manager.can_allocate(request_of("r2", item), 0, budget, pending) is admitted
        assert vars(manager) == before


class TestL10ResetIsInitial:
    def test_reset_and_late_releases(self, manager: EncoderCacheManager) -> None:
        request = request_of("r1", "A4")
        manager.allocate(request, 0)
        manager.get_freed_mm_hashes()
        manager.allocate(request_of("r2", "B3"), 0)
        manager.reset()
        initial = vars(EncoderDecoderCacheManager(10))
        assert vars(manager) == initial
        manager.free_encoder_input(request, 0)
        manager.free(request)
        assert vars(manager) == initial
