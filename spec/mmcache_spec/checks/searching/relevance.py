"""What of a system matters to a search: which variables, and which of them are ages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from ...evaluate.stepping import FreeVariables, Undetermined
from ...kernel.system import Action, ActionProperty, Property, TransitionSystem
from ...kernel.terms import (
    BOOL,
    INT,
    Binder,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    subterms,
    unnamed,
)
from ..unrolling import Start
from .starts import tied_to

__all__ = ["Attempt", "Plan"]


@dataclass(frozen=True)
class Attempt:
    """A guess at what matters of ages; a search notices if it is wrong."""

    scales: tuple[frozenset[str], ...]
    """Variables that are compared with each other, and of which only the order matters."""
    alive: tuple[str | None, ...]
    """For each scale, the set outside of which not even the order matters."""


@dataclass(frozen=True)
class Plan:
    """The system without what no guard and no wanted property depends on."""

    system: TransitionSystem
    wanted: tuple[Property, ...]
    variables: tuple[Symbol, ...]
    attempts: list[Attempt]
    """The most likely first. What the search finds wrong it strikes off."""
    free: FreeVariables = field(default_factory=dict)
    """A table that all steppers share."""

    def strike(self, wrong: Undetermined) -> None:
        """Drop the first attempt, and those that fail for the same reason."""
        first = self.attempts.pop(0)
        if wrong.scales:
            self.attempts[:] = [
                a
                for a in self.attempts
                if a.scales != first.scales
                or all(a.alive[k] != first.alive[k] for k in wrong.scales)
            ]
        elif first.scales:
            self.attempts[:] = [a for a in self.attempts if not a.scales]

    @classmethod
    def of(cls, system: TransitionSystem, wanted: Sequence[Property], start: Start) -> Plan:
        """What matters to paths from there to a step that breaks one of the wanted properties."""
        names = _cone(system, wanted)
        if start == "pass":
            names = tied_to(system, names)
        variables = tuple(v for v in system.variables if v.name in names)
        scales = _scales(system, _ages(system, variables, wanted))
        tellers = [_alive(system, variables, scale) for scale in scales]
        attempts = [Attempt(scales, alive) for alive in product(*tellers)] if scales else []
        attempts.sort(key=lambda a: sum(map(list.index, tellers, a.alive)))
        return cls(system, tuple(wanted), variables, [*attempts, Attempt((), ())])


def _formulas(system: TransitionSystem, wanted: Iterable[Property]) -> Iterator[Term]:
    for action in system.actions:
        yield from action.guard.values()
    yield from (p.formula for p in wanted)


def _cone(system: TransitionSystem, wanted: Sequence[Property]) -> frozenset[str]:
    """The variables on which a guard or a wanted property depends, now or later."""
    todo = list(_formulas(system, wanted))
    for p in wanted:
        if isinstance(p, ActionProperty):
            todo += _answer(system.action(p.action), p.formula)
    declared = {v.name for v in system.variables}
    names: set[str] = set()
    while todo:
        for symbol in subterms(todo.pop()):
            if not isinstance(symbol, Symbol) or symbol.name not in declared - names:
                continue
            if symbol.role in ("state", "ghost", "next"):
                names.add(symbol.name)
                for action in system.actions:
                    if (term := action.updates.get(symbol.name)) is not None:
                        todo += [term, *_answer(action, term)]
    return frozenset(names)


def _answer(action: Action, term: Term) -> list[Term]:
    """What the action returns, if the term speaks of it."""
    speaks = any(isinstance(s, Symbol) and s.role == "result" for s in subterms(term))
    return [action.returns] if speaks and action.returns is not None else []


def _ages(
    system: TransitionSystem, variables: Sequence[Symbol], wanted: Sequence[Property]
) -> frozenset[str]:
    """The integer variables that are compared with each other only, and added to, only."""
    aged = {v.name for v in variables if _holds_integers(v.sort)}

    def roots(term: Term) -> set[str]:
        """The variables of which the term has its age."""
        term = unnamed(term)
        match term:
            case Symbol(role="state" | "ghost" | "next", name=name):
                return {name} & aged
            case Op(name="get", args=(table, _)):
                return roots(table)
            case Op(name="put", args=(table, _, value)):
                return roots(table) | roots(value)
            case Op(name="add", args=args):
                return set().union(*map(roots, args))
            case Op(name="ite", args=(_, one, two)):
                return roots(one) | roots(two)
            case Binder(name="mapof", body=body):
                return roots(body)
        return set()

    def is_aged(term: Term) -> bool:
        return bool(roots(term))

    def strike(term: Term) -> None:
        aged.difference_update(roots(term))

    def inspect(term: Term) -> None:
        for t in subterms(term):
            match t:
                case Op(name="lt" | "le" | "eq", args=(one, two)):
                    if is_aged(one) != is_aged(two):
                        strike(one)
                        strike(two)
                case Op(name="add", args=(one, two)):
                    if is_aged(one) and is_aged(two):
                        strike(t)
                case Op(name="sub", args=args):
                    for arg in args:
                        strike(arg)
                case Binder(name="largest", value=value) if value is not None:
                    if is_aged(value):
                        strike(value)

    size = -1
    while size != len(aged):
        size = len(aged)
        for term in _formulas(system, wanted):
            inspect(term)
        for action in system.actions:
            if action.returns is not None and is_aged(action.returns):
                strike(action.returns)
            for variable, term in action.effect:
                inspect(term)
                if variable.name not in aged and is_aged(term):
                    strike(term)
    return frozenset(aged) if any(v.name in aged for v in variables) else frozenset()


def _scales(system: TransitionSystem, ages: frozenset[str]) -> tuple[frozenset[str], ...]:
    """The ages, those together that some term mentions together."""
    groups = [{name} for name in sorted(ages)]
    terms = [*(t for a in system.actions for _, t in a.effect)]
    terms += [Op(BOOL, "pair", (v, t)) for a in system.actions for v, t in a.effect]
    for term in terms:
        names = {s.name for s in subterms(term) if isinstance(s, Symbol)}
        touched = [g for g in groups if g & names]
        if touched and _is_time(term, ages):
            groups = [g for g in groups if not g & names] + [set().union(*touched)]
    return tuple(frozenset(g) for g in groups)


def _is_time(term: Term, ages: frozenset[str]) -> bool:
    """An update of an age: a pair of the variable and its next value."""
    return (
        isinstance(term, Op)
        and term.name == "pair"
        and isinstance(term.args[0], Symbol)
        and term.args[0].name in ages
    )


def _holds_integers(sort: Sort) -> bool:
    return sort == INT or (isinstance(sort, MapSort) and sort.value == INT)


def _alive(
    system: TransitionSystem, variables: Sequence[Symbol], ages: frozenset[str]
) -> list[str | None]:
    keys = {v.sort.key for v in variables if v.name in ages and isinstance(v.sort, MapSort)}
    if len(keys) != 1:
        return [None]
    (key,) = keys
    sets = [v.name for v in variables if v.sort == SetSort.of(key)]
    together = dict.fromkeys(sets, 0)
    terms = [t for a in system.actions for _, t in a.effect]
    terms += [p.formula for p in system.properties]
    for term in (t for formula in terms for t in subterms(formula)):
        if isinstance(term, Op) and term.name in ("and", "implies"):
            inside = {s.name for s in subterms(term) if isinstance(s, Symbol)}
            for name in inside & set(sets) if inside & ages else ():
                together[name] += 1
    return [*sorted(sets, key=lambda name: -together[name]), None]
