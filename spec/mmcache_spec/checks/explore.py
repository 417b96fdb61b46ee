"""Every state that a system reaches in one small world, and what a changed system does there.

The search goes breadth first, over compiled calls. Where a changed system has an action in common
with the original, what the original did is remembered; so a design that differs in one action costs
the calls of that action, and of the states that only it reaches.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any

from ..evaluate.compiled import CompiledCall, CompiledClaims, CompiledSystem, CompiledView, Packed
from ..evaluate.interpreter import ActionCall, Interpreter, World
from ..kernel.system import Action, TransitionSystem
from ..kernel.terms import INT, Op, Term, symbols, unnamed
from .times import Times, times_of

__all__ = [
    "BrokenOriginal",
    "Difference",
    "Explorer",
    "Found",
    "Prepared",
    "Search",
    "along",
    "confirmed",
    "prepared_calls",
]


class BrokenOriginal(Exception):
    """The system that others are compared with breaks a clause of its own."""


@dataclass(frozen=True)
class Found:
    """Calls from the initial state, of which the last breaks the clauses."""

    clauses: tuple[str, ...]
    calls: tuple[ActionCall, ...]
    world: World


@dataclass(frozen=True)
class Difference:
    """Calls after which two systems answer, show or refuse something else."""

    calls: tuple[ActionCall, ...]
    what: str
    world: World


@dataclass(frozen=True)
class Search:
    """How far a search went.

    `complete`: every reachable state was seen. `same`: in none of them does the design do anything
    that the original does not.
    """

    states: int
    complete: bool
    same: bool = False


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


@dataclass
class _Graph:
    """The states of the original in the order in which they were found, and where they lead."""

    states: list[Packed]
    index: dict[Packed, int]
    after: dict[int, tuple[tuple[int, ...], ...]]
    """For each expanded state and each action, where each call leads; -1 where it is refused."""
    distinct: dict[int, tuple[tuple[int, ...], ...]]
    """The same, each state once."""
    parents: list[int]
    """From which state each was found first; -1 of the first."""


@dataclass
class Explorer:
    """One system in one world. `integers` are what is tried for each integer argument."""

    system: TransitionSystem
    world: World
    integers: Sequence[int] = (0, 1, 2)
    most_states: int = 20_000
    most_gap: int = 2
    seed: int | None = None
    """By which walks are drawn; None: breadth first. A design is then only followed from where it
    does something else than the original."""
    steps_of_a_walk: int = 60
    _parts: dict[str, list[Prepared]] = field(default_factory=dict, repr=False)

    # What is compiled.

    @cached_property
    def _compiled(self) -> CompiledSystem:
        return CompiledSystem(self.system, self.world, with_ghosts=True)

    @cached_property
    def _times(self) -> Times:
        return times_of(self.system)

    @cached_property
    def _normal(self) -> Any:
        return self._times.near(self._compiled.variables, self.most_gap)

    @cached_property
    def _view(self) -> CompiledView:
        return self._compiled.compile_view(tuple(self.system.observables.values()))

    @cached_property
    def _state_clauses(self) -> CompiledClaims:
        formulas = [i.formula for i in self.system.invariants if i.clause is not None]
        return self._compiled.compile_claims(formulas, {})

    def _in(self, system: TransitionSystem) -> CompiledSystem:
        """The system in this world, sharing what is already written."""
        if system is self.system:
            return self._compiled
        of = self._compiled
        return CompiledSystem(system, self.world, True, of._written, of.free)

    def _prepared(self, action: Action, compiled: CompiledSystem) -> list[Prepared]:
        """Every call of the action; those of the original are kept, and serve whoever is alike."""
        own = self.system.action(action.name)
        as_before = own is action or _says_the_same(own, action)
        if as_before and action.name in self._parts:
            return self._parts[action.name]
        claimed = self.system.action_properties is compiled.system.action_properties
        known = self._parts.get(action.name, ()) if claimed else ()
        found = prepared_calls(compiled, action, self.integers, known)
        if as_before:
            self._parts[action.name] = found
        return found

    def _all_prepared(self, system: TransitionSystem) -> list[list[Prepared]]:
        compiled = self._in(system)
        return [self._prepared(action, compiled) for action in system.actions]

    # The original.

    @cached_property
    def graph(self) -> _Graph:
        """What the original reaches. It must break no clause."""
        actions = self._all_prepared(self.system)
        start = self._normal(self._compiled.initial())
        graph = _Graph([start], {start: 0}, {}, {}, [-1])
        if self._state_clauses(start, start, None) >= 0:
            raise BrokenOriginal(f"{self.system.name} breaks a clause in its initial state")
        for k in self._order(graph):
            state = graph.states[k]
            row = []
            for calls in actions:
                seen: list[int] = []
                for prepared, values in _every(calls):
                    done = prepared.run(state, *values)
                    if done is None:
                        seen.append(-1)
                        continue
                    result, after = done
                    bad = prepared.claims is not None and (
                        prepared.claims(state, after, result, *values) >= 0
                    )
                    after = self._normal(after)
                    at = graph.index.get(after)
                    if at is None:
                        bad = bad or self._state_clauses(after, after, None) >= 0
                        at = graph.index[after] = len(graph.states)
                        graph.states.append(after)
                        graph.parents.append(k)
                    if bad:
                        raise BrokenOriginal(
                            f"{self.system.name} breaks a clause by {prepared.call(values)}"
                        )
                    seen.append(at)
                row.append(tuple(seen))
            graph.after[k] = tuple(row)
            graph.distinct[k] = tuple(tuple(dict.fromkeys(x for x in r if x >= 0)) for r in row)
        return graph

    def _order(self, graph: _Graph) -> Iterator[int]:
        """Which state is looked at next: breadth first, or on a walk that begins again and again.

        A walk goes on to a state that is new, drawn by the seed; where there is none, or after so
        many steps, it begins again anywhere. It comes far in worlds too large to be seen whole.
        """
        if self.seed is None:
            for k in range(self.most_states):
                if k == len(graph.states):
                    return
                yield k
            return
        chance, at, steps = random.Random(self.seed), 0, 0
        while len(graph.after) < self.most_states:
            yield at
            steps += 1
            new = [n for row in graph.distinct[at] for n in row if n not in graph.after]
            if not new or steps % self.steps_of_a_walk == 0:
                new = [n for n in range(len(graph.states)) if n not in graph.after]
            if not new:
                return
            at = chance.choice(new)

    @property
    def reached(self) -> int:
        """How many states the original reaches, as far as was searched."""
        return len(self.graph.states)

    # Another design.

    def judge(self, design: TransitionSystem) -> Found | Search:
        """Calls by which the design breaks a clause, or how far none was found.

        They are the fewest of those that break it where the design first does anything that the
        original does not, or soon after; if there are none, the fewest of all.
        """
        walk = _Walk(self, design)
        answer = walk.at_once()
        if answer is not None:
            return answer
        if self.seed is not None:
            return Search(len(self.graph.after), complete=False)
        return walk.run()

    def distinguish(self, design: TransitionSystem) -> Difference | Search:
        """The shortest calls after which the design answers, shows or refuses something else.

        Nothing but the answers and the observables of the system is looked at.
        """
        return _Pair(self, design).run()


def _every(calls: Sequence[Prepared]) -> Iterator[tuple[Prepared, tuple[int, ...]]]:
    for prepared in calls:
        for values in prepared.choices:
            yield prepared, values


MOST_FOLLOWED, FAR_ENOUGH = 6, 1_500
"""How many of the states that only the design reaches are followed, and into how many others."""

_Node = int | Packed
"""A state of the original by its number, any other as it is."""


def _says_the_same(one: Action, two: Action) -> bool:
    """Whether nothing but what an observer records of it was written anew."""
    return (
        one.guard is two.guard
        and one.returns is two.returns
        and one.parameters is two.parameters
        and _own(one) == _own(two)
    )


def _own(action: Action) -> list[tuple[str, int]]:
    return [(v.name, id(term)) for v, term in action.effect if v.role != "ghost"]


def _alike(mine: Sequence[Prepared], theirs: Sequence[Prepared]) -> bool:
    """Whether the calls are the same functions."""
    return len(mine) == len(theirs) and all(
        a.run is b.run and a.choices == b.choices for a, b in zip(mine, theirs, strict=True)
    )


class _Walk:
    """The states of a changed system, breadth first, until one breaks a clause."""

    def __init__(self, explorer: Explorer, design: TransitionSystem) -> None:
        self.explorer, self.design = explorer, design
        self.graph = explorer.graph
        self.calls = explorer._all_prepared(design)
        self.original = explorer._all_prepared(explorer.system)
        self.same = [
            _alike(mine, theirs) for mine, theirs in zip(self.calls, self.original, strict=True)
        ]
        self.guarded_alike = [
            mine.guard is theirs.guard
            for mine, theirs in zip(explorer.system.actions, design.actions, strict=True)
        ]
        """Where the guards are the original's, what they refuse need not be tried again."""
        self.pairs = [
            [(a, b, values) for a, b in zip(mine, theirs, strict=True) for values in b.choices]
            for mine, theirs in zip(self.original, self.calls, strict=True)
        ]
        self.parents: dict[_Node, _Node | None] = {}
        self.queue: deque[_Node] = deque()
        self.unconfirmed = 0
        self.differs = False

    def at_once(self) -> Found | Search | None:
        """What the changed calls do in the states of the original, and what comes of it.

        `None`: they do something else there, and nothing was broken by it.
        """
        if self._start() != self.graph.states[0]:
            return None
        changed = [k for k, same in enumerate(self.same) if not same]
        others: list[tuple[int, ActionCall, Packed]] = []
        differs = False
        for node in self.graph.after:
            for k in changed:
                for prepared, values, done in self._otherwise(node, k):
                    differs = True
                    if done is None:
                        continue
                    call = prepared.call(values)
                    if self._breaks(node, prepared, values, done):
                        found = self._by_way_of(node, [call])
                        if found is not None:
                            return found
                    elif len(others) < MOST_FOLLOWED:
                        others.append((node, call, self.explorer._normal(done[1])))
        states = len(self.graph.after)
        if not differs:
            return Search(states, complete=states == len(self.graph.states), same=True)
        return next(filter(None, (self._followed(*other) for other in others)), None)

    def _by_way_of(self, node: int, calls: list[ActionCall]) -> Found | None:
        path = self._known_path(node)
        return None if path is None else self._confirmed([*path, *calls])

    def _followed(self, node: int, call: ActionCall, state: Packed) -> Found | None:
        """What comes of it, breadth first, in so many states of the design."""
        if state in self.graph.index:
            return None
        paths: dict[Packed, tuple[ActionCall, ...]] = {state: (call,)}
        queue = deque([state])
        while queue and len(paths) < FAR_ENOUGH:
            here = queue.popleft()
            for prepared, values in (x for calls in self.calls for x in _every(calls)):
                done = prepared.run(here, *values)
                if done is None:
                    continue
                to = self.explorer._normal(done[1])
                broken = prepared.claims is not None and (
                    prepared.claims(here, done[1], done[0], *values) >= 0
                )
                if not broken and (to in paths or to in self.graph.index):
                    continue
                calls = (*paths[here], prepared.call(values))
                if broken or self.explorer._state_clauses(to, to, None) >= 0:
                    found = self._by_way_of(node, list(calls))
                    if found is not None:
                        return found
                paths[to] = calls
                queue.append(to)
        return None

    def _otherwise(
        self, node: int, k: int
    ) -> Iterator[tuple[Prepared, tuple[int, ...], tuple[Any, Packed] | None]]:
        """The calls of the k-th action that do something else in a state of the original."""
        state = self.graph.states[node]
        pairs = self.pairs[k]
        if self.guarded_alike[k]:
            pairs = [
                pair for pair, to in zip(pairs, self.graph.after[node][k], strict=True) if to >= 0
            ]
        for mine, theirs, values in pairs:
            done = theirs.run(state, *values)
            if done != mine.run(state, *values):
                yield theirs, values, done

    def _breaks(
        self, node: int, call: Prepared, values: tuple[int, ...], done: tuple[Any, Packed]
    ) -> bool:
        result, after = done
        state = self.graph.states[node]
        if call.claims is not None and call.claims(state, after, result, *values) >= 0:
            return True
        to = self.explorer._normal(after)
        return to not in self.graph.index and self.explorer._state_clauses(to, to, None) >= 0

    def _known_path(self, node: int) -> list[ActionCall] | None:
        """The calls of the design over the states by which the original comes there, if any."""
        path: list[int] = []
        while node >= 0:
            path.append(node)
            node = self.graph.parents[node]
        states = [self.graph.states[n] for n in reversed(path)]
        steps = [self._step_or_none(a, b) for a, b in pairwise(states)]
        known = [step for step in steps if step is not None]
        return known if len(known) == len(steps) else None

    def _start(self) -> Packed:
        start: Packed = self.explorer._normal(self.explorer._in(self.design).initial())
        return start

    def run(self) -> Found | Search:
        explorer = self.explorer
        start = self._start()
        node = self._node(start)
        if node != 0:
            self.differs = True
            if isinstance(node, tuple) and explorer._state_clauses(start, start, None) >= 0:
                found = self._confirmed([])
                if found is not None:
                    return found
        elif all(self.same):
            return Search(len(self.graph.states), complete=True, same=True)
        self._visit(node, None)
        expanded = 0
        while self.queue and expanded < explorer.most_states:
            expanded += 1
            found = self._expand(self.queue.popleft())
            if found is not None:
                return found
        complete = not self.queue and not self.unconfirmed
        return Search(expanded, complete, same=not self.differs)

    def _node(self, state: Packed) -> _Node:
        return self.graph.index.get(state, state)

    def _state(self, node: _Node) -> Packed:
        return self.graph.states[node] if isinstance(node, int) else node

    def _expand(self, node: _Node) -> Found | None:
        known = isinstance(node, int) and node in self.graph.after
        state = self._state(node)
        for k, calls in enumerate(self.calls):
            if known and self.same[k]:
                assert isinstance(node, int)
                for known_to in self.graph.distinct[node][k]:
                    self._visit(known_to, node)
                continue
            row = self.graph.after[node][k] if known and isinstance(node, int) else None
            if row is not None and len(row) != sum(len(p.choices) for p in calls):
                row = None
            j = -1
            for p, prepared in enumerate(calls):
                run, claims = prepared.run, prepared.claims
                usual = self.original[k][p].run if row is not None else None
                for values in prepared.choices:
                    j += 1
                    done = run(state, *values)
                    if usual is not None and row is not None and done == usual(state, *values):
                        if done is not None:
                            self._visit(row[j], node)
                        continue
                    if usual is not None:
                        self.differs = True
                    if done is None:
                        continue
                    result, after = done
                    bad = claims is not None and claims(state, after, result, *values) >= 0
                    to: _Node = self._node(self.explorer._normal(after))
                    if not bad and isinstance(to, tuple) and to not in self.parents:
                        bad = self.explorer._state_clauses(to, to, None) >= 0
                    if bad:
                        found = self._confirmed([*self._path(node), prepared.call(values)])
                        if found is not None:
                            return found
                        self.unconfirmed += 1
                    else:
                        self._visit(to, node)
        return None

    def _visit(self, node: _Node, parent: _Node | None) -> None:
        if node not in self.parents:
            self.parents[node] = parent
            self.queue.append(node)

    def _path(self, node: _Node) -> list[ActionCall]:
        """The calls that lead to the state."""
        path: list[ActionCall] = []
        while (parent := self.parents[node]) is not None:
            path.append(self._step(self._state(parent), self._state(node)))
            node = parent
        return path[::-1]

    def _step(self, before: Packed, to: Packed) -> ActionCall:
        step = self._step_or_none(before, to)
        if step is None:
            raise AssertionError("a state that is reached by no call")
        return step

    def _step_or_none(self, before: Packed, to: Packed) -> ActionCall | None:
        for calls in self.calls:
            for prepared, values in _every(calls):
                done = prepared.run(before, *values)
                if done is not None and self.explorer._normal(done[1]) == to:
                    return prepared.call(values)
        return None

    def _confirmed(self, calls: list[ActionCall]) -> Found | None:
        """The same calls, as they are: what the interpreter says that they break."""
        return confirmed(self.design, self.explorer.world, calls)


def confirmed(design: TransitionSystem, world: World, calls: Sequence[ActionCall]) -> Found | None:
    """What the last of the calls breaks, as the interpreter executes them; None for nothing."""
    stated = tuple(i for i in design.invariants if i.clause is not None)
    claims = tuple(p for p in design.action_properties if p.clause is not None)
    interpreter = Interpreter(design.claiming(stated, claims), world)
    if not calls:
        start = interpreter.initial()
        broken = [i.clause for i in stated if not interpreter.holds(i, start)]
    else:
        steps = list(interpreter.run(calls))
        if any(step.refused_by for step in steps):
            return None
        broken = [p.clause for p in interpreter.breaks(steps[-1])]
    names = tuple(dict.fromkeys(c for c in broken if c is not None))
    return Found(names, tuple(calls), world) if names else None


def along(design: TransitionSystem, world: World, calls: Sequence[ActionCall]) -> Found | None:
    """The first of the calls by which the design breaks a clause, with those before it.

    None where none does, or where a guard refuses one of them.
    """
    claims = tuple(p for p in design.action_properties if p.clause is not None)
    stated = tuple(i for i in design.invariants if i.clause is not None)
    interpreter = Interpreter(design.claiming(stated, claims), world)
    for k, step in enumerate(interpreter.run(calls)):
        if step.refused_by:
            return None
        names = dict.fromkeys(p.clause for p in interpreter.breaks(step) if p.clause is not None)
        if names:
            return Found(tuple(names), tuple(calls[: k + 1]), world)
    return None


class _Pair:
    """Two systems asked the same, breadth first over the pairs of their states."""

    def __init__(self, explorer: Explorer, design: TransitionSystem) -> None:
        self.explorer, self.design = explorer, design
        self.mine = explorer._all_prepared(explorer.system)
        self.theirs = explorer._all_prepared(design)
        self.view, self.names = explorer._view, tuple(explorer.system.observables)
        self.parents: dict[tuple[Packed, Packed], Any] = {}

    def run(self) -> Difference | Search:
        explorer, normal, graph = self.explorer, self.explorer._normal, self.explorer.graph
        first = (
            normal(explorer._compiled.initial()),
            normal(explorer._in(self.design).initial()),
        )
        if (what := self._otherwise(*first)) is not None:
            return Difference((), what, explorer.world)
        self.parents[first] = None
        queue = deque([first])
        same = [_alike(ours, others) for ours, others in zip(self.mine, self.theirs, strict=True)]
        expanded = 0
        while queue:
            if expanded >= explorer.most_states:
                return Search(expanded, complete=False)
            expanded += 1
            pair = queue.popleft()
            mine, theirs = pair
            known = graph.index.get(mine) if mine == theirs else None
            row = None if known is None else graph.distinct.get(known)
            for k, (ours, others) in enumerate(zip(self.mine, self.theirs, strict=True)):
                if row is not None and same[k]:
                    for to in row[k]:
                        state = graph.states[to]
                        if (state, state) not in self.parents:
                            self.parents[state, state] = pair
                            queue.append((state, state))
                    continue
                for a, b in zip(ours, others, strict=True):
                    for values in a.choices:
                        one, two = a.run(mine, *values), b.run(theirs, *values)
                        what = self._differs(one, two)
                        if what is not None:
                            calls = (*self._path(pair), a.call(values))
                            return Difference(calls, f"{a.action}: {what}", explorer.world)
                        if one is not None and two is not None:
                            to_pair = normal(one[1]), normal(two[1])
                            if to_pair not in self.parents:
                                self.parents[to_pair] = pair
                                queue.append(to_pair)
        return Search(expanded, complete=True)

    def _differs(self, one: Any, two: Any) -> str | None:
        if one is None or two is None:
            return None if one is two else "one refuses"
        if one[0] != two[0]:
            return f"answers {two[0]}, not {one[0]}"
        return self._otherwise(one[1], two[1])

    def _otherwise(self, one: Packed, two: Packed) -> str | None:
        if one == two:
            return None
        seen = zip(self.names, self.view(one), self.view(two), strict=True)
        return next((f"{name} differs" for name, a, b in seen if a != b), None)

    def _path(self, pair: tuple[Packed, Packed]) -> list[ActionCall]:
        path: list[ActionCall] = []
        while (parent := self.parents[pair]) is not None:
            path.append(self._step(parent, pair))
            pair = parent
        return path[::-1]

    def _step(self, before: tuple[Packed, Packed], to: tuple[Packed, Packed]) -> ActionCall:
        normal = self.explorer._normal
        for ours, others in zip(self.mine, self.theirs, strict=True):
            for a, b in zip(ours, others, strict=True):
                for values in a.choices:
                    one, two = a.run(before[0], *values), b.run(before[1], *values)
                    if one and two and (normal(one[1]), normal(two[1])) == to:
                        return a.call(values)
        raise AssertionError("a pair that is reached by no call")
