"""Reachability goals: situations that some path must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from .system import TransitionSystem
from .terms import BOOL, Sort, Symbol, Term, all_of, exists, result, subterms

__all__ = ["ANY", "Goal", "combination_goals", "pair_goals", "vacuity_goals"]


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
