"""Wrong designs that are wrong in several places at once, alike or by chance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from .changes import Changed, Line, Made, bare, brief, constants_of, own, with_line, written
from .mutants import mutants_to_make, mutations
from .rewriting import rewritten
from .system import Action, TransitionSystem
from .terms import (
    BOOL,
    FALSE,
    TRUE,
    Binder,
    Op,
    SetSort,
    Symbol,
    Term,
    alpha_form,
    subterms,
    unnamed,
)

__all__ = ["consistent", "double", "everywhere", "together"]


def together(system: TransitionSystem, action: Action) -> Changed:
    """The same mutation of two or of all lines of the effect: a variable and its bookkeeping."""
    by_what: dict[str, list[Line]] = {}
    for variable, value in action.effect:
        for what, term in mutations(value):
            by_what.setdefault(what, []).append((variable, term))
    for what, lines in by_what.items():
        groups = list(combinations(lines, 2)) + ([tuple(lines)] if len(lines) > 2 else [])
        for group in groups:
            changed = action
            for variable, term in group:
                changed = with_line(changed, variable, term)
            names = " and ".join(v.name for v, _ in group)
            yield f"{names}, {what}", changed


def consistent(system: TransitionSystem, action: Action) -> Changed:
    """One thing that the action says in several places is wrong in all of them alike."""
    occurrences: dict[object, list[Term]] = {}
    for _, term, _ in written(action):
        for t in _shared_parts(term):
            occurrences.setdefault(alpha_form(t)[0], []).append(t)
    for form, found in occurrences.items():
        if len(found) < 2:
            continue
        changes = [*mutations(found[0]), *_more(system, action, found[0])]
        for what, term in changes:

            def instead(t: Term, form: object = form, term: Term = term) -> Term | None:
                closed = isinstance(t, Op | Binder) and not alpha_form(t)[1]
                return term if closed and alpha_form(t)[0] == form else None

            changed = action
            for where, old, _ in written(action):
                new = rewritten(old, instead)
                changed = (
                    replace(changed, returns=new)
                    if where == "answer"
                    else with_line(changed, _named(action, where), new)
                )
            yield f"{brief(found[0])} everywhere, {what}", changed


def _more(system: TransitionSystem, action: Action, term: Term) -> Iterator[tuple[str, Term]]:
    if term.sort == BOOL:
        yield "negated", ~term
        yield "always true", TRUE
        yield "never true", FALSE
    if isinstance(term.sort, SetSort):
        yield from constants_of(term.sort)
    if isinstance(term, Op) and term.name == "apply" and term.function is not None:
        for f in system.functions:
            if f is not term.function and (f.domain, f.range) == (
                term.function.domain,
                term.function.range,
            ):
                yield f"{f.name}", f(term.args[0])


def _named(action: Action, name: str) -> Symbol:
    (variable,) = (v for v, _ in action.effect if v.name == name)
    return variable


def _shared_parts(term: Term) -> Iterator[Term]:
    """The closed terms, larger than a symbol, that occur in the term."""
    seen: set[int] = set()
    for t in subterms(term):
        if isinstance(t, Op | Binder) and id(t) not in seen and not alpha_form(t)[1]:
            seen.add(id(t))
            if any(isinstance(x, Symbol) for x in subterms(t)):
                yield t


def everywhere(system: TransitionSystem) -> Made:
    """One variable is read as another of its sort, or as empty, by every action and answer."""
    for v in own(system):
        others: list[tuple[str, Term]] = [
            (o.name, o) for o in own(system) if o.sort == v.sort and o is not v
        ]
        if isinstance(v.sort, SetSort):
            others += constants_of(v.sort)
        for what, term in others:

            def make(v: Symbol = v, term: Term = term) -> TransitionSystem:
                def instead(t: Term) -> Term | None:
                    return term if isinstance(t, Symbol) and t.name == v.name else None

                actions = []
                for a in map(bare, system.actions):
                    lines = tuple((x, rewritten(t, instead)) for x, t in a.effect)
                    answer = None if a.returns is None else rewritten(a.returns, instead)
                    changed = answer is not a.returns or any(
                        unnamed(t) is not unnamed(old[1])
                        for (_, t), old in zip(lines, a.effect, strict=True)
                    )
                    actions.append(replace(a, effect=lines, returns=answer) if changed else a)
                return replace(system, actions=tuple(actions))

            yield f"{v.name} read as {what}", make


def double(system: TransitionSystem) -> Made:
    """Two mutations at two points, anywhere. There are many: they are drawn, not listed."""
    single = list(mutants_to_make(system))
    chance = random.Random(f"pairs of {system.name}")
    pairs = list(combinations(range(len(single)), 2))
    if len(pairs) > MOST_PAIRS:
        drawn: dict[tuple[int, int], None] = {}
        while len(drawn) < MOST_PAIRS:
            one, two = sorted((chance.randrange(len(single)), chance.randrange(len(single))))
            if one != two:
                drawn[one, two] = None
        pairs = sorted(drawn)
    for one, two in pairs:

        def make(one: int = one, two: int = two) -> TransitionSystem:
            return _both(system, single[one][1](), single[two][1]())

        yield f"{single[one][0]}; {single[two][0]}", make


MOST_PAIRS = 4_000


def _both(
    system: TransitionSystem, one: TransitionSystem, two: TransitionSystem
) -> TransitionSystem:
    """The changes of both. Where both change one line, that of the second."""
    actions = []
    for old, a, b in zip(system.actions, one.actions, two.actions, strict=True):
        if a is old or b is old:
            actions.append(b if a is old else a)
            continue
        changed = a
        before, after = old.updates, b.updates
        for variable, _ in old.effect:
            if variable.name not in after:
                kept = tuple(x for x in changed.effect if x[0].name != variable.name)
                changed = replace(changed, effect=kept)
            elif after[variable.name] is not before[variable.name]:
                changed = with_line(changed, variable, after[variable.name])
        if b.returns is not old.returns:
            changed = replace(changed, returns=b.returns)
        actions.append(changed)
    return replace(system, actions=tuple(actions))
