"""A manager whose `free` goes through a set of positions is told so, and no other order is.

The managers here are the reference with another `free`: what they do comes from Python's own sets,
not from the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar

import pytest

from mmcache import EncoderCacheManager, Request
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.oracle.set_order import SET_ORDER, WAYS, SetOrdered, Way
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.protocol import Case, case_of
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from mmcache_spec.oracle import Replay
from mmcache_vectors import manager as api
from mmcache_vectors.manager import Call, Item, Parameters, Vector

LEDGER = [v for v in load_suite() if isinstance(v, Vector) and v.manager == "encoder_cache"]
ABOUT_FREE = [
    v
    for v in LEDGER
    if len(v.steps) < 500
    and any(isinstance(s.call, api.Free) for s in v.steps)
    and any(len(r.items) > 1 for r in v.parameters.requests)
    and not v.requires
]


class OtherOrder(EncoderCacheManager):
    """Releases what a request that ends holds in an order of its own."""

    def in_order(self, positions: set[int]) -> Iterable[int]:
        raise NotImplementedError

    def __init__(self, cache_size: int) -> None:
        self.taken: dict[str, set[int]] = {}
        super().__init__(cache_size)

    def reset(self) -> None:
        self.taken = {}
        super().reset()

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        hit = super().check_and_update_cache(request, input_id)
        if hit:
            self.taken.setdefault(request.request_id, set()).add(input_id)
        return hit

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        self.taken.setdefault(request.request_id, set()).add(input_id)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        mine = self.taken.get(request.request_id, set())
        mine.discard(input_id)
        if not mine:
            self.taken.pop(request.request_id, None)
        super().free_encoder_input(request, input_id)

    def free(self, request: Request) -> None:
        for position in list(self.in_order(self.taken.get(request.request_id, set()))):
            self.free_encoder_input(request, position)


class OfASet(OtherOrder):
    way: ClassVar[Way]

    def in_order(self, positions: set[int]) -> Iterable[int]:
        if not self.way.kept:
            positions = {k for k in range(max(positions, default=0) + 1) if k in positions}
        return positions.copy() if self.way.copied else positions


class Backwards(OtherOrder):
    def in_order(self, positions: set[int]) -> Iterable[int]:
        return sorted(positions, reverse=True)


class AsText(OtherOrder):
    def in_order(self, positions: set[int]) -> Iterable[int]:
        return sorted(positions, key=str)


class InATableOfSixteen(OtherOrder):
    """As a set would have it whose table begins with sixteen places."""

    def in_order(self, positions: set[int]) -> Iterable[int]:
        return sorted(positions, key=lambda k: (k % 16, k))


class BackwardsFromTheEighthOn(OtherOrder):
    """Right where a set is, and wrong in another way where it is wrong."""

    def in_order(self, positions: set[int]) -> Iterable[int]:
        low, high = {k for k in positions if k < 8}, {k for k in positions if k >= 8}
        return [*sorted(low), *sorted(high, reverse=True)]


class HighOnesFirst(OtherOrder):
    """Of two positions, it has often the order of a set."""

    def in_order(self, positions: set[int]) -> Iterable[int]:
        low, high = {k for k in positions if k < 8}, {k for k in positions if k >= 8}
        return [*sorted(high), *sorted(low)]


def report_on(
    manager: type[OtherOrder], way: Way = WAYS[0], vectors: Sequence[Vector] = ABOUT_FREE
) -> TargetReport:
    made = type("Foe", (manager,), {"way": way})
    target = PythonTarget("foe", lambda: ManagerClasses("foe", made, None))
    return explained(run_target(target, vectors), vectors)


SHORT = [v for v in ABOUT_FREE if len(v.steps) < 100]


@pytest.mark.parametrize(
    "vectors", [SHORT, pytest.param(ABOUT_FREE, marks=pytest.mark.slow)], ids=len
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_who_goes_through_a_set_is_told_so(way: Way, vectors: Sequence[Vector]) -> None:
    report = report_on(OfASet, way, vectors)
    (decision,) = report.decisions
    assert (decision.name, decision.contradicted_by) == (SET_ORDER.name, ())
    assert report.unexplained == ()
    assert {v.id for v in report.verdicts if v.failure is not None} == set(decision.vectors)


@pytest.mark.parametrize(
    "manager", [Backwards, AsText, InATableOfSixteen, BackwardsFromTheEighthOn, HighOnesFirst]
)
def test_another_order_is_not_laid_to_a_set(manager: type[OtherOrder]) -> None:
    report = report_on(manager, vectors=SHORT)
    assert report.unexplained
    assert SET_ORDER.name not in {d.name for d in report.decisions if not d.contradicted_by}


def test_below_eight_a_set_is_ascending() -> None:
    """So it answers as is specified: what was released one by one is what `free` releases."""
    for vector in ABOUT_FREE:
        if max(len(r.items) for r in vector.parameters.requests) > 8:
            continue
        replay = Replay(specified("encoder_cache"), vector.parameters)
        right = [replay.answer(step.call) for step in vector.steps]
        for way in WAYS:
            ordered = SetOrdered(specified("encoder_cache"), vector.parameters, way)
            assert [ordered.answer(step.call) for step in vector.steps] == right


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_model_of_a_set_is_what_a_class_with_a_set_does(way: Way) -> None:
    """On random walks in worlds with up to 40 positions a request."""
    differs = 0
    for seed in range(12):
        parameters, calls = walk(Random(seed))
        made = type("Foe", (OfASet,), {"way": way})
        target = PythonTarget("foe", lambda made=made: ManagerClasses("foe", made, None))  # type: ignore[misc]
        target.start()
        given = target.run(Case("walk", "encoder_cache", parameters, tuple(calls)))
        model = SetOrdered(specified("encoder_cache"), parameters, way)
        right = Replay(specified("encoder_cache"), parameters)
        for call, answer in zip(calls, given, strict=True):
            told, due = model.answer(call), right.answer(call)
            assert told is not None
            assert answer.error is None
            assert answer.observed.freeable == told.observe.freeable
            differs += due is None or due.observe.freeable != told.observe.freeable
    assert differs > 0  # else a set would show nothing here


def walk(random: Random) -> tuple[Parameters, list[Call]]:
    """Requests that take positions in any order, give some back, and end."""
    items = tuple(Item(f"h{k}", 1) for k in range(40))
    parameters = Parameters(200, (api.Request("r1", items), api.Request("r2", items[::-1])))
    calls: list[Call] = []
    cached: set[str] = set()
    held: dict[str, set[int]] = {"r1": set(), "r2": set()}
    for _ in range(60):
        request = random.choice(parameters.requests)
        mine = held[request.request_id]
        k = random.randrange(len(items))
        name = request.items[k].identifier
        kind = random.random()
        if kind < 0.75:
            calls.append(
                api.CheckAndUpdateCache(request.request_id, k)
                if name in cached
                else api.Allocate(request.request_id, k)
            )
            cached.add(name)
            mine.add(k)
        elif kind < 0.9 and mine:
            calls.append(api.FreeEncoderInput(request.request_id, k := random.choice(sorted(mine))))
            mine.discard(k)
        else:
            calls.append(api.Free(request.request_id))
            mine.clear()
    return parameters, calls


def test_the_cases_hold_what_is_needed() -> None:
    assert len(ABOUT_FREE) > 20
    assert all(case_of(v).calls for v in ABOUT_FREE)
