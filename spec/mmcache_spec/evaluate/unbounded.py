"""Terms to z3, over uninterpreted sorts: any number of hashes, requests and inputs.

Sets, relations and maps are objects of uninterpreted sorts, known only through their membership
predicate or look-up function: no array theory, so no extensionality for the solver to chase. Every
set operation and every comprehension becomes a fresh symbol with a pointwise definition, lifted
over the variables bound around it; the same operation on the same terms is the same symbol
wherever it occurs. `total` is an uninterpreted function on sets: only the instances of
`kernel.lemmas` say anything about it. What results is plain UFLIA, which any SMT solver reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import z3

from ..kernel.pointwise import pointwise
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

__all__ = ["Unbounded"]

Z3 = Any
Bindings = Mapping[Symbol, Z3]


@dataclass
class _Lifted:
    """The symbol of a comprehension, and the numbers of the definitions that it rests on."""

    symbol: Z3
    needs: set[int]


class Unbounded:
    """A translation that remembers: the same term is the same z3 term in every query."""

    def __init__(self) -> None:
        self._sorts: dict[str, Z3] = {}
        self._functions: dict[str, Z3] = {}
        self._symbols: dict[tuple[str, str], Z3] = {}
        self._definitions: list[Z3] = []
        self._lifted: dict[object, _Lifted] = {}
        self._needs: set[int] = set()
        self._memo: dict[int, tuple[Term, Z3, frozenset[int]]] = {}

    def assertions(self, terms: Iterable[Term]) -> list[Z3]:
        """The terms, and the definitions of what occurs in them."""
        asserted, needs = [], set[int]()
        for term in terms:
            formula, needed = self._closed(term)
            asserted.append(formula)
            needs |= needed
        return [*asserted, *(self._definitions[k] for k in sorted(needs))]

    def _closed(self, term: Term) -> tuple[Z3, frozenset[int]]:
        if id(term) not in self._memo:
            self._needs = set()
            formula = self._term(term, {})
            self._memo[id(term)] = term, formula, frozenset(self._needs)
        _, formula, needs = self._memo[id(term)]
        return formula, needs

    # Declarations.

    def _sort(self, sort: Sort) -> Z3:
        if sort == BOOL:
            return z3.BoolSort()
        if sort == INT:
            return z3.IntSort()
        name = sort.name.replace("[", "_").replace(", ", "_").replace("]", "")
        return self._sorts.setdefault(name, z3.DeclareSort(name))

    def _function(self, name: str, *signature: Sort) -> Z3:
        if name not in self._functions:
            self._functions[name] = z3.Function(name, *map(self._sort, signature))
        return self._functions[name]

    def _member(self, sort: SetSort) -> Z3:
        return self._function(f"in_{'_'.join(map(str, sort.elements))}", sort, *sort.elements, BOOL)

    def _lookup(self, sort: MapSort) -> Z3:
        return self._function(f"at_{sort.key}_{sort.value}", sort, sort.key, sort.value)

    # Terms.

    def _term(self, term: Term, bindings: Bindings) -> Z3:
        term = unnamed(term)
        match term:
            case Literal(value=value):
                return z3.IntVal(value)
            case Symbol(role="bound"):
                return bindings[term]
            case Symbol():
                name = f"{term.name}_after" if term.role == "next" else term.name
                key = name, term.sort.name
                if key not in self._symbols:
                    self._symbols[key] = z3.Const(name, self._sort(term.sort))
                return self._symbols[key]
            case Binder(name="forall" | "exists"):
                inner, variables = self._open(term.variables, bindings)
                quantifier = z3.ForAll if term.name == "forall" else z3.Exists
                return quantifier(variables, self._term(term.body, inner))
            case Binder():
                return self._lift(term, bindings)
            case Op(name="total", function=Function() as weight, args=(members,)):
                measure = self._function(f"total_{weight.name}", members.sort, INT)
                return measure(self._term(members, bindings))
            case Op(name="apply", function=Function() as f, args=(argument,)):
                return self._function(f.name, f.domain, f.range)(self._term(argument, bindings))
            case Op(name="member", args=(members, *element)):
                assert isinstance(members.sort, SetSort)
                values = [self._term(e, bindings) for e in element]
                return self._member(members.sort)(self._term(members, bindings), *values)
            case Op(name="get", args=(table, key)):
                assert isinstance(table.sort, MapSort)
                return self._lookup(table.sort)(
                    self._term(table, bindings), self._term(key, bindings)
                )
            case Op(name="insert" | "remove" | "union" | "minus" | "empty" | "put"):
                return self._lift(pointwise(term), bindings)
            case Op(name=name, args=args):
                return _OPERATORS[name](*(self._term(a, bindings) for a in args))
        raise TypeError(f"no translation for {term!r}")

    def _open(self, variables: tuple[Symbol, ...], bindings: Bindings) -> tuple[Bindings, list[Z3]]:
        depth = len(bindings)
        opened = [
            z3.Const(f"{v.name}.{depth + k}", self._sort(v.sort)) for k, v in enumerate(variables)
        ]
        return {**bindings, **dict(zip(variables, opened, strict=True))}, opened

    def _lift(self, binder: Binder, bindings: Bindings) -> Z3:
        """A symbol for a comprehension, applied to the variables bound around it."""
        form, outer = alpha_form(binder)
        free = [bindings[v] for v in outer]
        if form not in self._lifted:
            name = f"{binder.name}!{len(self._lifted)}"
            symbol = z3.Function(name, *(x.sort() for x in free), self._sort(binder.sort))
            lifted = self._lifted[form] = _Lifted(symbol, set())
            outer_needs, self._needs = self._needs, lifted.needs
            definition = self._definition(binder, symbol(*free), free, bindings)
            self._needs.add(len(self._definitions))
            self._definitions.append(definition)
            self._needs = outer_needs
        lifted = self._lifted[form]
        self._needs |= lifted.needs
        return lifted.symbol(*free)

    def _definition(self, binder: Binder, lifted: Z3, free: list[Z3], bindings: Bindings) -> Z3:
        inner, variables = self._open(binder.variables, bindings)
        body = self._term(binder.body, inner)
        if isinstance(binder.sort, SetSort):
            cell = self._member(binder.sort)(lifted, *variables)
        elif isinstance(binder.sort, MapSort):
            cell = self._lookup(binder.sort)(lifted, *variables)
        else:
            assert binder.value is not None
            value = self._term(binder.value, inner)
            attained = z3.Exists(variables, z3.And(body, value == lifted))
            bound = z3.ForAll(variables, z3.Implies(body, value <= lifted))
            some = z3.Exists(variables, body)
            maximum = z3.If(some, z3.And(attained, bound), lifted == 0)
            return z3.ForAll(free, maximum, patterns=[lifted]) if free else maximum
        return z3.ForAll([*free, *variables], cell == body, patterns=[cell])


_OPERATORS: dict[str, Callable[..., Z3]] = {
    "and": lambda *a: z3.And(*a) if a else z3.BoolVal(True),
    "or": lambda *a: z3.Or(*a) if a else z3.BoolVal(False),
    "not": z3.Not,
    "implies": z3.Implies,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "ite": z3.If,
}
