"""Vectors that reach a named situation, and vectors whose calls are given, not found."""

from __future__ import annotations

from mmcache_vectors.manager import Vector

from ..checks.bounded import NoVerdict
from ..checks.coverage import cover
from ..model.variants import SPECIFIED
from ..model.world import scope
from .draft import CLOSING, Draft, answered, slug
from .managers import PREFIX, specified, system_name
from .scripts import SCRIPTS
from .worth import goals_of

__all__ = ["scripted", "witnesses"]


GOAL_SEARCH = {"ledger": scope(4, 2, 3), "encoder_decoder": scope(3, 2, 2)}


BOUND = 8


def witnesses(system_name: str) -> list[Draft]:
    system = specified(system_name)
    goals = goals_of(system)
    covered = cover(system, GOAL_SEARCH[system_name], goals, BOUND)
    if covered.open:
        raise NoVerdict(f"neither reached nor proved unreachable: {', '.join(covered.open)}")
    traces = covered.reached
    return [
        Draft(
            slug=PREFIX[system_name] + slug(goal.name),
            description=f"{goal.action}: {goal.name}.",
            goal=goal.name,
            variant=SPECIFIED.name,
            clauses=goal.about,
            trace=trace,
        )
        for goal in goals
        if (trace := traces.get(goal.name)) is not None
    ]


def scripted() -> dict[str, Vector]:
    """The vectors whose calls are given, not found."""
    vectors = (
        answered(
            PREFIX[system_name(script.manager)] + slug(script.goal),
            f"{script.goal[0].upper()}{script.goal[1:]}.",
            script.goal,
            SPECIFIED.name,
            script.clauses,
            specified(system_name(script.manager)),
            script.parameters,
            [*script.calls, *CLOSING],
        )
        for script in SCRIPTS
    )
    return {vector.id: vector for vector in vectors}
