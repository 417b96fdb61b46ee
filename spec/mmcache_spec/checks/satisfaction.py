"""Whether a changed design satisfies every clause all the same: proved, for any number of elements.

Where the clauses are complete, that ends the matter: whoever satisfies them all answers and shows
what the original does, for ever (`checks.complete`). The proof is by induction, as for the
original, and of the original's obligations only those are asked again that the change can touch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from ..kernel.system import Action, TransitionSystem
from ..kernel.terms import Term, alpha_form, symbols
from .asking import PATIENTLY, WITH_MORE_WORK, unsatisfiable
from .complete import query, questions
from .induction import (
    Obligation,
    formula_of,
    is_proved,
    obligations,
)

__all__ = ["SAYS", "satisfies_the_clauses", "touched"]

SAYS = "it satisfies every clause, and the clauses determine the rest"

ANSWER = "the answer"


def satisfies_the_clauses(system: TransitionSystem, design: TransitionSystem) -> bool:
    """Whether all is proved of the design that is proved of the system, and leaves no choice.

    False says nothing.
    """
    # A clause that is broken is found soonest among the clauses.
    asked = sorted(touched(system, design), key=lambda o: o.claim.clause is None)
    return all(is_proved(o, WITH_MORE_WORK) for o in asked) and _leaves_no_choice(system)


@lru_cache(maxsize=8)
def _leaves_no_choice(system: TransitionSystem) -> bool:
    """Whether the system satisfies its clauses, and they are complete: asked once of each."""
    asked = list(questions(system))
    return (
        bool(asked)
        and all(is_proved(o) for o in obligations(system))
        and all(unsatisfiable(query(question), PATIENTLY) for question in asked)
    )


def touched(system: TransitionSystem, design: TransitionSystem) -> Iterator[Obligation]:
    """The obligations of the design that are not word for word those of the system."""
    started = _rewritten(*({v.name: t for v, t in s.init} for s in (system, design)))
    changed = {
        mine.name: _changed(mine, theirs)
        for mine, theirs in zip(system.actions, design.actions, strict=True)
        if mine is not theirs
    }
    for obligation in obligations(design):
        action = obligation.action
        if action is None:
            if started & _nexts(formula_of(obligation)):
                yield obligation
        elif changed.get(action.name, set()) & _rests_on(obligation, action):
            yield obligation


def _changed(mine: Action, theirs: Action) -> set[str]:
    """The variables whose next values are written otherwise, and `ANSWER`.

    A design that also differs in its guards is none that could be compared so.
    """
    if _rewritten(mine.guard, theirs.guard):
        raise ValueError(f"{mine.name}: another guard makes other obligations")
    changed = _rewritten(mine.updates, theirs.updates)
    answers = [a.returns for a in (mine, theirs) if a.returns is not None]
    if answers and len({alpha_form(t)[0] for t in answers}) > 1:
        changed.add(ANSWER)
    return changed


def _rests_on(obligation: Obligation, action: Action) -> set[str]:
    """The variables whose next values the queries speak of, and `ANSWER` if they speak of it."""
    formula = formula_of(obligation)
    used = _nexts(formula)
    said = [formula, *(value for v, value in action.effect if v.name in used)]
    answered = any(s.role == "result" for term in said for s in symbols(term))
    return used | {ANSWER} if answered else used


def _nexts(formula: Term) -> set[str]:
    return {s.name for s in symbols(formula) if s.role == "next"}


def _rewritten(mine: Mapping[str, Term], theirs: Mapping[str, Term]) -> set[str]:
    """The names of what is there in one only, or says something else in the other."""
    alike = {
        name
        for name in mine.keys() & theirs.keys()
        if mine[name] is theirs[name] or alpha_form(mine[name])[0] == alpha_form(theirs[name])[0]
    }
    return (mine.keys() | theirs.keys()) - alike
