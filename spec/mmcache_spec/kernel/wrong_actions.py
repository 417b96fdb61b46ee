"""Wrong designs of which a whole action is wrong: it does less, more, or what another should."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from .changes import Changed, Line, Made, bare, own, with_line
from .rewriting import substituted
from .system import Action, TransitionSystem
from .terms import INT, Symbol, Term, number

__all__ = ["copied", "emptied", "never_again"]


def emptied(system: TransitionSystem, action: Action) -> Changed:
    """Nothing, or only some of the lines, is left of the effect; the record is kept."""
    names = [v.name for v, _ in action.effect]
    if not names:
        return
    yield "does nothing", replace(action, effect=())
    dropped = [set(c) for count in (2, 3) for c in combinations(names, count)]
    dropped += [set(names) - {name} for name in names]
    seen: set[frozenset[str]] = {frozenset(names)}
    for gone in dropped:
        if frozenset(gone) not in seen:
            seen.add(frozenset(gone))
            kept = tuple(line for line in action.effect if line[0].name not in gone)
            few = " and ".join(sorted(gone)) if len(gone) <= 3 else f"all but {_others(kept)}"
            yield f"forgets {few}", replace(action, effect=kept)


def _others(kept: Iterable[Line]) -> str:
    return " and ".join(sorted(v.name for v, _ in kept)) or "nothing"


def never_again(system: TransitionSystem) -> Made:
    """No action ever updates one variable, or two that change together."""
    variables = [v.name for v in own(system)]
    writers = {
        name: frozenset(a.name for a in system.actions if name in a.modifies) for name in variables
    }
    groups: list[tuple[str, ...]] = [(name,) for name in variables if writers[name]]
    groups += [(a, b) for a, b in combinations(variables, 2) if writers[a] & writers[b]]
    for group in groups:

        def make(group: tuple[str, ...] = group) -> TransitionSystem:
            actions = tuple(
                replace(a, effect=tuple(x for x in a.effect if x[0].name not in group))
                if a.modifies & set(group) else a
                for a in system.actions
            )  # fmt: skip
            return replace(system, actions=actions)

        yield f"{' and '.join(group)} never updated", make


def copied(system: TransitionSystem, action: Action) -> Changed:
    """The action does what another should, or does that as well, before or after."""
    for other in map(bare, system.actions):
        if other.name == action.name:
            yield "done twice", _followed_by(action, action)
            continue
        for what, meant in _called_from(system, action, other):
            answer = meant.returns if _answers_alike(action, meant) else action.returns
            whole = replace(action, effect=meant.effect, returns=answer)
            yield f"does what {what} does", whole
            if not _answers_alike(action, meant) or action.returns is not None:
                yield f"has the effect of {what}", replace(action, effect=meant.effect)
            yield f"and then {what}", _followed_by(action, meant)
            for variable, value in meant.effect:
                if variable.name in action.modifies:
                    yield (
                        f"{variable.name} as in {what}",
                        with_line(action, variable, value),
                    )
                else:
                    yield f"also {variable.name} as in {what}", with_line(action, variable, value)


def _answers_alike(action: Action, other: Action) -> bool:
    return (
        action.returns is not None
        and other.returns is not None
        and action.returns.sort == other.returns.sort
    )


def _called_from(
    system: TransitionSystem, action: Action, other: Action
) -> Iterator[tuple[str, Action]]:
    """The other action with arguments that this one has, or can make of its own."""
    arguments: dict[str, Term] = {}
    for p in other.parameters:
        found = _of_sort(system, action, p)
        if found is None:
            return
        arguments[p.name] = found
    answer = None if other.returns is None else substituted(other.returns, arguments, "parameter")
    lines = tuple((v, substituted(t, arguments, "parameter")) for v, t in other.effect)
    if answer is not None:
        lines = tuple((v, substituted(t, {"result": answer}, "result")) for v, t in lines)
    yield other.name, replace(other, effect=lines, returns=answer)


def _of_sort(system: TransitionSystem, action: Action, wanted: Symbol) -> Term | None:
    for p in action.parameters:
        if p.sort == wanted.sort and (p.name == wanted.name or wanted.sort != INT):
            return p
    for p in action.parameters:
        for f in system.functions:
            if f.domain == p.sort and f.range == wanted.sort and wanted.sort != INT:
                return f(p)
    return number(0) if wanted.sort == INT else None


def _followed_by(first: Action, second: Action) -> Action:
    """The effect of both, one after the other; the answer of the first."""
    updates = first.updates
    then = {v.name: (v, substituted(t, updates, "state")) for v, t in second.effect}
    lines = [(v, then.pop(v.name)[1] if v.name in then else t) for v, t in first.effect]
    return replace(first, effect=(*lines, *then.values()))
