"""Facts about finite sets that first-order logic cannot derive for itself.

Each function is a schema: whatever terms it is given, the formula it returns is true of every
finite set and every non-negative weight. A proof over unboundedly many hashes is handed instances
of these schemas and nothing else about sums, so a wrong instance can make a proof fail but not
succeed. Each schema is proved in Coq, in the words that its own code gives (spec/lemmas). The
annotation of an argument says what it stands for there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .schemas import (
    Element,
    Elements,
    Fact,
    Family,
    Key,
    KeyFunction,
    Lemma,
    Members,
    Predicate,
    Property,
    Schema,
    Sorts,
    Weight,
)
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
    total,
    unnamed,
)

__all__ = [
    "Lemma",
    "disjoint_union",
    "emptiness",
    "for_every",
    "has_earliest",
    "has_first",
    "has_greatest",
    "has_least",
    "insertion",
    "measure_instances",
    "monotone",
    "non_negative",
    "nothing",
    "removal",
    "subtraction",
    "union_bound",
]


def for_every(*arguments: Sort | Callable[..., Lemma]) -> Lemma:
    """The same schema instance for all values of some variables."""
    *sorts, build = arguments
    return _for_every(tuple(sorts), build)  # type: ignore[arg-type]


@Schema
def _for_every(sorts: Sorts, lemma: Family) -> Term:
    names = lemma.__code__.co_varnames
    names = names if len(names) >= len(sorts) else tuple(f"x{k}" for k in range(len(sorts)))
    variables = tuple(Symbol(sort, name, "bound") for name, sort in zip(names, sorts, strict=False))
    return Binder(BOOL, "forall", variables, lemma(*variables).formula)


@Schema
def non_negative(members: Members, weight: Weight) -> Term:
    return total(members, weight) >= 0


@Schema
def emptiness(members: Members, weight: Weight) -> Term:
    return members.is_empty().implies(total(members, weight) == 0)


@Schema
def insertion(members: Members, x: Element, weight: Weight) -> Term:
    gain = ite(members.has(x), 0, weight(x))
    return total(members.insert(x), weight) == total(members, weight) + gain


@Schema
def removal(members: Members, x: Element, weight: Weight) -> Term:
    loss = ite(members.has(x), weight(x), 0)
    return total(members.remove(x), weight) == total(members, weight) - loss


@Schema
def subtraction(members: Members, part: Members, weight: Weight) -> Term:
    rest = total(members, weight) - total(part, weight)
    return part.subset_of(members).implies(total(members.minus(part), weight) == rest)


@Schema
def disjoint_union(one: Members, two: Members, weight: Weight) -> Term:
    (sort,) = one.sort.elements if isinstance(one.sort, SetSort) else ()
    disjoint = forall(sort, lambda x: (one.has(x) & two.has(x)).implies(FALSE))
    both = total(one, weight) + total(two, weight)
    return disjoint.implies(total(one.union(two), weight) == both)


@Schema
def union_bound(one: Members, two: Members, weight: Weight) -> Term:
    both = total(one, weight) + total(two, weight)
    return total(one.union(two), weight) <= both


@Schema
def monotone(part: Members, whole: Members, weight: Weight) -> Term:
    return part.subset_of(whole).implies(total(part, weight) <= total(whole, weight))


@Schema
def nothing(x: Element) -> Term:
    """What there is to say of an element where no fact is wanted."""
    return TRUE


@Schema
def has_first(sort: Elements, where: Predicate, key: KeyFunction) -> Term:
    """`has_least`, of the elements that satisfy a predicate, by a function of the world."""
    return _first(sort, where, key)


@Schema
def has_earliest(sort: Elements, where: Property, key: Weight) -> Term:
    """The same of elements that may be infinitely many, by a key that is not negative."""
    return _first(sort, where, key)


def _first(sort: Sort, where: Callable[[Term], Term], key: Function) -> Term:
    def first(x: Term) -> Term:
        return where(x) & forall(sort, lambda y: where(y).implies(key(x) <= key(y)))

    return exists(sort, lambda x: where(x)).implies(exists(sort, first))


@Schema
def has_least(members: Members, key: Key, fact: Fact = nothing) -> Term:
    """A set with an element has one with the least key; and that one, like any, has `fact`.

    The fact spares the solver the search for a place to use it.
    """
    return _extreme(members, lambda x, y: key[x] <= key[y], fact)


@Schema
def has_greatest(members: Members, key: Key, fact: Fact = nothing) -> Term:
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
