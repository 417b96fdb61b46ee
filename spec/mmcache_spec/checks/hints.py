"""What a proof was found with, so that the next one need not search: it is checked, not believed.

A hint names the axioms and invariants that were enough for the solver, and paths that reach what
must be reachable. Fewer premises prove less, never more, and a path is executed again by the
interpreter, in a world that must satisfy the axioms. So a hint that is wrong, or of a definition
that has changed since, costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import z3

from ..evaluate.unbounded import Unbounded
from ..kernel.terms import Term
from . import complete, induction
from .asking import AT_FIRST, WITH_A_HINT, unsatisfiable
from .induction import Obligation
from .known_paths import KnownPath
from .two_answers import Question

__all__ = ["NO_HINTS", "Hints", "about", "enough_for", "enough_for_the_answer"]

MUCH = 4_000_000
"""How much the solver may work to find the hint: see `asking.Attempt`."""


@dataclass(frozen=True)
class Hints:
    """What is known of one system."""

    enough: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By what is to be shown (see `about`): the names of the premises."""
    paths: Sequence[KnownPath] = ()


NO_HINTS = Hints()


def about(thing: Obligation | Question) -> str:
    """The name of an obligation or question within its system."""
    return thing.label


def enough_for(obligation: Obligation) -> frozenset[str] | None:
    """The axioms and invariants that are enough for a quick proof; None where none is found."""
    names = [fact.name for fact in induction.premises(obligation)]
    used: set[str] = set()
    for terms in induction.query_terms(obligation):
        core = _core(names, terms)
        if core is None:
            return None
        used |= core
    given = frozenset(used)
    return given if _is_enough(obligation, given) else None


def _is_enough(obligation: Obligation, given: frozenset[str]) -> bool:
    hinted = Obligation(
        obligation.system, obligation.claim, obligation.action, obligation.kind, given
    )
    return all(unsatisfiable(query, WITH_A_HINT) for query in induction.queries(hinted))


def enough_for_the_answer(question: Question) -> frozenset[str] | None:
    """The same of a question of completeness."""
    names = [name for name, _ in complete.premises(question)]
    core = _core(names, complete.query_terms(question))
    if core is None:
        return None
    given = frozenset(core)
    return given if unsatisfiable(complete.query(question, given), WITH_A_HINT) else None


def _core(names: Sequence[str], terms: Sequence[Term]) -> set[str] | None:
    """Which of the first terms, by their names, z3 has used for its proof."""
    asserted = Unbounded().assertions(terms)
    for mbqi in (attempt.mbqi for attempt in AT_FIRST):
        solver = z3.Solver()
        solver.set("rlimit", MUCH)
        solver.set("mbqi", mbqi)
        solver.add(*asserted[len(names) :])
        for k, premise in enumerate(asserted[: len(names)]):
            solver.assert_and_track(premise, f"premise {k}")
        if solver.check() == z3.unsat:
            numbers = (str(c).strip("|").removeprefix("premise ") for c in solver.unsat_core())
            return {names[int(k)] for k in numbers}
    return None
