"""A call that the specification excludes raises a named error and leaves the ledger as it was."""

from __future__ import annotations

import pickle
import subprocess
import sys
from copy import deepcopy

import pytest

from mmcache import (
    AlreadyAllocatedError,
    EncoderCacheManager,
    EncoderDecoderCacheManager,
    InputChangedError,
    LedgerError,
    NegativeSizeError,
    NoRoomError,
    SizeChangedError,
)
from tests.support.requests import request_of

BOTH = [EncoderCacheManager, EncoderDecoderCacheManager]


@pytest.fixture
def manager() -> EncoderCacheManager:
    """Of 10 embeddings: A4 referenced, B3 freeable, C9 evicted and not reported yet."""
    manager = EncoderCacheManager(10)
    for request, end in (("C9", True), ("A4", False), ("B3", True)):
        holder = request_of(f"holds {request}", request)
        assert manager.can_allocate(holder, 0, 10, 0)
        manager.allocate(holder, 0)
        if end:
            manager.free(holder)
    assert manager.cached == {"A": {"holds A4"}, "B": set()}
    assert manager.freed == ["C"]
    return manager


@pytest.mark.parametrize("cls", BOTH)
def test_negative_capacity(cls: type[EncoderCacheManager]) -> None:
    """L3, E1: free slots are never negative, not at the start either."""
    with pytest.raises(NegativeSizeError, match=r"cache_size is -1: give .* 0 or more"):
        cls(-1)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("call", ["allocate", "can_allocate"])
def test_negative_size(cls: type[EncoderCacheManager], call: str) -> None:
    """L3, E1: what is charged is never negative."""
    manager = cls(10)
    before = deepcopy(vars(manager))
    arguments = (10, 0) if call == "can_allocate" else ()
    with pytest.raises(NegativeSizeError, match=r"'r1' input 0 \(hash 'A'\) has -4 embeddings"):
        getattr(manager, call)(request_of("r1", "A-4"), 0, *arguments)
    assert vars(manager) == before


@pytest.mark.parametrize("cls", BOTH)
def test_negative_pending(cls: type[EncoderCacheManager]) -> None:
    """L7."""
    manager = cls(10)
    before = deepcopy(vars(manager))
    with pytest.raises(NegativeSizeError, match="num_embeds_to_schedule is -1"):
        manager.can_allocate(request_of("r1", "A4"), 0, 10, -1)
    assert vars(manager) == before


@pytest.mark.parametrize("cls", BOTH)
def test_no_room(cls: type[EncoderCacheManager]) -> None:
    """L3, E1: free slots are never negative."""
    manager = cls(10)
    manager.allocate(request_of("r1", "A4"), 0)
    before = deepcopy(vars(manager))
    with pytest.raises(NoRoomError, match=r"needs 7 embeddings and 6 are free: .*can_allocate"):
        manager.allocate(request_of("r2", "D7"), 0)
    assert vars(manager) == before


def test_room_that_an_eviction_would_make_is_not_there_yet(manager: EncoderCacheManager) -> None:
    """L3, L16: only can_allocate evicts."""
    before = deepcopy(vars(manager))
    with pytest.raises(NoRoomError):
        manager.allocate(request_of("r1", "D6"), 0)
    assert vars(manager) == before
    assert manager.can_allocate(request_of("r1", "D6"), 0, 6, 0)
    manager.allocate(request_of("r1", "D6"), 0)
    assert manager.num_free_slots == 0


@pytest.mark.parametrize("item", ["A3", "A5", "B4", "B-3"])
def test_size_changed(manager: EncoderCacheManager, item: str) -> None:
    """L3: what was charged is what will be credited."""
    before = deepcopy(vars(manager))
    with pytest.raises(SizeChangedError, match=r"is cached with [43]: one hash .* one content"):
        manager.allocate(request_of("r1", item), 0)
    assert vars(manager) == before


def test_a_new_size_is_fine_once_the_hash_is_gone(manager: EncoderCacheManager) -> None:
    """L3, L16."""
    manager.allocate(request_of("r1", "C2"), 0)
    assert manager.get_cached_num_encoder_embeds(request_of("r1", "C9"), 0) == 2
    assert manager.num_free_slots == 1


@pytest.mark.parametrize("call", ["check_and_update_cache", "allocate"])
@pytest.mark.parametrize("now", ["A4", "D1"])
def test_input_changed(manager: EncoderCacheManager, call: str, now: str) -> None:
    """L12: what the position holds would be forgotten."""
    assert manager.check_and_update_cache(request_of("r1", "B3"), 0)
    before = deepcopy(vars(manager))
    changed = request_of("r1", now)
    if call == "check_and_update_cache" and now == "D1":
        assert not manager.check_and_update_cache(changed, 0)
    else:
        with pytest.raises(InputChangedError, match="is held with hash 'B': free the input"):
            getattr(manager, call)(changed, 0)
    assert vars(manager) == before


@pytest.mark.parametrize("release", ["free", "free_encoder_input"])
def test_a_release_gives_back_what_was_taken(manager: EncoderCacheManager, release: str) -> None:
    """L13: the key released is the key acquired."""
    assert manager.check_and_update_cache(request_of("r1", "B3"), 0)
    changed = request_of("r1", "A4")
    getattr(manager, release)(changed, *([0] if release == "free_encoder_input" else []))
    assert manager.cached == {"A": {"holds A4"}, "B": set()}


def test_already_allocated() -> None:
    """E1, E3: one charge at a time."""
    manager = EncoderDecoderCacheManager(10)
    request = request_of("r1", "A4")
    manager.allocate(request, 0)
    before = deepcopy(vars(manager))
    with pytest.raises(AlreadyAllocatedError, match="charged with 4 embeddings already: free"):
        manager.allocate(request, 0)
    assert vars(manager) == before


def test_what_the_request_raises_passes_through(manager: EncoderCacheManager) -> None:
    before = deepcopy(vars(manager))
    request = request_of("r1", "A4")
    for call, arguments in (
        ("check_and_update_cache", ()),
        ("can_allocate", (10, 0)),
        ("allocate", ()),
    ):
        with pytest.raises(IndexError):
            getattr(manager, call)(request, 1, *arguments)
    manager.free_encoder_input(request, 1)
    assert vars(manager) == before


def test_one_base_that_is_a_value_error() -> None:
    named = {
        AlreadyAllocatedError,
        InputChangedError,
        NegativeSizeError,
        NoRoomError,
        SizeChangedError,
    }
    ours = {e for e in LedgerError.__subclasses__() if e.__module__ == LedgerError.__module__}
    assert ours == named
    assert issubclass(LedgerError, ValueError)


def test_errors_cross_a_process_boundary() -> None:
    with pytest.raises(NoRoomError) as caught:
        EncoderCacheManager(1).allocate(request_of("r1", "A4"), 0)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (NoRoomError, str(caught.value))


def test_checks_survive_optimisation() -> None:
    """Under `python -O` an assert would be gone."""
    script = """
from types import SimpleNamespace
from mmcache import EncoderCacheManager, EncoderDecoderCacheManager, NoRoomError
assert False, "this interpreter does not optimise"
request = SimpleNamespace(
    request_id="r1",
    mm_features=[SimpleNamespace(identifier="A")],
    get_num_encoder_embeds=lambda input_id: 4,
)
for cls in (EncoderCacheManager, EncoderDecoderCacheManager):
    try:
        cls(3).allocate(request, 0)
    except NoRoomError as error:
        print("refused")
"""
    ran = subprocess.run(
        [sys.executable, "-O", "-c", script], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["refused", "refused"]
