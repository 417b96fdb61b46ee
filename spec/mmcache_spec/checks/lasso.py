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

from ..evaluate.interpreter import Call, Interpreter, State, Step, World
from ..kernel.goals import Goal
from ..kernel.ranking import Walk
from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import INT, Binder, SetSort, Symbol, Term, replaced, result
from .bounded import Disagreement, witnesses

__all__ = ["Lasso", "find_lasso", "shortest_lasso", "stuck_world"]

Integers = Mapping[str, Sequence[int]]
"""For an integer parameter, the values that the search tries."""

Key = tuple[object, ...]


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

    key: Key
    calls: tuple[Call, ...] = ()
    owed: frozenset[str] = frozenset()
    """Who was owed the call in every state so far."""
    asked: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()
    unfair: bool = False

    @property
    def done(self) -> tuple[object, ...]:
        return self.key, self.owed, self.asked, self.served, self.unfair


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
    best: tuple[tuple[Call, ...], tuple[Call, ...]] | None = None
    longest = bound
    for stem, key in graph.reached(bound - 1):
        if len(stem) >= longest:
            break
        loop = graph.fair_loop(key, longest - len(stem))
        if loop is not None:
            best, longest = (stem, loop), len(stem) + len(loop) - 1
    return None if best is None else _executed(system, world, *best)


def find_lasso(
    system: TransitionSystem,
    walk: Walk,
    scopes: Sequence[Scope],
    world: World | None = None,
    bound: int = 5,
) -> Lasso | None:
    """A shortest lasso, in this world, or where there is none, in one where somebody gets nothing.

    The second is a least world of the scopes in which that happens soonest.
    """
    found = None if world is None else shortest_lasso(system, walk, world, bound=bound)
    if found is None:
        other = stuck_world(system, walk, scopes, bound - 1)
        found = None if other is None else shortest_lasso(system, walk, other, bound=bound)
    return found


def stuck_world(
    system: TransitionSystem, walk: Walk, scopes: Sequence[Scope], bound: int
) -> World | None:
    """A least world in which somebody who alone is owed a call is asked, and given nothing."""
    goal = Goal("a pass without a token", walk.action, walk.alone & ~(result(INT) > 0))
    for scope in scopes:
        found = witnesses(system, scope, [goal], bound)[goal.name]
        if found is not None:
            return found.world
    return None


class _Graph:
    """The states of a design in one world, as far as they are looked at."""

    def __init__(
        self, system: TransitionSystem, walk: Walk, world: World, integers: Integers
    ) -> None:
        self.system = _without_record(system)
        self.walk = walk
        self.interpreter = Interpreter(self.system, world)
        self.integers = integers
        self.states: dict[Key, State] = {}
        self._next: dict[Key, list[Step]] = {}
        self._owed: dict[Key, frozenset[str]] = {}

    @cached_property
    def _owed_set(self) -> Term:
        x = Symbol(self.walk.who.sort, "x", "bound")
        body = replaced(self.walk.owed, lambda s: x if s is self.walk.who else None)
        return Binder(SetSort.of(x.sort), "setof", (x,), body)

    def key(self, state: State) -> Key:
        key = tuple(_frozen(state[v.name]) for v in self.system.variables)
        self.states.setdefault(key, state)
        return key

    def owed(self, key: Key) -> frozenset[str]:
        if key not in self._owed:
            members = self.interpreter.evaluate(self._owed_set, self.states[key])
            self._owed[key] = frozenset(x for (x,) in members)
        return self._owed[key]

    def steps(self, key: Key) -> list[Step]:
        """Every call that may be made in this state."""
        if key not in self._next:
            tried = (self.interpreter.call(self.states[key], c) for c in self._calls())
            self._next[key] = [step for step in tried if not step.refused_by]
        return self._next[key]

    def _calls(self) -> Iterator[Call]:
        for action in self.system.actions:
            yield from self.interpreter.calls_with(action, self.integers)

    def reached(self, depth: int) -> Iterator[tuple[tuple[Call, ...], Key]]:
        """Each state once, with a shortest way to it, nearest first."""
        start = self.key(self.interpreter.initial())
        ways: deque[tuple[tuple[Call, ...], Key]] = deque([((), start)])
        seen = {start}
        while ways:
            calls, key = ways.popleft()
            yield calls, key
            if len(calls) == depth:
                continue
            for step in self.steps(key):
                after = self.key(step.after)
                if after not in seen:
                    seen.add(after)
                    ways.append(((*calls, step.call), after))

    def fair_loop(self, start: Key, longest: int) -> tuple[Call, ...] | None:
        """A shortest fair way from a state back to it."""
        first = _Way(start, owed=self.owed(start))
        ways, seen = deque([first]), {first.done}
        while ways:
            way = ways.popleft()
            if len(way.calls) == longest or not way.owed:
                continue
            for step in self.steps(way.key):
                further = self._after(way, step)
                if further.key == start and self._is_fair(further):
                    return further.calls
                if further.done not in seen:
                    seen.add(further.done)
                    ways.append(further)
        return None

    def _after(self, way: _Way, step: Step) -> _Way:
        key, action = self.key(step.after), step.call.action
        asked = served = frozenset[str]()
        if action == self.walk.action:
            who = frozenset({step.call.arguments[self.walk.who.name]})
            asked = who if self._is_whole(step) else asked
            served = who if step.result > 0 else served
        return replace(
            way,
            key=key,
            calls=(*way.calls, step.call),
            owed=way.owed & self.owed(key),
            asked=way.asked | asked,
            served=way.served | served,
            unfair=way.unfair or action in self.walk.unfair,
        )

    def _is_whole(self, step: Step) -> bool:
        return bool(self.interpreter.evaluate_at(self.walk.whole, step))

    def _is_fair(self, way: _Way) -> bool:
        place = self.interpreter.world.functions[self.walk.place.name]
        first = min(way.owed, key=place.__getitem__, default=None)
        if first is None or (way.unfair and first not in way.served):
            return False
        return all(x in way.asked or any(place[y] < place[x] for y in way.served) for x in way.owed)


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


def _frozen(value: object) -> object:
    return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


def _without_record(system: TransitionSystem) -> TransitionSystem:
    """The design alone: what it does next does not rest on any record."""
    actions = tuple(
        replace(a, effect=tuple(line for line in a.effect if line[0].role != "ghost"))
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
    system: TransitionSystem, world: World, stem: Sequence[Call], loop: Sequence[Call]
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
