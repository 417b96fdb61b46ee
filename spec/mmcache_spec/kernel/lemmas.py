"""Facts about finite sets that first-order logic cannot derive for itself.

Each function is a schema: whatever terms it is given, the formula it returns is true of every
finite set and every non-negative weight. A proof over unboundedly many hashes is handed instances
of these schemas and nothing else about sums, so a wrong instance can make a proof fail but not
succeed. Nothing but these functions can make a `Lemma`. Each instance that a proof uses is checked
on all small sets besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

from .terms import (
    BOOL,
    FALSE,
    TRUE,
    Binder,
    Function,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    exists,
    forall,
    ite,
    replaced,
    total,
    unnamed,
)

__all__ = [
    "Lemma",
    "disjoint_union",
    "emptiness",
    "for_every",
    "has_first",
    "has_greatest",
    "has_least",
    "insertion",
    "measure_instances",
    "monotone",
    "non_negative",
    "removal",
    "subtraction",
    "union_bound",
]


_SCHEMA = object()


@dataclass(frozen=True, eq=False)
class Lemma:
    """An instance of a schema of this module, which alone can make one."""

    formula: Term
    made_by: object = None

    def __post_init__(self) -> None:
        if self.made_by is not _SCHEMA:
            raise TypeError("a lemma is made by a schema of kernel.lemmas, not of any formula")

    def renamed(self, find: Callable[[Symbol], Symbol | None]) -> Lemma:
        """The same instance, of other symbols of the same sorts."""

        def checked(symbol: Symbol) -> Symbol | None:
            other = find(symbol)
            if other is not None and other.sort != symbol.sort:
                raise TypeError(f"{symbol.name} is a {symbol.sort}, not a {other.sort}")
            return other

        return Lemma(replaced(self.formula, checked), _SCHEMA)


P = ParamSpec("P")


def _schema(build: Callable[P, Term]) -> Callable[P, Lemma]:
    @wraps(build)
    def instance(*args: P.args, **kwargs: P.kwargs) -> Lemma:
        return Lemma(build(*args, **kwargs), _SCHEMA)

    return instance


def for_every(*arguments: Sort | Callable[..., Lemma]) -> Lemma:
    """The same schema instance for all values of some variables."""
    *sorts, build = arguments
    assert callable(build)
    names = build.__code__.co_varnames
    variables = tuple(
        Symbol(sort, name, "bound")
        for name, sort in zip(names, sorts, strict=False)
        if isinstance(sort, Sort)
    )
    return Lemma(Binder(BOOL, "forall", variables, build(*variables).formula), _SCHEMA)


@_schema
def non_negative(members: Term, weight: Function) -> Term:
    return total(members, weight) >= 0


@_schema
def emptiness(members: Term, weight: Function) -> Term:
    return members.is_empty().implies(total(members, weight) == 0)


@_schema
def insertion(members: Term, x: Term, weight: Function) -> Term:
    gain = ite(members.has(x), 0, weight(x))
    return total(members.insert(x), weight) == total(members, weight) + gain


@_schema
def removal(members: Term, x: Term, weight: Function) -> Term:
    loss = ite(members.has(x), weight(x), 0)
    return total(members.remove(x), weight) == total(members, weight) - loss


@_schema
def subtraction(members: Term, part: Term, weight: Function) -> Term:
    rest = total(members, weight) - total(part, weight)
    return part.subset_of(members).implies(total(members.minus(part), weight) == rest)


@_schema
def disjoint_union(one: Term, two: Term, weight: Function) -> Term:
    (sort,) = one.sort.elements if isinstance(one.sort, SetSort) else ()
    disjoint = forall(sort, lambda x: (one.has(x) & two.has(x)).implies(FALSE))
    both = total(one, weight) + total(two, weight)
    return disjoint.implies(total(one.union(two), weight) == both)


@_schema
def union_bound(one: Term, two: Term, weight: Function) -> Term:
    both = total(one, weight) + total(two, weight)
    return total(one.union(two), weight) <= both


@_schema
def monotone(part: Term, whole: Term, weight: Function) -> Term:
    return part.subset_of(whole).implies(total(part, weight) <= total(whole, weight))


Fact = Callable[[Term], Lemma]


def _nothing(x: Term) -> Lemma:
    return Lemma(TRUE, _SCHEMA)


@_schema
def has_first(sort: Sort, where: Callable[[Term], Term], key: Function) -> Term:
    """`has_least`, of the elements that satisfy a predicate, by a function of the world."""

    def first(x: Term) -> Term:
        return where(x) & forall(sort, lambda y: where(y).implies(key(x) <= key(y)))

    return exists(sort, lambda x: where(x)).implies(exists(sort, first))


@_schema
def has_least(members: Term, key: Term, fact: Fact = _nothing) -> Term:
    """A set with an element has one with the least key; and that one, like any, has `fact`.

    The fact spares the solver the search for a place to use it.
    """
    return _extreme(members, lambda x, y: key[x] <= key[y], fact)


@_schema
def has_greatest(members: Term, key: Term, fact: Fact = _nothing) -> Term:
    return _extreme(members, lambda x, y: key[y] <= key[x], fact)


def _extreme(members: Term, before: Callable[[Term, Term], Term], fact: Fact) -> Term:
    (sort,) = members.sort.elements if isinstance(members.sort, SetSort) else ()

    def extreme(x: Term) -> Term:
        first = forall(sort, lambda y: members.has(y).implies(before(x, y)))
        return members.has(x) & first & fact(x).formula

    return exists(sort, lambda x: members.has(x)).implies(exists(sort, extreme))


def measure_instances(terms: Iterable[Term]) -> Iterator[Lemma]:
    """What the schemas say of the totals, and of the operations on sets, in these terms."""
    ground = [t for term in terms for t in _outside_binders(term) if isinstance(t, Op)]
    weights = {t.function for t in ground if t.name == "total" and t.function is not None}
    for t in ground:
        if t.name == "total" and t.function is not None:
            yield non_negative(t.args[0], t.function)
            yield emptiness(t.args[0], t.function)
        for weight in sorted(weights, key=lambda w: w.name):
            if t.sort == SetSort.of(weight.domain):
                yield from _operation(t, weight)


def _operation(term: Op, weight: Function) -> Iterator[Lemma]:
    match term.name, term.args:
        case "insert", (members, x):
            yield insertion(members, x, weight)
        case "remove", (members, x):
            yield removal(members, x, weight)
        case "minus", (members, part):
            yield subtraction(members, part, weight)
        case "union", (one, two):
            yield disjoint_union(one, two, weight)


def _outside_binders(term: Term) -> Iterator[Term]:
    term = unnamed(term)
    yield term
    if isinstance(term, Op):
        for argument in term.args:
            yield from _outside_binders(argument)
