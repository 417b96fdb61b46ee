"""A symbolic path of a transition system through a small universe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import z3

from ..evaluate.finite import Finite, Names, conjunction, disjunction, negation
from ..evaluate.interpreter import ActionCall, World
from ..kernel.goals import ANY, Goal
from ..kernel.system import Action, Invariant, Property, Scope, TransitionSystem
from ..kernel.terms import BOOL, INT, MapSort, SetSort, Sort

__all__ = ["Pin", "Start", "Unrolling", "read_value", "read_world"]

Start = Literal["init", "pass"]
Value = Any


@dataclass(frozen=True)
class Pin:
    """One choice of a model, with its possible values in order of preference."""

    expressions: tuple[Any, ...]
    """The conditions of the alternatives, or a single integer term."""
    smallest: int | None = None
    """For an integer: the least value to try."""


@dataclass(frozen=True)
class _Moment:
    """One step: which action fires, and with which arguments."""

    fires: dict[str, Any]
    arguments: dict[str, dict[str, Value]]
    names: dict[str, Names]
    broken: dict[str, Any]


class Unrolling:
    """States 0..n and the steps between them, in one incremental solver.

    From "init" the path starts in the initial state; from "pass", in any state that the invariants
    allow when a scheduling pass begins.
    """

    def __init__(self, system: TransitionSystem, scope: Scope, start: Start) -> None:
        self.system = system
        self.scope = scope
        self.start = start
        self.finite = Finite(scope.universe)
        self.solver = z3.Solver()
        self.moments: list[_Moment] = []
        self._seen: dict[str, Any] = {}
        self._declare_world()
        self.states: list[dict[str, Value]] = [self._fresh_state(0)]
        now = Names(before=self.states[0])
        if start == "init":
            for variable, value in system.init:
                first = self.states[0][variable.name]
                self._assume(self.finite.equal(first, self.finite(value, now)))
        else:
            for invariant in system.invariants:
                self._assume(self.finite(invariant.formula, now))
            self._assume(self.finite(system.pass_start, now))
            self._bound_below(self.states[0])

    def _declare_world(self) -> None:
        finite, scope = self.finite, self.scope
        finite.declare(self.system.constants, self.system.functions)
        for name, values in scope.fixed_of(finite.functions).items():
            for element, value in values.items():
                finite.functions[name][element] = value if isinstance(value, int) else {value: True}
        for name, least in scope.at_least.items():
            if name in finite.constants:
                self._assume(finite.constants[name] >= least)
            elif name in finite.functions:
                self._assume(*(value >= least for value in finite.functions[name].values()))
        for axiom in self.system.axioms:
            self._assume(finite(axiom.formula, Names()))

    def _assume(self, *conditions: Any) -> None:
        self.solver.add(*conditions, *self.finite.constraints)
        self.finite.constraints.clear()

    def _fresh_state(self, t: int) -> dict[str, Value]:
        return {v.name: self.finite.fresh(f"{v.name}@{t}", v.sort) for v in self.system.variables}

    def _bound_below(self, state: dict[str, Value]) -> None:
        for variable in self.system.variables:
            if isinstance(variable.sort, MapSort):
                self._assume(*(x >= 0 for x in state[variable.name].values()))

    def extend(self) -> None:
        """One step more."""
        t, before = len(self.moments), self.states[-1]
        after = self._fresh_state(t + 1)
        fires: dict[str, Any] = {}
        arguments: dict[str, dict[str, Value]] = {}
        broken: dict[str, list[Any]] = {}
        meaning: dict[str, Names] = {}
        for action in self._possible_actions():
            fire = fires[action.name] = z3.Bool(f"{action.name}@{t}")
            given = arguments[action.name] = {
                p.name: self.finite.fresh(f"{action.name}.{p.name}@{t}", p.sort)
                for p in action.parameters
            }
            names = Names(before=before, arguments=given)
            if action.returns is not None:
                names.result = self.finite(action.returns, names)
            occurs = [self.finite(action.enabled, names)]
            updates = action.updates
            for v in self.system.variables:
                new = updates.get(v.name)
                value = before[v.name] if new is None else self.finite(new, names)
                occurs.append(self.finite.equal(after[v.name], value))
            self._assume(z3.Implies(fire, conjunction(*occurs)))
            names = meaning[action.name] = Names(before, after, given, names.result)
            for prop in self.system.action_properties:
                if prop.action == action.name:
                    bad = conjunction(fire, negation(self.finite(prop.formula, names)))
                    broken.setdefault(prop.name, []).append(bad)
        self._assume(z3.PbEq([(f, 1) for f in fires.values()], 1))
        for invariant in self.system.invariants:
            bad = negation(self.finite(invariant.formula, Names(before=after)))
            broken.setdefault(invariant.name, []).append(bad)
        self.states.append(after)
        self.moments.append(
            _Moment(fires, arguments, meaning, {name: z3.Or(*bad) for name, bad in broken.items()})
        )
        if self.start == "init":
            self._break_symmetry()

    def _break_symmetry(self) -> None:
        """Of interchangeable elements, the path mentions the earlier ones first."""
        for sort in self.scope.interchangeable:
            elements = self.scope.universe[sort]
            now = self._mentions(sort)
            for earlier, later in pairwise(elements):
                known = self._seen.get(earlier, False)
                self._assume(z3.Or(negation(now[later]), known, False))
            for x in elements:
                self._seen[x] = disjunction(self._seen.get(x, False), now[x])

    def _mentions(self, sort: str) -> dict[str, Any]:
        """For each element: the condition under which the last call is about it."""
        moment = self.moments[-1]
        found: dict[str, list[Any]] = {x: [] for x in self.scope.universe[sort]}
        for name, given in moment.arguments.items():
            for p in self.system.action(name).parameters:
                argument = given[p.name]
                images = (
                    [argument]
                    if p.sort.name == sort
                    else [
                        self.finite.pick(argument, self.finite.functions[f.name])
                        for f in self.system.functions
                        if f.domain == p.sort and f.range.name == sort
                    ]
                )
                for image in images:
                    for x, meant in image.items():
                        found[x].append(conjunction(moment.fires[name], meant))
        return {x: disjunction(*conditions) for x, conditions in found.items()}

    def _possible_actions(self) -> list[Action]:
        """The actions for whose parameters there are elements at all."""
        empty = {sort for sort, elements in self.scope.universe.items() if not elements}
        return [
            a for a in self.system.actions if not any(p.sort.name in empty for p in a.parameters)
        ]

    def breaks(self, properties: Iterable[Property]) -> Any:
        """A literal for: the last step, or the state after it, breaks one of these properties."""
        names: list[str] = list(dict.fromkeys(p.name for p in properties))
        literal = z3.Bool(f"breaks {' '.join(names)}@{len(self.moments)}")
        broken = self.moments[-1].broken
        self._assume(literal == z3.Or(*(broken[n] for n in names if n in broken), False))
        return literal

    def starts_outside(self, invariant: Invariant) -> Any:
        """The condition that the first state violates the invariant."""
        holds = self.finite(invariant.formula, Names(before=self.states[0]))
        return z3.Not(z3.And(holds, True))

    def reaches(self, goal: Goal) -> Any:
        """A literal for: the last step reaches the goal."""
        moment = self.moments[-1]
        if goal.action == ANY:
            met = self.finite(goal.condition, Names(before=self.states[-1]))
        elif goal.action not in moment.names:
            return z3.BoolVal(False)
        else:
            met = self.finite(goal.condition, moment.names[goal.action])
        if goal.action != ANY and not goal.refused:
            met = conjunction(moment.fires[goal.action], met)
        if goal.after is not None:
            earlier = self.moments[-2].fires if len(self.moments) > 1 else {}
            met = conjunction(earlier.get(goal.after, False), met)
        literal = z3.Bool(f"reaches {goal.name}@{len(self.moments)}")
        self._assume(literal == z3.And(met, True))
        return literal

    # Reading a model back.

    def uses(self) -> list[Pin]:
        """Which elements the path has a use for, last ones first.

        The elements of a sort are interchangeable, so this order leaves as few as possible.
        """
        tables = self._used().values()
        return [Pin((negation(u), u)) for table in tables for u in reversed(table.values())]

    def used_in(self, model: z3.ModelRef) -> dict[str, tuple[str, ...]]:
        return {
            sort: tuple(x for x, used in table.items() if read_value(model, used, BOOL))
            for sort, table in self._used().items()
        }

    def choices(self) -> list[Pin]:
        """Everything that a model chooses, in the order in which to make it small."""
        pins = []
        for constant in self.system.constants:
            least = self.scope.at_least.get(constant.name, 0)
            pins.append(Pin((self.finite.constants[constant.name],), least))
        for function in self.system.functions:
            if function.range == INT and function.name not in self.scope.fixed:
                least = self.scope.at_least.get(function.name, 0)
                pins += [Pin((x,), least) for x in self.finite.functions[function.name].values()]
        pins += self.start_choices()
        for moment in self.moments:
            pins.append(Pin(tuple(moment.fires.values())))
        for moment in self.moments:
            for action in self.system.actions:
                for parameter in action.parameters:
                    if action.name in moment.arguments:
                        value = moment.arguments[action.name][parameter.name]
                        pins += self._pins(value, parameter.sort)
        for function in self.system.functions:
            if function.range != INT and function.name not in self.scope.fixed:
                for value in self.finite.functions[function.name].values():
                    pins += self._pins(value, function.range)
        return pins

    def start_choices(self) -> list[Pin]:
        """What a model chooses of the first state."""
        pins = []
        for variable in self.system.variables:
            pins += self._pins(self.states[0][variable.name], variable.sort)
        return pins

    def follows(self, world: World, calls: Sequence[ActionCall]) -> Any:
        """The condition that the path is these calls in this world."""
        finite = self.finite
        same = [finite.equal(finite.constants[c], value) for c, value in world.constants.items()]
        for name, table in world.functions.items():
            for x, value in table.items():
                same.append(self._is(finite.functions[name][x], value))
        for moment, call in zip(self.moments, calls, strict=True):
            same.append(moment.fires[call.action])
            given = moment.arguments[call.action]
            same += [self._is(given[name], value) for name, value in call.arguments.items()]
        return conjunction(*same)

    def _is(self, symbolic: Value, value: Any) -> Any:
        """A symbolic integer or element is this one."""
        if isinstance(value, int):
            return self.finite.equal(symbolic, value)
        return symbolic[value]

    def _used(self) -> dict[str, dict[str, Any]]:
        """For each element of each sort: the condition under which the path mentions it."""
        mentions: dict[str, dict[str, list[Any]]] = {
            sort: {x: [] for x in elements} for sort, elements in self.scope.universe.items()
        }
        for variable in self.system.variables:
            if isinstance(variable.sort, SetSort):
                for element, member in self.states[0][variable.name].items():
                    for sort, x in zip(variable.sort.elements, element, strict=True):
                        mentions[sort.name][x].append(member)
        for moment in self.moments:
            for action in self.system.actions:
                for p in action.parameters:
                    if p.sort.name in mentions and action.name in moment.arguments:
                        for x, meant in moment.arguments[action.name][p.name].items():
                            mentions[p.sort.name][x].append(
                                conjunction(moment.fires[action.name], meant)
                            )
        ordered = sorted(mentions, key=lambda s: s not in self._domains())
        used: dict[str, dict[str, Any]] = {}
        for name in ordered:
            used[name] = {x: disjunction(*cs) for x, cs in mentions[name].items()}
            for f in self.system.functions:
                if f.domain.name == name and f.range.name in mentions:
                    for x, image in self.finite.functions[f.name].items():
                        for y, meant in image.items():
                            mentions[f.range.name][y].append(conjunction(used[name][x], meant))
        return {name: used[name] for name in self.scope.universe}

    def _domains(self) -> set[str]:
        """The sorts whose elements have others for attributes, such as the inputs."""
        sorts = self.scope.universe
        return {f.domain.name for f in self.system.functions if f.range.name in sorts}

    def _pins(self, value: Value, sort: Sort) -> list[Pin]:
        if sort == INT:
            return [Pin((value,), 0)]
        if sort == BOOL:
            return [Pin((negation(value), value))]
        if isinstance(sort, SetSort):
            return [Pin((negation(m), m)) for m in value.values()]
        if isinstance(sort, MapSort):
            return [pin for v in value.values() for pin in self._pins(v, sort.value)]
        return [Pin(tuple(value.values()))]

    def read(self, model: z3.ModelRef) -> tuple[World, dict[str, Value], list[ActionCall]]:
        """The world, the first state and the calls of a model."""
        start = {
            v.name: read_value(model, self.states[0][v.name], v.sort) for v in self.system.variables
        }
        world = read_world(model, self.system, self.finite)
        return world, start, self._calls(model)

    def _calls(self, model: z3.ModelRef) -> list[ActionCall]:
        calls = []
        for moment in self.moments:
            (name,) = (n for n, f in moment.fires.items() if read_value(model, f, BOOL))
            given = moment.arguments[name]
            action = self.system.action(name)
            arguments = {
                p.name: read_value(model, given[p.name], p.sort) for p in action.parameters
            }
            calls.append(ActionCall(name, arguments))
        return calls


def read_world(model: z3.ModelRef, system: TransitionSystem, finite: Finite) -> World:
    """The world of a model."""
    functions = {
        f.name: {x: read_value(model, v, f.range) for x, v in finite.functions[f.name].items()}
        for f in system.functions
    }
    constants = {
        c.name: read_value(model, finite.constants[c.name], c.sort) for c in system.constants
    }
    return World(finite.universe, constants, functions)


def read_value(model: z3.ModelRef, value: Value, sort: Sort) -> Value:
    """The concrete value of a symbolic one."""
    if sort == BOOL:
        if isinstance(value, bool):
            return value
        return bool(z3.is_true(model.eval(value, model_completion=True)))
    if sort == INT:
        if isinstance(value, int):
            return value
        return model.eval(value, model_completion=True).as_long()
    if isinstance(sort, SetSort):
        return frozenset(x for x, m in value.items() if read_value(model, m, BOOL))
    if isinstance(sort, MapSort):
        return {k: read_value(model, v, sort.value) for k, v in value.items()}
    (element,) = (x for x, c in value.items() if read_value(model, c, BOOL))
    return element
