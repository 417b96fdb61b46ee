"""Vectors in larger worlds: the specification answers the same, and a broken engine does not."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from mmcache import EncoderCacheManager, Request
from mmcache_conformance.open import open_target
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.reports.story import failure_story
from mmcache_conformance.targets.protocol import Answer, case_of
from mmcache_conformance.verdicts.model import CallFailure
from mmcache_conformance.verdicts.run import run_target
from mmcache_conformance.verdicts.stretch import (
    BESIDE,
    FACTOR,
    GAP,
    LONG,
    STRETCHES,
    companions,
    stretched,
)
from mmcache_spec.oracle import Replay
from mmcache_vectors.manager import Vector

NAMES, LIKE, POSITIONS, NUMBERS = STRETCHES


class Ledger(EncoderCacheManager):
    """What is changed below; otherwise right."""

    conformance_capabilities: ClassVar[tuple[str, ...]] = ("allocate_again",)


class _View:
    """A request with something of it changed."""

    def __init__(self, request: Request, items: Any = None, sizes: Any = None) -> None:
        self.request_id = request.request_id
        self.mm_features = request.mm_features if items is None else items
        self._sizes = sizes or request.get_num_encoder_embeds

    def get_num_encoder_embeds(self, input_id: int) -> int:
        size: int = self._sizes(input_id)
        return size


class _Feature:
    def __init__(self, identifier: str) -> None:
        self.identifier = identifier


class _ByView(Ledger):
    """Sees each request, and each position, through `seen`."""

    def seen(self, request: Any) -> Any:
        return request

    def place(self, input_id: int) -> int:
        return input_id

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        return super().check_and_update_cache(self.seen(request), self.place(input_id))

    def can_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> bool:
        return super().can_allocate(self.seen(request), self.place(input_id), budget, pending)

    def allocate(self, request: Any, input_id: int) -> None:
        super().allocate(self.seen(request), self.place(input_id))

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        super().free_encoder_input(self.seen(request), self.place(input_id))


class _ByKey(_ByView):
    """Takes two identifiers of one key for one, and calls both as the first."""

    @staticmethod
    def key(name: str) -> str:
        raise NotImplementedError

    def seen(self, request: Any) -> Any:
        first: dict[str, str] = self.__dict__.setdefault("_first", {})
        names = (f.identifier for f in request.mm_features)
        return _View(request, [_Feature(first.setdefault(self.key(n), n)) for n in names])


class CutsNames(_ByKey):
    """Identifiers in a field of 64 bytes."""

    @staticmethod
    def key(name: str) -> str:
        return name[:64]


class CutsNamesInFront(_ByKey):
    """Only the last 32 bytes of an identifier."""

    @staticmethod
    def key(name: str) -> str:
        return name[-32:]


class WithoutCase(_ByKey):
    """Identifiers are compared without case."""

    @staticmethod
    def key(name: str) -> str:
        return name.casefold()


class WithoutSpaces(_ByKey):
    """Spaces around an identifier are cut off."""

    @staticmethod
    def key(name: str) -> str:
        return name.strip()


class WithoutOrder(_ByKey):
    """A checksum of an identifier that does not see the order of its letters."""

    @staticmethod
    def key(name: str) -> str:
        return "".join(sorted(name))


class FewPositions(_ByView):
    """Positions in eight bits."""

    def seen(self, request: Any) -> Any:
        by_place = {k % 256: f for k, f in reversed(list(enumerate(request.mm_features)))}
        real = {k % 256: k for k, f in enumerate(request.mm_features) if "nobody" not in
                f.identifier}  # fmt: skip
        items = [request.mm_features[real.get(k, k)] for k in sorted(by_place)]
        return _View(request, items, lambda k: request.get_num_encoder_embeds(real.get(k, k)))

    def place(self, input_id: int) -> int:
        return input_id % 256


class SmallNumbers(_ByView):
    """Sizes in 32 bits."""

    def seen(self, request: Any) -> Any:
        sizes = request.get_num_encoder_embeds
        return _View(request, None, lambda k: sizes(k) & 0xFFFFFFFF)


class SharedReport(Ledger):
    """What was evicted is kept by the class; a new manager empties it."""

    _all: ClassVar[list[str]] = []

    @property
    def freed(self) -> list[str]:
        return type(self)._all

    @freed.setter
    def freed(self, value: list[str]) -> None:
        type(self)._all = value


CAUGHT_BY = {
    CutsNames: NAMES,
    CutsNamesInFront: NAMES,
    WithoutCase: LIKE,
    WithoutSpaces: LIKE,
    WithoutOrder: LIKE,
    FewPositions: POSITIONS,
    SmallNumbers: NUMBERS,
    SharedReport: BESIDE,
}


@pytest.mark.parametrize("broken", CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_each_stretch_finds_what_the_plain_vectors_do_not(
    broken: type[Ledger], vectors: tuple[Vector, ...]
) -> None:
    name = f"{__name__}:{broken.__name__}"
    small = [v for v in vectors if len(v.steps) < 30]
    plain = run_target(open_target(name, in_process=True), small)
    assert {v.outcome for v in plain.verdicts} == {"pass", "skip"}
    assert CAUGHT_BY[broken] in _stretches(name, small, stretch=True)


def _stretches(name: str, vectors: list[Vector], *, stretch: bool) -> set[str | None]:
    """Under which stretching it fails."""
    report = run_target(open_target(name, in_process=True), vectors, stretch=stretch)
    failures = [v.failure for v in report.verdicts if v.outcome == "fail"]
    return {f.stretched for f in failures if isinstance(f, CallFailure)}


def test_the_reference_passes_in_every_larger_world(vectors: tuple[Vector, ...]) -> None:
    report = run_target(open_target("reference"), vectors, stretch=True)
    assert {v.outcome for v in report.verdicts} == {"pass"}


def test_the_specification_answers_the_same_in_every_larger_world(
    vectors: tuple[Vector, ...],
) -> None:
    """The reason why a vector may be stretched, asked of the interpreter."""
    used: set[str] = set()
    for vector in vectors[::5]:
        if len(vector.steps) > 20:
            continue
        for longer in stretched(case_of(vector)):
            used.add(longer.name)
            replay = Replay(specified(vector.manager), longer.case.parameters)
            for step, call in zip(vector.steps, longer.case.calls, strict=True):
                told = replay.answer(call)
                assert told is not None
                back = longer.back(Answer(told.returns, told.observe))
                assert (back.returns, back.observed) == (step.expect.returns, step.expect.observe)
    assert used == set(STRETCHES)


def test_a_failure_says_under_which_stretching(vectors: tuple[Vector, ...]) -> None:
    report = run_target(
        open_target(f"{__name__}:SmallNumbers", in_process=True), vectors, stretch=True
    )
    failed = next(v for v in report.verdicts if v.outcome == "fail")
    (vector,) = (v for v in vectors if v.id == failed.id)
    assert failed.failure is not None
    assert f"only when it is stretched: {NUMBERS}" in failure_story(vector, failed.failure)


def test_what_is_stretched_is_large(vectors: tuple[Vector, ...]) -> None:
    vector = next(v for v in vectors if any(len(r.items) > 1 for r in v.parameters.requests))
    worlds = {longer.name: longer.case.parameters for longer in stretched(case_of(vector))}
    names = {i.identifier for r in worlds[NAMES].requests for i in r.items}
    assert all(n.startswith(LONG) and n.endswith(LONG) and len(LONG) > 128 for n in names)
    assert max(len(r.items) for r in worlds[POSITIONS].requests) > GAP
    assert FACTOR > 1 << 32


def test_without_a_report_only_one_companion_is_asked_for(vectors: tuple[Vector, ...]) -> None:
    case = case_of(vectors[0])
    assert len(companions(case)) == 2
    silent = [c for c in case.calls if type(c).__name__ != "GetFreedMmHashes"]
    assert len(companions(msgspec.structs.replace(case, calls=tuple(silent)))) == 1
