"""Wrong designs that differ at one point: a condition, a variable, an answer, a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from .changes import Changed, Made, brief, constants_of, own, with_line, written
from .mutants import mutants_to_make
from .rewriting import points
from .system import Action, TransitionSystem
from .terms import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    Binder,
    Function,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    all_of,
    any_of,
    number,
)

__all__ = ["answers", "beginnings", "misdirected", "negated", "single", "swapped", "values"]


def single(system: TransitionSystem) -> Made:
    yield from mutants_to_make(system)


def _changed_places(
    action: Action, others: Callable[[Term], Iterable[tuple[str, Term]]]
) -> Changed:
    """Every place of the action, with every other term that may stand there."""
    for where, term, write in written(action):
        for inner, put in points(term):
            for what, other in others(inner):
                yield f"{where}, {what}", write(put(other))


def negated(system: TransitionSystem, action: Action) -> Changed:
    """Every condition is its contrary."""

    def contrary(t: Term) -> Iterator[tuple[str, Term]]:
        if t.sort == BOOL and not (isinstance(t, Op) and t.name == "not"):
            yield f"{brief(t)} negated", ~t

    yield from _changed_places(action, contrary)


def swapped(system: TransitionSystem, action: Action) -> Changed:
    """Every variable is another of its sort; every parameter and constant likewise."""

    def others(t: Term) -> Iterator[tuple[str, Term]]:
        if not isinstance(t, Symbol):
            return
        candidates: tuple[Symbol, ...] = ()
        if t.role == "state":
            candidates = own(system)
        elif t.role in ("parameter", "constant"):
            candidates = (*action.parameters, *system.constants)
        for other in candidates:
            if other.sort == t.sort and other.name != t.name:
                yield f"{t.name} is {other.name}", other

    yield from _changed_places(action, others)


def misdirected(system: TransitionSystem, action: Action) -> Changed:
    """What is done to one element is done to every one, to all others, or to all that are like it.

    Like it: with the same value of some function of the world.
    """

    def others(t: Term) -> Iterator[tuple[str, Term]]:
        if not (isinstance(t, Op) and t.name in ("insert", "remove")):
            return
        members, *element = t.args
        assert isinstance(t.sort, SetSort)
        for k, sort in enumerate(t.sort.elements):
            for what, means in _aims(system, sort):

                def body(*x: Term, k: int = k, means: Callable[[Term, Term], Term] = means) -> Term:
                    meant = all_of(
                        *(means(x[j], e) if j == k else x[j] == e for j, e in enumerate(element))
                    )
                    has = members.has(*x)
                    return any_of(has, meant) if t.name == "insert" else all_of(has, ~meant)

                variables = tuple(
                    Symbol(s, f"x{j}", "bound") for j, s in enumerate(t.sort.elements)
                )
                yield f"{t.name} of {what}", Binder(t.sort, "setof", variables, body(*variables))

    yield from _changed_places(action, others)


def _aims(
    system: TransitionSystem, sort: Sort
) -> Iterator[tuple[str, Callable[[Term, Term], Term]]]:
    yield f"every {sort}", lambda x, e: TRUE
    yield f"every other {sort}", lambda x, e: ~(x == e)
    functions = [f for f in system.functions if f.domain == sort and f.range != INT]
    for count in range(1, len(functions) + 1):
        for some in combinations(functions, count):
            names = " and ".join(f.name for f in some)
            yield f"every {sort} of that {names}", _alike(some)


def _alike(functions: tuple[Function, ...]) -> Callable[[Term, Term], Term]:
    return lambda x, e: all_of(*(f(x) == f(e) for f in functions))


def answers(system: TransitionSystem, action: Action) -> Changed:
    """The answer is the contrary, always the same, or what some variable holds."""
    answer = action.returns
    if answer is None:
        return
    if answer.sort == BOOL:
        for what, term in (("negated", ~answer), ("always true", TRUE), ("always false", FALSE)):
            yield f"answer, {what}", replace(action, returns=term)
    if isinstance(answer.sort, SetSort):
        for what, term in constants_of(answer.sort):
            yield f"answer, always {what}", replace(action, returns=term)
    if answer.sort == INT:
        for what, term in (("one more", answer + 1), ("one less", answer - 1)):
            yield f"answer, {what}", replace(action, returns=term)
    for v in own(system):
        if v.sort == answer.sort and v.role == "state":
            yield f"answer, {v.name}", replace(action, returns=v)


def values(system: TransitionSystem, action: Action) -> Changed:
    """The new value of a variable is a constant, or one off, or that of another variable."""
    for variable, value in action.effect:
        for what, term in _other_values(variable.sort, value):
            yield f"{variable.name}, {what}", with_line(action, variable, term)
        for other in own(system):
            if other.sort == variable.sort and other.name != variable.name:
                yield f"{variable.name} becomes {other.name}", with_line(action, variable, other)


def _other_values(sort: Sort, value: Term) -> Iterator[tuple[str, Term]]:
    if sort == INT:
        yield "one more", value + 1
        yield "one less", value - 1
        yield "becomes 0", number(0)
    elif sort == BOOL:
        yield "negated", ~value
        yield "becomes true", TRUE
        yield "becomes false", FALSE
    elif isinstance(sort, SetSort):
        for what, term in constants_of(sort):
            yield f"becomes {what}", term


def beginnings(system: TransitionSystem) -> Made:
    """The initial value of a variable is another."""
    for variable, value in system.init:
        if variable.role == "ghost":
            continue
        for what, term in _other_values(variable.sort, value):
            lines = tuple((v, term if v is variable else t) for v, t in system.init)
            yield (
                f"initially, {variable.name}, {what}",
                lambda lines=lines: replace(system, init=lines),  # type: ignore[misc]
            )
