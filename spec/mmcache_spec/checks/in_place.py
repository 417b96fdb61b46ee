"""Two terms that differ deep inside come to the same: proved where they differ, not as a whole.

What a design writes anew is mostly one condition within a long line. If the two wordings of it are
equal whatever stands around them, the lines are equal, and the question is a short one. If they are
not, they may be one level further out: `a ∧ b` and `a ∧ c`, where `b` and `c` differ only without
`a`. So it is asked from the inside outwards, each time for all values of the bound variables.

A solver is given little. First nothing but the axioms' world of integers, the guards and the two
wordings; then the invariants, and of the answer only what the clauses say of it, which is shorter
than its definition. Both are true of the original (`prove`); a `no` says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..kernel.rewriting import parts
from ..kernel.system import Action, ActionProperty, TransitionSystem
from ..kernel.terms import (
    BOOL,
    TRUE,
    Binder,
    Op,
    Term,
    all_of,
    alpha_form,
    same_value,
    symbols,
    unnamed,
)
from .asking import WITH_LITTLE_WORK
from .induction import Obligation, is_proved

__all__ = ["same_in_place"]

ALIKE = "the two wordings are alike"

MOST_QUESTIONS = 24
"""Wordings that are compared before it is given up: a line that is all different is no case."""


def same_in_place(system: TransitionSystem, action: Action, one: Term, two: Term) -> bool:
    """Whether the terms are equal in every state in which the action may happen.

    The two are about one state of the system; `action` is the original's, whose guards and answer
    hold of both. False says nothing.
    """
    return _Comparison(system, action).same(one, two)


class _Comparison:
    """The questions that are asked of two wordings, each once."""

    def __init__(self, system: TransitionSystem, action: Action) -> None:
        self.system = system
        self.settings = (
            (_bare(action, premises={ALIKE: ()}), TRUE),
            (_bare(action, premises={}), _said(system, action)),
        )
        """What a question is asked with: the action, and what is known of its answer."""
        self.known: dict[tuple[int, int], tuple[Term, Term, bool]] = {}
        self.questions = 0

    def same(self, one: Term, two: Term) -> bool:
        one, two = unnamed(one), unnamed(two)
        if one is two:
            return True
        pair = id(one), id(two)
        if pair not in self.known:
            same = _worded_alike(one, two) or self._same_inside(one, two) or self._asked(one, two)
            self.known[pair] = one, two, same
        return self.known[pair][2]

    def _same_inside(self, one: Term, two: Term) -> bool:
        """Whether they are built alike, of parts of which each comes to the same."""
        if not _built_alike(one, two):
            return False
        return all(self.same(a, b) for a, b in zip(parts(one), parts(two), strict=True))

    def _asked(self, one: Term, two: Term) -> bool:
        if one.sort != two.sort or self.questions == MOST_QUESTIONS:
            return False
        self.questions += 1
        return any(is_proved(o, WITH_LITTLE_WORK) for o in self._questions(one, two))

    def _questions(self, one: Term, two: Term) -> Iterator[Obligation]:
        claim = same_value(one, two)
        free = tuple(alpha_form(claim)[1])
        closed = Binder(BOOL, "forall", free, claim) if free else claim
        for action, said in self.settings:
            prop = ActionProperty(ALIKE, action.name, said.implies(closed))
            yield Obligation(self.system, prop, action, "action")


def _bare(action: Action, premises: Mapping[str, tuple[str, ...]]) -> Action:
    """The action without its effect and the definition of its answer."""
    return replace(action, effect=(), returns=None, lemmas={}, premises=premises)


def _said(system: TransitionSystem, action: Action) -> Term:
    """What the clauses say of the answer alone: nothing of the state after."""
    formulas = [
        p.formula
        for p in system.action_properties
        if p.action == action.name and p.clause is not None
    ]
    return all_of(*(f for f in formulas if all(s.role != "next" for s in symbols(f))))


def _worded_alike(one: Term, two: Term) -> bool:
    """Whether they are one term, but for the names of the variables that they bind."""
    (form, free), (other, others) = alpha_form(one), alpha_form(two)
    return form == other and all(a is b for a, b in zip(free, others, strict=True))


def _built_alike(one: Term, two: Term) -> bool:
    """Whether nothing but what is directly below the terms differs."""
    match one, two:
        case Op(), Op():
            same = (one.name, one.sort) == (two.name, two.sort) and one.function is two.function
            return same and _parts_alike(one, two)
        case Binder(), Binder():
            bound = [id(v) for v in one.variables], [id(v) for v in two.variables]
            return one.name == two.name and bound[0] == bound[1] and _parts_alike(one, two)
    return False


def _parts_alike(one: Term, two: Term) -> bool:
    return [t.sort for t in parts(one)] == [t.sort for t in parts(two)]
