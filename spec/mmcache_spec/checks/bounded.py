"""The shortest counterexample, made small, and executed again without the solver."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from ..interpreter import Call, Interpreter, State, Step, World
from ..kernel.system import Invariant, Property, Scope, TransitionSystem
from .unrolling import Pin, Start, Unrolling

__all__ = ["Counterexample", "Disagreement", "NoVerdict", "shortest", "smallest_model"]


class Disagreement(Exception):
    """The interpreter does not confirm what the solver found: a defect of this tool."""


class NoVerdict(Exception):
    """The solver answered `unknown`; nothing may be concluded."""


@dataclass(frozen=True)
class Counterexample:
    """A path on which only the last step breaks a clause. Confirmed by the interpreter."""

    system: str
    origin: Start
    world: World
    start: State
    steps: tuple[Step, ...]
    broken: tuple[Property, ...]

    @property
    def length(self) -> int:
        return len(self.steps)

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(step.call.action for step in self.steps)

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p.clause for p in self.broken if p.clause is not None))


def shortest(
    system: TransitionSystem,
    scope: Scope,
    start: Start = "init",
    bound: int = 8,
    properties: tuple[Property, ...] | None = None,
) -> Counterexample | None:
    """The shortest path, within the scope, to a step that breaks a clause; None up to `bound`.

    Of the paths of that length the least is taken, in an order that puts fewest elements first and
    smallest numbers next, so that the result does not depend on the solver.
    """
    wanted = properties or tuple(p for p in system.properties if p.clause is not None)
    unrolling = Unrolling(system, scope, start)
    for length in range(1, bound + 1):
        unrolling.extend()
        if _some_breaks(unrolling, wanted):
            bad = unrolling.breaks(wanted)
            needed = scope.restricted_to(_fewest_elements(unrolling, bad))
            small, bad_there = _again(system, needed, start, length, wanted)
            if _decided(small.solver.check(bad_there)):
                unrolling, bad = small, bad_there
            return _executed(system, start, wanted, *unrolling.read(smallest_model(unrolling, bad)))
    return None


def _some_breaks(unrolling: Unrolling, properties: tuple[Property, ...]) -> bool:
    """Whether the last step can break one. One question a property, each answer a fact for the next.

    Properties of one action come first: they are the easier questions.
    """
    ordered = sorted({p.name: p for p in properties}.values(), key=lambda p: isinstance(p, Invariant))
    for prop in ordered:
        bad = unrolling.breaks([prop])
        if _decided(unrolling.solver.check(bad)):
            return True
        unrolling.solver.add(z3.Not(bad))
    return False


def _fewest_elements(unrolling: Unrolling, condition: z3.BoolRef) -> dict[str, tuple[str, ...]]:
    model = _least(unrolling, condition, unrolling.uses())
    return unrolling.used_in(model)


def _again(
    system: TransitionSystem,
    scope: Scope,
    start: Start,
    length: int,
    properties: tuple[Property, ...],
) -> tuple[Unrolling, z3.BoolRef]:
    """The same search in a smaller scope, where it is known that no shorter path breaks anything."""
    unrolling = Unrolling(system, scope, start)
    for step in range(1, length + 1):
        unrolling.extend()
        bad = unrolling.breaks(properties)
        if step < length:
            unrolling.solver.add(z3.Not(bad))
    return unrolling, bad


def smallest_model(unrolling: Unrolling, condition: z3.BoolRef) -> z3.ModelRef:
    """The least model in the order of `uses` and `choices`: unique, whatever the solver."""
    return _least(unrolling, condition, [*unrolling.uses(), *unrolling.choices()])


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
        options = (term == n for n in range(pin.smallest, model.eval(term, True).as_long()))
        kept = term == model.eval(term, True)
    else:
        alternatives = [e for e in pin.expressions if e is not False]
        if any(e is True for e in alternatives):
            return model
        (chosen,) = (
            k for k, e in enumerate(alternatives) if z3.is_true(model.eval(e, True))
        )
        options = iter(alternatives[:chosen])
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
    system: TransitionSystem,
    start: Start,
    wanted: tuple[Property, ...],
    world: World,
    first: State,
    calls: list[Call],
) -> Counterexample:
    interpreter = Interpreter(system, world)
    if start == "init" and first != interpreter.initial():
        raise Disagreement(f"{system.name}: the interpreter starts in another state")
    if start == "pass":
        outside = [i.name for i in system.invariants if not interpreter.holds(i, first)]
        if outside:
            raise Disagreement(f"{system.name}: the pass starts outside of {outside}")
    steps = tuple(interpreter.run(calls, first))
    names = {p.name for p in wanted}
    for k, step in enumerate(steps):
        if step.refused_by:
            raise Disagreement(f"{step.call.action} is refused by {step.refused_by}")
        broken = [p for p in interpreter.breaks(step) if p.name in names]
        if bool(broken) != (k == len(steps) - 1):
            raise Disagreement(f"step {k + 1} of {len(steps)} breaks {[p.name for p in broken]}")
    return Counterexample(system.name, start, world, first, steps, tuple(broken))
