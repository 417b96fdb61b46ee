"""The protocol executed in plain Python: no solver, concrete values, the same definitions.

Every model that a solver returns is run here again before it is shown or saved, and the expected
values of the conformance vectors come from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from ..kernel.goals import ANY, Goal
from ..kernel.system import Action, Invariant, Property, TransitionSystem
from ..kernel.terms import Sort, Term
from .meaning import Elements, Meanings, Scope, State, Value, World

__all__ = ["ActionCall", "Interpreter", "State", "Step", "World"]


@dataclass(frozen=True)
class ActionCall:
    """An action with its arguments, by parameter name."""

    action: str
    arguments: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """What a call did: the guards that it failed (then nothing happened), its result, the state."""

    call: ActionCall
    refused_by: tuple[str, ...]
    result: Value
    before: State
    after: State


@lru_cache(maxsize=32)
def _meanings_of(system: TransitionSystem) -> Meanings:
    """What the terms of the system mean, which is the same in all worlds."""
    return Meanings()


class Interpreter:
    """Runs one transition system in one finite world.

    Without the `record`, what an observer notes down stays as it is at first: quicker for who asks
    only what is answered and shown, on which the record has no influence.
    """

    def __init__(self, system: TransitionSystem, world: World, *, record: bool = True) -> None:
        self.system = system
        self.world = world
        self._kept_up = {v.name for v in system.variables if record or v.role != "ghost"}
        self._meanings = _meanings_of(system)
        self._lookup = Elements(world)

    def initial(self) -> dict[str, Value]:
        nothing = self._at({})
        return {v.name: self._value(term, nothing) for v, term in self.system.init}

    def call(self, state: State, call: ActionCall) -> Step:
        """Perform one call; where a guard fails, the step names it and the state stays."""
        action = self.system.action(call.action)
        scope = self._at(state, None, call.arguments)
        refused = tuple(n for n, g in action.guard.items() if not self._value(g, scope))
        if refused:
            return Step(call, refused, None, state, state)
        returns = action.returns
        answer = None if returns is None else self._value(returns, scope)
        scope = self._at(state, None, call.arguments, answer)
        after = dict(state)
        for name, term in action.updates.items():
            if name in self._kept_up:
                after[name] = self._value(term, scope)
        return Step(call, (), answer, state, after)

    def run(self, calls: Sequence[ActionCall], start: State | None = None) -> Iterator[Step]:
        state: State = self.initial() if start is None else start
        for call in calls:
            step = self.call(state, call)
            yield step
            state = step.after

    def holds(self, invariant: Invariant, state: State) -> bool:
        return bool(self.evaluate(invariant.formula, state))

    def evaluate(self, term: Term, state: State) -> Value:
        """The value of a term without parameters in a state."""
        return self._value(term, self._at(state))

    def value(self, term: Term, step: Step) -> Value:
        """The value of a term about a step: its arguments, its result, the states around it."""
        return self._value(term, self._about(step))

    def breaks(self, step: Step) -> list[Property]:
        """The properties that this step, or the state after it, violates; a refused step, none."""
        if step.refused_by:
            return []
        scope = self._about(step)
        broken: list[Property] = [
            i for i in self.system.invariants if not self.holds(i, step.after)
        ]
        broken += [
            p
            for p in self.system.action_properties
            if p.action == step.call.action and not self._value(p.formula, scope)
        ]
        return broken

    def meets(self, goal: Goal, step: Step) -> bool:
        """Whether this step is one of the situations that the goal describes.

        Of `goal.after` it knows nothing: that is about the step before.
        """
        if goal.action == ANY:
            return bool(self.evaluate(goal.condition, step.after))
        scope = self._about(step)
        return step.call.action == goal.action and bool(self._value(goal.condition, scope))

    def condition_holds(self, goal: Goal, state: State, call: ActionCall) -> bool:
        """Whether the goal's condition holds before this call, made or refused."""
        return bool(self._value(goal.condition, self._at(state, None, call.arguments)))

    def meets_before(self, goal: Goal, state: State) -> bool:
        """Whether, in this state, some call is one that the goal describes."""
        return self.call_before(goal, state) is not None

    def call_before(self, goal: Goal, state: State) -> ActionCall | None:
        """A call in this state that the goal describes; None where there is none."""
        calls = self.calls(self.system.action(goal.action), self._telling_integers(state))
        return next((c for c in calls if self.condition_holds(goal, state, c)), None)

    def _telling_integers(self, state: State) -> Sequence[int]:
        """Integers on both sides of whatever a linear guard may compare an argument with.

        A guard compares an argument with a number of the world or the state, or with the
        difference of two of them; the nearest integers tell the sides apart.
        """
        tables = [*self.world.functions.values(), self.world.constants, state]
        tables += [value for value in state.values() if isinstance(value, dict)]
        found = {v for table in tables for v in table.values() if type(v) is int} | {0}
        apart = {a - b for a in found for b in found} | found
        return sorted({*range(-1, 8), *(v + d for v in apart for d in (-1, 0, 1))})

    def calls(self, action: Action, integers: Sequence[int]) -> Iterator[ActionCall]:
        """Every call of this action, with all elements and these integers for arguments."""
        names = (p.name for p in action.parameters)
        return self.calls_with(action, dict.fromkeys(names, integers))

    def calls_with(
        self, action: Action, integers: Mapping[str, Sequence[int]]
    ) -> Iterator[ActionCall]:
        """Every call of this action, with all elements, and these integers for each parameter."""
        choices: list[Sequence[Value]] = [
            integers[p.name] if p.sort.name == "Int" else self._elements(p.sort)
            for p in action.parameters
        ]
        for values in product(*choices):
            names = (p.name for p in action.parameters)
            yield ActionCall(action.name, dict(zip(names, values, strict=True)))

    # Evaluation.

    def _elements(self, sort: Sort) -> Sequence[str]:
        return self.world.universe[sort.name]

    def _at(
        self,
        before: State,
        after: State | None = None,
        arguments: Mapping[str, Value] | None = None,
        result: Value = None,
    ) -> Scope:
        return Scope(self.world, self._lookup, before, after or {}, arguments or {}, result)

    def _about(self, step: Step) -> Scope:
        return self._at(step.before, step.after, step.call.arguments, step.result)

    def _value(self, term: Term, at: Scope) -> Value:
        return self._meanings.of(term)(at, {})
