"""Hand-made vectors and engines, so that these tests depend on no generated file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Manager,
    Observed,
    Parameters,
    Provenance,
    Request,
    Reset,
    Step,
    Vector,
    content_id,
    encode,
)

Line = tuple[Call, bool | tuple[str, ...] | None, Observed]


def make_vector(
    slug: str,
    clauses: tuple[str, ...],
    cache_size: int,
    requests: dict[str, tuple[str, ...]],
    lines: tuple[Line, ...],
    *,
    manager: Manager = "encoder_cache",
    variant: str = "specified",
    requires: tuple[str, ...] = (),
) -> Vector:
    """A vector whose items all have the size 1."""
    parameters = Parameters(
        cache_size,
        tuple(Request(r, tuple(Item(h, 1) for h in hashes)) for r, hashes in requests.items()),
    )
    steps = tuple(Step(call, Expect(returns, observe)) for call, returns, observe in lines)
    return Vector(
        format="mmcache/vector",
        format_version=1,
        id=content_id(slug, manager, parameters, steps),
        description=f"Hand-made: {slug}.",
        manager=manager,
        goal=f"goal of {slug}",
        variant=variant,
        clauses=clauses,
        kills=(),
        requires=requires,
        provenance=Provenance("0", "none", 0),
        parameters=parameters,
        steps=steps,
    )


NOTHING = Observed()

HAND_MADE = (
    make_vector(
        "evicted-and-allocated-again",
        ("L1", "L2"),
        2,
        {"r1": ("X", "Y"), "r2": ("Z", "X")},
        (
            (Allocate("r1", 0), None, Observed(num_free_slots=1, num_freeable_slots=1)),
            (Allocate("r1", 1), None, NOTHING),
            (
                Free("r1"),
                None,
                Observed(0, 2, {"X": (), "Y": ()}, ("X", "Y"), {}),
            ),
            (CanAllocate("r2", 0, 1, 0), True, Observed(cached={"Y": ()}, freeable=("Y",))),
            (Allocate("r2", 0), None, NOTHING),
            (CheckAndUpdateCache("r2", 1), False, NOTHING),
            (CanAllocate("r2", 1, 1, 0), True, NOTHING),
            (Allocate("r2", 1), None, Observed(held={"r2": (0, 1)})),
            (GetFreedMmHashes(), ("Y",), Observed(0, 0, {"X": ("r2",), "Z": ("r2",)}, ())),
            (GetFreedMmHashes(), (), NOTHING),
        ),
        variant="unfiltered_report",
    ),
    make_vector(
        "admission",
        ("L7",),
        2,
        {"r1": ("X",), "r2": ("Y",)},
        (
            (CanAllocate("r1", 0, 0, 0), False, NOTHING),
            (CanAllocate("r1", 0, 1, 2), False, NOTHING),
            (CanAllocate("r1", 0, 1, 1), True, NOTHING),
            (Allocate("r1", 0), None, NOTHING),
        ),
    ),
    make_vector(
        "one-hash-twice",
        ("L8",),
        2,
        {"r1": ("X", "X")},
        (
            (Allocate("r1", 0), None, NOTHING),
            (CheckAndUpdateCache("r1", 1), True, Observed(held={"r1": (0, 1)})),
            (FreeEncoderInput("r1", 0), None, Observed(cached={"X": ("r1",)}, freeable=())),
            (FreeEncoderInput("r1", 1), None, Observed(cached={"X": ()}, freeable=("X",))),
        ),
        variant="first_occurrence_release",
    ),
    make_vector(
        "reset-while-referenced",
        ("L10",),
        1,
        {"r1": ("X",)},
        (
            (Allocate("r1", 0), None, NOTHING),
            (Reset(), None, Observed(1, 1, {}, (), {})),
            (Free("r1"), None, Observed(1, 1, {}, (), {})),
        ),
    ),
    make_vector(
        "allocated-while-resident",
        ("L3",),
        1,
        {"r1": ("X",), "r2": ("X",)},
        (
            (Allocate("r1", 0), None, NOTHING),
            (Free("r1"), None, NOTHING),
            (Allocate("r2", 0), None, Observed(0, 0, {"X": ("r2",)}, ())),
        ),
        requires=("allocate_again",),
    ),
    make_vector(
        "encoder-decoder-credit",
        ("E1",),
        2,
        {"r1": ("X",)},
        (
            (Allocate("r1", 0), None, Observed(num_free_slots=1)),
            (FreeEncoderInput("r1", 0), None, Observed(num_free_slots=2)),
            (FreeEncoderInput("r1", 0), None, Observed(num_free_slots=2)),
        ),
        manager="encoder_decoder",
        variant="encoder_decoder_repeated_credit",
    ),
    make_vector(
        "encoder-decoder-notice",
        ("E2",),
        1,
        {"r1": ("X",)},
        (
            (Allocate("r1", 0), None, NOTHING),
            (GetFreedMmHashes(), (), NOTHING),
            (GetFreedMmHashes(), ("X",), NOTHING),
            (GetFreedMmHashes(), (), NOTHING),
        ),
        manager="encoder_decoder",
    ),
)


@pytest.fixture
def hand_made() -> dict[str, Vector]:
    """The hand-made vectors, by what comes before the digest of their id."""
    return {vector.id[:-9]: vector for vector in HAND_MADE}


@pytest.fixture
def vector_directory(tmp_path: Path) -> Path:
    """The hand-made vectors as files."""
    directory = tmp_path / "vectors"
    directory.mkdir()
    for vector in HAND_MADE:
        (directory / f"{vector.id}.json").write_bytes(encode(vector))
    return directory


@pytest.fixture
def start() -> Iterator[Callable[..., PythonTarget]]:
    """Make a started target of classes."""
    started: list[PythonTarget] = []

    def make(encoder_cache: type | None, encoder_decoder: type | None = None) -> PythonTarget:
        classes = ManagerClasses("the engine", encoder_cache, encoder_decoder)
        target = PythonTarget("engine", lambda: classes)
        target.start()
        started.append(target)
        return target

    yield make
    for target in started:
        target.stop()
