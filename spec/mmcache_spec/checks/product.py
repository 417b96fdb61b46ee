"""Two systems side by side, asked the same: can anybody tell them apart?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..kernel.goals import Goal
from ..kernel.system import Action, Scope, TransitionSystem
from ..kernel.terms import Symbol, Term, all_of, replaced, result
from .bounded import Trace, witnesses

__all__ = ["distinguish"]

Observation = Callable[[Callable[[Term], Term]], Term]
"""A claim that the two agree: given how to see a term in the other system, a formula."""


def distinguish(
    system: TransitionSystem,
    other: TransitionSystem,
    agree: Observation,
    scopes: Sequence[Scope],
    bound: int,
) -> Trace | None:
    """The shortest calls, allowed by `system`, after which the two answer or show otherwise.

    `None` is a proof that no such calls exist within the last scope, up to the bound: within it,
    the two are equivalent on everything that `agree` looks at.
    """
    both = _side_by_side(system, other)
    goals = [_difference(a, other.action(a.name), agree) for a in system.actions]
    for scope in scopes:
        found = witnesses(both, scope, goals, bound, first_only=True)
        traces = [trace for trace in found.values() if trace is not None]
        if traces:
            return traces[0]
    return None


def _side_by_side(system: TransitionSystem, other: TransitionSystem) -> TransitionSystem:
    """One system with the variables of both; the guards are those of the first.

    The record of the first is kept, since its guards may speak of it, and only that.
    """
    actions = []
    for mine, theirs in zip(system.actions, other.actions, strict=True):
        others = ((_twin(v), _in_other(_answered(t, theirs))) for v, t in _own(theirs.effect))
        effect = (*_own(mine.effect), *others)
        actions.append(replace(mine, effect=effect, lemmas={}))
    twins = (_twin(v) for v in other.variables if v.role != "ghost")
    return replace(
        system,
        variables=(*system.variables, *twins),
        init=(*system.init, *((_twin(v), _in_other(t)) for v, t in _own(other.init))),
        actions=tuple(actions),
        invariants=(),
        action_properties=(),
    )


def _own(lines: tuple[tuple[Symbol, Term], ...]) -> tuple[tuple[Symbol, Term], ...]:
    """The lines about the state of the design, without those of the record."""
    return tuple(line for line in lines if line[0].role != "ghost")


def _answered(term: Term, action: Action) -> Term:
    """The term with the answer of this action written out: `result` is that of the first."""
    return replaced(term, lambda s: action.returns if s.role == "result" else None)


def _difference(mine: Action, theirs: Action, agree: Observation) -> Goal:
    same = [agree(lambda t: _in_other(t))]
    if mine.returns is not None and theirs.returns is not None:
        answer = result(mine.returns.sort)
        same.append(_equal(answer, _in_other(theirs.returns)))
    same.append(_in_other(theirs.enabled))
    return Goal(f"{mine.name} differs", mine.name, ~all_of(*same))


def _equal(a: Term, b: Term) -> Term:
    return a.same_elements(b) if a.sort.name.startswith("Set") else a == b


def _twin(symbol: Symbol) -> Symbol:
    return replace(symbol, name=f"other {symbol.name}")


def _in_other(term: Term) -> Term:
    """The term, about the variables of the other system."""
    return replaced(term, lambda s: _twin(s) if s.role in ("state", "next") else None)
