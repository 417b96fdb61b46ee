"""Through all the worlds of the scopes, one kind after the other."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernel.system import Property, Scope, TransitionSystem
from ..unrolling import Start
from .kinds import Found, Kind, Progress
from .patterns import patterns
from .relevance import Plan
from .walk import Budget

__all__ = ["MOST_STATES", "quickest"]

MOST_STATES = 3_000_000
"""About a minute, and two gigabytes."""


def quickest(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start,
    bound: int,
    wanted: Sequence[Property],
    *,
    states: int = MOST_STATES,
    progress: Progress = lambda text: None,
) -> Found | None:
    """The least of the shortest paths to a step that breaks a property; None up to `bound`.

    None is a fact: no world of these scopes, whatever its numbers, has such a path. Of the shortest
    paths that one is taken that is in the first scope that has any; there, with the least numbers,
    compared in the order in which they are declared; then with the first way to give hashes to
    inputs, the emptiest start, and the first calls, in the order in which actions are declared.

    Raises:
        TooMuch: this would take more states than `states`, or is beyond this search.
    """
    budget = Budget(states)
    plan = Plan.of(system, wanted, start)
    best: Found | None = None
    for scope in scopes:
        for pattern in patterns(system, scope):
            limit = bound if best is None else best.length - 1
            if limit == 0:
                break
            best = Kind(plan, scope, pattern, start, budget).search(limit, progress) or best
    return None if best is None else _least(plan, best, start, budget, progress)


def _least(plan: Plan, found: Found, start: Start, budget: Budget, progress: Progress) -> Found:
    """Of the paths of this length in this scope, the one with the least numbers."""
    progress(f"{found.length} calls; which numbers are the least?")
    best = found
    least: tuple[int, ...] | None = None
    for pattern in patterns(plan.system, found.scope):
        kind = Kind(plan, found.scope, pattern, start, budget)
        numbers = kind.least(found.length, least)
        if numbers is not None:
            least = numbers
            best = kind.path(numbers, found.length)
    return best
