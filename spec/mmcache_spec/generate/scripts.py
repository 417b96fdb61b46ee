"""Sequences of calls that no single situation describes: what counts is how it was reached.

A goal is about one state and one call, and its witness ends there. Some defects show only later: a
count that is wrong from the third position on, a note that outlives what it is about. Each script
names the calls; what must come back is, as always, the interpreter's answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    FreeEncoderInput,
    Item,
    Manager,
    Parameters,
    Request,
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


A, B = ("A", 1), ("B", 1)

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
