"""Terms to cvc5, by its own API: a second translation, which shares nothing with `unbounded`.

There, a set is an object with a membership predicate, and every operation a symbol with a
definition. Here a set is what it means to be a member of it: a membership is written out down to
the variables, whatever the set, and no set is an object. What an action makes of a variable is put
in its place. Only `total` needs a name for its set: the set's own text, up to bound names.

cvc5 is needed by tests only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import cvc5
from cvc5 import Kind

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
    ite,
    replaced,
    unnamed,
)

__all__ = ["Cvc5Terms", "cvc5_decides"]

Bindings = Mapping[Symbol, Any]


class Cvc5Terms:
    """One query: terms that are all assumed."""

    def __init__(self, timeout_ms: int = 10_000) -> None:
        self.manager = cvc5.TermManager()
        self.solver = cvc5.Solver(self.manager)
        self.solver.setOption("tlimit-per", str(timeout_ms))
        self.solver.setOption("enum-inst", "true")
        self.solver.setLogic("ALL")
        self._sorts: dict[str, Any] = {}
        self._symbols: dict[object, Any] = {}
        self._depth = 0

    def assume(self, terms: Iterable[Term]) -> None:
        """Assert the terms; a variable that one of them equates with a value is replaced by it."""
        given = [unnamed(term) for term in terms]
        values = dict(filter(None, map(_definition, given)))

        def value_of(symbol: Symbol) -> Term | None:
            return values.get((symbol.role, symbol.name))

        for term in given:
            if _definition(term) is None:
                self.solver.assertFormula(self._bool(replaced(term, value_of), {}))

    def answer(self) -> str:
        """`sat`, `unsat` or `unknown`."""
        result = self.solver.checkSat()
        return "unsat" if result.isUnsat() else "sat" if result.isSat() else "unknown"

    # Sorts and symbols.

    def _sort(self, sort: Sort) -> Any:
        if sort == BOOL:
            return self.manager.getBooleanSort()
        if sort == INT:
            return self.manager.getIntegerSort()
        if sort.name not in self._sorts:
            self._sorts[sort.name] = self.manager.mkUninterpretedSort(sort.name)
        return self._sorts[sort.name]

    def _applied(self, key: object, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """An uninterpreted symbol, one for each key, applied."""
        if key not in self._symbols:
            sorts = [a.getSort() for a in arguments]
            sort = self.manager.mkFunctionSort(sorts, result) if sorts else result
            self._symbols[key] = self.manager.mkConst(sort, name)
        symbol = self._symbols[key]
        return self._make(Kind.APPLY_UF, symbol, *arguments) if arguments else symbol

    def _make(self, kind: Any, *arguments: Any) -> Any:
        return self.manager.mkTerm(kind, *arguments)

    def _variable(self, symbol: Symbol, arguments: Sequence[Any], result: Sort) -> Any:
        key = symbol.role == "next", symbol.name, symbol.sort.name
        name = f"{symbol.name}'" if symbol.role == "next" else symbol.name
        return self._applied(key, name, self._sort(result), arguments)

    # Truth, amounts and elements.

    def _bool(self, term: Term, bindings: Bindings) -> Any:
        term = unnamed(term)
        match term:
            case Symbol():
                return self._plain(term, bindings)
            case Binder(name="forall" | "exists"):
                return self._quantified(term, bindings)
            case Op(name="and", args=args):
                return self._joined(Kind.AND, True, [self._bool(a, bindings) for a in args])
            case Op(name="or", args=args):
                return self._joined(Kind.OR, False, [self._bool(a, bindings) for a in args])
            case Op(name="not", args=(one,)):
                return self._make(Kind.NOT, self._bool(one, bindings))
            case Op(name="implies", args=(one, two)):
                return self._make(
                    Kind.IMPLIES, self._bool(one, bindings), self._bool(two, bindings)
                )
            case Op(name="member", args=(members, *element)):
                return self._member(members, [self._value(e, bindings) for e in element], bindings)
            case Op(name="lt", args=(one, two)):
                return self._make(Kind.LT, self._value(one, bindings), self._value(two, bindings))
            case Op(name="le", args=(one, two)):
                return self._make(Kind.LEQ, self._value(one, bindings), self._value(two, bindings))
            case Op(name="eq", args=(one, two)):
                return self._equal(one, two, bindings)
        return self._value(term, bindings)

    def _joined(self, kind: Any, nothing: bool, parts: Sequence[Any]) -> Any:
        if len(parts) > 1:
            return self._make(kind, *parts)
        return parts[0] if parts else self.manager.mkBoolean(nothing)

    def _quantified(self, term: Binder, bindings: Bindings) -> Any:
        variables = [self.manager.mkVar(self._sort(v.sort), v.name) for v in term.variables]
        inner = {**bindings, **dict(zip(term.variables, variables, strict=True))}
        kind = Kind.FORALL if term.name == "forall" else Kind.EXISTS
        listed = self._make(Kind.VARIABLE_LIST, *variables)
        return self._make(kind, listed, self._bool(term.body, inner))

    def _for_all(self, sorts: Sequence[Sort], body: Callable[[list[Any]], Any]) -> Any:
        variables = [self.manager.mkVar(self._sort(s), "x") for s in sorts]
        return self._make(Kind.FORALL, self._make(Kind.VARIABLE_LIST, *variables), body(variables))

    def _equal(self, one: Term, two: Term, bindings: Bindings) -> Any:
        if isinstance(one.sort, SetSort):
            return self._for_all(
                one.sort.elements,
                lambda x: self._make(
                    Kind.EQUAL, self._member(one, x, bindings), self._member(two, x, bindings)
                ),
            )
        if isinstance(one.sort, MapSort):
            return self._for_all(
                [one.sort.key],
                lambda x: self._make(
                    Kind.EQUAL, self._entry(one, x[0], bindings), self._entry(two, x[0], bindings)
                ),
            )
        return self._make(Kind.EQUAL, self._value(one, bindings), self._value(two, bindings))

    def _value(self, term: Term, bindings: Bindings) -> Any:
        term = unnamed(term)
        match term:
            case Literal(value=value):
                return self.manager.mkInteger(value)
            case Symbol():
                return self._plain(term, bindings)
            case Op(name="add", args=(one, two)):
                return self._make(Kind.ADD, self._value(one, bindings), self._value(two, bindings))
            case Op(name="sub", args=(one, two)):
                return self._make(Kind.SUB, self._value(one, bindings), self._value(two, bindings))
            case Op(name="ite", args=(condition, one, two)):
                return self._make(
                    Kind.ITE,
                    self._bool(condition, bindings),
                    self._value(one, bindings),
                    self._value(two, bindings),
                )
            case Op(name="get", args=(table, key)):
                return self._entry(table, self._value(key, bindings), bindings)
            case Op(name="apply", function=Function() as f, args=(argument,)):
                given = [self._value(argument, bindings)]
                return self._applied(("function", f.name), f.name, self._sort(f.range), given)
            case Op(name="total", function=Function() as weight, args=(members,)):
                members = unnamed(members)
                if isinstance(members, Op) and members.name == "ite":
                    condition, one, two = members.args
                    sums = (replace(term, args=(one,)), replace(term, args=(two,)))
                    return self._value(ite(condition, *sums), bindings)
                form, free = alpha_form(members)
                name = f"total {weight.name} {len(self._symbols)}"
                outer = [bindings[v] for v in free]
                return self._applied(("total", weight.name, form), name, self._sort(INT), outer)
            case Binder(name="largest"):
                return self._largest(term, bindings)
        if term.sort == BOOL:
            return self._bool(term, bindings)
        raise TypeError(f"no translation for {term!r}")

    def _plain(self, symbol: Symbol, bindings: Bindings) -> Any:
        return (
            bindings[symbol] if symbol.role == "bound" else self._variable(symbol, [], symbol.sort)
        )

    def _largest(self, term: Binder, bindings: Bindings) -> Any:
        """A name for the greatest value, and what makes it so."""
        form, free = alpha_form(term)
        outer = [bindings[v] for v in free]
        new = ("largest", form) not in self._symbols
        name = f"largest {len(self._symbols)}"
        found = self._applied(("largest", form), name, self._sort(INT), outer)
        if new:
            self._define_largest(term, free, name, form)
        return found

    def _define_largest(
        self, term: Binder, free: Sequence[Symbol], name: str, form: object
    ) -> None:
        assert term.value is not None
        outer = [self.manager.mkVar(self._sort(v.sort), v.name) for v in free]
        bindings = dict(zip(free, outer, strict=True))
        greatest = self._applied(("largest", form), name, self._sort(INT), outer)
        (x,) = term.variables
        y = self.manager.mkVar(self._sort(x.sort), x.name)
        inner = {**bindings, x: y}
        chosen, value = self._bool(term.body, inner), self._value(term.value, inner)
        listed = self._make(Kind.VARIABLE_LIST, y)
        some = self._make(Kind.EXISTS, listed, chosen)
        bound = self._make(
            Kind.FORALL,
            listed,
            self._make(Kind.IMPLIES, chosen, self._make(Kind.LEQ, value, greatest)),
        )
        attained = self._make(
            Kind.EXISTS,
            listed,
            self._make(Kind.AND, chosen, self._make(Kind.EQUAL, value, greatest)),
        )
        zero = self._make(Kind.EQUAL, greatest, self.manager.mkInteger(0))
        meaning = self._make(Kind.ITE, some, self._make(Kind.AND, bound, attained), zero)
        if outer:
            meaning = self._make(Kind.FORALL, self._make(Kind.VARIABLE_LIST, *outer), meaning)
        self.solver.assertFormula(meaning)

    # Sets and maps, by their members and entries.

    def _member(self, members: Term, element: Sequence[Any], bindings: Bindings) -> Any:
        members = unnamed(members)

        def within(part: Term) -> Any:
            return self._member(part, element, bindings)

        match members:
            case Symbol():
                return self._variable(members, element, BOOL)
            case Binder(name="setof"):
                inner = {**bindings, **dict(zip(members.variables, element, strict=True))}
                return self._bool(members.body, inner)
            case Op(name="empty"):
                return self.manager.mkBoolean(False)
            case Op(name="union", args=(one, two)):
                return self._make(Kind.OR, within(one), within(two))
            case Op(name="minus", args=(one, two)):
                return self._make(Kind.AND, within(one), self._make(Kind.NOT, within(two)))
            case Op(name="insert", args=(one, *given)):
                return self._make(Kind.OR, within(one), self._are(element, given, bindings))
            case Op(name="remove", args=(one, *given)):
                other = self._make(Kind.NOT, self._are(element, given, bindings))
                return self._make(Kind.AND, within(one), other)
            case Op(name="ite", args=(condition, one, two)):
                return self._make(
                    Kind.ITE, self._bool(condition, bindings), within(one), within(two)
                )
        raise TypeError(f"no members of {members!r}")

    def _are(self, element: Sequence[Any], given: Sequence[Term], bindings: Bindings) -> Any:
        pairs = zip(element, given, strict=True)
        same = [self._make(Kind.EQUAL, x, self._value(g, bindings)) for x, g in pairs]
        return self._joined(Kind.AND, True, same)

    def _entry(self, table: Term, key: Any, bindings: Bindings) -> Any:
        table = unnamed(table)
        match table:
            case Symbol():
                assert isinstance(table.sort, MapSort)
                return self._variable(table, [key], table.sort.value)
            case Binder(name="mapof", variables=(variable,)):
                return self._value(table.body, {**bindings, variable: key})
            case Op(name="put", args=(one, at, value)):
                here = self._make(Kind.EQUAL, key, self._value(at, bindings))
                new = self._value(value, bindings)
                return self._make(Kind.ITE, here, new, self._entry(one, key, bindings))
            case Op(name="ite", args=(condition, one, two)):
                yes, no = self._entry(one, key, bindings), self._entry(two, key, bindings)
                return self._make(Kind.ITE, self._bool(condition, bindings), yes, no)
        raise TypeError(f"no entries of {table!r}")


def _definition(term: Term) -> tuple[tuple[str, str], Term] | None:
    """A variable after the action, or the answer, and the value that the term says it has."""
    if isinstance(term, Op) and term.name == "eq":
        variable, value = unnamed(term.args[0]), term.args[1]
        if isinstance(variable, Symbol) and variable.role in ("next", "result"):
            return (variable.role, variable.name), value
    return None


def cvc5_decides(terms: Iterable[Term], timeout_ms: int = 10_000) -> str:
    """Whether the terms can all be true: `sat`, `unsat` or `unknown`, says cvc5."""
    query = Cvc5Terms(timeout_ms)
    query.assume(terms)
    return query.answer()
