"""Wrong designs: a system with something wrong on purpose, in many ways.

A mutant differs at one point. What a person gets wrong is seldom that small: a call does nothing,
or does what another call should; a variable and its bookkeeping are wrong in the same way; the
wrong request is meant. Each kind of these is generated here, from the definition alone. The same
system gives the same designs, in the same order, under the same names.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from .mutants import mutants_to_make, mutations
from .rewriting import points, rewritten, substituted
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
    alpha_form,
    any_of,
    empty,
    number,
    subterms,
    unnamed,
)

__all__ = ["KINDS", "WrongDesign", "count", "names", "wrong_designs"]


@dataclass(frozen=True)
class WrongDesign:
    """`name` says what is wrong and where; `kind` is a key of `KINDS`."""

    kind: str
    name: str
    system: TransitionSystem


Line = tuple[Symbol, Term]
Changed = Iterator[tuple[str, Action]]


def count(system: TransitionSystem, kind: str) -> int:
    """How many there are of the kind; some of them may turn out to be the original."""
    return len(_listed(system, kind))


def names(system: TransitionSystem, kind: str) -> Iterator[str]:
    """What the designs of the kind are called."""
    return (name for name, _ in _once(_of_kind(system, kind)))


@lru_cache(maxsize=2)
def _listed(
    system: TransitionSystem, kind: str
) -> list[tuple[str, Callable[[], TransitionSystem]]]:
    """All of the kind; whoever asks for one part after the other has them made once."""
    return list(_once(_of_kind(system, kind)))


def wrong_designs(
    system: TransitionSystem,
    kinds: Iterable[str],
    most: int | None = None,
    seed: int = 0,
    part: slice = slice(None),
) -> Iterator[WrongDesign]:
    """The wrong designs of these kinds; of each kind no more than `most`, drawn by the seed.

    With a `part`, only that part of each kind's list.

    Raises:
        ValueError: a kind that is not in `KINDS`.
    """
    for kind in kinds:
        found = _listed(system, kind)
        if most is not None and len(found) > most:
            chance = random.Random(f"{seed} {system.name} {kind}")
            kept = sorted(chance.sample(range(len(found)), most))
            found = [found[k] for k in kept]
        for name, make in found[part]:
            design = make()
            if not _says_the_same(system, design):
                yield WrongDesign(kind, name, design)


def _of_kind(system: TransitionSystem, kind: str) -> _Made:
    if kind not in KINDS:
        raise ValueError(f"no kind {kind!r} of wrong designs; there are: {', '.join(KINDS)}")
    return KINDS[kind](system)


def _says_the_same(system: TransitionSystem, design: TransitionSystem) -> bool:
    """Whether the change changes nothing: then there is nothing wrong."""
    pairs = [(a[1], b[1]) for a, b in zip(system.init, design.init, strict=True)]
    for one, other in zip(system.actions, design.actions, strict=True):
        if one is other:
            continue
        mine, theirs = _bare(one), _bare(other)
        if mine.modifies != theirs.modifies:
            return False
        after = theirs.updates
        pairs += [(term, after[v.name]) for v, term in mine.effect]
        if mine.returns is not None and theirs.returns is not None:
            pairs.append((mine.returns, theirs.returns))
    return all(a is b or alpha_form(a)[0] == alpha_form(b)[0] for a, b in pairs)


_Made = Iterator[tuple[str, Callable[[], TransitionSystem]]]


def _once(made: _Made) -> _Made:
    """Names are told apart by a number."""
    seen: dict[str, int] = {}
    for name, make in made:
        seen[name] = seen.get(name, 0) + 1
        yield (name if seen[name] == 1 else f"{name} ({seen[name]})"), make


def _with(system: TransitionSystem, old: Action, new: Action) -> TransitionSystem:
    return replace(system, actions=tuple(new if a is old else a for a in system.actions))


def _bare(action: Action) -> Action:
    """The action as the design has it, without what an observer notes down of it."""
    return replace(action, effect=tuple(x for x in action.effect if x[0].role != "ghost"))


def _own(system: TransitionSystem) -> tuple[Symbol, ...]:
    """The variables of the design, which the record is not."""
    return tuple(v for v in system.variables if v.role != "ghost")


def _with_line(action: Action, variable: Symbol, value: Term) -> Action:
    """The action with this value for the variable, in place of the one it has."""
    lines = tuple((v, value if v.name == variable.name else t) for v, t in action.effect)
    if variable.name not in action.modifies:
        lines = (*lines, (variable, value))
    return replace(action, effect=lines)


def _by_action(build: Callable[[TransitionSystem, Action], Changed]) -> Callable[..., _Made]:
    """Of each action, each of its changes."""

    def made(system: TransitionSystem) -> _Made:
        for action in system.actions:
            for what, changed in build(system, _bare(action)):
                yield (
                    f"{action.name}: {what}",
                    lambda old=action, new=changed: _with(system, old, new),  # type: ignore[misc]
                )

    return made


# --- one point -----------------------------------------------------------------------------------


def _single(system: TransitionSystem) -> _Made:
    yield from mutants_to_make(system)


def _written(action: Action) -> Iterator[tuple[str, Term, Callable[[Term], Action]]]:
    """The answer and each line of the effect, with the function that writes another."""
    if action.returns is not None:
        yield "answer", action.returns, lambda new: replace(action, returns=new)
    for variable, value in action.effect:
        yield (
            variable.name,
            value,
            lambda new, variable=variable: _with_line(action, variable, new),  # type: ignore[misc]
        )


def _changed_places(
    action: Action, others: Callable[[Term], Iterable[tuple[str, Term]]]
) -> Changed:
    """Every place of the action, with every other term that may stand there."""
    for where, term, write in _written(action):
        for inner, put in points(term):
            for what, other in others(inner):
                yield f"{where}, {what}", write(put(other))


def _negated(system: TransitionSystem, action: Action) -> Changed:
    """Every condition is its contrary."""

    def contrary(t: Term) -> Iterator[tuple[str, Term]]:
        if t.sort == BOOL and not (isinstance(t, Op) and t.name == "not"):
            yield f"{_brief(t)} negated", ~t

    yield from _changed_places(action, contrary)


def _swapped(system: TransitionSystem, action: Action) -> Changed:
    """Every variable is another of its sort; every parameter and constant likewise."""

    def others(t: Term) -> Iterator[tuple[str, Term]]:
        if not isinstance(t, Symbol):
            return
        candidates: tuple[Symbol, ...] = ()
        if t.role == "state":
            candidates = _own(system)
        elif t.role in ("parameter", "constant"):
            candidates = (*action.parameters, *system.constants)
        for other in candidates:
            if other.sort == t.sort and other.name != t.name:
                yield f"{t.name} is {other.name}", other

    yield from _changed_places(action, others)


def _misdirected(system: TransitionSystem, action: Action) -> Changed:
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


def _answers(system: TransitionSystem, action: Action) -> Changed:
    """The answer is the contrary, always the same, or what some variable holds."""
    answer = action.returns
    if answer is None:
        return
    if answer.sort == BOOL:
        for what, term in (("negated", ~answer), ("always true", TRUE), ("always false", FALSE)):
            yield f"answer, {what}", replace(action, returns=term)
    if isinstance(answer.sort, SetSort):
        for what, term in _constants(answer.sort):
            yield f"answer, always {what}", replace(action, returns=term)
    if answer.sort == INT:
        for what, term in (("one more", answer + 1), ("one less", answer - 1)):
            yield f"answer, {what}", replace(action, returns=term)
    for v in _own(system):
        if v.sort == answer.sort and v.role == "state":
            yield f"answer, {v.name}", replace(action, returns=v)


def _constants(sort: SetSort) -> Iterator[tuple[str, Term]]:
    yield "empty", empty(*sort.elements)
    yield "everything", _everything(sort)


def _everything(sort: SetSort) -> Term:
    variables = tuple(Symbol(s, f"x{j}", "bound") for j, s in enumerate(sort.elements))
    return Binder(sort, "setof", variables, TRUE)


def _values(system: TransitionSystem, action: Action) -> Changed:
    """The new value of a variable is a constant, or one off, or that of another variable."""
    for variable, value in action.effect:
        for what, term in _other_values(variable.sort, value):
            yield f"{variable.name}, {what}", _with_line(action, variable, term)
        for other in _own(system):
            if other.sort == variable.sort and other.name != variable.name:
                yield f"{variable.name} becomes {other.name}", _with_line(action, variable, other)


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
        for what, term in _constants(sort):
            yield f"becomes {what}", term


def _beginnings(system: TransitionSystem) -> _Made:
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


# --- a whole action ------------------------------------------------------------------------------


def _emptied(system: TransitionSystem, action: Action) -> Changed:
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


def _never_again(system: TransitionSystem) -> _Made:
    """No action ever updates one variable, or two that change together."""
    variables = [v.name for v in _own(system)]
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


def _copied(system: TransitionSystem, action: Action) -> Changed:
    """The action does what another should, or does that as well, before or after."""
    for other in map(_bare, system.actions):
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
                        _with_line(action, variable, value),
                    )
                else:
                    yield f"also {variable.name} as in {what}", _with_line(action, variable, value)


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


# --- two at once ---------------------------------------------------------------------------------


def _together(system: TransitionSystem, action: Action) -> Changed:
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
                changed = _with_line(changed, variable, term)
            names = " and ".join(v.name for v, _ in group)
            yield f"{names}, {what}", changed


def _consistent(system: TransitionSystem, action: Action) -> Changed:
    """One thing that the action says in several places is wrong in all of them alike."""
    occurrences: dict[object, list[Term]] = {}
    for _, term, _ in _written(action):
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
            for where, old, _ in _written(action):
                new = rewritten(old, instead)
                changed = (
                    replace(changed, returns=new)
                    if where == "answer"
                    else _with_line(changed, _named(action, where), new)
                )
            yield f"{_brief(found[0])} everywhere, {what}", changed


def _more(system: TransitionSystem, action: Action, term: Term) -> Iterator[tuple[str, Term]]:
    if term.sort == BOOL:
        yield "negated", ~term
        yield "always true", TRUE
        yield "never true", FALSE
    if isinstance(term.sort, SetSort):
        yield from _constants(term.sort)
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


def _everywhere(system: TransitionSystem) -> _Made:
    """One variable is read as another of its sort, or as empty, by every action and answer."""
    for v in _own(system):
        others: list[tuple[str, Term]] = [
            (o.name, o) for o in _own(system) if o.sort == v.sort and o is not v
        ]
        if isinstance(v.sort, SetSort):
            others += _constants(v.sort)
        for what, term in others:

            def make(v: Symbol = v, term: Term = term) -> TransitionSystem:
                def instead(t: Term) -> Term | None:
                    return term if isinstance(t, Symbol) and t.name == v.name else None

                actions = []
                for a in map(_bare, system.actions):
                    lines = tuple((x, rewritten(t, instead)) for x, t in a.effect)
                    answer = None if a.returns is None else rewritten(a.returns, instead)
                    changed = answer is not a.returns or any(
                        unnamed(t) is not unnamed(old[1])
                        for (_, t), old in zip(lines, a.effect, strict=True)
                    )
                    actions.append(replace(a, effect=lines, returns=answer) if changed else a)
                return replace(system, actions=tuple(actions))

            yield f"{v.name} read as {what}", make


def _double(system: TransitionSystem) -> _Made:
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
                changed = _with_line(changed, variable, after[variable.name])
        if b.returns is not old.returns:
            changed = replace(changed, returns=b.returns)
        actions.append(changed)
    return replace(system, actions=tuple(actions))


def _brief(term: Term) -> str:
    """A few words for a term, for a name."""
    term = unnamed(term)
    match term:
        case Symbol(name=name):
            return name
        case Binder(name=name):
            return name
        case Op(name="member", args=(members, *_)):
            return f"∈ {_brief(members)}"
        case Op(name=name, function=Function(name=function)):
            return f"{name} {function}"
        case Op(name=name, args=args):
            inner = ", ".join(_brief(a) for a in args[:2] if not isinstance(unnamed(a), Binder))
            return f"{name}({inner})" if len(inner) <= 40 else name
    return str(getattr(term, "value", "term"))


KINDS: dict[str, Callable[[TransitionSystem], _Made]] = {
    "single": _single,
    "negated": _by_action(_negated),
    "swapped": _by_action(_swapped),
    "misdirected": _by_action(_misdirected),
    "answer": _by_action(_answers),
    "value": _by_action(_values),
    "initial": _beginnings,
    "emptied": _by_action(_emptied),
    "never": _never_again,
    "copied": _by_action(_copied),
    "together": _by_action(_together),
    "consistent": _by_action(_consistent),
    "everywhere": _everywhere,
    "double": _double,
}
"""Each kind, and what makes the wrong designs of it: by name, each with how to build it."""
