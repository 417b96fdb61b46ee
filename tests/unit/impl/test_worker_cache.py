"""The worker: three orders, what each gathers, and how it fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mmcache import EncoderCacheMiss, WorkerEncoderCache

ORDERS = ["drop_encode_gather", "encode_gather_drop", "encode_if_missing_then_drop"]


def thunk(value: int) -> Callable[[], int]:
    return lambda: value


@pytest.fixture(params=ORDERS)
def worker(request: pytest.FixtureRequest) -> WorkerEncoderCache[int]:
    worker = WorkerEncoderCache[int](request.param)
    assert worker.step([], {"A": thunk(1), "B": thunk(2)}, ["A"]) == {"A": 1}
    return worker


def test_a_filtered_report_ends_the_same_in_every_order(worker: WorkerEncoderCache[int]) -> None:
    """S6."""
    assert worker.step(["A"], {"C": thunk(3)}, ["B", "C"]) == {"B": 2, "C": 3}
    assert worker.embeddings == {"B": 2, "C": 3}


def test_the_peak_of_memory_depends_on_the_order(worker: WorkerEncoderCache[int]) -> None:
    """S4."""
    worker.step(["A"], {"C": thunk(3)}, [])
    dropped_first = worker.order == "drop_encode_gather"
    assert worker.peak == ({"B", "C"} if dropped_first else {"A", "B", "C"})


def test_what_is_held_is_encoded_again_or_not(worker: WorkerEncoderCache[int]) -> None:
    """S3: either way the worker ends with the hash."""
    worker.step([], {"A": thunk(9)}, [])
    again = worker.order != "encode_if_missing_then_drop"
    assert worker.embeddings["A"] == (9 if again else 1)


def test_reported_and_encoded_in_one_pass(worker: WorkerEncoderCache[int]) -> None:
    """L1, S1, S3: what an unfiltered report does; only dropping first survives it."""
    if worker.order == "encode_if_missing_then_drop":
        with pytest.raises(EncoderCacheMiss):
            worker.step(["A"], {"A": thunk(9)}, ["A"])
        return
    assert worker.step(["A"], {"A": thunk(9)}, ["A"]) == {"A": 9}
    assert ("A" in worker.embeddings) == (worker.order == "drop_encode_gather")


def test_a_miss_is_named(worker: WorkerEncoderCache[int]) -> None:
    """S1."""
    with pytest.raises(EncoderCacheMiss, match=r"Encoder cache miss for Z\.") as caught:
        worker.step([], {}, ["Z"])
    assert caught.value.mm_hash == "Z"
    assert isinstance(caught.value, RuntimeError)


def test_without_the_raw_item_nothing_is_encoded(worker: WorkerEncoderCache[int]) -> None:
    """S8."""
    with pytest.raises(EncoderCacheMiss):
        worker.step([], {"Z": None}, ["Z"])


def test_reset(worker: WorkerEncoderCache[int]) -> None:
    """L10, S3."""
    worker.reset()
    assert worker.embeddings == {}
    assert worker.peak == frozenset()


def test_dropping_what_is_not_held_is_nothing(worker: WorkerEncoderCache[int]) -> None:
    """S3."""
    worker.step(["Z"], {}, [])
    assert set(worker.embeddings) == {"A", "B"}
