"""Mutants: the same system with one small thing wrong.

Every comparison of every action, every sum, every line of every effect, every set operation, each
branch of each choice. A test suite is worth what it notices of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from .rewriting import points
from .system import Action, TransitionSystem
from .terms import Literal, Op, Term

__all__ = ["Mutant", "mutants", "mutants_to_make", "mutations"]


@dataclass(frozen=True)
class Mutant:
    """A system that differs from another in one place; the name says where, and how."""

    name: str
    system: TransitionSystem


def mutants(system: TransitionSystem) -> Iterator[Mutant]:
    """Every mutant of the answers and effects, with a name that says where and what.

    Guards are left alone: they are the caller's duties, and no call of a test breaks them. Ghost
    variables are left alone too: no implementation has them.
    """
    for name, make in mutants_to_make(system):
        yield Mutant(name, make())


def mutants_to_make(
    system: TransitionSystem,
) -> Iterator[tuple[str, Callable[[], TransitionSystem]]]:
    """The names of the mutants, each with the function that makes it."""
    for action in system.actions:
        for where, change in _changes(action):

            def make(
                action: Action = action, change: Callable[[], Action] = change
            ) -> TransitionSystem:
                changed = tuple(change() if a is action else a for a in system.actions)
                return replace(system, actions=changed)

            yield f"{action.name}: {where}", make


def _changes(action: Action) -> Iterator[tuple[str, Callable[[], Action]]]:
    if action.returns is not None:
        for what, term in mutations(action.returns):
            yield f"answer, {what}", partial(replace, action, returns=term)
    for k, (variable, value) in enumerate(action.effect):
        if variable.role == "ghost":
            continue
        before, after = action.effect[:k], action.effect[k + 1 :]
        yield f"{variable.name}, forgotten", partial(replace, action, effect=(*before, *after))
        for what, term in mutations(value):
            lines = (*before, (variable, term), *after)
            yield f"{variable.name}, {what}", partial(replace, action, effect=lines)


def mutations(term: Term) -> Iterator[tuple[str, Term]]:
    """Every term that differs in one place, and what differs, counted where it occurs again.

    The inside of a definition that is used several times is one place: see `rewriting.points`.
    """
    seen: dict[str, int] = {}
    for inner, put in points(term):
        for what, mutated in _here(inner):
            seen[what] = seen.get(what, 0) + 1
            yield (what if seen[what] == 1 else f"{what} ({seen[what]})"), put(mutated)


def _here(term: Term) -> Iterator[tuple[str, Term]]:
    match term:
        case Op(name="lt", args=args):
            yield "< is ≤", replace(term, name="le")
            yield "< is >", replace(term, args=args[::-1])
        case Op(name="le", args=args):
            yield "≤ is <", replace(term, name="lt")
            yield "≤ is ≥", replace(term, args=args[::-1])
        case Op(name="add"):
            yield "+ is −", replace(term, name="sub")
        case Op(name="sub"):
            yield "− is +", replace(term, name="add")
        case Op(name="not", args=(inner,)):
            yield "¬ is gone", inner
        case Op(name="and" | "or", args=args) if len(args) > 1:
            for k in range(len(args)):
                yield (
                    f"condition {k + 1} of {len(args)} is gone",
                    replace(term, args=(*args[:k], *args[k + 1 :])),
                )
        case Op(name="ite", args=(condition, then, otherwise)):
            yield "always then", then
            yield "always else", otherwise
            yield "then and else swapped", replace(term, args=(condition, otherwise, then))
        case Op(name="insert" | "remove" | "union" | "minus", args=(members, *_)):
            yield f"{term.name} is gone", members
        case Op(name="put", args=(table, *_)):
            yield "put is gone", table
        case Literal(value=value):
            yield f"{value} is {value + 1}", replace(term, value=value + 1)
