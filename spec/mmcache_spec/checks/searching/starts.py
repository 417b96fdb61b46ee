"""Every state in which a pass may begin: one after the other, not by a solver.

The invariants are taken apart into conjuncts. Variables get their values one by one, and a conjunct
is tried as soon as it can be. An integer is not guessed: some conjunct must say what it equals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from ...evaluate.stepping import Form, Packed, Stepper, Undetermined, is_integer
from ...kernel.system import TransitionSystem
from ...kernel.terms import BOOL, Binder, MapSort, Op, SetSort, Symbol, Term, subterms, unnamed

__all__ = ["PassStarts", "conjuncts", "tied_to"]

Values = dict[str, Any]
_Test = tuple[tuple[str, ...], Callable[..., bool]]
_Amount = tuple[tuple[str, ...], Callable[..., Any]]


def conjuncts(system: TransitionSystem) -> list[Term]:
    """What is true when a pass begins, in parts as small as they come."""
    formulas = [system.pass_start, *(i.formula for i in system.invariants)]
    return [part for formula in formulas for part in _parts(formula)]


def _parts(term: Term) -> Iterator[Term]:
    """Formulas that are all true exactly if this one is."""
    term = unnamed(term)
    match term:
        case Op(name="and", args=args):
            for arg in args:
                yield from _parts(arg)
        case Op(name="or", args=args) if args:
            for parts in product(*map(_parts, args)):
                yield Op(BOOL, "or", parts)
        case Op(name="implies", args=(given, then)):
            for part in _parts(then):
                yield Op(BOOL, "implies", (given, part))
        case Binder(name="forall"):
            for part in _parts(term.body):
                yield replace(term, body=part)
        case _:
            yield term


def _names(term: Term) -> set[str]:
    found = (s for s in subterms(term) if isinstance(s, Symbol))
    return {s.name for s in found if s.role in ("state", "ghost")}


def tied_to(system: TransitionSystem, names: Iterable[str]) -> frozenset[str]:
    """These variables, and all that some conjunct ties to them, directly or not."""
    tied = set(names)
    groups = [_names(c) for c in conjuncts(system)]
    size = -1
    while size != len(tied):
        size = len(tied)
        for group in groups:
            if group & tied:
                tied |= group
    return frozenset(tied)


class PassStarts:
    """The states that all conjuncts allow, the emptiest first; each order of ages once."""

    def __init__(self, stepper: Stepper, system: TransitionSystem) -> None:
        self._stepper = stepper
        self._ages = [v for v in stepper.layout.variables if v.name in stepper.layout.ages]
        plain = [v for v in stepper.layout.variables if v.name not in stepper.layout.ages]
        kept = {v.name for v in stepper.layout.variables}
        parts = [c for c in conjuncts(system) if _names(c) <= kept]
        waiting = [stepper.condition(c) for c in parts]
        known: set[str] = set()
        self._plan: list[tuple[Symbol, _Amount | None, list[_Test]]] = []
        for v in _order(stepper, plain, parts):
            given = _given(stepper, v, parts, known)
            known.add(v.name)
            tests = [w for w in waiting if set(w[0]) <= known]
            waiting = [w for w in waiting if not set(w[0]) <= known]
            self._plan.append((v, given, tests))
        self._tests_of_ages = waiting
        self._rankings: dict[tuple[int, ...], list[Values]] = {}
        """The orders of ages, which depend on what tells the living ones only."""

    def states(self) -> Iterator[Packed]:
        stepper, signs = self._stepper, self._stepper.signs
        for values in self._filled():
            if not self._ages:
                yield stepper.pack(values)
                continue
            lives = tuple(stepper.layout.lives_in(values))
            if lives not in self._rankings:
                self._rankings[lives] = list(_rankings(stepper, self._ages, lives))
            for orders in self._rankings[lives]:
                full = {**values, **orders}
                if all(f(signs, *(full[n] for n in names)) for names, f in self._tests_of_ages):
                    yield stepper.pack(full)

    def _filled(self) -> list[Values]:
        """Every choice of all variables but the ages."""
        signs = self._stepper.signs
        partial: list[Values] = [{}]
        for v, given, tests in self._plan:
            grown: list[Values] = []
            for values in partial:
                options: Iterable[Any] = (False, True)
                if given is not None:
                    names, function = given
                    options = [function(signs, *(values[n] for n in names))]
                elif isinstance(v.sort, SetSort):
                    options = range(1 << self._stepper.layout.width(v.sort))
                for option in options:
                    values[v.name] = option
                    if all(f(signs, *[values[n] for n in names]) for names, f in tests):
                        grown.append(dict(values))
                del values[v.name]
            partial = grown
        return partial


def _given(
    stepper: Stepper, variable: Symbol, parts: Sequence[Term], known: set[str]
) -> _Amount | None:
    """How to compute an integer from what is known; None for what is to be tried."""
    if isinstance(variable.sort, SetSort) or variable.sort == BOOL:
        return None
    equal = next((t for t in _equals(variable, parts) if _names(t) <= known), None)
    if equal is None or not is_integer(variable) or isinstance(variable.sort, MapSort):
        raise Undetermined(f"no invariant says what {variable.name} is")
    return stepper.amount(equal)


def _order(stepper: Stepper, plain: Sequence[Symbol], parts: Sequence[Term]) -> list[Symbol]:
    """Small ones first, but above all those that let a conjunct be tried."""
    todo, known = list(plain), set[str]()
    groups = [_names(c) for c in parts]
    order: list[Symbol] = []

    def cost(v: Symbol) -> tuple[float, int]:
        if is_integer(v):
            given = any(_names(t) <= known for t in _equals(v, parts))
            return (-1.0 if given else 1000.0), 0
        width = stepper.layout.width(v.sort) if isinstance(v.sort, SetSort) else 1
        ready = sum(v.name in g and g <= known | {v.name} for g in groups)
        return width - 2.5 * ready, width

    while todo:
        best = min(todo, key=cost)
        todo = [v for v in todo if v is not best]
        known.add(best.name)
        order.append(best)
    return order


def _equals(variable: Symbol, parts: Sequence[Term]) -> Iterator[Term]:
    """What conjuncts say the integer is equal to."""
    for part in parts:
        if isinstance(part, Op) and part.name == "eq":
            for one, two in (part.args, part.args[::-1]):
                one = unnamed(one)
                alone = isinstance(one, Symbol) and one.name == variable.name
                if alone and variable.name not in _names(two):
                    yield two


def _rankings(stepper: Stepper, ages: Sequence[Symbol], lives: Sequence[int]) -> Iterator[Values]:
    """Every order of the ages that count, ties included; each time scale by itself."""
    symbols, slots = stepper.layout.symbols, stepper.layout.age_slots
    unknown: list[Form] = [symbols.unknown(k) for k in range(len(slots))]
    choices = []
    for scale in range(len(lives)):
        counting = [
            k
            for k in range(len(slots))
            if symbols.scales[k] == scale and stepper.layout.is_alive(k, lives)
        ]
        by_rank = [symbols.age(scale, rank) for rank in range(len(counting))]
        choices.append(
            [
                [(k, by_rank[rank]) for k, rank in zip(counting, ranks, strict=True)]
                for ranks in _orders(len(counting))
            ]
        )
    places = {v.name: [k for k, (name, _) in enumerate(slots) if name == v.name] for v in ages}
    for chosen in product(*choices):
        made = list(unknown)
        for scale_order in chosen:
            for k, age in scale_order:
                made[k] = age
        found: Values = {}
        for v in ages:
            mine = tuple(made[k] for k in places[v.name])
            found[v.name] = mine if isinstance(v.sort, MapSort) else mine[0]
        yield found


@cache
def _orders(count: int) -> tuple[tuple[int, ...], ...]:
    """Every ranking of so many, from 0 and without gaps."""
    return tuple(
        ranks
        for ranks in product(range(count), repeat=count)
        if set(ranks) == set(range(max(ranks, default=-1) + 1))
    )
