"""From a trace to a vector: what `specified` answers, and which variants answer otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CheckAndUpdateCache,
    Expect,
    GetFreedMmHashes,
    Parameters,
    Provenance,
    Step,
    Vector,
    content_id,
)

from ..checks.bounded import Trace
from ..kernel.system import TransitionSystem
from ..oracle import Replay, answers_otherwise, parameters_of, vector_call
from .managers import MANAGERS, digest, specified, wrong_ledgers

__all__ = [
    "CLOSING",
    "Draft",
    "answered",
    "by_hits",
    "content",
    "contents",
    "distinct",
    "slug",
    "vector_of",
]


CLOSING = (GetFreedMmHashes(), GetFreedMmHashes())
"""Every vector ends with two reports: what is owed to the worker, and that it is owed no longer.

So an implementation that shows none of its state still answers for what happened before.
"""


_SIGNS = {
    "<": "less",
    "≤": "at-most",
    ">": "more",
    "≥": "at-least",
    "+": "plus",
    "\u2212": "minus",
}


@dataclass(frozen=True)
class Draft:
    """A trace on its way to be a vector."""

    slug: str
    description: str
    goal: str
    variant: str
    clauses: tuple[str, ...]
    trace: Trace


def slug(text: str) -> str:
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def vector_of(draft: Draft) -> Vector:
    parameters, places = parameters_of(draft.trace.world)
    calls = [vector_call(step.call, places) for step in draft.trace.steps]
    return answered(
        draft.slug,
        draft.description,
        draft.goal,
        draft.variant,
        draft.clauses,
        specified(draft.trace.system),
        parameters,
        [*calls, *CLOSING],
    )


def answered(
    slug: str,
    description: str,
    goal: str,
    variant: str,
    clauses: tuple[str, ...],
    system: TransitionSystem,
    parameters: Parameters,
    calls: Sequence[Call],
    shown: Callable[[int, Expect], Expect] = lambda number, answer: answer,
) -> Vector:
    """The vector of these calls: what `specified` answers, and which variants answer otherwise.

    `shown` says how much of an answer is expected, by the number of the call.
    """
    replay = Replay(system, parameters, record=False)
    steps = []
    for number, call in enumerate(calls):
        answer = replay.answer(call)
        if answer is None:
            raise ValueError(f"{slug}: the specified guards refuse {call}")
        steps.append(Step(call, shown(number, answer)))
    manager = MANAGERS[system.name]
    return Vector(
        format="mmcache/vector",
        format_version=1,
        id=content_id(slug, manager, parameters, tuple(steps)),
        description=description,
        manager=manager,
        goal=goal,
        variant=variant,
        clauses=clauses,
        kills=tuple(
            v.name
            for v in wrong_ledgers()
            if v.system.name == system.name and answers_otherwise(v.system, parameters, steps)
        ),
        requires=("allocate_again",) if "allocate_again" in replay.used else (),
        provenance=Provenance(spec_digest=digest(system), solver="z3", seed=0),
        parameters=parameters,
        steps=tuple(steps),
    )


def by_hits(system: TransitionSystem, parameters: Parameters, calls: Iterable[Call]) -> list[Call]:
    """The calls with a look-up in the place of each allocation of what is cached.

    Both do the same (`model.ledger.allocate_again`), and not every manager has the second. The kit
    plays the vector both ways on those that have.
    """
    replay = Replay(system, parameters, record=False)
    made: list[Call] = []
    for call in calls:
        replay.answer(call)
        again = replay.steps and replay.steps[-1].call.action == "allocate_again"
        if again and isinstance(call, Allocate):
            call = CheckAndUpdateCache(call.request, call.input_id)
        made.append(call)
    return made


def distinct(drafts: Iterable[Draft]) -> dict[str, Vector]:
    """The vectors of the drafts, by id; of those with the same content, the first."""
    vectors: dict[str, Vector] = {}
    seen: set[str] = set()
    for draft in drafts:
        vector = vector_of(draft)
        if content(vector) not in seen:
            seen.add(content(vector))
            vectors[vector.id] = vector
    return vectors


def content(vector: Vector) -> str:
    return vector.id.rsplit("-", 1)[1]


def contents(vectors: dict[str, Vector]) -> set[str]:
    return set(map(content, vectors.values()))
