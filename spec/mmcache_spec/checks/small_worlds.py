"""All small worlds of a scope: every choice of the functions and constants, up to renaming.

The axioms of the system decide what is a world; nothing about the protocol is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

from ..evaluate.interpreter import Interpreter, World
from ..kernel.system import Axiom, Scope, TransitionSystem
from ..kernel.terms import INT, Function, Op, subterms

__all__ = ["Ranges", "small_worlds", "variety"]


@dataclass(frozen=True)
class Ranges:
    """Which integers to try for the constants and functions; `default` for those not named."""

    default: Sequence[int] = (1, 2)
    of: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Sequence[int]:
        return self.of.get(name, self.default)


def small_worlds(system: TransitionSystem, scope: Scope, ranges: Ranges) -> Iterator[World]:
    """Every world of the scope that satisfies the axioms, one of each kind, smallest first."""
    seen: set[Any] = set()
    for world in sorted(_worlds(system, scope, ranges), key=_size):
        form = _form(system, scope, world)
        if form not in seen:
            seen.add(form)
            yield world


def variety(world: World) -> int:
    """How many different values the functions have."""
    return sum(len(set(f.values())) for f in world.functions.values())


def _size(world: World) -> tuple[int, str]:
    """The sum of all integers of the world; ties by what it is."""
    numbers = list(world.constants.values())
    numbers += [v for f in world.functions.values() for v in f.values() if isinstance(v, int)]
    return sum(numbers), repr(sorted((n, sorted(f.items())) for n, f in world.functions.items()))


def _worlds(system: TransitionSystem, scope: Scope, ranges: Ranges) -> Iterator[World]:
    names = [c.name for c in system.constants]
    for values in product(*(ranges[name] for name in names)):
        constants = dict(zip(names, values, strict=True))
        yield from _extended(system, scope, ranges, constants, {}, list(system.functions))


def _extended(
    system: TransitionSystem,
    scope: Scope,
    ranges: Ranges,
    constants: Mapping[str, int],
    functions: Mapping[str, Mapping[str, Any]],
    missing: Sequence[Function],
) -> Iterator[World]:
    """One function after the other; an axiom is tried as soon as it can be."""
    world = World(scope.universe, constants, functions)
    known = set(functions)
    newest = next(iter(list(functions)[::-1]), None)
    interpreter = Interpreter(system, world)
    for axiom in system.axioms:
        about = _about(axiom)
        ready = about <= known and (newest is None or newest in about)
        if ready and not interpreter.evaluate(axiom.formula, {}):
            return
    if not missing:
        yield world
        return
    function, *rest = missing
    for table in _tables(function, scope, ranges):
        now = {**functions, function.name: table}
        yield from _extended(system, scope, ranges, constants, now, rest)


def _tables(function: Function, scope: Scope, ranges: Ranges) -> Iterator[dict[str, Any]]:
    if function.name in scope.fixed:
        yield dict(scope.fixed[function.name])
        return
    domain = scope.universe[function.domain.name]
    values: Sequence[Any] = (
        ranges[function.name] if function.range == INT else scope.universe[function.range.name]
    )
    for choice in product(values, repeat=len(domain)):
        yield dict(zip(domain, choice, strict=True))


def _about(axiom: Axiom) -> set[str]:
    """The functions of which the axiom speaks."""
    return {
        t.function.name
        for t in subterms(axiom.formula)
        if isinstance(t, Op) and t.function is not None
    }


def _form(system: TransitionSystem, scope: Scope, world: World) -> Any:
    """The least of what the world is called when interchangeable elements are renamed."""
    orders = [permutations(scope.universe[sort]) for sort in scope.interchangeable]
    forms = []
    for choice in product(*orders):
        new: dict[str, str] = {}
        for sort, order in zip(scope.interchangeable, choice, strict=True):
            new.update(zip(scope.universe[sort], order, strict=True))
        renamed = _renamed(system, scope, world, new)
        if renamed is not None:
            forms.append(renamed)
    return tuple(sorted(world.constants.items())), min(forms)


def _renamed(
    system: TransitionSystem, scope: Scope, world: World, new: Mapping[str, str]
) -> Any | None:
    """The functions under other names, or None where that does not respect what is fixed.

    An element that is not interchangeable is renamed by where its fixed functions lead.
    """
    names = dict(new)
    for sort, elements in scope.universe.items():
        if sort in scope.interchangeable:
            continue
        fixed = [
            (scope.fixed[f.name], f) for f in system.functions
            if f.domain.name == sort and f.name in scope.fixed
        ]  # fmt: skip
        place = {tuple(table[x] for table, _ in fixed): x for x in elements}
        for x in elements:
            to = place.get(tuple(new.get(str(table[x]), table[x]) for table, _ in fixed))
            if to is None:
                return None
            names[x] = to
    return tuple(
        (f.name, tuple(sorted(
            (names[x], names.get(y, y) if isinstance(y, str) else y)
            for x, y in world.functions[f.name].items()
        )))
        for f in system.functions
    )  # fmt: skip
