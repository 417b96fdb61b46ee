"""One term, one state, every reader of the term language: what does each say?"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import z3

from mmcache_spec.evaluate.finite import Finite, Names
from mmcache_spec.evaluate.interpreter import World
from mmcache_spec.evaluate.unbounded import Unbounded
from mmcache_spec.kernel.system import Scope, TransitionSystem
from mmcache_spec.kernel.terms import (
    BOOL,
    INT,
    Binder,
    Function,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    all_of,
    any_of,
    forall,
    ite,
    number,
    total,
    unnamed,
)

__all__ = ["Situation", "by_finite", "by_unbounded", "facts", "random_situation", "random_value"]


@dataclass(frozen=True)
class Situation:
    """A world, the states before and after a call, its arguments and its answer."""

    world: World
    before: Mapping[str, Any]
    after: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None


def random_value(chance: random.Random, sort: Sort, world: World) -> Any:
    """Any value of the sort: it need not be one that a path reaches."""
    if sort == BOOL:
        return chance.random() < 0.5
    if sort == INT:
        return chance.randrange(-1, 5)
    if isinstance(sort, SetSort):
        return frozenset(x for x in tuples(sort, world) if chance.random() < 0.5)
    if isinstance(sort, MapSort):
        return {k: random_value(chance, sort.value, world) for k in world.universe[sort.key.name]}
    return chance.choice(world.universe[sort.name])


def tuples(sort: SetSort, world: World) -> Iterator[tuple[str, ...]]:
    from itertools import product

    return product(*(world.universe[e.name] for e in sort.elements))


def random_situation(chance: random.Random, system: TransitionSystem, scope: Scope) -> Situation:
    """A world of the scope and a state, both at random."""
    world = World(scope.universe, {}, {})
    constants = {c.name: chance.randrange(1, 5) for c in system.constants}
    functions: dict[str, dict[str, Any]] = {}
    for f in system.functions:
        functions[f.name] = {}
        for x in scope.universe[f.domain.name]:
            fixed = scope.fixed.get(f.name, {})
            drawn = chance.randrange(0, 4) if f.range == INT else None
            if drawn is None:
                drawn = random_value(chance, f.range, world)
            functions[f.name][x] = fixed.get(x, drawn)
    world = World(scope.universe, constants, functions)
    before = {v.name: random_value(chance, v.sort, world) for v in system.variables}
    return Situation(world, before)


# --- the finite translation --------------------------------------------------------------------


def by_finite(term: Term, system: TransitionSystem, at: Situation) -> Any:
    """The value that `Finite` gives, where everything is known."""
    finite = Finite(at.world.universe)
    finite.constants = dict(at.world.constants)
    for f in system.functions:
        table = at.world.functions[f.name]
        finite.functions[f.name] = {x: _encoded(finite, f.range, y) for x, y in table.items()}
    sorts = {v.name: v.sort for v in system.variables}
    parameters = {p.name: p.sort for a in system.actions for p in a.parameters}
    answers = {a.returns.sort for a in system.actions if a.returns is not None}
    result = None
    for sort in answers:
        if _fits(sort, at.result):
            result = _encoded(finite, sort, at.result)
    names = Names(
        {n: _encoded(finite, sorts[n], v) for n, v in at.before.items()},
        {n: _encoded(finite, sorts[n], v) for n, v in at.after.items()},
        {n: _encoded(finite, parameters[n], v) for n, v in at.arguments.items()},
        result,
    )
    return _decoded(finite(term, names), term.sort)


def _fits(sort: Sort, value: Any) -> bool:
    if isinstance(sort, SetSort):
        return isinstance(value, frozenset)
    if sort == INT:
        return isinstance(value, int) and not isinstance(value, bool)
    return sort == BOOL and isinstance(value, bool)


def _encoded(finite: Finite, sort: Sort, value: Any) -> Any:
    if sort in (BOOL, INT):
        return value
    if isinstance(sort, SetSort):
        return {x: x in value for x in finite.tuples(sort)}
    if isinstance(sort, MapSort):
        return {k: _encoded(finite, sort.value, v) for k, v in value.items()}
    return {value: True}


def _decoded(value: Any, sort: Sort) -> Any:
    if isinstance(sort, SetSort):
        return frozenset(x for x, m in value.items() if _plain(m))
    if isinstance(sort, MapSort):
        return {k: _decoded(v, sort.value) for k, v in value.items()}
    if sort in (BOOL, INT):
        return _plain(value)
    (element,) = (x for x, m in value.items() if _plain(m))
    return element


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int):
        return value
    value = z3.simplify(value)
    return value.as_long() if z3.is_int_value(value) else bool(z3.is_true(value))


# --- the unbounded translation -----------------------------------------------------------------


def facts(system: TransitionSystem, at: Situation, term: Term) -> list[Term]:
    """The situation as formulas: how many elements there are, and what is true of each."""
    elements = {
        (sort, x): Symbol(Sort(sort), f"element {x}", "constant")
        for sort, xs in at.world.universe.items()
        for x in xs
    }

    def named(sort: Sort, x: str) -> Term:
        return elements[sort.name, x]

    found: list[Term] = []
    for sort, xs in at.world.universe.items():
        mine = [elements[sort, x] for x in xs]
        found.append(forall(Sort(sort), lambda y, mine=mine: any_of(*(y == m for m in mine))))
        found += [~(a == b) for k, a in enumerate(mine) for b in mine[:k]]
    found += [c == number(at.world.constants[c.name]) for c in system.constants]
    for f in system.functions:
        for x, y in at.world.functions[f.name].items():
            value = number(y) if f.range == INT else named(f.range, y)
            found.append(f(named(f.domain, x)) == value)

    def is_value(symbol: Term, value: Any) -> Iterator[Term]:
        sort = symbol.sort
        if sort == BOOL:
            yield symbol if value else ~symbol
        elif sort == INT:
            yield symbol == number(value)
        elif isinstance(sort, SetSort):
            for x in tuples(sort, at.world):
                member = symbol.has(*(named(e, y) for e, y in zip(sort.elements, x, strict=True)))
                yield member if x in value else ~member
        elif isinstance(sort, MapSort):
            for k, v in value.items():
                yield from is_value(symbol[named(sort.key, k)], v)
        else:
            yield symbol == named(sort, value)

    for v in system.variables:
        found += is_value(v, at.before[v.name])
        if v.name in at.after:
            found += is_value(v.next, at.after[v.name])
    for p in {p.name: p for a in system.actions for p in a.parameters}.values():
        if p.name in at.arguments:
            found += is_value(p, at.arguments[p.name])
    for answer in _answers_in(term):
        found += is_value(answer, at.result)
    found += _sums(term, at, named)
    return found


def _answers_in(term: Term) -> Iterator[Symbol]:
    seen = set()
    for t in _below(term, ()):
        symbol = t[0]
        if isinstance(symbol, Symbol) and symbol.role == "result" and symbol.sort not in seen:
            seen.add(symbol.sort)
            yield symbol


def _below(term: Term, bound: tuple[Symbol, ...]) -> Iterator[tuple[Term, tuple[Symbol, ...]]]:
    """Every subterm, with the variables that are bound around it."""
    term = unnamed(term)
    yield term, bound
    if isinstance(term, Op):
        for argument in term.args:
            yield from _below(argument, bound)
    elif isinstance(term, Binder):
        inner = (*bound, *term.variables)
        yield from _below(term.body, inner)
        if term.value is not None:
            yield from _below(term.value, inner)


def _sums(term: Term, at: Situation, named: Any) -> Iterator[Term]:
    """What each total is: of the measure the translation itself says nothing."""
    for t, bound in _below(term, ()):
        if isinstance(t, Op) and t.name == "total":
            weight, members = t.function, t.args[0]
            assert isinstance(weight, Function)
            amount: Term = number(0)
            for x in at.world.universe[weight.domain.name]:
                element = named(weight.domain, x)
                amount = amount + ite(members.has(element), weight(element), 0)
            equal = total(members, weight) == amount
            yield Binder(BOOL, "forall", bound, equal) if bound else equal


def by_unbounded(term: Term, system: TransitionSystem, at: Situation) -> bool | None:
    """Whether the formula follows; None where the solver does not know."""
    given = all_of(*facts(system, at, term))
    says = {}
    for answer, claim in ((True, term), (False, ~term)):
        solver = z3.Solver()
        solver.set("timeout", 5_000)
        solver.add(*Unbounded().assertions([given, claim]))
        says[answer] = solver.check()
    if says[True] == z3.unsat and says[False] != z3.unsat:
        return False
    if says[False] == z3.unsat and says[True] != z3.unsat:
        return True
    assert z3.unsat not in says.values(), "both the formula and its contrary are refuted"
    return None
