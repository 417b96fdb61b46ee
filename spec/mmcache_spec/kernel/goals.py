"""Reachability goals: situations that some path must reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .system import TransitionSystem
from .terms import BOOL, Symbol, Term, all_of, result, subterms

__all__ = ["Goal", "vacuity_goals"]


@dataclass(frozen=True)
class Goal:
    """A situation in which one action is called.

    `condition` may speak of the state before the call, its parameters and result, and the state
    after it. Where `refused`, the call is one that a guard of the action forbids: the goal is to
    stand before such a call, not to make it.
    """

    name: str
    action: str
    condition: Term
    refused: bool = False
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


def _depends(term: Term) -> bool:
    """Whether the term depends on anything; an answer that is constant has no other."""
    return any(isinstance(t, Symbol) for t in subterms(term))
