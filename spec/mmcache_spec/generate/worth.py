"""How good a set of vectors is: the goals that it reaches and the mutants that it kills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from mmcache_vectors.manager import Vector

from ..evaluate.interpreter import Interpreter, Step
from ..kernel.goals import Goal, pair_goals
from ..kernel.mutants import Mutant, mutants
from ..kernel.system import TransitionSystem
from ..model.goals import ENCODER_DECODER_GOALS, LEDGER_COMBINATIONS, LEDGER_GOALS
from ..oracle import Replay, answers_otherwise

__all__ = ["goals_of", "kills", "least_cover", "mutants_of", "reached"]


def goals_of(system: TransitionSystem) -> tuple[Goal, ...]:
    """Every situation that the vectors for this system should reach."""
    named: tuple[Goal, ...] = ENCODER_DECODER_GOALS
    if system.name == "ledger":
        named = (*LEDGER_GOALS, *LEDGER_COMBINATIONS)
    return (*named, *pair_goals(system))


@cache
def mutants_of(system: TransitionSystem) -> tuple[Mutant, ...]:
    return tuple(mutants(system))


def reached(system: TransitionSystem, vector: Vector) -> set[str]:
    """The names of the goals that the vector's calls reach."""
    replay = Replay(system, vector.parameters)
    for step in vector.steps:
        replay.answer(step.call)
    interpreter = replay.interpreter
    return {goal.name for goal in goals_of(system) if _reaches(interpreter, replay.steps, goal)}


def _reaches(interpreter: Interpreter, steps: Sequence[Step], goal: Goal) -> bool:
    for k, step in enumerate(steps):
        follows = goal.after is None or (k > 0 and steps[k - 1].call.action == goal.after)
        if follows and interpreter.meets(goal, step):
            return True
    return False


def kills(system: TransitionSystem, vector: Vector) -> set[str]:
    """The names of the mutants that answer otherwise."""
    return {
        m.name
        for m in mutants_of(system)
        if answers_otherwise(m.system, vector.parameters, vector.steps)
    }


def least_cover(
    covers: Mapping[str, set[str]], kept: Iterable[str] = (), most: int | None = None
) -> list[str]:
    """Few keys that together cover what all cover: greedily, ties by name; `kept` first of all."""
    chosen = list(kept)
    missing = set().union(*covers.values()) if covers else set()
    missing -= set().union(*(covers[key] for key in chosen)) if chosen else set()
    while missing and (most is None or len(chosen) < most):
        best = max(sorted(covers), key=lambda key: len(covers[key] & missing))
        if not covers[best] & missing:
            break
        chosen.append(best)
        missing -= covers[best]
    return sorted(chosen)
