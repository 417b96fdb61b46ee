"""Terms to z3, over a small universe: quantifiers written out, sums as sums, no axioms.

An element whose identity the solver chooses is a table from each possibility to the condition
under which it is meant; a set is a table from each element to the condition of its membership.
Sizes, capacity and budgets stay symbolic integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import z3

from ..kernel.terms import (
    BOOL,
    INT,
    Binder,
    Function,
    Literal,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    alpha_form,
    unnamed,
)

__all__ = ["Finite", "Names", "conjunction", "disjunction", "negation"]

Value = Any
Element = dict[str, Any]
"""Each element, with the condition under which it is the one meant."""


def conjunction(*terms: Any) -> Any:
    parts = [t for t in terms if t is not True]
    if any(t is False for t in parts):
        return False
    return True if not parts else parts[0] if len(parts) == 1 else z3.And(*parts)


def disjunction(*terms: Any) -> Any:
    parts = [t for t in terms if t is not False]
    if any(t is True for t in parts):
        return True
    return False if not parts else parts[0] if len(parts) == 1 else z3.Or(*parts)


def negation(term: Any) -> Any:
    return not term if isinstance(term, bool) else z3.Not(term)


def _same(a: Any, b: Any) -> Any:
    if isinstance(a, bool | int) and isinstance(b, bool | int):
        return a == b
    if isinstance(b, bool):
        a, b = b, a
    if isinstance(a, bool):
        return b if a else negation(b)
    return a == b


def _choose(condition: Any, then: Any, otherwise: Any) -> Any:
    """if-then-else on any value."""
    if isinstance(condition, bool):
        return then if condition else otherwise
    if isinstance(then, dict):
        keys = dict.fromkeys([*then, *otherwise])
        return {k: _choose(condition, then.get(k, False), otherwise.get(k, False)) for k in keys}
    if isinstance(then, bool) and isinstance(otherwise, bool):
        return then if then == otherwise else (condition if then else negation(condition))
    if then is otherwise:
        return then
    if isinstance(then, bool):
        return (
            disjunction(condition, otherwise)
            if then
            else conjunction(negation(condition), otherwise)
        )
    if isinstance(otherwise, bool):
        return disjunction(negation(condition), then) if otherwise else conjunction(condition, then)
    return z3.If(condition, then, otherwise)


def _sum(parts: Sequence[Any]) -> Any:
    known = sum(p for p in parts if isinstance(p, int))
    symbolic = [p for p in parts if not isinstance(p, int)]
    if not symbolic:
        return known
    return z3.Sum(*symbolic, known) if known else z3.Sum(*symbolic)


@dataclass
class Names:
    """What the symbols of a term stand for: states before and after, arguments, result."""

    before: Mapping[str, Value] = field(default_factory=dict)
    after: Mapping[str, Value] = field(default_factory=dict)
    arguments: Mapping[str, Value] = field(default_factory=dict)
    result: Value = None
    memo: dict[tuple[int, ...], tuple[Value, Any]] = field(default_factory=dict)
    """The translations so far; each keeps what its key identifies alive."""


class Finite:
    """A universe with symbolic constants and functions."""

    def __init__(self, universe: Mapping[str, Sequence[str]]) -> None:
        self.universe = universe
        self.constants: dict[str, Value] = {}
        self.functions: dict[str, dict[str, Value]] = {}
        self.constraints: list[Any] = []
        self._known = {x: {x: True} for elements in universe.values() for x in elements}
        self._free: dict[int, tuple[Term, tuple[Symbol, ...]]] = {}

    # Fresh symbolic values.

    def elements(self, sort: Sort) -> Sequence[str]:
        return self.universe[sort.name]

    def tuples(self, sort: SetSort) -> Iterator[tuple[str, ...]]:
        return product(*(self.elements(e) for e in sort.elements))

    def fresh(self, name: str, sort: Sort) -> Value:
        """A symbolic value of this sort, its well-formedness among the constraints."""
        if sort == BOOL:
            return z3.Bool(name)
        if sort == INT:
            return z3.Int(name)
        if isinstance(sort, SetSort):
            return {x: z3.Bool(f"{name}({','.join(x)})") for x in self.tuples(sort)}
        if isinstance(sort, MapSort):
            return {k: self.fresh(f"{name}[{k}]", sort.value) for k in self.elements(sort.key)}
        choice = {x: z3.Bool(f"{name}={x}") for x in self.elements(sort)}
        if choice:
            self.constraints.append(z3.PbEq([(b, 1) for b in choice.values()], 1))
        return choice

    def declare(self, constants: Sequence[Symbol], functions: Sequence[Function]) -> None:
        for c in constants:
            self.constants[c.name] = self.fresh(c.name, c.sort)
        for f in functions:
            self.functions[f.name] = {
                x: self.fresh(f"{f.name}({x})", f.range) for x in self.elements(f.domain)
            }

    # Terms.

    def __call__(self, term: Term, names: Names) -> Value:
        return self._value(term, names, {})

    def _value(self, term: Term, at: Names, bound: Mapping[Symbol, Value]) -> Value:
        term = unnamed(term)
        if not isinstance(term, Op):
            return self._translate(term, at, bound)
        variables = self._free_variables(term)
        key = (id(term), *(id(bound[v]) for v in variables))
        if key not in at.memo:
            at.memo[key] = self._translate(term, at, bound), [bound[v] for v in variables]
        return at.memo[key][0]

    def _free_variables(self, term: Term) -> tuple[Symbol, ...]:
        if id(term) not in self._free:
            self._free[id(term)] = term, tuple(alpha_form(term)[1])
        return self._free[id(term)][1]

    def equal(self, a: Value, b: Value) -> Any:
        """Equality of two values of one sort."""
        if isinstance(a, dict):
            keys = dict.fromkeys([*a, *b])
            return conjunction(*(self.equal(a.get(k, False), b.get(k, False)) for k in keys))
        return _same(a, b)

    def _translate(self, term: Term, at: Names, bound: Mapping[Symbol, Value]) -> Value:
        match term:
            case Literal(value=value):
                return value
            case Symbol(role="bound"):
                return bound[term]
            case Symbol(role="constant", name=name):
                return self.constants[name]
            case Symbol(role="parameter", name=name):
                return at.arguments[name]
            case Symbol(role="result"):
                return at.result
            case Symbol(role="next", name=name):
                return at.after[name]
            case Symbol(name=name):
                return at.before[name]
            case Binder():
                return self._binder(term, at, bound)
            case Op():
                return self._operator(term, at, bound)
        raise TypeError(f"not a term: {term!r}")

    def _bindings(
        self, term: Binder, bound: Mapping[Symbol, Value]
    ) -> Iterator[tuple[tuple[str, ...], dict[Symbol, Value]]]:
        for xs in product(*(self.elements(v.sort) for v in term.variables)):
            known = [self._known[x] for x in xs]
            yield xs, {**bound, **dict(zip(term.variables, known, strict=True))}

    def _binder(self, term: Binder, at: Names, bound: Mapping[Symbol, Value]) -> Value:
        cells = {xs: self._value(term.body, at, b) for xs, b in self._bindings(term, bound)}
        match term.name:
            case "forall":
                return conjunction(*cells.values())
            case "exists":
                return disjunction(*cells.values())
            case "setof":
                return cells
            case "mapof":
                return {x: v for (x,), v in cells.items()}
            case "largest":
                assert term.value is not None
                best: Value = 0
                found: Any = False
                for xs, b in self._bindings(term, bound):
                    value = self._value(term.value, at, b)
                    better = conjunction(
                        cells[xs], disjunction(negation(found), self._less(best, value))
                    )
                    best = _choose(better, value, best)
                    found = disjunction(found, cells[xs])
                return best
        raise TypeError(term.name)

    @staticmethod
    def _less(a: Value, b: Value) -> Any:
        return a < b

    def _operator(self, term: Op, at: Names, bound: Mapping[Symbol, Value]) -> Value:
        args = [self._value(a, at, bound) for a in term.args]
        match term.name, args:
            case "and", _:
                return conjunction(*args)
            case "or", _:
                return disjunction(*args)
            case "not", [a]:
                return negation(a)
            case "implies", [a, b]:
                return disjunction(negation(a), b)
            case "ite", [c, a, b]:
                return _choose(c, a, b)
            case "eq", [a, b]:
                if isinstance(term.args[0].sort, SetSort | MapSort) or not isinstance(a, dict):
                    return self.equal(a, b)
                return disjunction(*(conjunction(a[x], b.get(x, False)) for x in a))
            case "lt", [a, b]:
                return a < b
            case "le", [a, b]:
                return a <= b
            case "add", [a, b]:
                return a + b
            case "sub", [a, b]:
                return a - b
            case "empty", []:
                assert isinstance(term.sort, SetSort)
                return dict.fromkeys(self.tuples(term.sort), False)
            case "union", [a, b]:
                return {x: disjunction(a[x], b[x]) for x in a}
            case "minus", [a, b]:
                return {x: conjunction(a[x], negation(b[x])) for x in a}
            case "member", [members, *element]:
                return disjunction(
                    *(conjunction(members[x], met) for x, met in self._meant(element))
                )
            case "insert", [members, *element]:
                meant = dict(self._meant(element))
                return {x: disjunction(m, meant.get(x, False)) for x, m in members.items()}
            case "remove", [members, *element]:
                meant = dict(self._meant(element))
                return {
                    x: conjunction(m, negation(meant.get(x, False))) for x, m in members.items()
                }
            case "get", [table, key]:
                return self.pick(key, table)
            case "put", [table, key, new]:
                return {k: _choose(key.get(k, False), new, v) for k, v in table.items()}
            case "apply", [argument]:
                assert term.function is not None
                return self.pick(argument, self.functions[term.function.name])
            case "total", [members]:
                assert term.function is not None
                weight = self.functions[term.function.name]
                return _sum([_choose(m, weight[x], 0) for (x,), m in members.items()])
        raise TypeError(f"no operator {term.name!r}")

    @staticmethod
    def _meant(element: Sequence[Element]) -> Iterator[tuple[tuple[str, ...], Any]]:
        for choice in product(*(e.items() for e in element)):
            yield tuple(x for x, _ in choice), conjunction(*(c for _, c in choice))

    def pick(self, argument: Element, table: Mapping[str, Value]) -> Value:
        """The table's value at an element that may still be undecided.

        Where all candidates agree, the value itself, and no `If`: equal branches do not vanish by
        themselves, and grow with each nesting. Only an `int` or a `bool` is compared: `==` of z3
        expressions builds a formula, which has no truth value.
        """
        possible = [(c, table[x]) for x, c in argument.items() if c is not False]
        sample = possible[0][1]
        if isinstance(sample, dict):
            keys = dict.fromkeys(y for _, v in possible for y in v)
            return {
                y: disjunction(*(conjunction(c, v.get(y, False)) for c, v in possible))
                for y in keys
            }
        if all(v is sample or v == sample for _, v in possible if isinstance(v, int)) and all(
            isinstance(v, int) for _, v in possible
        ):
            return sample
        value = sample
        for condition, other in possible[1:]:
            value = _choose(condition, other, value)
        return value
