"""What a search in one small world finds, and what the interpreter says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..evaluate.interpreter import ActionCall, Interpreter, World
from ..kernel.system import TransitionSystem

__all__ = ["Difference", "Found", "Search", "along", "confirmed"]


@dataclass(frozen=True)
class Found:
    """Calls from the initial state, of which the last breaks the clauses."""

    clauses: tuple[str, ...]
    calls: tuple[ActionCall, ...]
    world: World


@dataclass(frozen=True)
class Difference:
    """Calls after which two systems answer, show or refuse something else."""

    calls: tuple[ActionCall, ...]
    what: str
    world: World


@dataclass(frozen=True)
class Search:
    """How far a search went.

    `complete`: every reachable state was seen. `same`: in none of them does the design do anything
    that the original does not.
    """

    states: int
    complete: bool
    same: bool = False


def confirmed(design: TransitionSystem, world: World, calls: Sequence[ActionCall]) -> Found | None:
    """What the last of the calls breaks, as the interpreter executes them; None for nothing."""
    stated = tuple(i for i in design.invariants if i.clause is not None)
    claims = tuple(p for p in design.action_properties if p.clause is not None)
    interpreter = Interpreter(design.claiming(stated, claims), world)
    if not calls:
        start = interpreter.initial()
        broken = [i.clause for i in stated if not interpreter.holds(i, start)]
    else:
        steps = list(interpreter.run(calls))
        if any(step.refused_by for step in steps):
            return None
        broken = [p.clause for p in interpreter.breaks(steps[-1])]
    names = tuple(dict.fromkeys(c for c in broken if c is not None))
    return Found(names, tuple(calls), world) if names else None


def along(design: TransitionSystem, world: World, calls: Sequence[ActionCall]) -> Found | None:
    """The first of the calls by which the design breaks a clause, with those before it.

    None where none does, or where a guard refuses one of them.
    """
    claims = tuple(p for p in design.action_properties if p.clause is not None)
    stated = tuple(i for i in design.invariants if i.clause is not None)
    interpreter = Interpreter(design.claiming(stated, claims), world)
    for k, step in enumerate(interpreter.run(calls)):
        if step.refused_by:
            return None
        names = dict.fromkeys(p.clause for p in interpreter.breaks(step) if p.clause is not None)
        if names:
            return Found(tuple(names), tuple(calls[: k + 1]), world)
    return None
