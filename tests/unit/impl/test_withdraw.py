"""The repair at the ledger: `withdraw`, and the ledger that needs none."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mmcache import (
    EncoderCacheManager,
    EncoderDecoderCacheManager,
    EngineItem,
    EngineRequest,
    TwoPhaseEncoderCacheManager,
)

BOTH = [EncoderCacheManager, TwoPhaseEncoderCacheManager]


def request(name: str, *hashes: str) -> Any:
    items = tuple(EngineItem(h, 4 * k, 4) for k, h in enumerate(hashes))
    return EngineRequest(name, items, 4 * len(items))


R, S, Q = request("r", "A"), request("s", "A"), request("q", "A")


def allocate(manager: EncoderCacheManager, *places: Any) -> None:
    for asking, k in places:
        assert manager.can_allocate(asking, k, 99, 0)
        manager.allocate(asking, k)


def state(manager: EncoderCacheManager) -> dict[str, Any]:
    return deepcopy(vars(manager))


@pytest.mark.parametrize("cls", BOTH)
def test_a_lone_allocation_is_undone(cls: type[EncoderCacheManager]) -> None:
    """S2: what will not be encoded is not cached."""
    manager = cls(8)
    fresh = state(manager)
    allocate(manager, (R, 0))
    assert manager.withdraw(R, 0) is None
    manager.free(R)
    assert state(manager) == fresh
    assert manager.get_freed_mm_hashes() == []


def test_a_shared_allocation_is_handed_over() -> None:
    """S2: the encode is ordered in the name of the request that hit it."""
    manager = EncoderCacheManager(8)
    allocate(manager, (R, 0))
    assert manager.check_and_update_cache(S, 0)
    assert manager.check_and_update_cache(Q, 0)
    assert manager.withdraw(R, 0) == ("q", 0)
    assert manager.cached == {"A": {"q", "s"}}
    assert manager.num_free_slots == manager.num_freeable_slots == 4
    assert manager.withdraw(Q, 0) == ("s", 0)
    assert manager.withdraw(S, 0) is None
    assert manager.cached == {}


def test_the_heir_is_told_by_its_own_position() -> None:
    """S2."""
    manager, heir = EncoderCacheManager(8), request("heir", "B", "A", "A")
    allocate(manager, (R, 0))
    assert manager.check_and_update_cache(heir, 2)
    assert manager.check_and_update_cache(heir, 1)
    assert manager.withdraw(R, 0) == ("heir", 1)


@pytest.mark.parametrize("cls", BOTH)
def test_every_position_of_the_hash_is_given_up(cls: type[EncoderCacheManager]) -> None:
    """S2, L8."""
    manager, twice = cls(8), request("twice", "A", "B", "A")
    allocate(manager, (twice, 0), (twice, 1))
    assert manager.check_and_update_cache(twice, 2)
    assert manager.withdraw(twice, 2) is None
    assert manager.get_cached_input_ids(twice) == {1}
    assert set(manager.cached) == {"B"}
    assert manager.num_free_slots == 4


@pytest.mark.parametrize("cls", BOTH)
def test_what_was_evicted_for_it_stays_evicted_and_is_reported(
    cls: type[EncoderCacheManager],
) -> None:
    """L2."""
    manager, other = cls(4), request("other", "B")
    allocate(manager, (other, 0))
    manager.get_freed_mm_hashes()
    manager.free(other)
    allocate(manager, (R, 0))
    assert manager.withdraw(R, 0) is None
    assert manager.get_freed_mm_hashes() == ["B"]
    assert manager.num_free_slots == 4


@pytest.mark.parametrize("cls", BOTH)
def test_what_the_worker_still_holds_is_reported_when_its_new_encoding_is_withdrawn(
    cls: type[EncoderCacheManager],
) -> None:
    """L2, S3."""
    manager, other = cls(4), request("other", "B")
    allocate(manager, (R, 0))
    manager.get_freed_mm_hashes()
    manager.free(R)
    allocate(manager, (other, 0))
    manager.withdraw(other, 0)
    allocate(manager, (S, 0))
    manager.withdraw(S, 0)
    assert manager.get_freed_mm_hashes() == ["A"]


@pytest.mark.parametrize("cls", [*BOTH, EncoderDecoderCacheManager])
def test_withdrawing_what_is_not_held_changes_nothing(cls: type[EncoderCacheManager]) -> None:
    """L9."""
    manager = cls(8)
    allocate(manager, (R, 0))
    before = state(manager)
    assert manager.withdraw(S, 0) is None
    assert state(manager)["num_free_slots"] == before["num_free_slots"]
    manager.withdraw(R, 0)
    after = state(manager)
    assert manager.withdraw(R, 0) is None
    assert state(manager) == after


def test_encoder_decoder_credits_and_never_reports() -> None:
    """E1, E2."""
    manager = EncoderDecoderCacheManager(8)
    allocate(manager, (R, 0), (S, 0))
    manager.withdraw(R, 0)
    assert manager.num_free_slots == 4
    assert manager.get_freed_mm_hashes() == []
    assert manager.get_freed_mm_hashes() == ["A"]
    assert manager.get_freed_mm_hashes() == []


def test_two_phases_hide_what_this_pass_allocates() -> None:
    """S2: no hit before the encode is dispatched."""
    manager = TwoPhaseEncoderCacheManager(8)
    allocate(manager, (R, 0))
    assert not manager.check_and_update_cache(S, 0)
    assert not manager.can_allocate(S, 0, 99, 0)
    assert manager.check_and_update_cache(R, 0)
    manager.get_freed_mm_hashes()
    assert manager.check_and_update_cache(S, 0)


def test_two_phases_undo_when_the_request_is_freed_in_the_pass() -> None:
    """S2."""
    manager = TwoPhaseEncoderCacheManager(8)
    fresh = state(manager)
    allocate(manager, (R, 0))
    manager.free(R)
    assert state(manager) == fresh


def test_two_phases_keep_what_an_earlier_pass_encoded() -> None:
    """S2."""
    manager = TwoPhaseEncoderCacheManager(8)
    allocate(manager, (R, 0))
    manager.get_freed_mm_hashes()
    manager.free(R)
    assert manager.check_and_update_cache(S, 0)
