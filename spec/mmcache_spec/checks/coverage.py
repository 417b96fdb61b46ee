"""Every goal is reached, or proved to be out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..kernel.goals import ANY, Goal
from ..kernel.system import Action, ActionProperty, Invariant, Scope, TransitionSystem
from ..kernel.terms import (
    Binder,
    Op,
    Symbol,
    Term,
    all_of,
    unnamed,
)
from .bounded import Trace, witnesses
from .induction import Obligation, is_proved

__all__ = ["Coverage", "cover", "is_unreachable"]


@dataclass(frozen=True)
class Coverage:
    """Which goals were reached, by name, and which cannot be."""

    reached: dict[str, Trace]
    unreachable: tuple[str, ...]
    """Proved to be out of reach, for any number of elements."""
    open: tuple[str, ...]
    """Neither: not reached up to the bound, and not proved unreachable. There should be none."""


def cover(
    system: TransitionSystem,
    scope: Scope,
    goals: Sequence[Goal],
    bound: int = 8,
    *,
    least: bool = True,
) -> Coverage:
    """Prove what is out of reach; find the shortest witness of everything else."""
    unreachable = {goal.name for goal in goals if is_unreachable(system, goal)}
    wanted = [goal for goal in goals if goal.name not in unreachable]
    found = witnesses(system, scope, wanted, bound, least=least)
    return Coverage(
        {name: trace for name, trace in found.items() if trace is not None},
        tuple(goal.name for goal in goals if goal.name in unreachable),
        tuple(name for name, trace in found.items() if trace is None),
    )


def is_unreachable(system: TransitionSystem, goal: Goal) -> bool:
    """Whether nothing that the invariants allow is what the goal describes."""
    if goal.action == ANY:
        return _is_impossible(system, goal)
    action = system.action(goal.action)
    if goal.after is None:
        claim = ActionProperty(f"never: {goal.name}", action.name, ~goal.condition)
        return is_proved(Obligation(system, claim, action, "action"))
    first = system.action(goal.after)
    claim = ActionProperty(f"never: {goal.name}", first.name, _never_enabled(action))
    return is_proved(Obligation(system, claim, first, "action"))


def _is_impossible(system: TransitionSystem, goal: Goal) -> bool:
    idle = Action("idle")
    still = replace(system, actions=(*system.actions, idle))
    claim = Invariant(f"never: {goal.name}", ~goal.condition)
    return is_proved(Obligation(still, claim, idle, "consecution"))


def _never_enabled(action: Action) -> Term:
    """In the state after the call, no arguments satisfy the guards of the action."""
    bound = {p.name: Symbol(p.sort, f"{p.name}2", "bound") for p in action.parameters}
    formula: Term = ~_moved(all_of(*action.guard.values()), bound)
    for symbol in bound.values():
        formula = Binder(formula.sort, "forall", (symbol,), formula)
    return formula


def _moved(term: Term, bound: dict[str, Symbol]) -> Term:
    """The term in the next state, with bound variables for parameters."""
    term = unnamed(term)
    match term:
        case Symbol(role="state" | "ghost"):
            return term.next
        case Symbol(role="parameter", name=name):
            return bound[name]
        case Op():
            return replace(term, args=tuple(_moved(a, bound) for a in term.args))
        case Binder():
            value = None if term.value is None else _moved(term.value, bound)
            return replace(term, body=_moved(term.body, bound), value=value)
    return term
