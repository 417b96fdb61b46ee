"""What a call costs, counted and not timed.

Counted are the bytecode instructions that it executes, and how often it hashes or compares a
hash, a request id (both strings that count) or a position (an integer that counts). Instructions
would miss a loop inside C code, such as `list.remove`; the strings and integers do not.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager

counted: Counter[str] = Counter()


class Text(str):
    __slots__ = ()

    def __hash__(self) -> int:
        counted["text hashed"] += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        counted["text compared"] += 1
        return str.__eq__(self, other)


class Position(int):
    __slots__ = ()

    def __hash__(self) -> int:
        counted["position hashed"] += 1
        return int.__hash__(self)

    def __eq__(self, other: object) -> bool:
        counted["position compared"] += 1
        return int.__eq__(self, other)

    def __lt__(self, other: int) -> bool:
        counted["position ordered"] += 1
        return int.__lt__(self, other)


@dataclass
class Item:
    identifier: str


class Request:
    def __init__(self, name: str, hashes: Sequence[str]) -> None:
        self.request_id = Text(name)
        self.mm_features = [Item(Text(h)) for h in hashes]

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return 1


def _refuse(self: object, *_: object) -> Any:
    raise AssertionError("a table of all cached hashes was gone through")


class Dict(dict[str, Any]):
    """A table whose length is what must not matter."""

    __iter__ = __reversed__ = keys = values = items = copy = _refuse


class Ordered(OrderedDict[str, Any]):
    """Likewise, and its oldest entry may be taken."""

    __iter__ = __reversed__ = keys = values = items = copy = _refuse

    def popitem(self, last: bool = True) -> tuple[str, Any]:
        return OrderedDict.popitem(self, last)


def cost(call: Callable[..., object], *arguments: Any) -> dict[str, int]:
    """What the call costs, as counts."""
    counted.clear()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        frame.f_trace_opcodes = True
        counted["instructions"] += event == "opcode"
        return trace

    # A collection within the call would count the callbacks of others, such as Hypothesis.
    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call(*arguments)
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return dict(counted)


def filled(cls: type[EncoderCacheManager], n: int, at_work: int = 0) -> Any:
    """`n` freeable hashes, and `at_work` requests that hold one more each; no room is left."""
    manager = cls(n + at_work)
    for k in range(n + at_work):
        request = Request(f"filler {k}", [f"old {k}"])
        manager.allocate(request, Position(0))
        if k < n:
            manager.free(request)
    return manager


LENGTHS = (10, 1000)


@pytest.mark.parametrize("cls", [EncoderCacheManager, EncoderDecoderCacheManager])
def test_no_call_costs_more_with_more_cached(cls: type[EncoderCacheManager]) -> None:
    def costs(n: int) -> dict[str, dict[str, int]]:
        manager = filled(cls, n, at_work=n)
        if cls is EncoderCacheManager:
            manager.cached = Dict(manager.cached)
            manager.freeable = Ordered(dict(manager.freeable.items()))
        else:
            manager.get_freed_mm_hashes()
            manager.get_freed_mm_hashes()
            manager.free(Request("filler 2", []))
            manager.free(Request(f"filler {n + 1}", []))
        hit, miss, zero = Request("hit", ["old 5"]), Request("miss", ["new"]), Position(0)
        return {
            "size": cost(manager.get_cached_num_encoder_embeds, hit, zero),
            "hit": cost(manager.check_and_update_cache, hit, zero),
            "held": cost(manager.get_cached_input_ids, hit),
            "release": cost(manager.free_encoder_input, hit, zero),
            "miss": cost(manager.check_and_update_cache, miss, zero),
            "admission": cost(manager.can_allocate, miss, zero, 1, 0),
            "allocation": cost(manager.allocate, miss, zero),
            "end": cost(manager.free, miss),
            "report": cost(manager.get_freed_mm_hashes),
            "empty report": cost(manager.get_freed_mm_hashes),
        }

    few, many = map(costs, LENGTHS)
    assert few == many
    assert all(each["instructions"] > 0 for each in few.values())


@pytest.mark.parametrize("cls", [EncoderCacheManager, EncoderDecoderCacheManager])
@pytest.mark.parametrize("same", [False, True], ids=["distinct", "repeated"])
def test_no_call_for_one_item_costs_more_with_more_items(
    cls: type[EncoderCacheManager], same: bool
) -> None:
    def costs(n: int) -> dict[str, dict[str, int]]:
        manager = cls(2 * n)
        request = Request("r", ["same" if same else f"h {k}" for k in range(n)])
        for k in range(n - 1):
            manager.allocate(request, Position(k))
        last, middle = Position(n - 1), Position(n // 2)
        return {
            "size": cost(manager.get_cached_num_encoder_embeds, request, last),
            "allocation": cost(manager.allocate, request, last),
            "hit": cost(manager.check_and_update_cache, request, middle),
            "held": cost(manager.get_cached_input_ids, request),
            "release": cost(manager.free_encoder_input, request, middle),
            "again": cost(manager.free_encoder_input, request, middle),
        }

    few, many = map(costs, LENGTHS)
    assert few == many


@pytest.mark.parametrize("cls", [EncoderCacheManager, EncoderDecoderCacheManager])
@pytest.mark.parametrize("same", [False, True], ids=["distinct", "repeated"])
def test_free_is_linear_in_the_items_held(cls: type[EncoderCacheManager], same: bool) -> None:
    def of_one_item(n: int) -> dict[str, float]:
        manager = cls(2 * n)
        request = Request("r", ["same" if same else f"h {k}" for k in range(n)])
        for k in range(n):
            manager.allocate(request, Position(k))
        spent = cost(manager.free, request)
        assert "position ordered" not in spent
        return {what: number / n for what, number in spent.items()}

    few, many = map(of_one_item, LENGTHS)
    assert many.keys() == few.keys()
    assert all(many[what] <= few[what] for what in many)


def test_free_sorts_only_what_was_not_taken_in_ascending_order() -> None:
    def ordered(n: int, taken: Callable[[int], Iterable[int]]) -> int:
        manager = EncoderCacheManager(n)
        request = Request("r", [f"h {k}" for k in range(n)])
        for k in taken(n):
            manager.allocate(request, Position(k))
        return cost(manager.free, request).get("position ordered", 0)

    def hits_before_misses(n: int) -> list[int]:
        """In each window of four, as vLLM's scheduler takes them."""
        return [start + k for start in range(0, n, 4) for k in (1, 3, 0, 2)]

    assert ordered(1000, range) == 0
    assert 0 < ordered(1000, lambda n: reversed(range(n))) <= 2 * 1000
    assert 0 < ordered(1000, hits_before_misses) <= 1000 * 10


def test_held_positions_are_sorted_once_and_not_on_every_look() -> None:
    manager = EncoderCacheManager(100)
    request = Request("r", [f"h {k}" for k in range(100)])
    for k in reversed(range(100)):
        manager.allocate(request, Position(k))
    assert cost(manager.get_cached_input_ids, request)["position ordered"] > 0
    assert "position ordered" not in cost(manager.get_cached_input_ids, request)
    assert "position ordered" not in cost(manager.free, request)


def test_eviction_and_report_are_linear_in_what_is_evicted() -> None:
    def of_one_hash(n: int) -> dict[tuple[str, str], float]:
        manager = filled(EncoderCacheManager, n)
        wanted = Request("r", ["new"])
        admission = cost(manager.can_allocate, wanted, Position(0), 1, n - 1)
        assert len(manager.freed) == n
        report = cost(manager.get_freed_mm_hashes)
        return {
            (call, what): number / n
            for call, spent in (("admission", admission), ("report", report))
            for what, number in spent.items()
        }

    few, many = map(of_one_hash, LENGTHS)
    assert all(many[what] <= few[what] for what in many)


class ScansTheCached(EncoderCacheManager):
    def free_encoder_input(self, request: Any, input_id: int) -> None:
        super().free_encoder_input(request, input_id)
        sum(1 for references in self.cached.values() if not references)


class ScansInC(EncoderCacheManager):
    def free_encoder_input(self, request: Any, input_id: int) -> None:
        super().free_encoder_input(request, input_id)
        list(self.freeable).index(request.mm_features[input_id].identifier)


@pytest.mark.parametrize(
    ("cls", "what"), [(ScansTheCached, "instructions"), (ScansInC, "text compared")]
)
def test_the_meter_notices_a_scan(cls: type[EncoderCacheManager], what: str) -> None:
    def release(n: int) -> int:
        manager, request = filled(cls, n), Request("hit", ["old 0"])
        manager.check_and_update_cache(request, Position(0))
        return cost(manager.free_encoder_input, request, Position(0))[what]

    few, many = map(release, LENGTHS)
    assert many > 10 * few
