"""The worlds of a scope but for their numbers: which renamings there are, and one of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import Any

from ...kernel.system import Scope, TransitionSystem
from ...kernel.terms import BOOL, INT
from .walk import TooMuch

__all__ = ["Pattern", "Renaming", "patterns", "renamings_of"]

Renaming = Mapping[str, Mapping[str, str]]
"""For each sort, which element takes whose place."""

MOST_RENAMINGS = 5_000
MOST_PATTERNS = 5_000


@dataclass(frozen=True)
class Pattern:
    """The functions between elements, and those whose values the scope fixes."""

    functions: Mapping[str, Mapping[str, Any]]
    renamings: tuple[Renaming, ...]
    """Those that leave all of these functions as they are."""


def renamings_of(system: TransitionSystem, scope: Scope) -> list[Renaming]:
    """The ways to rename elements that leave everything that the scope fixes as it is."""
    led = {f.domain.name for f in system.functions if f.name in scope.fixed and f.range != INT}
    free = [s for s in scope.universe if s not in led]
    if prod(factorial(len(scope.universe[s])) for s in free) > MOST_RENAMINGS:
        raise TooMuch("a scope with too many elements")
    found: list[Renaming] = []
    for choice in product(*(permutations(scope.universe[s]) for s in free)):
        renaming: dict[str, Mapping[str, str]] = {
            sort: dict(zip(scope.universe[sort], images, strict=True))
            for sort, images in zip(free, choice, strict=True)
        }
        if all(_extend(renaming, sort, system, scope) for sort in scope.universe):
            found.append(renaming)
    return found


def _extend(
    renaming: dict[str, Mapping[str, str]], sort: str, system: TransitionSystem, scope: Scope
) -> bool:
    """Let the elements of a sort follow those that their fixed attributes name.

    Of elements that have all attributes alike each stays, if it can: so there is always the
    renaming that leaves everything, without which no world would ever be done with.
    """
    fixed = [f for f in system.functions if f.domain.name == sort and f.name in scope.fixed]

    def signature(x: str, moved: bool) -> tuple[Any, ...]:
        values = []
        for f in fixed:
            y = scope.fixed[f.name].get(x)
            values.append(renaming.get(f.range.name, {}).get(str(y), y) if moved else y)
        return tuple(values)

    elements = scope.universe[sort]
    if sort in renaming:
        return all(signature(renaming[sort][x], False) == signature(x, True) for x in elements)
    images = {}
    for x in elements:
        alike = [y for y in elements if signature(y, False) == signature(x, True)]
        if x not in alike and len(alike) != 1:
            return False
        images[x] = x if x in alike else alike[0]
    renaming[sort] = images
    return True


def patterns(system: TransitionSystem, scope: Scope) -> Iterator[Pattern]:
    """One of each kind: of those that differ in the names of elements only, the first."""
    free = [f for f in system.functions if f.range not in (INT, BOOL) and f.name not in scope.fixed]
    renamings = renamings_of(system, scope)
    if (
        prod(len(scope.universe[f.range.name]) ** len(scope.universe[f.domain.name]) for f in free)
        > MOST_PATTERNS
    ):
        raise TooMuch("a scope with too many inputs")
    slots = [(f, x) for f in free for x in scope.universe[f.domain.name]]
    seen: set[tuple[str, ...]] = set()
    for values in product(*(scope.universe[f.range.name] for f, _ in slots)):
        if values in seen:
            continue
        table = dict(zip(((f.name, x) for f, x in slots), values, strict=True))
        keeping = []
        for renaming in renamings:
            moved = {
                (f.name, renaming[f.domain.name][x]): renaming[f.range.name][table[f.name, x]]
                for f, x in slots
            }
            image = tuple(moved[f.name, x] for f, x in slots)
            seen.add(image)
            if image == values:
                keeping.append(renaming)
        functions: dict[str, dict[str, Any]] = {f.name: {} for f in free}
        for (name, x), y in table.items():
            functions[name][x] = y
        for f in system.functions:
            if f.name in scope.fixed:
                functions[f.name] = dict(scope.fixed[f.name])
        yield Pattern(functions, tuple(keeping))
