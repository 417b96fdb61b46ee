"""Whether goals are reached: a few small worlds are searched, breadth first, without a solver.

All goals of a system are looked for at once. What the search finds is executed again by the
interpreter, which must agree that the goal is met.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..evaluate.compiled import CompiledClaims, CompiledSystem, Packed
from ..evaluate.interpreter import Call, Interpreter, World
from ..kernel.goals import ANY, Goal
from ..kernel.system import Scope, TransitionSystem
from .bounded import Disagreement, Trace
from .explore import Prepared, prepared_calls
from .small_worlds import Ranges, small_worlds, variety
from .times import times_of

__all__ = ["reach"]

MOST_STATES = 1_500
MOST_WORLDS = 200


def reach(
    system: TransitionSystem,
    goals: Sequence[Goal],
    scopes: Sequence[Scope],
    ranges: Ranges,
) -> dict[str, Trace | None]:
    """For each goal, by name, a path that reaches it; None where none was found.

    None says no more than that: not among the states that were seen in a few small worlds.
    """
    found: dict[str, Trace | None] = {goal.name: None for goal in goals}
    for world in _worlds(system, scopes, ranges):
        missing = [goal for goal in goals if found[goal.name] is None]
        if not missing:
            break
        for goal, calls in _Hunt(system, world, missing).run():
            found[goal.name] = _confirmed(system, world, goal, calls)
    return found


def _worlds(
    system: TransitionSystem, scopes: Sequence[Scope], ranges: Ranges
) -> Iterator[World]:
    """Two worlds of every scope in turn, in which many elements differ: a tight one, a wide one."""
    for scope in scopes:
        few = list(islice(small_worlds(system, scope, ranges), MOST_WORLDS))
        most = max(map(variety, few), default=0)
        varied = [world for world in few if variety(world) == most]
        yield from varied[:1]
        yield from varied[1:][-1:]


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
        self.calls = [c for a in system.actions for c in prepared_calls(self.compiled, a, (0, 1, 2))]
        self.anywhere = [self._pending(g, {}, ()) for g in goals if g.action == ANY]
        self.at = [self._of(c, goals, refused=False) for c in self.calls]
        self.before = [self._of(c, goals, refused=True) for c in self.calls]
        self.missing = {goal.name for goal in goals}
        self.parents: dict[Packed, tuple[Packed, Call] | None] = {}

    def _pending(self, goal: Goal, elements: object, integers: Sequence[str]) -> _Pending:
        given = elements if isinstance(elements, dict) else {}
        return _Pending(goal, self.compiled.compile_claims([~goal.condition], given, integers))

    def _of(self, call: Prepared, goals: Iterable[Goal], *, refused: bool) -> list[_Pending]:
        mine = (g for g in goals if g.action == call.action and g.refused == refused)
        return [self._pending(g, dict(call.elements), call.integers) for g in mine]

    def run(self) -> Iterator[tuple[Goal, list[Call]]]:
        start = self.normal(self.compiled.initial())
        self.parents[start] = None
        queue = [start]
        for state in queue:
            for k, call in enumerate(self.calls):
                for values in call.choices:
                    before = [p for p in self.before[k] if p.goal.name in self.missing]
                    for pending in before:
                        if pending.test(state, state, None, *values) == 0:
                            yield self._met(pending, state, call.call(values))
                    done = call.run(state, *values)
                    if done is None:
                        continue
                    result, after = done
                    for pending in self.at[k]:
                        if pending.goal.name in self.missing:
                            if pending.test(state, after, result, *values) == 0:
                                yield self._met(pending, state, call.call(values))
                    after = self.normal(after)
                    if after in self.parents:
                        continue
                    self.parents[after] = state, call.call(values)
                    for pending in self.anywhere:
                        if pending.goal.name in self.missing:
                            if pending.test(after, after, None) == 0:
                                yield self._met(pending, state, call.call(values))
                    if len(queue) < MOST_STATES:
                        queue.append(after)
            if not self.missing:
                return

    def _met(self, pending: _Pending, state: Packed, last: Call) -> tuple[Goal, list[Call]]:
        self.missing.discard(pending.goal.name)
        path = [last]
        while (step := self.parents[state]) is not None:
            state, call = step
            path.append(call)
        return pending.goal, path[::-1]


def _confirmed(
    system: TransitionSystem, world: World, goal: Goal, calls: Sequence[Call]
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


