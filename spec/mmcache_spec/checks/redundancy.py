"""Clauses that follow from the other clauses: true of every design that satisfies the rest.

They are kept because they say what a reader looks for, and name a fault by its own name. But they
determine nothing, so completeness does not need them: that each follows is proved here, by
induction over the calls where it is an invariant, and from the other clauses alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import z3

from ..evaluate.unbounded import Unbounded
from ..kernel.lemmas import measure_instances
from ..kernel.system import Action, Invariant, Property, TransitionSystem
from ..kernel.terms import Term, after
from .asking import unsatisfiable
from .complete import claims, equal_totals, totals

__all__ = ["follows", "without"]


def without(system: TransitionSystem, *claims: Property) -> TransitionSystem:
    """The same system, of which this is not claimed."""
    gone = {id(claim) for claim in claims}
    return system.claiming(
        (i for i in system.invariants if id(i) not in gone),
        (p for p in system.action_properties if id(p) not in gone),
    )


def follows(system: TransitionSystem, claim: Property) -> bool:
    """Whether a design that satisfies the other clauses satisfies this one. False: not shown."""
    return all(unsatisfiable(query) for query in _queries(system, claim))


def _queries(system: TransitionSystem, claim: Property) -> Iterator[list[z3.BoolRef]]:
    rest = without(system, claim)
    if isinstance(claim, Invariant):
        yield _query(rest, None, [], after(claim.formula))
        for action in system.actions:
            yield _query(rest, action, [claim.formula], after(claim.formula))
    else:
        yield _query(rest, system.action(claim.action), [], claim.formula)


def _query(
    rest: TransitionSystem, action: Action | None, assumed: list[Term], goal: Term
) -> list[z3.BoolRef]:
    known = [axiom.formula for axiom in rest.axioms] + assumed + claims(rest, action)
    facts = list(measure_instances(known))
    for total in (t for invariant in rest.invariants for t in totals(invariant.formula)):
        facts += equal_totals(total, after(total))
    return Unbounded().assertions([*known, *(fact.formula for fact in facts), ~goal])
