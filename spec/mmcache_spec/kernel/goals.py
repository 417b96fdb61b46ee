"""Reachability goals: situations that some path must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from .system import ActionProperty, TransitionSystem
from .terms import BOOL, Binder, Op, Sort, Symbol, Term, all_of, exists, result, subterms, unnamed

__all__ = [
    "ANY",
    "Goal",
    "antecedent_goals",
    "combination_goals",
    "pair_goals",
    "vacuity_goals",
]


ANY = "*"
"""In place of an action: the condition is about the state after any step."""


@dataclass(frozen=True)
class Goal:
    """A situation in which one action is called, or, with `ANY`, a state.

    `condition` may speak of the state before the call, its parameters and result, and the state
    after it. Where `refused`, the call is one that a guard of the action forbids: the goal is to
    stand before such a call, not to make it. `after` names the action of the step before.
    """

    name: str
    action: str
    condition: Term
    refused: bool = False
    after: str | None = None
    about: tuple[str, ...] = ()
    """The clauses that the situation puts to the test."""


def vacuity_goals(system: TransitionSystem) -> Iterator[Goal]:
    """Every action, every guard failing, every answer.

    If one of these is out of reach, a proof about it is hollow.
    """
    for action in system.actions:
        yield Goal(f"{action.name} happens", action.name, all_of())
        for name, guard in action.guard.items():
            yield Goal(f"{action.name} lacks {name}", action.name, ~guard, refused=True)
        if action.returns is not None and action.returns.sort == BOOL and _depends(action.returns):
            yield Goal(f"{action.name} answers true", action.name, result(BOOL))
            yield Goal(f"{action.name} answers false", action.name, ~result(BOOL))


def antecedent_goals(system: TransitionSystem) -> Iterator[Goal]:
    """For each clause, everything under a condition: the condition must come true somewhere.

    A ⇒ B says nothing where A never holds; nor does "A or B" where A always does, nor ¬(A ∧ B)
    where one of the two never holds; of A ⇔ B each value must occur; of a choice, both branches. It
    is the same under a quantifier, where the elements must exist too, and after other conditions.
    An alternative that stands after a condition is taken as it is: "or" there means no ¬A ⇒ B.
    """
    for claim in system.properties:
        if claim.clause is None:
            continue
        action = claim.action if isinstance(claim, ActionProperty) else ANY
        at = f" at {action}" if action != ANY else ""
        for k, situation in enumerate(_situations(claim.formula, _Under()), 1):
            name = f"{claim.clause} {claim.name}{at}: condition {k} holds"
            yield Goal(name, action, situation, about=(claim.clause,))


@dataclass(frozen=True)
class _Under:
    """What is assumed at some place of a formula: conditions, on variables bound on the way."""

    conditions: tuple[Term, ...] = ()
    variables: tuple[Symbol, ...] = ()

    def and_(self, *conditions: Term) -> _Under:
        return _Under((*self.conditions, *conditions), self.variables)

    def bind(self, variables: tuple[Symbol, ...]) -> _Under:
        return _Under(self.conditions, (*self.variables, *variables))

    def reached(self) -> Term:
        """That the conditions hold, for some values of the variables."""
        body = all_of(*self.conditions)
        return Binder(BOOL, "exists", self.variables, body) if self.variables else body


def _situations(formula: Term, under: _Under) -> Iterator[Term]:
    """What must be reachable for the formula to say what it seems to."""
    match unnamed(formula):
        case Op(name="and", args=args):
            for part in args:
                yield from _situations(part, under)
        case Binder(name="forall", variables=variables, body=body):
            yield from _situations(body, under.bind(variables))
        case Op(name="implies", args=(condition, then)):
            yield from _conditional(under.and_(condition), then)
        case Op(name="or", args=(*others, last)) if others and not under.conditions:
            yield from _conditional(under.and_(*(~other for other in others)), last)
        case Op(name="ite", args=(condition, then, otherwise)):
            yield from _conditional(under.and_(condition), then)
            yield from _conditional(under.and_(~condition), otherwise)
        case Op(name="eq", args=(one, _)) if one.sort == BOOL:
            yield under.and_(one).reached()
            yield under.and_(~one).reached()
        case Op(name="not", args=(inner,)):
            yield from _never(unnamed(inner), under)


def _never(formula: Term, under: _Under) -> Iterator[Term]:
    """The same for the contrary of the formula."""
    match formula:
        case Op(name="and", args=args) if len(args) > 1:
            for k in range(len(args)):
                yield under.and_(*args[:k], *args[k + 1 :]).reached()
        case Op(name="or", args=args):
            for part in args:
                yield from _situations(~part, under)
        case Op(name="implies", args=(condition, then)):
            yield from _situations(condition, under)
            yield from _situations(~then, under)
        case Binder(name="exists", variables=variables, body=body):
            yield from _situations(~body, under.bind(variables))
        case Op(name="not", args=(inner,)):
            yield from _situations(inner, under)


def _conditional(under: _Under, then: Term) -> Iterator[Term]:
    yield under.reached()
    yield from _situations(then, under)


def pair_goals(system: TransitionSystem) -> Iterator[Goal]:
    """Every ordered pair of actions, one directly after the other."""
    for first in system.actions:
        for second in system.actions:
            name = f"{second.name} directly after {first.name}"
            yield Goal(name, second.name, all_of(), after=first.name)


def combination_goals(
    what: str, sort: Sort, predicates: Mapping[str, Callable[[Term], Term]]
) -> Iterator[Goal]:
    """Every combination of truth values of some predicates, of one element of a sort."""
    for values in product((True, False), repeat=len(predicates)):
        chosen = list(zip(predicates.items(), values, strict=True))
        words = ", ".join(word if yes else f"not {word}" for (word, _), yes in chosen)

        def all_hold(x: Term, chosen: list[_Choice] = chosen) -> Term:
            return all_of(*(holds(x) if yes else ~holds(x) for (_, holds), yes in chosen))

        yield Goal(f"{what} is {words}", ANY, _exists(sort, all_hold))


_Choice = tuple[tuple[str, Callable[[Term], Term]], bool]


def _exists(sort: Sort, body: Callable[[Term], Term]) -> Term:
    return exists(sort, lambda x: body(x))


def _depends(term: Term) -> bool:
    """Whether the term depends on anything; an answer that is constant has no other."""
    return any(isinstance(t, Symbol) for t in subterms(term))
