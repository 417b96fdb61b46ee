"""The length of shortest paths, by breadth-first search through all the worlds of a scope.

A world is chosen, and searched with sizes and ages as symbols (`evaluate.stepper`). The search
remembers every question that it asked about sizes and capacity. All worlds that answer these
questions alike are then done with, whatever their numbers; Z3 is asked for one that is not, until
there is none. So what is not found within the scope is not there, for any sizes: `Search.complete`.
Elements that nothing tells apart are interchangeable: of states that differ only in their names,
one is looked at; and of the ways to give hashes to inputs, one of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import Any

import z3

from ..evaluate.finite import Finite, Names
from ..evaluate.interpreter import ActionCall, World
from ..evaluate.stepper import (
    Form,
    Packed,
    Question,
    Signs,
    Stepper,
    Successor,
    Symbols,
    Undetermined,
    coefficients,
    packed,
)
from ..kernel.system import Action, ActionProperty, Property, Scope, TransitionSystem
from ..kernel.terms import (
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
from .starts import PassStarts, tied_to
from .unrolling import Start

__all__ = ["Found", "Progress", "TooMuch", "quickest"]

Renaming = Mapping[str, Mapping[str, str]]
"""For each sort, which element takes whose place."""

Progress = Callable[[str], None]

MOST_STATES = 3_000_000
"""About a minute, and two gigabytes."""

MOST_RENAMINGS = 5_000
MOST_PATTERNS = 5_000


class TooMuch(Exception):
    """The search would need more states than it may have, or cannot be made at all."""


@dataclass(frozen=True)
class Found:
    """A shortest path: in which scope, from which start, by which calls."""

    scope: Scope
    world: World
    calls: tuple[ActionCall, ...]

    @property
    def length(self) -> int:
        return len(self.calls)


@dataclass
class _Budget:
    states: int

    def spend(self) -> None:
        self.states -= 1
        if self.states < 0:
            raise TooMuch("more states than the search may have")


def quickest(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start,
    bound: int,
    wanted: Sequence[Property],
    *,
    states: int = MOST_STATES,
    progress: Progress = lambda text: None,
) -> Found | None:
    """The least of the shortest paths to a step that breaks a property; None up to `bound`.

    None is a fact: no world of these scopes, whatever its numbers, has such a path. Of the shortest
    paths that one is taken that is in the first scope that has any; there, with the least numbers,
    compared in the order in which they are declared; then with the first way to give hashes to
    inputs, the emptiest start, and the first calls, in the order in which actions are declared.

    Raises:
        TooMuch: this would take more states than `states`, or is beyond this search.
    """
    budget = _Budget(states)
    plan = _Plan.of(system, wanted, start)
    best: Found | None = None
    for scope in scopes:
        for pattern in _patterns(system, scope):
            limit = bound if best is None else best.length - 1
            if limit == 0:
                break
            best = _Kind(plan, scope, pattern, start, budget).search(limit, progress) or best
    return None if best is None else _least(plan, best, start, budget, progress)


def _least(plan: _Plan, found: Found, start: Start, budget: _Budget, progress: Progress) -> Found:
    """Of the paths of this length in this scope, the one with the least numbers."""
    progress(f"{found.length} calls; which numbers are the least?")
    best = found
    least: tuple[int, ...] | None = None
    for pattern in _patterns(plan.system, found.scope):
        kind = _Kind(plan, found.scope, pattern, start, budget)
        numbers = kind.least(found.length, least)
        if numbers is not None:
            least = numbers
            best = kind.path(numbers, found.length)
    return best


# --- what of the system matters ----------------------------------------------------------------


@dataclass(frozen=True)
class _Attempt:
    """A guess at what matters of ages; a search notices if it is wrong."""

    scales: tuple[frozenset[str], ...]
    """Variables that are compared with each other, and of which only the order matters."""
    alive: tuple[str | None, ...]
    """For each scale, the set outside of which not even the order matters."""


@dataclass(frozen=True)
class _Plan:
    """The system without what no guard and no wanted property depends on."""

    system: TransitionSystem
    wanted: tuple[Property, ...]
    variables: tuple[Symbol, ...]
    attempts: list[_Attempt]
    """The most likely first. What the search finds wrong it strikes off."""

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
    def of(cls, system: TransitionSystem, wanted: Sequence[Property], start: Start) -> _Plan:
        names = _cone(system, wanted)
        if start == "pass":
            names = tied_to(system, names)
        variables = tuple(v for v in system.variables if v.name in names)
        scales = _scales(system, _ages(system, variables, wanted))
        tellers = [_alive(system, variables, scale) for scale in scales]
        attempts = [_Attempt(scales, alive) for alive in product(*tellers)] if scales else []
        attempts.sort(key=lambda a: sum(map(list.index, tellers, a.alive)))
        return cls(system, tuple(wanted), variables, [*attempts, _Attempt((), ())])


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


# --- the kinds of worlds -----------------------------------------------------------------------


def _renamings(system: TransitionSystem, scope: Scope) -> list[Renaming]:
    """The ways to rename elements that leave everything that the scope fixes as it is."""
    led = {f.domain.name for f in system.functions if f.name in scope.fixed and f.range != INT}
    free = [s for s in scope.universe if s not in led]
    if prod(factorial(len(scope.universe[s])) for s in free) > MOST_RENAMINGS:
        raise TooMuch("a scope with too many elements")
    found: list[Renaming] = []
    for choice in product(*(permutations(scope.universe[s]) for s in free)):
        renaming: dict[str, Mapping[str, str]] = {
            sort: dict(zip(scope.universe[sort], images, strict=True))
            for sort, images in zip(free, choice, strict=True)
        }
        if all(_extend(renaming, sort, system, scope) for sort in scope.universe):
            found.append(renaming)
    return found


def _extend(
    renaming: dict[str, Mapping[str, str]], sort: str, system: TransitionSystem, scope: Scope
) -> bool:
    """Let the elements of a sort follow those that their fixed attributes name."""
    fixed = [f for f in system.functions if f.domain.name == sort and f.name in scope.fixed]

    def signature(x: str, moved: bool) -> tuple[Any, ...]:
        values = []
        for f in fixed:
            y = scope.fixed[f.name].get(x)
            values.append(renaming.get(f.range.name, {}).get(str(y), y) if moved else y)
        return tuple(values)

    elements = scope.universe[sort]
    if sort in renaming:
        return all(signature(renaming[sort][x], False) == signature(x, True) for x in elements)
    images = {}
    for x in elements:
        alike = [y for y in elements if signature(y, False) == signature(x, True)]
        if len(alike) != 1:
            return False
        images[x] = alike[0]
    renaming[sort] = images
    return True


Table = tuple[tuple[str, str], ...]
"""A function from elements to elements, in the order of the universe."""


def _patterns(
    system: TransitionSystem, scope: Scope
) -> Iterator[tuple[dict[str, dict[str, Any]], list[Renaming]]]:
    """The functions between elements, one of each kind, with the renamings that leave it alone."""
    free = [f for f in system.functions if f.range not in (INT, BOOL) and f.name not in scope.fixed]
    renamings = _renamings(system, scope)
    if (
        prod(len(scope.universe[f.range.name]) ** len(scope.universe[f.domain.name]) for f in free)
        > MOST_PATTERNS
    ):
        raise TooMuch("a scope with too many inputs")
    slots = [(f, x) for f in free for x in scope.universe[f.domain.name]]
    seen: set[tuple[str, ...]] = set()
    for values in product(*(scope.universe[f.range.name] for f, _ in slots)):
        if values in seen:
            continue
        table = dict(zip(((f.name, x) for f, x in slots), values, strict=True))
        keeping = []
        for renaming in renamings:
            moved = {
                (f.name, renaming[f.domain.name][x]): renaming[f.range.name][table[f.name, x]]
                for f, x in slots
            }
            image = tuple(moved[f.name, x] for f, x in slots)
            seen.add(image)
            if image == values:
                keeping.append(renaming)
        functions: dict[str, dict[str, Any]] = {f.name: {} for f in free}
        for (name, x), y in table.items():
            functions[name][x] = y
        for f in system.functions:
            if f.name in scope.fixed:
                functions[f.name] = dict(scope.fixed[f.name])
        yield functions, keeping


class _Kind:
    """The worlds of one scope and one pattern: they differ in their numbers only."""

    def __init__(
        self,
        plan: _Plan,
        scope: Scope,
        pattern: tuple[dict[str, dict[str, Any]], list[Renaming]],
        start: Start,
        budget: _Budget,
    ) -> None:
        self.plan, self.scope, self.start, self.budget = plan, scope, start, budget
        self.functions, self.renamings = pattern
        self._attempts = plan.attempts
        self._made: Stepper | None = None
        self._pass_starts: PassStarts | None = None
        system = plan.system
        self.names: list[tuple[str, str | None]] = [(c.name, None) for c in system.constants]
        for f in system.functions:
            if f.range == INT and f.name not in scope.fixed:
                self.names += [(f.name, x) for x in scope.universe[f.domain.name]]
        self._domain = {f.name: f.domain.name for f in system.functions}
        finite = Finite(scope.universe)
        finite.declare(system.constants, system.functions)
        for name, table in self.functions.items():
            for x, y in table.items():
                finite.functions[name][x] = y if isinstance(y, int) else {y: True}
        finite.constraints.clear()
        self._numbers = [
            finite.constants[name] if x is None else finite.functions[name][x]
            for name, x in self.names
        ]
        self.solver = z3.Solver()
        for (name, _), number in zip(self.names, self._numbers, strict=True):
            if name in scope.at_least:
                self.solver.add(number >= scope.at_least[name])
        for axiom in system.axioms:
            self.solver.add(finite(axiom.formula, Names()))

    def search(self, bound: int, progress: Progress) -> Found | None:
        """A shortest path in any of these worlds, unless it is longer than `bound`."""
        best: Found | None = None
        count = 0
        while bound and (numbers := self._another()) is not None:
            count += 1
            progress(f"{self.scope.name}, kind {count}, up to {bound} calls")
            found, asked = self._search_one(numbers, bound)
            if found is not None:
                best, bound = found, found.length - 1
            self._done_with(asked)
        return best

    def _another(self) -> tuple[int, ...] | None:
        """The numbers of a world that nothing is known of, small ones if there are."""
        for most in (1, 2, 3, 4, None):
            small = [] if most is None else [n <= most for n in self._numbers]
            answer = self.solver.check(*small)
            if answer == z3.sat:
                model = self.solver.model()
                return tuple(model.eval(n, True).as_long() for n in self._numbers)
            if answer == z3.unknown:
                raise TooMuch("Z3 does not know whether there are more worlds")
        return None

    def least(self, length: int, below: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The least numbers of a world with a path of this length, if they are below these."""
        if below is not None:
            self.solver.add(self._precede(below))
        best = None
        while (numbers := self._another()) is not None:
            found, asked = self._search_one(numbers, length)
            if found is None:
                self._done_with(asked)
                continue
            self.solver.push()
            self.solver.add(*self._answers(asked, range(1 + len(self.names))))
            best = self._first_numbers()
            self.solver.pop()
            self.solver.add(self._precede(best))
        return best

    def path(self, numbers: tuple[int, ...], length: int) -> Found:
        """The first of the shortest paths in this world."""
        found, _ = self._search_one(numbers, length, ordered=True)
        assert found is not None
        return found

    def _precede(self, numbers: tuple[int, ...]) -> z3.BoolRef:
        """The numbers come before these in the order of the dictionary."""
        earlier: z3.BoolRef = z3.BoolVal(False)
        for mine, theirs in zip(reversed(self._numbers), reversed(numbers), strict=True):
            earlier = z3.Or(mine < theirs, z3.And(mine == theirs, earlier))
        return earlier

    def _first_numbers(self) -> tuple[int, ...]:
        """The first numbers that the solver allows; it allows some, and none below zero."""
        chosen = []
        for number in self._numbers:
            value = 0
            while self.solver.check(number == value) != z3.sat:
                value += 1
            self.solver.add(number == value)
            chosen.append(value)
        return tuple(chosen)

    def _answers(self, asked: Mapping[Question, bool], moved: Sequence[int]) -> list[z3.BoolRef]:
        """The questions have these answers."""
        answers = []
        for question, negative in asked.items():
            parts = [c if s == 0 else c * self._numbers[moved[s] - 1] for s, c in question]
            amount = z3.Sum(parts)
            answers.append(amount < 0 if negative else amount >= 0)
        return answers

    def _done_with(self, asked: Mapping[Question, bool]) -> None:
        """No world that answers these questions alike, under whatever names, again."""
        places = {name: k for k, name in enumerate(self.names)}
        for renaming in self.renamings:
            moved = [0, *(1 + places[self._moved(n, renaming)] for n in self.names)]
            self.solver.add(z3.Not(z3.And(*self._answers(asked, moved))))

    def _moved(self, name: tuple[str, str | None], renaming: Renaming) -> tuple[str, str | None]:
        function, x = name
        return (function, None) if x is None else (function, renaming[self._domain[function]][x])

    def _search_one(
        self, numbers: tuple[int, ...], bound: int, *, ordered: bool = False
    ) -> tuple[Found | None, dict[Question, bool]]:
        given = dict(zip(self.names, numbers, strict=True))
        alike = [
            r for r in self.renamings if all(given[self._moved(n, r)] == given[n] for n in given)
        ]
        while self._attempts:
            stepper = self._stepper()
            stepper.enter(Signs(stepper.symbols, numbers))
            try:
                images = [_Image(stepper, r, self) for r in alike]
                walk = _Walk(stepper, images, self.budget, ordered)
                path = walk.shortest(self._starts(stepper), bound)
            except Undetermined as wrong:
                self.plan.strike(wrong)
                self._made = self._pass_starts = None
                continue
            asked = self._closed(stepper.signs.asked, alike)
            if path is None:
                return None, asked
            return Found(self.scope, self._world(numbers), path), asked
        raise TooMuch("a comparison that depends on more than order and size")

    def _starts(self, stepper: Stepper) -> Iterable[Packed]:
        if self.start == "init":
            return [stepper.initial()]
        if self._pass_starts is None:
            self._pass_starts = PassStarts(stepper, self.plan.system)
        return self._pass_starts.states()

    def _closed(
        self, asked: Mapping[Question, bool], alike: Sequence[Renaming]
    ) -> dict[Question, bool]:
        """With each question that was asked, those that renaming makes of it."""
        places = {name: k for k, name in enumerate(self.names)}
        closed: dict[Question, bool] = {}
        for renaming in alike:
            moved = [0, *(1 + places[self._moved(n, renaming)] for n in self.names)]
            for question, negative in asked.items():
                closed[tuple(sorted((moved[s], c) for s, c in question))] = negative
        return closed

    def _stepper(self) -> Stepper:
        if self._made is not None:
            return self._made
        attempt = self._attempts[0]
        ages = {name: k for k, scale in enumerate(attempt.scales) for name in scale}
        plan, universe = self.plan, self.scope.universe
        scales: list[int] = []
        for v in plan.variables:
            if v.name in ages:
                count = len(universe[v.sort.key.name]) if isinstance(v.sort, MapSort) else 1
                scales += [ages[v.name]] * count
        most = max(
            (sum(p.sort == INT for p in a.parameters) for a in plan.system.actions), default=0
        )
        symbols = Symbols(tuple(self.names), tuple(sorted(scales)), most)
        functions = {name: dict(table) for name, table in self.functions.items()}
        constants = {}
        for name, x in self.names:
            if x is None:
                constants[name] = symbols.number(name, x)
            else:
                functions.setdefault(name, {})[x] = symbols.number(name, x)
        for f in plan.system.functions:
            functions.setdefault(f.name, {})
        world = World(universe, constants, functions)
        self._made = Stepper(
            plan.system, world, plan.variables, ages, attempt.alive, plan.wanted, symbols
        )
        return self._made

    def _world(self, numbers: tuple[int, ...]) -> World:
        functions = {name: dict(table) for name, table in self.functions.items()}
        constants = {}
        for (name, x), number in zip(self.names, numbers, strict=True):
            if x is None:
                constants[name] = number
            else:
                functions.setdefault(name, {})[x] = number
        for f in self.plan.system.functions:
            functions.setdefault(f.name, {})
        return World(self.scope.universe, constants, functions)


# --- states under other names ------------------------------------------------------------------


def _key_of(sort: Sort) -> str:
    """The sort of the keys of a map."""
    assert isinstance(sort, MapSort)
    return sort.key.name


class _Image:
    """A renaming, applied to packed states."""

    def __init__(self, stepper: Stepper, renaming: Renaming, kind: _Kind) -> None:
        self._renaming, self._universe = renaming, kind.scope.universe
        places = {name: k for k, name in enumerate(kind.names)}
        self._moved = [0, *(1 + places[kind._moved(n, renaming)] for n in kind.names)]
        self._forms = _Memo(self._form)
        self._aged = _Memo(self._ages)
        slots = stepper.age_slots
        sorts = {v.name: v.sort for v in stepper.variables}
        self._slots = [
            slots.index((n, None if k is None else renaming[_key_of(sorts[n])][k]))
            for n, k in slots
        ]
        self._symbols = stepper.symbols
        parts = [self._part(v.sort) for v in stepper.variables if v.name not in stepper.ages]
        names = {f"f{k}": f for k, f in enumerate(parts)}
        if stepper.ages:
            names[f"f{len(parts)}"] = self._aged.__getitem__
        listed = "".join(f"f{k}(s[{k}]), " for k in range(len(names)))
        self.of: Callable[[Packed], Packed] = eval(f"lambda s: ({listed})", dict(names))

    def _part(self, sort: Sort) -> Callable[[Any], Any]:
        if isinstance(sort, SetSort):
            return _Memo(self._bits_of(sort)).__getitem__
        if isinstance(sort, MapSort):
            keys = self._universe[sort.key.name]
            order = [keys.index(self._renaming[sort.key.name][k]) for k in keys]
            inner = self._part(sort.value)

            def moved(values: tuple[Any, ...]) -> tuple[Any, ...]:
                made = [None] * len(values)
                for at, value in zip(order, values, strict=True):
                    made[at] = inner(value)
                return tuple(made)

            return _Memo(moved).__getitem__
        if sort == INT:
            return self._forms.__getitem__
        if sort == BOOL:
            return lambda value: value
        return self._renaming[sort.name].__getitem__

    def _bits_of(self, sort: SetSort) -> Callable[[int], int]:
        elements = [self._universe[e.name] for e in sort.elements]
        every = list(product(*elements))
        at = {x: k for k, x in enumerate(every)}
        moved = [
            at[tuple(self._renaming[e.name][y] for e, y in zip(sort.elements, x, strict=True))]
            for x in every
        ]
        return lambda bits: sum(1 << moved[k] for k in range(len(every)) if bits >> k & 1)

    def _form(self, form: Form) -> Form:
        known = len(self._moved)
        return packed((self._moved[s] if s < known else s, c) for s, c in coefficients(form))

    def _ages(self, values: tuple[Form, ...]) -> tuple[Form, ...]:
        made = [0] * len(values)
        for k, value in enumerate(values):
            unknown = value == self._symbols.unknown(k)
            made[self._slots[k]] = self._symbols.unknown(self._slots[k]) if unknown else value
        return tuple(made)


class _Memo(dict[Any, Any]):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._function(key)
        return value


# --- the search --------------------------------------------------------------------------------


class _Walk:
    """States in the order of their distance from the start."""

    def __init__(
        self, stepper: Stepper, images: Sequence[_Image], budget: _Budget, ordered: bool
    ) -> None:
        self._stepper = stepper
        self._steps = self._in_order if ordered else stepper.successors
        self._images = [i.of for i in images]
        self._budget = budget
        self._came: dict[Packed, tuple[Packed, int]] = {}
        self.seen: set[Packed] = set()

    def shortest(self, starts: Iterable[Packed], bound: int) -> tuple[ActionCall, ...] | None:
        stepper, seen, images = self._stepper, self.seen, self._images
        level = []
        for state in starts:
            if state not in seen:
                level.append(state)
                if not stepper.breaks(state):
                    seen.update(image(state) for image in images)
        for _ in range(bound):
            following: list[Packed] = []
            for state in level:
                for number, after, broke in self._steps(state):
                    if broke:
                        return self._path(state, number, after, True)
                    if after in seen:
                        continue
                    if stepper.breaks(after):
                        return self._path(state, number, after, False)
                    self._budget.spend()
                    for image in images:
                        seen.add(image(after))
                    self._came[after] = state, number
                    following.append(after)
            level = following
            if not level:
                break
        return None

    def _in_order(self, state: Packed) -> list[Successor]:
        return sorted(self._stepper.successors(state), key=lambda s: (s[0], s[2]))

    def _path(
        self, last: Packed, number: int, after: Packed, broke: bool
    ) -> tuple[ActionCall, ...]:
        calls = [self._stepper.call(number, last, after, broke)]
        state = last
        while state in self._came:
            before, number = self._came[state]
            calls.append(self._stepper.call(number, before, state, False))
            state = before
        return tuple(reversed(calls))
