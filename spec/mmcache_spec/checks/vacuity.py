"""Proofs of nothing are worth nothing: what must be reachable, and what must be true of sets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from ..evaluate.finite import Finite, Names
from ..kernel.goals import Goal, antecedent_goals, vacuity_goals
from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import Symbol, Term, alpha_form, subterms
from .bounded import Trace, witnesses
from .induction import lemmas, obligations
from .known_paths import KnownPath
from .reach import Place, reach

__all__ = ["Situations", "false_lemmas", "goals_of", "lemmas_of", "reachability"]


@dataclass(frozen=True)
class Situations:
    """Where to look for what must be reachable, and what that is besides what is generated."""

    places: Sequence[Place]
    goals: tuple[Goal, ...] = ()


def reachability(
    system: TransitionSystem,
    within: Situations,
    bound: int = 6,
    known: Sequence[KnownPath] = (),
    unwanted: Collection[str] = (),
) -> dict[str, Trace | None]:
    """Every action, guard and answer of the system, and every condition of a clause.

    With the path that shows that it occurs, or None. An action, a guard or an answer that the
    small worlds do not show is looked for by the solver in the last place, too. Known paths are
    tried before anything else. Goals that are unwanted, by name, are not looked for.
    """
    actions = tuple(vacuity_goals(system))
    wanted = [goal for goal in goals_of(system, within) if goal.name not in unwanted]
    found = reach(system, wanted, within.places, known)
    missing = [g for g in actions if g.name not in unwanted and found[g.name] is None]
    if missing:
        found.update(witnesses(system, within.places[-1].scope, missing, bound, least=False))
    return found


def goals_of(system: TransitionSystem, within: Situations) -> tuple[Goal, ...]:
    """All that must be reachable."""
    return (*vacuity_goals(system), *antecedent_goals(system), *within.goals)


def lemmas_of(system: TransitionSystem) -> list[Term]:
    """Every fact about finite sets that some proof of this system is given, once."""
    found = (lemma for obligation in obligations(system) for lemma in lemmas(obligation))
    return list({alpha_form(lemma)[0]: lemma for lemma in found}.values())


def false_lemmas(system: TransitionSystem, scope: Scope) -> list[Term]:
    """The lemmas that are wrong of some sets within the scope. There must be none."""
    finite = Finite(scope.universe)
    finite.declare(system.constants, system.functions)
    before = {v.name: finite.fresh(v.name, v.sort) for v in system.variables}
    after = {v.name: finite.fresh(f"{v.name}'", v.sort) for v in system.variables}
    parameters = {p.name: p for action in system.actions for p in action.parameters}
    given = {name: finite.fresh(name, p.sort) for name, p in parameters.items()}
    solver = z3.Solver()
    for axiom in system.axioms:
        solver.add(finite(axiom.formula, Names()))
    wrong = []
    for lemma in lemmas_of(system):
        names = Names(before, after, given, _any_result(finite, lemma))
        contrary = z3.Not(z3.And(finite(lemma, names), True))
        if solver.check(*finite.constraints, contrary) != z3.unsat:
            wrong.append(lemma)
    return wrong


def _any_result(finite: Finite, lemma: Term) -> Any:
    """Whatever a call may return, of the sort of which the lemma speaks."""
    for term in subterms(lemma):
        if isinstance(term, Symbol) and term.role == "result":
            return finite.fresh(f"result of {term.sort}", term.sort)
    return None
