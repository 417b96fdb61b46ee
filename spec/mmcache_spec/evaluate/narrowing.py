"""Which elements a quantifier has to look at: not all of a sort, where its own body names fewer.

`∃ j. j ∈ needed ∧ hash_of(j) = k ∧ …` is about the few inputs whose hash is k, and
`∀ h. h ∈ cached ⇒ …` about what is cached. For all others the body is decided beforehand: false
below an `∃`, true below a `∀`. In a world of hundreds of elements that is nearly all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..kernel.terms import Function, Op, Symbol, Term, unnamed

__all__ = ["All", "Members", "OneOf", "Same", "Source", "antecedents", "conjuncts", "narrowed"]


@dataclass(frozen=True)
class All:
    """Every element of the sort of the variable."""

    variable: Symbol


@dataclass(frozen=True)
class Same:
    """The one element that the variable equals."""

    variable: Symbol
    value: Term


@dataclass(frozen=True)
class OneOf:
    """The elements of which the function has this value."""

    variable: Symbol
    function: Function
    value: Term


@dataclass(frozen=True)
class Members:
    """The elements of the set. Of a relation, those whose other places have known values."""

    members: Term
    binds: tuple[tuple[int, Symbol], ...]
    """The places of an element that are variables to be bound."""
    known: tuple[tuple[int, Term], ...]
    """The places of an element whose value is known."""


Source = All | Same | OneOf | Members
"""Where the values of one or more variables come from, when those before it have theirs."""


def narrowed(
    variables: Sequence[Symbol],
    conditions: Sequence[Term],
    free: Callable[[Term], frozenset[Symbol]],
) -> tuple[tuple[Source, ...], frozenset[int]]:
    """Where to look for the values of the variables for which all the conditions may hold.

    With it, the numbers of the conditions that hold of whatever is found there; the others have
    still to be asked. `free` tells the unbound variables of a term.
    """
    left = list(variables)
    sources: list[Source] = []
    met: set[int] = set()
    while left:
        found = ((_source(unnamed(c), left, free), k) for k, c in enumerate(conditions))
        useful = [(_breadth(source), k, source) for source, k in found if source is not None]
        best: Source = All(left[0])
        if useful:
            _, number, best = min(useful, key=lambda one: one[:2])
            met.add(number)
        sources.append(best)
        bound = [v for _, v in best.binds] if isinstance(best, Members) else [best.variable]
        left = [v for v in left if not any(v is b for b in bound)]
    return tuple(sources), frozenset(met)


def conjuncts(term: Term) -> Iterator[Term]:
    """What holds wherever the term does."""
    term = unnamed(term)
    if isinstance(term, Op) and term.name == "and":
        for part in term.args:
            yield from conjuncts(part)
    else:
        yield term


def antecedents(term: Term) -> Iterator[Term]:
    """What holds wherever the term does not."""
    term = unnamed(term)
    if not isinstance(term, Op):
        return
    if term.name == "implies":
        yield from conjuncts(term.args[0])
        yield from antecedents(term.args[1])
    elif term.name == "or":
        for part in term.args:
            yield from antecedents(part)
    elif term.name == "not":
        yield from conjuncts(term.args[0])


def _source(
    condition: Term, left: Sequence[Symbol], free: Callable[[Term], frozenset[Symbol]]
) -> Source | None:
    if not isinstance(condition, Op):
        return None

    def is_left(term: Term) -> bool:
        return any(term is v for v in left)

    def is_known(term: Term) -> bool:
        return not any(is_left(v) for v in free(term))

    if condition.name == "eq":
        one, two = map(unnamed, condition.args)
        for here, there in ((one, two), (two, one)):
            if not is_known(there):
                continue
            if isinstance(here, Symbol) and is_left(here):
                return Same(here, there)
            if isinstance(here, Op) and here.function is not None and here.name == "apply":
                argument = unnamed(here.args[0])
                if isinstance(argument, Symbol) and is_left(argument):
                    return OneOf(argument, here.function, there)
    if condition.name == "member":
        members, *places = map(unnamed, condition.args)
        binds = tuple((k, p) for k, p in enumerate(places) if isinstance(p, Symbol) and is_left(p))
        others = tuple((k, p) for k, p in enumerate(places) if not is_left(p))
        distinct = len({id(v) for _, v in binds}) == len(binds)
        if binds and distinct and is_known(members) and all(is_known(p) for _, p in others):
            return Members(members, binds, others)
    return None


def _breadth(source: Source) -> int:
    """Less for what is likely to give fewer values."""
    return (Same, OneOf, Members, All).index(type(source))
