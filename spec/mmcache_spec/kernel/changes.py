"""What every kind of wrong design is made with: an action changed at one line, and its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .system import Action, TransitionSystem
from .terms import (
    TRUE,
    Binder,
    Function,
    Op,
    SetSort,
    Symbol,
    Term,
    empty,
    unnamed,
)

__all__ = [
    "Changed",
    "Line",
    "Made",
    "bare",
    "brief",
    "by_action",
    "constants_of",
    "own",
    "with_line",
    "written",
]

Line = tuple[Symbol, Term]
Changed = Iterator[tuple[str, Action]]
Made = Iterator[tuple[str, Callable[[], TransitionSystem]]]


def bare(action: Action) -> Action:
    """The action as the design has it, without what an observer notes down of it."""
    return replace(action, effect=tuple(x for x in action.effect if x[0].role != "ghost"))


def own(system: TransitionSystem) -> tuple[Symbol, ...]:
    """The variables of the design, which the record is not."""
    return tuple(v for v in system.variables if v.role != "ghost")


def with_line(action: Action, variable: Symbol, value: Term) -> Action:
    """The action with this value for the variable, in place of the one it has."""
    lines = tuple((v, value if v.name == variable.name else t) for v, t in action.effect)
    if variable.name not in action.modifies:
        lines = (*lines, (variable, value))
    return replace(action, effect=lines)


def by_action(build: Callable[[TransitionSystem, Action], Changed]) -> Callable[..., Made]:
    """Of each action, each of its changes."""

    def made(system: TransitionSystem) -> Made:
        for action in system.actions:
            for what, changed in build(system, bare(action)):
                yield (
                    f"{action.name}: {what}",
                    lambda old=action, new=changed: _with(system, old, new),  # type: ignore[misc]
                )

    return made


def _with(system: TransitionSystem, old: Action, new: Action) -> TransitionSystem:
    return replace(system, actions=tuple(new if a is old else a for a in system.actions))


def written(action: Action) -> Iterator[tuple[str, Term, Callable[[Term], Action]]]:
    """The answer and each line of the effect, with the function that writes another."""
    if action.returns is not None:
        yield "answer", action.returns, lambda new: replace(action, returns=new)
    for variable, value in action.effect:
        yield (
            variable.name,
            value,
            lambda new, variable=variable: with_line(action, variable, new),  # type: ignore[misc]
        )


def constants_of(sort: SetSort) -> Iterator[tuple[str, Term]]:
    yield "empty", empty(*sort.elements)
    yield "everything", _everything(sort)


def _everything(sort: SetSort) -> Term:
    variables = tuple(Symbol(s, f"x{j}", "bound") for j, s in enumerate(sort.elements))
    return Binder(sort, "setof", variables, TRUE)


def brief(term: Term) -> str:
    """A few words for a term, for a name."""
    term = unnamed(term)
    match term:
        case Symbol(name=name):
            return name
        case Binder(name=name):
            return name
        case Op(name="member", args=(members, *_)):
            return f"∈ {brief(members)}"
        case Op(name=name, function=Function(name=function)):
            return f"{name} {function}"
        case Op(name=name, args=args):
            inner = ", ".join(brief(a) for a in args[:2] if not isinstance(unnamed(a), Binder))
            return f"{name}({inner})" if len(inner) <= 40 else name
    return str(getattr(term, "value", "term"))
