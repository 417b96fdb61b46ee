"""The shortest counterexample, made small, and executed again without the solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import z3

from ..evaluate.interpreter import ActionCall, Interpreter, State, Step, World
from ..kernel.goals import Goal
from ..kernel.system import Invariant, Property, Scope, TransitionSystem
from .searching import MOST_STATES, Found, Progress, TooMuch, quickest
from .unrolling import Pin, Start, Unrolling

__all__ = [
    "Counterexample",
    "Disagreement",
    "NoVerdict",
    "Sought",
    "Trace",
    "along",
    "elements",
    "look_for",
    "shortest",
    "unrolled",
    "witnesses",
    "wrong_start",
]


class Disagreement(Exception):
    """The interpreter does not confirm what the solver found: a defect of this tool."""


class NoVerdict(Exception):
    """The solver answered `unknown`; nothing may be concluded."""


@dataclass(frozen=True)
class Trace:
    """A path through a finite world, executed by the interpreter."""

    system: str
    origin: Start
    world: World
    start: State
    steps: tuple[Step, ...]

    @property
    def length(self) -> int:
        return len(self.steps)

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(step.call.action for step in self.steps)


@dataclass(frozen=True)
class Counterexample(Trace):
    """A path of which only the last step breaks something."""

    broken: tuple[Property, ...]

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p.clause for p in self.broken if p.clause is not None))


@dataclass(frozen=True)
class Sought:
    """What was found, and where it was looked for.

    None of these scopes has a shorter path; if nothing was found, none up to the bound.
    """

    found: Counterexample | None
    searched: tuple[Scope, ...]
    """Gone through, breadth first, with all numbers that the scopes allow."""
    unrolled: tuple[Scope, ...]
    """Asked of Z3. Some of their elements may be idle; no scope with fewer is spoken of."""


def shortest(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start = "init",
    bound: int = 8,
    properties: tuple[Property, ...] | None = None,
    progress: Progress = lambda text: None,
) -> Counterexample | None:
    """The shortest path to a step that breaks a clause; None as `Sought` says: see `look_for`."""
    return look_for(system, scopes, start, bound, properties, progress).found


def look_for(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start = "init",
    bound: int = 8,
    properties: tuple[Property, ...] | None = None,
    progress: Progress = lambda text: None,
) -> Sought:
    """The shortest path to a step that breaks a clause, and in which scopes it is the shortest.

    The scopes ascend; of the shortest paths the least is taken, see `breadth_first.quickest`. That
    there is no shorter one is shown by a search through all worlds of all scopes. A pass may begin
    in so many states that to go through them takes long: then only the small scopes are searched,
    and Z3 shows it of the widest.

    What the search finds is kept if the larger scopes are beyond it. If it finds nothing, and says
    `TooMuch` (there are too many states, or the system compares integers that are neither sizes nor
    ages), Z3 unrolls the system instead: in all scopes if they are few, or else in the widest.
    """
    wanted = properties or _clauses(system)
    try:
        return _searched(system, scopes, start, bound, wanted, progress)
    except TooMuch as reason:
        progress(f"{reason}: Z3 unrolls the system instead")
        within = tuple(scopes if len(scopes) <= FEW else scopes[-1:])
        found = unrolled(system, within, start, bound, wanted, progress)
        return Sought(found, (), within)


def _searched(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start,
    bound: int,
    wanted: tuple[Property, ...],
    progress: Progress,
) -> Sought:
    """The path that the search finds first in the small scopes, and then, if shorter, in others."""
    small = [s for s in scopes if elements(s) <= SMALL]
    large = [s for s in scopes if elements(s) > SMALL]
    found = quickest(system, small, start, bound, wanted, progress=progress)
    limit = bound if found is None else found.length - 1
    if large and start == "pass":
        shorter = unrolled(system, large[-1:], start, limit, wanted, progress)
        told = shorter or _told(system, found, start, wanted)
        return Sought(told, tuple(small), tuple(large[-1:]))
    for _, group in groupby(large, elements):
        alike = list(group)
        states = MOST_STATES if found is None else FEWER_STATES
        try:
            better = quickest(system, alike, start, limit, wanted, states=states, progress=progress)
        except TooMuch:
            if found is None:
                raise
            break
        if better is not None:
            found, limit = better, better.length - 1
        small += alike
    return Sought(_told(system, found, start, wanted), tuple(small), ())


def _clauses(system: TransitionSystem) -> tuple[Property, ...]:
    """What a counterexample breaks, if nothing else is asked for."""
    return tuple(p for p in system.properties if p.clause is not None)


FEW = 3
"""So many scopes Z3 unrolls beside each other."""

SMALL = 6
"""Universes of so many elements are searched first: most examples live there."""

FEWER_STATES = 300_000
"""So many states a search may have for universes of one size, if there is a path in smaller ones.
Some ten seconds."""


def elements(scope: Scope) -> int:
    """How many there are, of all sorts together."""
    return sum(map(len, scope.universe.values()))


def _told(
    system: TransitionSystem, found: Found | None, start: Start, wanted: tuple[Property, ...]
) -> Counterexample | None:
    """The path that was found, executed by the interpreter."""
    if found is None:
        return None
    first: State = Interpreter(system, found.world).initial()
    if start == "pass":
        first = _whole_start(system, found, wanted)
    trace = _executed(system, start, found.world, first, list(found.calls))
    return _violating(trace, system, wanted)


def unrolled(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start = "init",
    bound: int = 8,
    properties: tuple[Property, ...] | None = None,
    progress: Progress = lambda text: None,
) -> Counterexample | None:
    """As `shortest`, by symbolic paths of growing length in all scopes, in their order."""
    wanted = properties or _clauses(system)
    breaks = _breaking(wanted)
    searches = [Unrolling(system, scope, start) for scope in scopes]
    for length in range(1, bound + 1):
        for unrolling in searches:
            progress(f"{unrolling.scope.name}: is there a path of {length} calls?")
            unrolling.extend()
            if _some_breaks(unrolling, wanted):
                model, small = _smallest(unrolling, length, breaks, breaks)
                trace = _executed(system, start, *small.read(model))
                return _violating(trace, system, wanted)
    return None


def _whole_start(system: TransitionSystem, found: Found, wanted: tuple[Property, ...]) -> State:
    """The emptiest state in which the pass of a path may begin, with all its variables."""
    unrolling = Unrolling(system, found.scope, "pass")
    for _ in found.calls:
        unrolling.extend()
    path = z3.And(unrolling.follows(found.world, found.calls), unrolling.breaks(wanted))
    if not _decided(unrolling.solver.check(path)):
        raise Disagreement(f"{system.name}: Z3 finds no pass that goes as the search found")
    _, first, _ = unrolling.read(_least(unrolling, path, unrolling.start_choices()))
    return first


def along(
    system: TransitionSystem,
    scopes: Sequence[Scope],
    start: Start,
    actions: Sequence[str],
    properties: tuple[Property, ...] | None = None,
) -> Counterexample | None:
    """A path of just these actions, of which only the last step breaks a clause; None without one.

    Much quicker than `shortest`, of which it says nothing: there may be shorter ones.
    """
    wanted = properties or _clauses(system)
    kept = tuple(a for a in system.actions if a.name in actions)
    claimed = tuple(p for p in system.action_properties if p.action in actions)
    followed = replace(system, actions=kept, action_properties=claimed)
    for scope in scopes:
        unrolling = Unrolling(followed, scope, start)
        for name in actions:
            unrolling.extend()
            if name not in unrolling.moments[-1].fires:
                break
            unrolling.solver.add(unrolling.moments[-1].fires[name])
            bad = unrolling.breaks(wanted)
            if len(unrolling.moments) < len(actions):
                unrolling.solver.add(z3.Not(bad))
            elif _decided(unrolling.solver.check(bad)):
                trace = _executed(system, start, *unrolling.read(unrolling.solver.model()))
                return _violating(trace, system, wanted)
    return None


def wrong_start(system: TransitionSystem, scope: Scope, invariant: Invariant) -> World | None:
    """A world in whose initial state, as the interpreter confirms, the invariant is false."""
    unrolling = Unrolling(system, scope, "init")
    false = unrolling.starts_outside(invariant)
    if not _decided(unrolling.solver.check(false)):
        return None
    world, start, _ = unrolling.read(_least(unrolling, false, unrolling.choices()))
    if Interpreter(system, world).holds(invariant, start):
        raise Disagreement(f"{invariant.name} holds initially, says the interpreter")
    return world


def witnesses(
    system: TransitionSystem,
    scope: Scope,
    goals: Sequence[Goal],
    bound: int = 8,
    *,
    least: bool = True,
    first_only: bool = False,
) -> dict[str, Trace | None]:
    """For each goal, by name, a shortest path that reaches it from the initial state.

    The least of them, or, which is much quicker, any. With `first_only`, stop at the first goal.
    """
    found: dict[str, Trace | None] = {goal.name: None for goal in goals}
    unrolling = Unrolling(system, scope, "init")
    for length in range(1, bound + 1):
        unrolling.extend()
        for goal in goals:
            if found[goal.name] is None:
                reach = _reaching(goal)
                if _decided(unrolling.solver.check(reach(unrolling))):
                    model, small = unrolling.solver.model(), unrolling
                    if least:
                        model, small = _smallest(unrolling, length, reach)
                    trace = _executed(system, "init", *small.read(model))
                    found[goal.name] = _confirmed(trace, system, goal)
                    if first_only:
                        return found
        if all(trace is not None for trace in found.values()):
            break
    return found


def _some_breaks(unrolling: Unrolling, properties: tuple[Property, ...]) -> bool:
    """Whether the last step can break one.

    One question a property, and each answer is a fact for the next. Properties of one action come
    first: they are the easier questions.
    """
    ordered = sorted(
        {p.name: p for p in properties}.values(), key=lambda p: isinstance(p, Invariant)
    )
    for prop in ordered:
        bad = unrolling.breaks([prop])
        if _decided(unrolling.solver.check(bad)):
            return True
        unrolling.solver.add(z3.Not(bad))
    return False


Condition = Callable[[Unrolling], z3.BoolRef]
"""Something about the last step of an unrolling."""


def _breaking(properties: tuple[Property, ...]) -> Condition:
    return lambda unrolling: unrolling.breaks(properties)


def _reaching(goal: Goal) -> Condition:
    return lambda unrolling: unrolling.reaches(goal)


def _smallest(
    unrolling: Unrolling, length: int, condition: Condition, never_before: Condition | None = None
) -> tuple[z3.ModelRef, Unrolling]:
    """The least model, first in the number of elements, and the unrolling that it belongs to.

    Two searches, since the second asks one question for each number and each choice of each step:
    in a scope without idle elements those are few and small. The small scope may say no, where an
    idle element was needed after all (an element is *used* if an action or an item names it; a
    condition may speak of others); then the search goes on in the large one. To drop idle
    elements from the model instead, without asking again, was wrong: the interpreter did not
    come to the violation.
    """
    goal = condition(unrolling)
    needed = unrolling.used_in(_least(unrolling, goal, unrolling.uses()))
    scope = unrolling.scope.restricted_to(needed)
    small = Unrolling(unrolling.system, scope, unrolling.start)
    for step in range(1, length + 1):
        small.extend()
        if never_before is not None and step < length:
            small.solver.add(z3.Not(never_before(small)))
    goal_there = condition(small)
    if _decided(small.solver.check(goal_there)):
        unrolling, goal = small, goal_there
    return _least(unrolling, goal, [*unrolling.uses(), *unrolling.choices()]), unrolling


def _least(unrolling: Unrolling, condition: z3.BoolRef, pins: list[Pin]) -> z3.ModelRef:
    solver = unrolling.solver
    solver.push()
    solver.add(condition)
    _decided(solver.check())
    model = solver.model()
    for pin in pins:
        model = _settle(solver, pin, model)
    solver.pop()
    return model


def _decided(answer: z3.CheckSatResult) -> bool:
    if answer == z3.unknown:
        raise NoVerdict("the solver answered unknown on a finite search")
    return bool(answer == z3.sat)


def _settle(solver: z3.Solver, pin: Pin, model: z3.ModelRef) -> z3.ModelRef:
    """Fix one choice to the first value that some model allows."""
    if pin.smallest is not None:
        (term,) = pin.expressions
        if isinstance(term, int):
            return model
        options = [term == n for n in range(pin.smallest, model.eval(term, True).as_long())]
        kept = term == model.eval(term, True)
    else:
        alternatives = [e for e in pin.expressions if e is not False]
        if any(e is True for e in alternatives):
            return model
        (chosen,) = (k for k, e in enumerate(alternatives) if z3.is_true(model.eval(e, True)))
        options = alternatives[:chosen]
        kept = alternatives[chosen]
    for option in options:
        solver.push()
        solver.add(option)
        if _decided(solver.check()):
            model = solver.model()
            solver.pop()
            solver.add(option)
            return model
        solver.pop()
    solver.add(kept)
    return model


def _executed(
    system: TransitionSystem, start: Start, world: World, first: State, calls: list[ActionCall]
) -> Trace:
    """The same path, run by the interpreter from an admissible state through admissible calls."""
    interpreter = Interpreter(system, world)
    if start == "init" and first != interpreter.initial():
        raise Disagreement(f"{system.name}: the interpreter starts in another state")
    if start == "pass":
        outside = [i.name for i in system.invariants if not interpreter.holds(i, first)]
        if outside or not interpreter.evaluate(system.pass_start, first):
            raise Disagreement(f"{system.name}: the pass starts outside of {outside}")
    steps = tuple(interpreter.run(calls, first))
    for step in steps:
        if step.refused_by:
            raise Disagreement(f"{step.call.action} is refused by {step.refused_by}")
    return Trace(system.name, start, world, first, steps)


def _violating(
    trace: Trace, system: TransitionSystem, wanted: tuple[Property, ...]
) -> Counterexample:
    interpreter = Interpreter(system, trace.world)
    names = {p.name for p in wanted}
    broken: list[Property] = []
    for k, step in enumerate(trace.steps, 1):
        broken = [p for p in interpreter.breaks(step) if p.name in names]
        if bool(broken) != (k == trace.length):
            raise Disagreement(f"step {k} of {trace.length} breaks {[p.name for p in broken]}")
    return Counterexample(
        trace.system, trace.origin, trace.world, trace.start, trace.steps, tuple(broken)
    )


def _confirmed(trace: Trace, system: TransitionSystem, goal: Goal) -> Trace:
    interpreter = Interpreter(system, trace.world)
    if goal.refused:
        met = interpreter.meets_before(goal, trace.steps[-1].before)
    else:
        met = interpreter.meets(goal, trace.steps[-1])
    if not met:
        raise Disagreement(f"the interpreter does not reach: {goal.name}")
    return trace
