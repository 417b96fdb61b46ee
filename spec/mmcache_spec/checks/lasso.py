"""The shortest livelock: a path into a loop that is fair and that nobody leaves finished.

In one finite world the states of a design, without any record, are a finite graph. A lasso is a
path from the initial state (the stem) and a fair way from where it ends back to there (the loop).
The search goes breadth first, in the number of calls; what it finds is executed again by the
interpreter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from ..evaluate.compiled import CompiledSystem, Packed
from ..evaluate.interpreter import ActionCall, Interpreter, State, Step, World
from ..kernel.ranking import Walk
from ..kernel.system import TransitionSystem
from ..kernel.terms import INT, Binder, SetSort, Symbol, Term, replaced
from .bounded import Disagreement

__all__ = ["Lasso", "find_lasso", "shortest_lasso"]

Integers = Mapping[str, Sequence[int]]
"""For an integer parameter, the values that the search tries."""


@dataclass(frozen=True)
class Lasso:
    """A run that goes on for ever: the stem once, then the loop again and again."""

    system: str
    world: World
    start: State
    stem: tuple[Step, ...]
    loop: tuple[Step, ...]

    @property
    def length(self) -> int:
        return len(self.stem) + len(self.loop)

    @property
    def actions(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The actions of the stem, and those of the loop."""
        stem, loop = (tuple(s.call.action for s in part) for part in (self.stem, self.loop))
        return stem, loop


@dataclass(frozen=True)
class _Way:
    """A way through a loop so far, and what of fairness it has done."""

    state: Packed
    calls: tuple[ActionCall, ...] = ()
    owed: frozenset[str] = frozenset()
    """Who was owed the call in every state so far."""
    asked: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()
    unfair: bool = False

    @property
    def done(self) -> tuple[object, ...]:
        return self.state, self.owed, self.asked, self.served, self.unfair


def shortest_lasso(
    system: TransitionSystem,
    walk: Walk,
    world: World,
    integers: Integers | None = None,
    bound: int = 8,
) -> Lasso | None:
    """The shortest lasso in one world; None up to `bound` calls.

    Args:
        system: The design, with the record.
        walk: What makes a loop fair.
        world: Sizes, requests and everything else that does not change.
        integers: The values to try for integer parameters; by default those that the walk names,
            and for the others all from 0 to the greatest number of the world.
        bound: In calls, stem and loop together.

    Raises:
        Disagreement: The interpreter does not run into the same state again.
    """
    graph = _Graph(system, walk, world, integers or _integers(system, walk, world))
    best: tuple[tuple[ActionCall, ...], tuple[ActionCall, ...]] | None = None
    longest = bound
    for stem, state in graph.reached(bound - 1):
        if len(stem) >= longest:
            break
        loop = graph.fair_loop(state, longest - len(stem))
        if loop is not None:
            best, longest = (stem, loop), len(stem) + len(loop) - 1
    return None if best is None else _executed(system, world, *best)


def find_lasso(system: TransitionSystem, walk: Walk, world: World, bound: int = 5) -> Lasso | None:
    """A shortest lasso in this world, or in one like it with other items in the requests.

    The second for want of a first: a world in which a claim breaks soonest may be one where every
    request carries the same picture, and then nobody stands in the way of anybody.
    """
    found = (shortest_lasso(system, walk, w, bound=bound) for w in _with_other_items(world))
    return next((lasso for lasso in found if lasso is not None), None)


def _with_other_items(world: World) -> Iterator[World]:
    """This world first, and then all others that differ from it in the hashes of the inputs."""
    yield world
    inputs, hashes = world.universe["Input"], world.universe["Hash"]
    for chosen in product(hashes, repeat=len(inputs)):
        hash_of = dict(zip(inputs, chosen, strict=True))
        if hash_of != world.functions["hash_of"]:
            yield replace(world, functions={**world.functions, "hash_of": hash_of})


@dataclass(frozen=True)
class _Edge:
    """One call, its answer, and the state after it."""

    call: ActionCall
    answer: object
    after: Packed


class _Graph:
    """The states of a design in one world, as far as they are looked at."""

    def __init__(
        self, system: TransitionSystem, walk: Walk, world: World, integers: Integers
    ) -> None:
        self.walk = walk
        self.design = _without_record(system)
        self.interpreter = Interpreter(self.design, world)
        self.compiled = CompiledSystem(self.design, world)
        self._calls = [
            (self.compiled.compile(calls[0]), calls, [tuple(_numbers(c)) for c in calls])
            for calls in self._alike(integers)
        ]
        self._edges: dict[Packed, list[_Edge]] = {}
        self._owed: dict[Packed, frozenset[str]] = {}

    def _alike(self, integers: Integers) -> Iterator[list[ActionCall]]:
        """Calls that differ in integers only."""
        for action in self.design.actions:
            alike: dict[tuple[object, ...], list[ActionCall]] = {}
            for call in self.interpreter.calls_with(action, integers):
                elements = tuple(v for v in call.arguments.values() if not isinstance(v, int))
                alike.setdefault(elements, []).append(call)
            yield from alike.values()

    @cached_property
    def _owed_set(self) -> Term:
        x = Symbol(self.walk.who.sort, "x", "bound")
        body = replaced(self.walk.owed, lambda s: x if s is self.walk.who else None)
        return Binder(SetSort.of(x.sort), "setof", (x,), body)

    def owed(self, state: Packed) -> frozenset[str]:
        """Who is owed the call in this state."""
        if state not in self._owed:
            members = self.interpreter.evaluate(self._owed_set, self.compiled.unpack(state))
            self._owed[state] = frozenset(x for (x,) in members)
        return self._owed[state]

    def edges(self, state: Packed) -> list[_Edge]:
        """Every call that may be made in this state."""
        if state not in self._edges:
            self._edges[state] = [
                _Edge(call, *done)
                for perform, calls, numbers in self._calls
                for call, given in zip(calls, numbers, strict=True)
                if (done := perform(state, *given)) is not None
            ]
        return self._edges[state]

    def reached(self, depth: int) -> Iterator[tuple[tuple[ActionCall, ...], Packed]]:
        """Each state once, with a shortest way to it, nearest first."""
        start = self.compiled.initial()
        ways: deque[tuple[tuple[ActionCall, ...], Packed]] = deque([((), start)])
        seen = {start}
        while ways:
            calls, state = ways.popleft()
            yield calls, state
            if len(calls) == depth:
                continue
            for edge in self.edges(state):
                if edge.after not in seen:
                    seen.add(edge.after)
                    ways.append(((*calls, edge.call), edge.after))

    def fair_loop(self, start: Packed, longest: int) -> tuple[ActionCall, ...] | None:
        """A shortest fair way from a state back to it."""
        first = _Way(start, owed=self.owed(start))
        ways, seen = deque([first]), {first.done}
        while ways:
            way = ways.popleft()
            if len(way.calls) == longest or not way.owed:
                continue
            for edge in self.edges(way.state):
                further = self._after(way, edge)
                if further.state == start and self._is_fair(further):
                    return further.calls
                if further.done not in seen:
                    seen.add(further.done)
                    ways.append(further)
        return None

    def _after(self, way: _Way, edge: _Edge) -> _Way:
        action = edge.call.action
        asked = served = frozenset[str]()
        if action == self.walk.action:
            who = frozenset({edge.call.arguments[self.walk.who.name]})
            asked = who if self._is_whole(edge.call) else asked
            served = who if isinstance(edge.answer, int) and edge.answer > 0 else served
        return _Way(
            edge.after,
            (*way.calls, edge.call),
            way.owed & self.owed(edge.after),
            way.asked | asked,
            way.served | served,
            way.unfair or action in self.walk.unfair,
        )

    def _is_whole(self, call: ActionCall) -> bool:
        return bool(self.interpreter.value(self.walk.whole, Step(call, (), None, {}, {})))

    def _is_fair(self, way: _Way) -> bool:
        place = self.interpreter.world.functions[self.walk.place.name]
        first = min(way.owed, key=place.__getitem__, default=None)
        if first is None or (way.unfair and first not in way.served):
            return False
        return all(x in way.asked or any(place[y] < place[x] for y in way.served) for x in way.owed)


def _numbers(call: ActionCall) -> list[int]:
    return [v for v in call.arguments.values() if isinstance(v, int)]


def _integers(system: TransitionSystem, walk: Walk, world: World) -> Integers:
    numbers = [v for f in world.functions.values() for v in f.values() if isinstance(v, int)]
    anything = range(max([*numbers, *world.constants.values()]) + 1)
    known = Interpreter(_without_record(system), world)
    named = {
        name: tuple(dict.fromkeys(int(known.evaluate(t, {})) for t in terms))
        for name, terms in walk.values.items()
    }
    parameters = (p for a in system.actions for p in a.parameters if p.sort == INT)
    return {p.name: named.get(p.name, anything) for p in parameters}


def _without_record(system: TransitionSystem) -> TransitionSystem:
    """The design alone: what it does next does not rest on any record."""
    actions = tuple(
        replace(a, effect=tuple(line for line in a.effect if line[0].role != "ghost"), premises={})
        for a in system.actions
    )
    return replace(
        system,
        variables=tuple(v for v in system.variables if v.role != "ghost"),
        init=tuple(line for line in system.init if line[0].role != "ghost"),
        actions=actions,
        invariants=(),
        action_properties=(),
        monitors=(),
    )


def _executed(
    system: TransitionSystem, world: World, stem: Sequence[ActionCall], loop: Sequence[ActionCall]
) -> Lasso:
    """The same lasso, run by the interpreter with the record, once around the loop."""
    interpreter = Interpreter(system, world)
    steps = tuple(interpreter.run([*stem, *loop]))
    start = interpreter.initial()
    knot = steps[len(stem) - 1].after if stem else start
    own = [v.name for v in system.variables if v.role != "ghost"]
    if any(step.refused_by for step in steps):
        raise Disagreement("the interpreter refuses a call of the lasso")
    if any(knot[name] != steps[-1].after[name] for name in own):
        raise Disagreement("the loop does not come back to where it began")
    return Lasso(system.name, world, start, steps[: len(stem)], steps[len(stem) :])
