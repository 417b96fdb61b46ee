"""Vectors in larger worlds: the specification answers the same, and a broken engine does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec
import pytest

from mmcache import EncoderCacheManager, Request
from mmcache_conformance.open import open_target
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.reports.story import failure_story
from mmcache_conformance.targets.protocol import ALLOCATE_AGAIN, CAPABILITIES, Answer, case_of
from mmcache_conformance.targets.python import PythonTarget
from mmcache_conformance.verdicts.changes import (
    FAR,
    GAP,
    LARGEST_NUMBER,
    SAFE_NUMBER,
    largest_number,
)
from mmcache_conformance.verdicts.model import CallFailure
from mmcache_conformance.verdicts.names import STYLES, style_name
from mmcache_conformance.verdicts.run import run_target
from mmcache_conformance.verdicts.stretch import (
    BESIDE,
    Stretched,
    by_itself,
    companions,
    hits_of,
    stretched,
    world_named,
)
from mmcache_spec.oracle import Replay
from mmcache_vectors.manager import Reset, Vector

# What the names of changes begin with.
NAMES, POSITIONS, NUMBERS, ROOM = "hashes: ", "positions ", "sizes ", "capacity "
OTHERS = "requests that hold nothing"


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
    """Sees each request through a view of it that is made once, and each position by `place`."""

    def seen(self, request: Any) -> Any:
        # What is kept has the request: nothing else comes to its address.
        views: dict[int, tuple[Any, Any]] = self.__dict__.setdefault("_views", {})
        if id(request) not in views:
            views[id(request)] = request, self.view(request)
        return views[id(request)][1]

    def view(self, request: Any) -> Any:
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

    def view(self, request: Any) -> Any:
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

    def view(self, request: Any) -> Any:
        by_place = {k % 256: f for k, f in reversed(list(enumerate(request.mm_features)))}
        real = {k % 256: k for k, f in enumerate(request.mm_features) if "nobody" not in
                f.identifier}  # fmt: skip
        items = [request.mm_features[real.get(k, k)] for k in sorted(by_place)]
        return _View(request, items, lambda k: request.get_num_encoder_embeds(real.get(k, k)))

    def place(self, input_id: int) -> int:
        return input_id % 256


class SmallNumbers(_ByView):
    """Sizes in 32 bits."""

    def view(self, request: Any) -> Any:
        sizes = request.get_num_encoder_embeds
        return _View(request, None, lambda k: sizes(k) & 0xFFFFFFFF)


class RoomInFloats(Ledger):
    """What is wanted and what there is are compared in floats of 24 bits."""

    def can_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> bool:
        size = request.get_num_encoder_embeds(input_id)
        wanted = _in_24_bits(size + pending) <= _in_24_bits(self.num_freeable_slots)
        exact = super().can_allocate(request, input_id, budget, pending)
        return exact if size > budget else wanted


class Doubled(Ledger):
    """What is wanted and what there is are doubled before they are compared, in 64 bits."""

    def can_allocate(self, request: Any, input_id: int, budget: int, pending: int) -> bool:
        size = request.get_num_encoder_embeds(input_id)
        if _in_64_bits(2 * (size + pending)) > _in_64_bits(2 * self.num_freeable_slots):
            return False
        return super().can_allocate(request, input_id, budget, pending)


def _in_64_bits(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _in_24_bits(number: int) -> int:
    surplus = max(0, number.bit_length() - 24)
    return number >> surplus << surplus


class NobodyIsEverybody(Ledger):
    """A request without items stands for all that there are."""

    def free(self, request: Any) -> None:
        if not request.mm_features:
            self.reset()
        super().free(request)


class SharedReport(Ledger):
    """What was evicted is kept by the class; a new manager empties it."""

    _all: ClassVar[list[str]] = []

    @property
    def freed(self) -> list[str]:
        return type(self)._all

    @freed.setter
    def freed(self, value: list[str]) -> None:
        type(self)._all = value


class JoinedKeys(Ledger):
    """Uses are kept under the hash and the request, written together: another's keeps a use."""

    between: ClassVar[str] = ""

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        mine = request.mm_features[input_id].identifier, request.request_id
        uses = ((h, r) for h, rs in self.cached.items() for r in rs)
        if not any(use != mine and self.key(*use) == self.key(*mine) for use in uses):
            super().free_encoder_input(request, input_id)

    def key(self, mm_hash: str, request: str) -> str:
        return mm_hash + self.between + request


class JoinedByADash(JoinedKeys):
    between = "-"


class JoinedByAColon(JoinedKeys):
    between = ":"


class JoinedPlaces(Ledger):
    """Positions are kept under the request and the position, written together."""

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        mine = request.request_id, input_id
        held = ((r, k) for r, ks in self._held.items() for k in ks)
        if not any(at != mine and self.key(*at) == self.key(*mine) for at in held):
            super().free_encoder_input(request, input_id)

    def key(self, request: str, input_id: int) -> str:
        return request + str(input_id)


class JoinedPlacesInFront(JoinedPlaces):
    """The same, with the position in front."""

    def key(self, request: str, input_id: int) -> str:
        return str(input_id) + request


PUT_TOGETHER = {
    JoinedKeys: "hashes: parts joined by nothing",
    JoinedByADash: "hashes: parts joined by a dash",
    JoinedByAColon: "hashes: parts joined by a colon",
    JoinedPlaces: "requests and positions that are one, the id before",
    JoinedPlacesInFront: "requests and positions that are one, the position before",
}


@pytest.mark.parametrize("broken", PUT_TOGETHER, ids=lambda cls: cls.__name__)
def test_keys_that_are_put_together_are_one_somewhere(
    broken: type[Ledger], vectors: tuple[Vector, ...]
) -> None:
    """And nowhere else, but where names of another style happen to do the same."""
    name = f"{__name__}:{broken.__name__}"
    walks = [v for v in vectors if 30 < len(v.steps) < 200]
    plain = run_target(open_target(name, in_process=True), walks, stretch=False)
    assert {v.outcome for v in plain.verdicts} == {"pass"}
    found = _worlds_of_failures(name, walks)
    assert any(PUT_TOGETHER[broken] in world for world in found)


CAUGHT_BY = {
    CutsNames: NAMES,
    CutsNamesInFront: NAMES,
    WithoutCase: NAMES,
    WithoutSpaces: NAMES,
    WithoutOrder: NAMES,
    FewPositions: POSITIONS,
    SmallNumbers: NUMBERS,
    RoomInFloats: ROOM,
    Doubled: ROOM,
    NobodyIsEverybody: OTHERS,
    SharedReport: BESIDE,
}


@pytest.mark.parametrize("broken", CAUGHT_BY, ids=lambda cls: cls.__name__)
def test_each_change_finds_what_the_plain_vectors_do_not(
    broken: type[Ledger], vectors: tuple[Vector, ...]
) -> None:
    name = f"{__name__}:{broken.__name__}"
    small = [v for v in vectors if len(v.steps) < 30]
    plain = run_target(open_target(name, in_process=True), small, stretch=False)
    assert {v.outcome for v in plain.verdicts} == {"pass", "skip"}
    found = _worlds_of_failures(name, small)
    assert found
    assert all(world.startswith(CAUGHT_BY[broken]) and ";" not in world for world in found)


def _worlds(vector: Vector, largest: int = LARGEST_NUMBER) -> Iterator[Stretched]:
    """All larger worlds of a manager that has everything."""
    offered = CAPABILITIES[vector.manager]
    return stretched(case_of(vector), largest, offered, hits_of(vector))


def _worlds_of_failures(name: str, vectors: list[Vector]) -> set[str]:
    """In which larger worlds it fails."""
    report = run_target(open_target(name, in_process=True), vectors, stretch=True)
    failures = [v.failure for v in report.verdicts if v.outcome == "fail"]
    worlds = {f.stretched for f in failures if isinstance(f, CallFailure)}
    assert None not in worlds
    return {world for world in worlds if world is not None}


def test_all_vectors_together_have_every_style_of_names(vectors: tuple[Vector, ...]) -> None:
    names = [longer.name for v in vectors for longer in _worlds(v, SAFE_NUMBER)]
    for style in STYLES:
        assert any(f"hashes: {style_name(style)}," in name for name in names), style_name(style)
        ends = (f"requests: {style_name(style)}", f"requests: {style_name(style)};")
        assert any(name.endswith(ends[0]) or ends[1] in name for name in names)


def test_some_vector_has_positions_that_16_bits_do_not_hold(vectors: tuple[Vector, ...]) -> None:
    far = [
        w for v in vectors for w in _worlds(v, SAFE_NUMBER) if f"positions {FAR} apart" in w.name
    ]
    assert 1 <= len(far) <= 3
    for world in far:
        called = [getattr(call, "input_id", 0) for call in world.case.calls]
        assert len({at % FAR for at in called} - {0}) == 1
        assert max(called) > FAR > GAP


@pytest.mark.parametrize("largest", [SAFE_NUMBER, LARGEST_NUMBER])
def test_no_number_is_larger_than_the_language_has(
    largest: int, vectors: tuple[Vector, ...]
) -> None:
    most = 0
    for vector in vectors:
        for longer in _worlds(vector, largest):
            sizes = [i.num_embeds for r in longer.case.parameters.requests for i in r.items]
            pending = [getattr(c, "num_embeds_to_schedule", 0) for c in longer.case.calls]
            most = max(most, longer.case.parameters.cache_size)
            assert max(sizes, default=0) + max(pending) <= largest
    assert largest - 100_000 < most <= largest
    assert largest_number("C++") == LARGEST_NUMBER
    assert largest_number("javascript") == SAFE_NUMBER


def test_a_world_is_found_by_its_name(vectors: tuple[Vector, ...]) -> None:
    for vector in vectors[::40]:
        case, hits = case_of(vector), hits_of(vector)
        lacks: tuple[str, ...]
        for lacks in ((), ("reset",), ("free", ALLOCATE_AGAIN), ("free", "reset", ALLOCATE_AGAIN)):
            offered = set(CAPABILITIES[vector.manager]) - set(lacks)
            for largest in (SAFE_NUMBER, LARGEST_NUMBER):
                for longer in stretched(case, largest, offered, hits):
                    for one in (longer, *by_itself(longer, case, hits)):
                        found = world_named(case, one.name, largest, hits)
                        assert found is not None
                        assert found.case == one.case
        assert world_named(case, "no such world", SAFE_NUMBER, hits) is None


def test_hits_are_made_allocations_and_back(vectors: tuple[Vector, ...]) -> None:
    (vector, *_) = (v for v in vectors if hits_of(v))
    name = "what is cached is allocated instead of looked up"
    world = world_named(case_of(vector), name, SAFE_NUMBER, hits_of(vector))
    assert world is not None
    assert {type(vector.steps[k].call).__name__ for k in world.allocated} == {"CheckAndUpdateCache"}
    assert {type(world.case.calls[k]).__name__ for k in world.allocated} == {"Allocate"}
    given = [Answer(None)] * len(world.case.calls)
    hits = [k for k, answer in enumerate(world.answers(given)) if answer.returns is True]
    assert tuple(hits) == hits_of(vector)


class KeptOverAReset(Ledger):
    """A request that repeated a hash before a reset still does: L8, L10."""

    def reset(self) -> None:
        kept = getattr(self, "_repeats", {})
        super().reset()
        self._repeats = kept


class AgainIsLate(Ledger):
    """To allocate what is cached leaves it among the freeable: L5."""

    def allocate(self, request: Any, input_id: int) -> None:
        mm_hash = request.mm_features[input_id].identifier
        idle = self.freeable.get(mm_hash)
        super().allocate(request, input_id)
        if idle is not None:
            self.freeable[mm_hash] = idle


@pytest.mark.parametrize(
    ("name", "world"),
    [
        (KeptOverAReset, "after another life and a reset"),
        (AgainIsLate, "what is cached is allocated instead of looked up"),
    ],
)
def test_what_is_otherwise_only_there(name: type, world: str, vectors: tuple[Vector, ...]) -> None:
    """L5, L8, L10: Of vectors that do not need the capability or a reset themselves."""
    few = [v for v in vectors if not v.requires and v.manager == "encoder_cache"]
    few = [v for v in few if not any(isinstance(s.call, Reset) for s in v.steps)]
    assert world in _worlds_of_failures(f"{__name__}:{name.__name__}", few)


def test_what_a_manager_does_not_have_is_not_called_in_a_larger_world(
    vectors: tuple[Vector, ...], start: Callable[..., PythonTarget]
) -> None:
    """Requests that hold nothing end in between, but not where nothing ends at all."""

    class WithoutFree(Ledger):
        free = None  # type: ignore[assignment]

    report = run_target(start(WithoutFree), vectors[::4], stretch=True)
    assert {v.outcome for v in report.verdicts} == {"pass", "skip"}


def test_the_reference_passes_in_every_larger_world(vectors: tuple[Vector, ...]) -> None:
    report = run_target(open_target("reference"), vectors, stretch=True)
    assert {v.outcome for v in report.verdicts} == {"pass"}


def test_the_specification_answers_the_same_in_every_larger_world(
    vectors: tuple[Vector, ...],
) -> None:
    """The reason why a vector may be played there, asked of the interpreter."""
    kinds: set[str] = set()
    for vector in vectors[::5]:
        if len(vector.steps) > 20:
            continue
        for longer in _worlds(vector):
            if f"positions {FAR} apart" in longer.name:
                continue  # as the others, and takes the interpreter minutes
            kinds |= {change.name.split(" ")[0] for change in longer.changes}
            replay = Replay(specified(vector.manager), longer.case.parameters, record=False)
            answers = []
            for call in longer.case.calls:
                told = replay.answer(call)
                assert told is not None
                answers.append(Answer(told.returns, told.observe))
            for step, back in zip(vector.steps, longer.answers(answers), strict=True):
                assert (back.returns, back.observed) == (step.expect.returns, step.expect.observe)
    assert kinds == {"hashes:", "positions", "sizes", "capacity", "requests", "after", "what"}


def test_a_failure_says_under_which_stretching(vectors: tuple[Vector, ...]) -> None:
    report = run_target(
        open_target(f"{__name__}:SmallNumbers", in_process=True), vectors, stretch=True
    )
    failed = next(v for v in report.verdicts if v.outcome == "fail")
    (vector,) = (v for v in vectors if v.id == failed.id)
    assert failed.failure is not None
    assert f"only when it is stretched: {NUMBERS}" in failure_story(vector, failed.failure)


def test_without_a_report_only_one_companion_is_asked_for(vectors: tuple[Vector, ...]) -> None:
    case = case_of(vectors[0])
    assert len(companions(case)) == 2
    silent = [c for c in case.calls if type(c).__name__ != "GetFreedMmHashes"]
    assert len(companions(msgspec.structs.replace(case, calls=tuple(silent)))) == 1


_ALL_WORLDS = """\
from hashlib import sha256
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.protocol import CALLS, case_of
from mmcache_conformance.verdicts.changes import LARGEST_NUMBER
from mmcache_conformance.verdicts.stretch import hits_of, stretched
digest = sha256()
for vector in load_suite():
    for world in stretched(case_of(vector), LARGEST_NUMBER, CALLS, hits_of(vector)):
        digest.update(repr((world.name, world.case)).encode())
print(digest.hexdigest())
"""


def test_larger_worlds_are_the_same_in_every_process() -> None:
    """Python goes through a set of texts in another order in each process."""
    said = {
        subprocess.run(
            [sys.executable, "-c", _ALL_WORLDS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert said != {b""}
