"""The protocol executed in plain Python: no solver, concrete values, the same definitions.

Every model that a solver returns is run here again before it is shown or saved, and the expected
values of the conformance vectors come from here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..kernel.goals import ANY, Goal
from ..kernel.system import Action, Invariant, Property, TransitionSystem
from ..kernel.terms import Binder, Function, Literal, Op, Sort, Symbol, Term, alpha_form

__all__ = ["ActionCall", "Interpreter", "State", "Step", "World"]

Value = Any
"""bool, int, an element (a string), a frozenset of tuples of elements, or a dict (a map)."""

State = Mapping[str, Value]


@dataclass(frozen=True)
class World:
    """A finite world: the elements of each sort, and the constants and functions over them."""

    universe: Mapping[str, Sequence[str]]
    constants: Mapping[str, int]
    functions: Mapping[str, Mapping[str, Value]]


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


@dataclass(frozen=True)
class _Scope:
    before: State
    after: State
    arguments: Mapping[str, Value]
    result: Value
    named: dict[int, Value] = field(default_factory=dict)
    """By their identity: the values of named terms that have no free variable."""


_OF_ALL: Mapping[str, Callable[..., Value]] = {
    "not": operator.not_,
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "add": operator.add,
    "sub": operator.sub,
    "minus": operator.sub,
    "union": operator.or_,
    "member": lambda members, *element: element in members,
    "insert": lambda members, *element: members | {element},
    "remove": lambda members, *element: members - {element},
    "get": operator.getitem,
    "put": lambda map_, key, value: {**map_, key: value},
}
"""The operators that are functions of all their arguments."""


class Interpreter:
    """Runs one transition system in one finite world.

    Without the `record`, what an observer notes down stays as it is at first: quicker for who asks
    only what is answered and shown, on which the record has no influence.
    """

    def __init__(self, system: TransitionSystem, world: World, *, record: bool = True) -> None:
        self.system = system
        self.world = world
        self._kept_up = {v.name for v in system.variables if record or v.role != "ghost"}
        self._closed: dict[int, tuple[Term, bool]] = {}

    def initial(self) -> dict[str, Value]:
        nothing = _Scope({}, {}, {}, None)
        return {v.name: self._value(term, nothing, {}) for v, term in self.system.init}

    def call(self, state: State, call: ActionCall) -> Step:
        """Perform one call; where a guard fails, the step names it and the state stays."""
        action = self.system.action(call.action)
        scope = _Scope(state, {}, call.arguments, None)
        refused = tuple(n for n, g in action.guard.items() if not self._value(g, scope, {}))
        if refused:
            return Step(call, refused, None, state, state)
        returns = action.returns
        answer = None if returns is None else self._value(returns, scope, {})
        scope = _Scope(state, {}, call.arguments, answer)
        after = dict(state)
        for name, term in action.updates.items():
            if name in self._kept_up:
                after[name] = self._value(term, scope, {})
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
        return self._value(term, _Scope(state, {}, {}, None), {})

    def value(self, term: Term, step: Step) -> Value:
        """The value of a term about a step: its arguments, its result, the states around it."""
        return self._value(
            term, _Scope(step.before, step.after, step.call.arguments, step.result), {}
        )

    def breaks(self, step: Step) -> list[Property]:
        """The properties that this step, or the state after it, violates; a refused step, none."""
        if step.refused_by:
            return []
        scope = _Scope(step.before, step.after, step.call.arguments, step.result)
        broken: list[Property] = [
            i for i in self.system.invariants if not self.holds(i, step.after)
        ]
        broken += [
            p
            for p in self.system.action_properties
            if p.action == step.call.action and not self._value(p.formula, scope, {})
        ]
        return broken

    def meets(self, goal: Goal, step: Step) -> bool:
        """Whether this step is one of the situations that the goal describes.

        Of `goal.after` it knows nothing: that is about the step before.
        """
        if goal.action == ANY:
            return bool(self.evaluate(goal.condition, step.after))
        scope = _Scope(step.before, step.after, step.call.arguments, step.result)
        return step.call.action == goal.action and bool(self._value(goal.condition, scope, {}))

    def condition_holds(self, goal: Goal, state: State, call: ActionCall) -> bool:
        """Whether the goal's condition holds before this call, made or refused."""
        return bool(self._value(goal.condition, _Scope(state, {}, call.arguments, None), {}))

    def meets_before(self, goal: Goal, state: State) -> bool:
        """Whether, in this state, some call is one that the goal describes."""
        calls = self.calls(self.system.action(goal.action), self._telling_integers(state))
        scopes = (_Scope(state, {}, call.arguments, None) for call in calls)
        return any(self._value(goal.condition, scope, {}) for scope in scopes)

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

    def _bindings(
        self, term: Binder, bound: Mapping[Symbol, Value]
    ) -> Iterator[dict[Symbol, Value]]:
        for values in product(*(self._elements(v.sort) for v in term.variables)):
            yield {**bound, **dict(zip(term.variables, values, strict=True))}

    def _value(self, term: Term, at: _Scope, bound: Mapping[Symbol, Value]) -> Value:
        # The commonest first: this is where the time goes.
        if isinstance(term, Op):
            return self._operator(term, at, bound)
        if isinstance(term, Symbol):
            return self._symbol(term, at, bound)
        if isinstance(term, Binder):
            return self._binder(term, at, bound)
        if isinstance(term, Literal):
            return term.value
        raise TypeError(f"not a term: {term!r}")

    def _symbol(self, symbol: Symbol, at: _Scope, bound: Mapping[Symbol, Value]) -> Value:
        match symbol.role:
            case "bound":
                return bound[symbol]
            case "state" | "ghost":
                return at.before[symbol.name]
            case "next":
                return at.after[symbol.name]
            case "parameter":
                return at.arguments[symbol.name]
            case "constant":
                return self.world.constants[symbol.name]
            case "result":
                return at.result

    def _binder(self, term: Binder, at: _Scope, bound: Mapping[Symbol, Value]) -> Value:
        inner = self._bindings(term, bound)
        match term.name:
            case "forall":
                return all(self._value(term.body, at, b) for b in inner)
            case "exists":
                return any(self._value(term.body, at, b) for b in inner)
            case "setof":
                return frozenset(
                    tuple(b[v] for v in term.variables)
                    for b in inner
                    if self._value(term.body, at, b)
                )
            case "mapof":
                (key,) = term.variables
                return {b[key]: self._value(term.body, at, b) for b in inner}
            case "largest":
                assert term.value is not None
                chosen = [b for b in inner if self._value(term.body, at, b)]
                return max((self._value(term.value, at, b) for b in chosen), default=0)
        raise TypeError(term.name)

    def _operator(self, term: Op, at: _Scope, bound: Mapping[Symbol, Value]) -> Value:
        if term.name == "named" and self._is_closed(term):
            known = at.named
            if id(term) not in known:
                known[id(term)] = self._value(term.args[0], at, {})
            return known[id(term)]
        # Each is evaluated when it is asked for: what decides a formula may come first.
        values = (self._value(a, at, bound) for a in term.args)
        if (of_all := _OF_ALL.get(term.name)) is not None:
            return of_all(*values)
        match term.name:
            case "and":
                return all(values)
            case "or":
                return any(values)
            case "named":
                return next(values)
            case "implies":
                return not next(values) or next(values)
            case "ite":
                return self._value(term.args[1 if next(values) else 2], at, bound)
            case "empty":
                return frozenset()
            case "apply":
                return self._function(term.function)[next(values)]
            case "total":
                weight = self._function(term.function)
                return sum(weight[x] for (x,) in next(values))
        raise TypeError(f"no operator {term.name!r}")

    def _is_closed(self, term: Op) -> bool:
        """Whether its value is the same wherever it stands in one formula about one step."""
        if id(term) not in self._closed:
            self._closed[id(term)] = term, not alpha_form(term)[1]  # kept: so is its identity
        return self._closed[id(term)][1]

    def _function(self, function: Function | None) -> Mapping[str, Value]:
        assert function is not None
        return self.world.functions[function.name]
