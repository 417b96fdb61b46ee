"""Which sets are finite, if the variables of the state are: read off the terms.

A total, and the greatest of some values, mean something for finite sets only. The sets of the state
are finite in the beginning, and stay so if every effect makes finite sets out of finite sets. A
comprehension `{ x | body }` is finite if the body bounds `x`: it puts `x` into a finite set, or
equates it with a value of what is bounded already, or says to which of finitely many things it
belongs where each has finitely many. Databases call such a query safe, or range restricted. Each
rule is a theorem of spec/lemmas/Finiteness.v, named beside it.

What is taken for granted: a parameter, a constant, an answer or a bound variable that is a set is a
finite one, as `SetSort` says; and the functions that are said to have `few` arguments for a value.
`checks.foundations` shows the latter from the axioms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .terms import (
    BOOL,
    INT,
    Binder,
    Function,
    MapSort,
    Op,
    SetSort,
    Symbol,
    Term,
    all_of,
    any_of,
    subterms,
    unnamed,
)

__all__ = ["bounded_variables", "holds_sets", "is_finite", "not_shown_finite"]

Few = Collection[Function]
"""Functions that take each value for finitely many arguments only."""
Variables = frozenset[Symbol]


def holds_sets(term: Term) -> bool:
    """Whether the term is a set, or a map to sets: what `is_finite` may be asked about."""
    sort = term.sort
    while isinstance(sort, MapSort):
        sort = sort.value
    return isinstance(sort, SetSort)


def is_finite(term: Term, few: Few = ()) -> bool:
    """Whether a set, or every set of a map, is shown to be finite.

    Variables that the term does not bind may stand for anything. `False` says only that the rules
    do not show it.

    Args:
        term: A set, a relation, or a map to sets.
        few: Functions that take each value for finitely many arguments only.
    """
    term = unnamed(term)
    match term:
        case Symbol():
            return True  # finite_sets_are_finite
        case Op(name="empty"):
            return True
        case Op(name="insert" | "remove" | "minus" | "get", args=(members, *_)):
            return is_finite(members, few)  # finite_or, finite_subset
        case Op(name="union", args=(one, two)) | Op(name="ite", args=(_, one, two)):
            return is_finite(one, few) and is_finite(two, few)  # finite_or
        case Op(name="put", args=(table, _, value)):
            return is_finite(table, few) and is_finite(value, few)
        case Binder(name="setof"):
            unknown = frozenset(term.variables)
            return bounded_variables(term.body, unknown, few) >= unknown
        case Binder(name="mapof", body=value):
            return is_finite(value if term.value is None else term.value, few)
    return False


def not_shown_finite(term: Term, few: Few = ()) -> Iterator[Term]:
    """The sets under a total, or under `largest`, anywhere in the term, that may be infinite."""
    for part in subterms(term):
        match part:
            case Op(name="total", args=(members,)) if not is_finite(members, few):
                yield members
            case Binder(name="largest", variables=variables, body=body):
                elements = SetSort.of(*(v.sort for v in variables))
                where = Binder(elements, "setof", variables, body)
                if not is_finite(where, few):
                    yield where


def bounded_variables(body: Term, unknown: Variables, few: Few = ()) -> Variables:
    """Those of the unknown variables for which the body leaves finitely many values.

    More exactly: whatever the other variables of the body stand for, finitely many combinations of
    values of those returned satisfy the body, with some values of the rest.
    """
    always = frozenset(v for v in unknown if v.sort == BOOL)
    return _Bounds(few).of(body, unknown, always)


class _Bounds:
    """The rules, one for each way to write a formula. `bounded` are those of before."""

    def __init__(self, few: Few) -> None:
        self._few = frozenset(few)

    def of(self, body: Term, unknown: Variables, bounded: Variables) -> Variables:
        body = unnamed(body)
        if (cases := _by_cases(body)) is not None:
            return self.of(cases, unknown, bounded)
        match body:
            case Op(name="and"):
                return self._all(list(_flat(body)), unknown, bounded)
            case Op(name="or", args=args):
                each = [self.of(a, unknown, bounded) for a in args]
                return unknown.intersection(*each)  # finite_or; none at all satisfy `false`
            case Op(name="not", args=(arg,)):
                negated = _negated(unnamed(arg))
                return bounded if negated is None else self.of(negated, unknown, bounded)
            case Op(name="eq", args=(one, two)):
                return bounded | self._equated(one, two, unknown, bounded)
            case Op(name="member", args=(members, *elements)):
                known = self._known(members, unknown, bounded) and is_finite(members, self._few)
                found = [self._argument(e) for e in elements] if known else []
                return bounded | unknown.intersection(v for v in found if v is not None)
            case Binder(name="exists", variables=variables, body=inner):
                wider = unknown.union(variables)
                return self.of(inner, wider, bounded) & unknown  # finite_projection
        return bounded

    def _all(self, parts: list[Term], unknown: Variables, bounded: Variables) -> Variables:
        """Each part may bound a variable with the help of those that others bound."""
        while True:
            found = bounded
            for part in parts:
                found |= self.of(part, unknown, found)  # finite_subset, finite_one_by_one
            found |= self._between(parts, unknown, found)
            if found == bounded:
                return found
            bounded = found

    def _equated(self, one: Term, two: Term, unknown: Variables, bounded: Variables) -> Variables:
        """A variable that is equal to a term of bounded ones; or a function of it that is."""
        found = set()
        for this, other in ((one, two), (two, one)):
            variable = self._argument(this)
            if variable in unknown and self._known(other, unknown, bounded):
                found.add(variable)  # finite_values
        return frozenset(v for v in found if v is not None)

    def _argument(self, term: Term) -> Symbol | None:
        """The variable of which a bound on the term is a bound: itself, or below a `few`."""
        term = unnamed(term)
        while isinstance(term, Op) and term.name == "apply" and term.function in self._few:
            term = unnamed(term.args[0])  # finite_fibre, finite_one_by_one
        return term if isinstance(term, Symbol) else None

    def _between(self, parts: list[Term], unknown: Variables, bounded: Variables) -> Variables:
        """Whole numbers between two that are bounded."""
        below: set[Term] = set()
        above: set[Term] = set()
        for part in map(unnamed, parts):
            if isinstance(part, Op) and part.name in ("lt", "le"):
                small, large = map(unnamed, part.args)
                if self._known(large, unknown, bounded):
                    above.add(small)
                if self._known(small, unknown, bounded):
                    below.add(large)
        return frozenset(v for v in unknown if v.sort == INT and v in below and v in above)

    def _known(self, term: Term, unknown: Variables, bounded: Variables) -> bool:
        """Whether the term speaks of no variable that is not bounded yet."""
        loose = unknown - bounded
        return not any(isinstance(t, Symbol) and t in loose for t in subterms(term))


def _flat(term: Term) -> Iterator[Term]:
    """The conjuncts of conjuncts, with negations pushed inwards."""
    term = unnamed(term)
    if isinstance(term, Op) and term.name == "not":
        negated = _negated(unnamed(term.args[0]))
        term = term if negated is None else unnamed(negated)
    if isinstance(term, Op) and term.name == "and":
        for argument in term.args:
            yield from _flat(argument)
    else:
        yield term


def _by_cases(term: Term) -> Term | None:
    """The same with `and`, `or` and `not` alone, where it is written otherwise."""
    match term:
        case Op(name="implies", args=(one, two)):
            return any_of(~one, two)
        case Op(name="ite", args=(condition, one, two)):
            return any_of(all_of(condition, one), all_of(~condition, two))
        case Op(name="eq", args=(one, two)) if one.sort == BOOL:
            return any_of(all_of(one, two), all_of(~one, ~two))
    return None


def _negated(term: Term) -> Term | None:
    """What it is for the formula to be false, one level down; None where that bounds nothing."""
    if (cases := _by_cases(term)) is not None:
        return ~cases
    match term:
        case Op(name="not", args=(arg,)):
            return arg
        case Op(name="and", args=args):
            return any_of(*(~a for a in args))
        case Op(name="or", args=args):
            return all_of(*(~a for a in args))
        case Op(name="lt", args=(one, two)):
            return two <= one
        case Op(name="le", args=(one, two)):
            return two < one
        case Binder(name="forall", variables=variables, body=body):
            return Binder(BOOL, "exists", variables, ~body)
    return None
