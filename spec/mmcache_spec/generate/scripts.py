"""Sequences of calls that no single situation describes: what counts is how it was reached.

A goal is about one state and one call, and its witness ends there. Some defects show only later: a
count that is wrong from the third position on, a note that outlives what it is about. Each script
names the calls; what must come back is, as always, the interpreter's answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Manager,
    Parameters,
    Request,
    Reset,
)

__all__ = ["SCRIPTS", "Script"]


@dataclass(frozen=True)
class Script:
    """The calls of a vector, in a world of its own."""

    goal: str
    clauses: tuple[str, ...]
    parameters: Parameters
    calls: tuple[Call, ...]
    manager: Manager = "encoder_cache"


def _world(capacity: int, **requests: tuple[tuple[str, int], ...]) -> Parameters:
    carried = (
        Request(name, tuple(Item(mm_hash, size) for mm_hash, size in items))
        for name, items in requests.items()
    )
    return Parameters(capacity, tuple(carried))


A, B, C = ("A", 1), ("B", 1), ("C", 1)

_MANY = 12
"""So many of anything are more than a list of few places has."""


def _much_is_noted_when_a_reset_comes() -> tuple[Call, ...]:
    """Hashes in use and idle, and many that were evicted and are not reported yet.

    After the reset the same world is filled again: nothing is known there of what was before.
    """
    fill: tuple[Call, ...] = tuple(Allocate("r1", k) for k in range(_MANY))
    evict: tuple[Call, ...] = (Free("r1"), CanAllocate("all", 0, _MANY, 0))
    again: tuple[Call, ...] = (*fill[:6], *(FreeEncoderInput("r1", k) for k in (4, 1)))
    return (
        *(*fill, *evict, *again, Reset()),
        *(GetFreedMmHashes(), *fill[::-1], *evict, GetFreedMmHashes()),
        *(*fill, *evict, Reset(), Free("r1"), *fill[:3]),
    )


def _comes_back_in_each_pass() -> Iterator[Call]:
    """In each pass two hashes are evicted, and the first one is allocated again."""
    yield from (Allocate("r1", 0), Allocate("r1", 1), Free("r1"))
    for turn in range(4):
        for request, k in (("r2", 0), ("r1", 0), ("r1", 1)):
            yield CanAllocate(request, k, 1, 0)
            yield Allocate(request, k)
            yield FreeEncoderInput(request, k)
        yield GetFreedMmHashes()
        if turn % 2:
            yield from (CheckAndUpdateCache("r1", 0), CheckAndUpdateCache("r1", 1), Free("r1"))


_NOTHING, _NOTHING_ELSE, _TWO, _FOUR = ("O", 0), ("P", 0), ("T", 2), ("F", 4)

SCRIPTS = (
    Script(
        "four positions of one hash are released one after the other",
        ("L8",),
        _world(1, r1=(A, A, A, A), r2=(B,)),
        (
            Allocate("r1", 0),
            CheckAndUpdateCache("r1", 1),
            CheckAndUpdateCache("r1", 2),
            CheckAndUpdateCache("r1", 3),
            FreeEncoderInput("r1", 2),
            FreeEncoderInput("r1", 0),
            FreeEncoderInput("r1", 3),
            CanAllocate("r2", 0, 1, 0),
            FreeEncoderInput("r1", 1),
            CanAllocate("r2", 0, 1, 0),
        ),
    ),
    Script(
        "three positions of one hash are released one after the other",
        ("L8",),
        _world(1, r1=(A, A, A), r2=(B,)),
        (
            Allocate("r1", 0),
            CheckAndUpdateCache("r1", 1),
            CheckAndUpdateCache("r1", 2),
            FreeEncoderInput("r1", 1),
            FreeEncoderInput("r1", 0),
            CanAllocate("r2", 0, 1, 0),
            FreeEncoderInput("r1", 2),
            CanAllocate("r2", 0, 1, 0),
        ),
    ),
    Script(
        "a position that is held is looked up again, and released once",
        ("L11", "L5"),
        _world(1, r1=(A,)),
        (Allocate("r1", 0), CheckAndUpdateCache("r1", 0), FreeEncoderInput("r1", 0)),
    ),
    Script(
        "a hash held once is released beside one that is held twice",
        ("L8",),
        _world(2, r1=(A, A, B)),
        (
            Allocate("r1", 0),
            CheckAndUpdateCache("r1", 1),
            Allocate("r1", 2),
            FreeEncoderInput("r1", 2),
        ),
    ),
    Script(
        "a hash that was released is held again, at two positions",
        ("L8",),
        _world(2, r1=(A, A, B, B)),
        (
            Allocate("r1", 0),
            CheckAndUpdateCache("r1", 1),
            Allocate("r1", 2),
            FreeEncoderInput("r1", 2),
            CheckAndUpdateCache("r1", 2),
            CheckAndUpdateCache("r1", 3),
            FreeEncoderInput("r1", 2),
        ),
    ),
    Script(
        "an item of no embeddings in a cache of none",
        ("L7", "L3", "L5"),
        _world(0, r1=(("A", 0),)),
        (CanAllocate("r1", 0, 0, 0), Allocate("r1", 0), FreeEncoderInput("r1", 0)),
    ),
    Script(
        "an item of one embedding in a cache of none",
        ("L7",),
        _world(0, r1=(("A", 0), B)),
        (
            CanAllocate("r1", 1, 1, 0),
            CanAllocate("r1", 0, 1, 1),
            CanAllocate("r1", 0, 1, 0),
            Allocate("r1", 0),
            CanAllocate("r1", 1, 9, 0),
            Free("r1"),
            CanAllocate("r1", 1, 9, 9),
        ),
    ),
    Script(
        "items of no embeddings among others",
        ("L6", "L7"),
        _world(4, r1=(A, _NOTHING, B, _NOTHING_ELSE, C), r2=(_TWO, _FOUR, ("Q", 0))),
        (
            *(Allocate("r1", k) for k in range(5)),
            CanAllocate("r2", 2, 0, 1),
            CanAllocate("r2", 2, 0, 2),
            CanAllocate("r2", 2, 9, 9),
            Free("r1"),
            CanAllocate("r2", 2, 0, 5),
            CanAllocate("r2", 0, 2, 0),
            GetFreedMmHashes(),
            Allocate("r2", 0),
            CheckAndUpdateCache("r1", 3),
            CanAllocate("r2", 2, 0, 3),
            CanAllocate("r2", 2, 0, 2),
            GetFreedMmHashes(),
            FreeEncoderInput("r1", 3),
            Free("r2"),
            CanAllocate("r2", 1, 4, 0),
        ),
    ),
    Script(
        "much is noted when a reset comes",
        ("L10",),
        _world(
            _MANY,
            r1=tuple((f"h{k}", 1) for k in range(_MANY)),
            all=(("all", _MANY),),
        ),
        _much_is_noted_when_a_reset_comes(),
    ),
    Script(
        "a hash is evicted and comes back in each pass",
        ("L1", "L2"),
        _world(2, r1=(A, B), r2=(C,)),
        tuple(_comes_back_in_each_pass()),
    ),
    Script(
        "an item of many embeddings is allocated by a second request",
        ("L3",),
        _world(600, r1=(("A", 300),), r2=(("A", 300),)),
        (Allocate("r1", 0), Allocate("r2", 0)),
    ),
    Script(
        "two charged inputs of one request are released one after the other",
        ("E1",),
        _world(2, r1=(A, B)),
        (
            Allocate("r1", 0),
            Allocate("r1", 1),
            FreeEncoderInput("r1", 0),
            FreeEncoderInput("r1", 1),
        ),
        "encoder_decoder",
    ),
    Script(
        "an item of no embeddings is charged",
        ("E1", "L7"),
        _world(0, r1=(("A", 0),)),
        (CanAllocate("r1", 0, 0, 0), Allocate("r1", 0), FreeEncoderInput("r1", 0)),
        "encoder_decoder",
    ),
)
