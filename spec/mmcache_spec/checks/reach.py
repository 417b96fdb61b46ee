"""Whether goals are reached: a few small worlds are searched, breadth first, without a solver.

All goals of a system are looked for at once. What the search finds is executed again by the
interpreter, which must agree that the goal is met.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..evaluate.compiled import CompiledClaims, CompiledSystem, Packed
from ..evaluate.interpreter import ActionCall, Interpreter, World
from ..kernel.goals import ANY, Goal
from ..kernel.system import Scope, TransitionSystem
from .bounded import Disagreement, Trace
from .calls import Prepared, prepared_calls
from .known_paths import KnownPath, reached
from .small_worlds import Ranges, small_worlds, variety
from .times import times_of

__all__ = ["Place", "reach"]

MOST_STATES = 1_500
MOST_WORLDS = 200
WALKS, STEPS = 60, 40
"""Where the breadth of the search ends, some walks go on: seeded, so always the same ones."""

INTEGERS = (0, 1, 2, -1)
"""What is tried for each integer argument."""


@dataclass(frozen=True)
class Place:
    """Where to look: a scope, and the integers to try for its constants and functions."""

    scope: Scope
    ranges: Ranges = field(default_factory=Ranges)


def reach(
    system: TransitionSystem,
    goals: Sequence[Goal],
    places: Sequence[Place],
    known: Sequence[KnownPath] = (),
) -> dict[str, Trace | None]:
    """For each goal, by name, a path that reaches it; None where none was found.

    None says no more than that: not among the states that were seen in a few small worlds. The
    known paths are tried first, and what they do not reach is looked for.
    """
    found: dict[str, Trace | None] = {goal.name: None for goal in goals}
    found.update(reached(system, goals, known))
    if None not in found.values():
        return found
    for world in _worlds(system, places):
        missing = [goal for goal in goals if found[goal.name] is None]
        if not missing:
            break
        for goal, calls in _Hunt(system, world, missing).run():
            found[goal.name] = _confirmed(system, world, goal, calls)
    return found


def _worlds(system: TransitionSystem, places: Sequence[Place]) -> Iterator[World]:
    """Three worlds of every place in turn.

    In two of them many elements differ, one being tight and one wide; in the third, few do.
    """
    for place in places:
        few = list(islice(small_worlds(system, place.scope, place.ranges), MOST_WORLDS))
        by_variety = sorted(few, key=variety)
        alike = [world for world in few if variety(world) == variety(by_variety[0])]
        varied = [world for world in few if variety(world) == variety(by_variety[-1])]
        chosen = (*varied[:1], *varied[-1:], *alike[-1:])
        yield from {id(world): world for world in chosen}.values()


@dataclass
class _Pending:
    """A goal that is still looked for, as a function that says no (0) where it is met."""

    goal: Goal
    test: CompiledClaims


class _Hunt:
    """One world, breadth first, with every goal that is still missing."""

    def __init__(self, system: TransitionSystem, world: World, goals: Sequence[Goal]) -> None:
        self.compiled = CompiledSystem(system, world, with_ghosts=True)
        per_request = max(world.functions.get("inputs_of", {"": 1}).values(), default=1)
        self.normal = times_of(system).near(self.compiled.variables, per_request)
        self.calls = [c for a in system.actions for c in prepared_calls(self.compiled, a, INTEGERS)]
        self.anywhere = [self._pending(g, {}, ()) for g in goals if g.action == ANY]
        self.at = [self._of(c, goals, refused=False) for c in self.calls]
        self.before = [self._of(c, goals, refused=True) for c in self.calls]
        self.missing = {goal.name for goal in goals}
        self.parents: dict[Packed, tuple[Packed, ActionCall] | None] = {}
        self.seen: set[Packed] = set()

    def _pending(self, goal: Goal, elements: object, integers: Sequence[str]) -> _Pending:
        given = elements if isinstance(elements, dict) else {}
        return _Pending(goal, self.compiled.compile_claims([~goal.condition], given, integers))

    def _of(self, call: Prepared, goals: Iterable[Goal], *, refused: bool) -> list[_Pending]:
        mine = (g for g in goals if g.action == call.action and g.refused == refused)
        return [self._pending(g, dict(call.elements), call.integers) for g in mine]

    def run(self) -> Iterator[tuple[Goal, list[ActionCall]]]:
        start = self.normal(self.compiled.initial())
        self.parents[start] = None
        queue = [start]
        for state in queue:
            for k, call in enumerate(self.calls):
                for values in call.choices:
                    after, met = self._look(k, state, values)
                    for pending in met:
                        yield pending.goal, [*self._path(state), call.call(values)]
                    if after is not None and after not in self.parents:
                        self.parents[after] = state, call.call(values)
                        if len(queue) < MOST_STATES:
                            queue.append(after)
            if not self.missing:
                return
        if len(queue) == MOST_STATES:
            yield from self._walk(start)

    def _walk(self, start: Packed) -> Iterator[tuple[Goal, list[ActionCall]]]:
        """Some long paths, chosen by chance."""
        chance = random.Random(0)
        every = [(k, values) for k, call in enumerate(self.calls) for values in call.choices]
        for _ in range(WALKS):
            state, path = start, list[ActionCall]()
            while len(path) < STEPS and self.missing:
                k, values = chance.choice(every)
                after, met = self._look(k, state, values)
                call = self.calls[k].call(values)
                for pending in met:
                    yield pending.goal, [*path, call]
                if after is not None and after != state:
                    state = after
                    path.append(call)
                elif chance.random() < 0.001:
                    break

    def _look(
        self, k: int, state: Packed, values: tuple[int, ...]
    ) -> tuple[Packed | None, list[_Pending]]:
        """The state after the call, None where it is refused; and the goals that are met by it."""
        met = [
            p for p in self.before[k]
            if p.goal.name in self.missing and p.test(state, state, None, *values) == 0
        ]  # fmt: skip
        done = self.calls[k].run(state, *values)
        after = None
        if done is not None:
            result, after = done
            met += [
                p for p in self.at[k]
                if p.goal.name in self.missing and p.test(state, after, result, *values) == 0
            ]  # fmt: skip
            after = self.normal(after)
            if after not in self.seen:
                self.seen.add(after)
                met += [
                    p for p in self.anywhere
                    if p.goal.name in self.missing and p.test(after, after, None) == 0
                ]  # fmt: skip
        self.missing -= {p.goal.name for p in met}
        return after, met

    def _path(self, state: Packed) -> list[ActionCall]:
        path: list[ActionCall] = []
        while (step := self.parents[state]) is not None:
            state, call = step
            path.append(call)
        return path[::-1]


def _confirmed(
    system: TransitionSystem, world: World, goal: Goal, calls: Sequence[ActionCall]
) -> Trace | None:
    """The path as the interpreter runs it; None where, with the times as they are, it misses."""
    interpreter = Interpreter(system, world)
    steps = tuple(interpreter.run(calls))
    made = steps[:-1] if goal.refused else steps
    if any(step.refused_by for step in made):
        raise Disagreement(f"{goal.name}: the interpreter refuses {[c.action for c in calls]}")
    last = steps[-1]
    met = (
        interpreter.condition_holds(goal, last.before, last.call)
        if goal.refused
        else interpreter.meets(goal, last)
    )
    if not met:
        if times_of(system).names:
            return None
        raise Disagreement(f"the interpreter does not reach: {goal.name}")
    return Trace(system.name, "init", world, interpreter.initial(), steps)
