"""The clauses of progress are complete, and S13 to S16 are what that rests on."""

from __future__ import annotations

import pytest

from mmcache_spec.checks.complete import decide, questions
from mmcache_spec.checks.redundancy import without
from mmcache_spec.checks.two_answers import ANSWER
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.progress import progress
from mmcache_spec.model.world import scope

SYSTEM = progress()
SMALL = scope(1, 1, 1)


def undetermined(system: TransitionSystem, action: str) -> set[str]:
    """What two designs that satisfy all clauses may differ in after this call."""
    asked = [q for q in questions(system) if q.action is not None and q.action.name == action]
    found = {q.what: decide(q, SMALL).verdict for q in asked}
    assert "unknown" not in found.values()
    return {what for what, verdict in found.items() if verdict == "refuted"}


def test_every_answer_and_everything_that_is_seen_is_asked_for() -> None:
    asked = {(q.action.name if q.action else None, q.what) for q in questions(SYSTEM)}
    assert {(a.name, what) for a in SYSTEM.actions for what in SYSTEM.observables} <= asked
    assert ("schedule", ANSWER) in asked
    assert {v.name for v in SYSTEM.variables if v.role == "state"} == set(SYSTEM.observables)


@pytest.mark.parametrize("action", [a.name for a in SYSTEM.actions])
def test_the_clauses_of_progress_leave_nothing_open(action: str) -> None:
    assert undetermined(SYSTEM, action) == set()


@pytest.mark.parametrize(
    ("clause", "open_without_it"),
    [
        ("S13", {ANSWER}),
        ("S14", {"arrived", "running", "finished", "computed"}),
        ("S15", {"held"}),
        ("S16", {"cached"}),
    ],
)
def test_without_a_clause_there_are_two_answers(clause: str, open_without_it: set[str]) -> None:
    left_out = without(SYSTEM, *SYSTEM.stating(clause))
    assert undetermined(left_out, "schedule") == open_without_it


def test_s7_and_l3_name_a_fault_and_determine_nothing() -> None:
    """Whoever satisfies the others answers as specified does, and that makes progress, and fits."""
    named = (*SYSTEM.stating("S7"), *SYSTEM.stating("L3"))
    assert undetermined(without(SYSTEM, *named), "schedule") == set()
