"""Proofs of nothing are worth nothing: what must be reachable, and what must be true of sets."""

from __future__ import annotations

from collections.abc import Iterator

import z3

from ..kernel.goals import vacuity_goals
from ..kernel.lemmas import measure_instances
from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import Term
from ..translate.finite import Finite, Names, negation
from .bounded import Trace, witnesses

__all__ = ["false_lemmas", "lemmas_of", "reachability"]


def reachability(system: TransitionSystem, scope: Scope, bound: int = 4) -> dict[str, Trace | None]:
    """Every action, guard and answer of the system, with the path that shows it can occur."""
    return witnesses(system, scope, tuple(vacuity_goals(system)), bound)


def lemmas_of(system: TransitionSystem) -> Iterator[tuple[str, Term]]:
    """Every fact about finite sets that some proof of this system is given."""
    for action in system.actions:
        for name, terms in action.lemmas.items():
            for term in terms:
                yield f"{action.name}, {name}", term
        for term in measure_instances(action.updates.values()):
            yield f"{action.name}, sums", term


def false_lemmas(system: TransitionSystem, scope: Scope) -> list[str]:
    """The lemmas that are wrong of some sets within the scope. There must be none."""
    wrong = []
    for name, lemma in lemmas_of(system):
        finite = Finite(scope.universe)
        finite.declare(system.constants, system.functions)
        state = {v.name: finite.fresh(v.name, v.sort) for v in system.variables}
        (action,) = (a for a in system.actions if name.startswith(f"{a.name}, "))
        given = {p.name: finite.fresh(p.name, p.sort) for p in action.parameters}
        solver = z3.Solver()
        for axiom in system.axioms:
            solver.add(finite(axiom.formula, Names()))
        solver.add(negation(finite(lemma, Names(before=state, arguments=given))))
        solver.add(*finite.constraints)
        if solver.check() != z3.unsat:
            wrong.append(name)
    return wrong
