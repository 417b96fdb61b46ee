"""Paths that are said to reach something: they are executed again, and count if they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ..evaluate.interpreter import ActionCall, Interpreter, Step, World
from ..kernel.goals import Goal
from ..kernel.system import TransitionSystem
from ..kernel.terms import BOOL, INT, Sort
from .bounded import Trace

__all__ = ["KnownPath", "few_paths", "reached"]


@dataclass(frozen=True)
class KnownPath:
    """Calls from the initial state of a world, and which goals they reach with which call."""

    world: World
    calls: tuple[ActionCall, ...]
    reaches: Mapping[str, int]
    """By the name of the goal: the number of the call, from 0 on."""


def reached(
    system: TransitionSystem, goals: Iterable[Goal], known: Iterable[KnownPath]
) -> dict[str, Trace]:
    """The goals that the paths do reach, each with its path.

    A path counts only if its world is one of the system's, its calls are calls of the system, and
    the interpreter finds the goal met where the path says.
    """
    missing = {goal.name: goal for goal in goals}
    found: dict[str, Trace] = {}
    for path in known:
        wanted = {name: k for name, k in path.reaches.items() if name in missing}
        if not wanted or not _is_a_world(system, path.world) or not _are_calls(system, path):
            continue
        interpreter = Interpreter(system, path.world)
        steps = tuple(interpreter.run(path.calls))
        for name, k in wanted.items():
            if 0 <= k < len(steps) and _meets(interpreter, missing[name], steps[: k + 1]):
                start = interpreter.initial()
                found[name] = Trace(system.name, "init", path.world, start, steps[: k + 1])
                del missing[name]
    return found


def few_paths(
    system: TransitionSystem, goals: Sequence[Goal], traces: Iterable[Trace]
) -> Iterator[KnownPath]:
    """Few of these paths, which reach every goal that they all reach."""
    missing = {goal.name: goal for goal in goals}
    longest = sorted(traces, key=lambda t: -t.length)
    for trace in longest:
        interpreter = Interpreter(system, trace.world)
        reaches: dict[str, int] = {}
        for k in range(trace.length):
            for name, goal in list(missing.items()):
                if _meets(interpreter, goal, trace.steps[: k + 1]):
                    reaches[name] = k
                    del missing[name]
        if reaches:
            calls = tuple(step.call for step in trace.steps[: max(reaches.values()) + 1])
            yield KnownPath(trace.world, calls, reaches)
    for goal in missing.values():
        yield from islice(_to_a_refused_call(system, goal, longest), 1)


def _to_a_refused_call(
    system: TransitionSystem, goal: Goal, traces: Iterable[Trace]
) -> Iterator[KnownPath]:
    """Paths to a state in which a call is refused: the solver's end there, without the call."""
    if not goal.refused:
        return
    for trace in traces:
        end = trace.steps[-1].after if trace.steps else trace.start
        call = Interpreter(system, trace.world).call_before(goal, end)
        if call is not None and not any(step.refused_by for step in trace.steps):
            calls = (*(step.call for step in trace.steps), call)
            yield KnownPath(trace.world, calls, {goal.name: trace.length})


def _meets(interpreter: Interpreter, goal: Goal, steps: Sequence[Step]) -> bool:
    """Whether the last of these steps is what the goal describes, and all others were made."""
    *before, last = steps
    if any(step.refused_by for step in before):
        return False
    if goal.after is not None and (not before or before[-1].call.action != goal.after):
        return False
    if goal.refused:
        called = last.call.action == goal.action
        return called and interpreter.condition_holds(goal, last.before, last.call)
    return not last.refused_by and interpreter.meets(goal, last)


# --- what is no path of this system ------------------------------------------------------------


def _is_a_world(system: TransitionSystem, world: World) -> bool:
    """Whether all is given that the system asks for, and the axioms hold."""
    given = {c.name for c in system.constants} <= world.constants.keys()
    whole = all(_is_whole(world, f.name, f.domain, f.range) for f in system.functions)
    if not given or not whole or not all(map(_is_number, world.constants.values())):
        return False
    interpreter = Interpreter(system, world)
    return all(interpreter.evaluate(axiom.formula, {}) for axiom in system.axioms)


def _is_whole(world: World, name: str, domain: Sort, values: Sort) -> bool:
    """Whether the function has a value of its sort for every element, and no other."""
    table = world.functions.get(name, {})
    elements = world.universe.get(domain.name, ())
    return set(table) == set(elements) and all(_is_of(world, v, values) for v in table.values())


def _are_calls(system: TransitionSystem, path: KnownPath) -> bool:
    parameters = {a.name: {p.name: p.sort for p in a.parameters} for a in system.actions}
    return all(
        call.action in parameters
        and call.arguments.keys() == parameters[call.action].keys()
        and all(
            _is_of(path.world, value, parameters[call.action][name])
            for name, value in call.arguments.items()
        )
        for call in path.calls
    )


def _is_of(world: World, value: object, sort: Sort) -> bool:
    if sort == INT:
        return _is_number(value)
    if sort == BOOL:
        return isinstance(value, bool)
    return value in world.universe.get(sort.name, ())


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
