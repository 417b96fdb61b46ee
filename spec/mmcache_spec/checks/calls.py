"""Every call that a system takes in one small world, written as functions once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ..evaluate.compiled import CompiledCall, CompiledClaims, CompiledSystem
from ..evaluate.interpreter import ActionCall
from ..kernel.system import Action
from ..kernel.terms import INT, Op, Term, symbols, unnamed

__all__ = ["Prepared", "alike", "every", "prepared_calls"]


@dataclass(frozen=True)
class Prepared:
    """One call with its elements given, for whatever integers."""

    action: str
    elements: Mapping[str, str]
    integers: tuple[str, ...]
    choices: tuple[tuple[int, ...], ...]
    run: CompiledCall
    claims: CompiledClaims | None

    def call(self, values: tuple[int, ...]) -> ActionCall:
        arguments = {**self.elements, **dict(zip(self.integers, values, strict=True))}
        return ActionCall(self.action, arguments)


def prepared_calls(
    compiled: CompiledSystem,
    action: Action,
    integers: Sequence[int],
    original: Sequence[Prepared] = (),
) -> list[Prepared]:
    """Every call of the action in the world, with the clauses that speak of it.

    Where these are the `original` calls of which the same is claimed, the claims are not compiled
    again.
    """
    names = tuple(p.name for p in action.parameters if p.sort == INT)
    others = [p for p in action.parameters if p.sort != INT]
    choices = tuple(product(integers, repeat=len(names)))
    claims = [
        p.formula
        for p in compiled.system.action_properties
        if p.action == action.name and p.clause is not None
    ]
    known = {tuple(p.elements.values()): p.claims for p in original if p.integers == names}
    found = []
    for values in product(*(compiled.world.universe[p.sort.name] for p in others)):
        elements = dict(zip((p.name for p in others), values, strict=True))
        run = compiled.compile(ActionCall(action.name, elements))
        check = known.get(tuple(values))
        if check is None and claims:
            check = compiled.compile_claims(claims, elements, names)
        able = _possible(compiled, action, elements, names, choices)
        found.append(Prepared(action.name, elements, names, able, run, check))
    return found


def _possible(
    compiled: CompiledSystem,
    action: Action,
    elements: Mapping[str, str],
    names: tuple[str, ...],
    choices: tuple[tuple[int, ...], ...],
) -> tuple[tuple[int, ...], ...]:
    """The choices that no guard refuses in every state: what it asks of integers is asked once."""
    timeless = [
        condition
        for guard in action.guard.values()
        for condition in _conditions(guard)
        if all(s.role in ("parameter", "constant", "bound") for s in symbols(condition))
    ]
    if not names or not timeless:
        return choices
    refused = compiled.compile_claims(timeless, elements, names)
    anywhere = compiled.initial()
    return tuple(c for c in choices if refused(anywhere, anywhere, None, *c) < 0)


def _conditions(term: Term) -> Iterator[Term]:
    """The parts of a conjunction."""
    term = unnamed(term)
    if isinstance(term, Op) and term.name == "and":
        for part in term.args:
            yield from _conditions(part)
    else:
        yield term


def every(calls: Sequence[Prepared]) -> Iterator[tuple[Prepared, tuple[int, ...]]]:
    """Each call with each choice of its integers."""
    for prepared in calls:
        for values in prepared.choices:
            yield prepared, values


def alike(mine: Sequence[Prepared], theirs: Sequence[Prepared]) -> bool:
    """Whether the calls are the same functions."""
    return len(mine) == len(theirs) and all(
        a.run is b.run and a.choices == b.choices for a, b in zip(mine, theirs, strict=True)
    )
