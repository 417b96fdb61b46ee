"""Two designs that satisfy all clauses and differ after one call: what the clauses do not say.

The search is in a small universe, where sums are sums. What it finds is judged again by the
interpreter, which knows no solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import z3

from ..evaluate.finite import Finite, Names, negation
from ..evaluate.interpreter import ActionCall, Interpreter, State, Step, World
from ..kernel.system import Action, Scope, TransitionSystem
from ..kernel.terms import BOOL, INT, MapSort, SetSort, Sort, Symbol, Term
from .bounded import Disagreement, NoVerdict
from .unrolling import read_value, read_world

__all__ = [
    "ALLOWED",
    "ANSWER",
    "COPIES",
    "Copy",
    "Difference",
    "Question",
    "confirm",
    "difference",
]

ANSWER, ALLOWED = "the answer", "whether it is allowed"

Copy = Literal[1, 2]
COPIES: tuple[Copy, Copy] = (1, 2)


@dataclass(frozen=True)
class Question:
    """Do the clauses determine this, after this call?

    `what` is the name of an observable, `ANSWER` or `ALLOWED`; `action` is None for the start.
    """

    system: TransitionSystem
    action: Action | None
    what: str

    @property
    def label(self) -> str:
        if self.action is None:
            return f"{self.what} at the start"
        if self.what in (ANSWER, ALLOWED):
            return f"{self.what} of {self.action.name}".replace(f"{ALLOWED} of", "the duties of")
        return f"{self.what} after {self.action.name}"


@dataclass(frozen=True)
class Difference:
    """One call on two designs that satisfy all clauses, after which they differ.

    At the start there is no call: there are no steps then, and the two states are the starts.
    """

    question: Question
    world: World
    starts: tuple[State, ...]
    steps: tuple[Step, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)


def difference(question: Question, scope: Scope) -> Difference | None:
    """Two designs that satisfy the clauses and differ, within the scope; as small as they come."""
    search = _Search(question, scope)
    model = search.least_model()
    if model is None:
        return None
    found = search.read(model)
    confirm(found)
    return found


class _Search:
    """One symbolic call on two symbolic designs."""

    def __init__(self, question: Question, scope: Scope) -> None:
        self.question = question
        self.system = question.system
        self.scope = scope
        self.finite = Finite(scope.universe)
        self.solver = z3.Solver()
        self._wishes: list[Any] = []
        """What makes a model small, in the order in which to wish for it."""
        self._declare_world()
        self.arguments = self._arguments()
        shared = self._fresh(v for v in self.system.variables if self._is_shared(v))
        own = [v for v in self.system.variables if not self._is_shared(v)]
        self.starts = {copy: {**shared, **self._fresh(own, f"#{copy}")} for copy in COPIES}
        self.results = {copy: self._fresh_result(copy) for copy in COPIES}
        self.ends = {copy: self._end(copy) for copy in COPIES}
        for copy in COPIES:
            self._satisfy_the_clauses(copy)
        self._differ()

    def _is_shared(self, variable: Symbol) -> bool:
        """The record is one, and what was seen up to now was the same."""
        seen = self.question.action is not None and variable.name in self.system.observed
        return variable.role == "ghost" or seen

    def _declare_world(self) -> None:
        finite, system = self.finite, self.system
        finite.declare(system.constants, system.functions)
        for name, values in self.scope.fixed_of(finite.functions).items():
            for element, value in values.items():
                finite.functions[name][element] = value if isinstance(value, int) else {value: True}
        for name, least in self.scope.at_least.items():
            numbers = finite.functions.get(name) or {"": finite.constants[name]}
            for number in numbers.values():
                self._assume(number >= least)
        for function in system.functions:
            for value in finite.functions[function.name].values():
                self._wish(value, function.range)
        for constant in system.constants:
            self._wish(finite.constants[constant.name], constant.sort)
        for axiom in system.axioms:
            self._assume(finite(axiom.formula, Names()))

    def _assume(self, condition: Any) -> None:
        self.solver.add(condition, *self.finite.constraints)
        self.finite.constraints.clear()

    def _wish(self, value: Any, sort: Sort) -> None:
        if sort == INT and not isinstance(value, int):
            self._wishes += [value <= most for most in (3, 1)]
            self._wishes.append(value >= 0)
        elif isinstance(sort, SetSort):
            self._wishes += [z3.Not(member) for member in value.values()]
        elif isinstance(sort, MapSort):
            for each in value.values():
                self._wish(each, sort.value)

    def _fresh(self, variables: Iterator[Symbol] | list[Symbol], mark: str = "") -> dict[str, Any]:
        state = {v.name: self.finite.fresh(f"{v.name}{mark}", v.sort) for v in variables}
        by_name = {v.name: v for v in self.system.variables}
        if self.question.action is None:
            first = {m.variable.name: m.init for m in self.system.monitors}
            known = {n: self.finite(first[n], Names()) for n in state if n in first}
            state |= known
        for name, value in state.items():
            if self.question.action is not None:
                self._wish(value, by_name[name].sort)
        return state

    def _arguments(self) -> dict[str, Any]:
        action = self.question.action
        parameters = () if action is None else action.parameters
        given = {p.name: self.finite.fresh(f"{p.name}!", p.sort) for p in parameters}
        for p in parameters:
            self._wish(given[p.name], p.sort)
        return given

    def _fresh_result(self, copy: Copy) -> Any:
        action = self.question.action
        if action is None or action.returns is None:
            return None
        return self.finite.fresh(f"result#{copy}", action.returns.sort)

    def _end(self, copy: Copy) -> dict[str, Any]:
        """The state after the call: anything, but that the record is kept."""
        action = self.question.action
        if action is None or self.question.what == ALLOWED:
            return {}
        own = [v for v in self.system.variables if v.role != "ghost"]
        end = {v.name: self.finite.fresh(f"{v.name}#{copy}'", v.sort) for v in own}
        for v in own:
            self._wish(end[v.name], v.sort)
        names = Names(self.starts[copy], dict(end), self.arguments, self.results[copy])
        for monitor in self.system.monitors:
            update = monitor.updates.get(action.name, monitor.variable)
            end[monitor.variable.name] = self.finite(update, names)
        return end

    def _names(self, copy: Copy) -> Names:
        return Names(self.starts[copy], self.ends[copy], self.arguments, self.results[copy])

    def _satisfy_the_clauses(self, copy: Copy) -> None:
        action, now = self.question.action, self._names(copy)
        clauses = _clauses(self.system)
        claimed = [self.finite(i.formula, now) for i in clauses.invariants]
        if action is not None and self.question.what != ALLOWED:
            claimed.append(self.finite(action.enabled, now))
            own = (p for p in clauses.action_properties if p.action == action.name)
            claimed += [self.finite(p.formula, now) for p in own]
            then = Names(self.ends[copy])
            claimed += [self.finite(i.formula, then) for i in clauses.invariants]
        for claim in claimed:
            self._assume(claim)

    def _differ(self) -> None:
        if self.question.action is not None:
            for term in self.system.observables.values():
                self._assume(self._same(term, self.starts))
        what = self.question.what
        if what == ANSWER:
            same = self.finite.equal(self.results[1], self.results[2])
        elif what == ALLOWED:
            assert self.question.action is not None
            same = self._same(self.question.action.enabled, self.starts)
        else:
            states = self.starts if self.question.action is None else self.ends
            same = self._same(self.system.observables[what], states)
            if self.results[1] is not None:
                self._assume(self.finite.equal(self.results[1], self.results[2]))
        self._assume(negation(same))

    def _same(self, term: Term, states: dict[Copy, dict[str, Any]]) -> Any:
        one, two = (self.finite(term, Names(states[c], {}, self.arguments)) for c in COPIES)
        return self.finite.equal(one, two)

    def least_model(self) -> z3.ModelRef | None:
        """A model in which as many wishes as possible come true, the earlier ones first."""
        if not self._decided():
            return None
        model = self.solver.model()
        for wish in self._wishes:
            if not z3.is_true(model.eval(wish, True)):
                self.solver.push()
                self.solver.add(wish)
                if self._decided():
                    model = self.solver.model()
                else:
                    self.solver.pop()
                    continue
            self.solver.add(wish)
        return model

    def _decided(self) -> bool:
        answer = self.solver.check()
        if answer == z3.unknown:
            raise NoVerdict("the solver answered unknown on a finite search")
        return bool(answer == z3.sat)

    def read(self, model: z3.ModelRef) -> Difference:
        world = read_world(model, self.system, self.finite)
        starts = {copy: self._read_state(model, self.starts[copy]) for copy in COPIES}
        steps: tuple[Step, ...] = ()
        action = self.question.action
        parameters = () if action is None else action.parameters
        given = {p.name: read_value(model, self.arguments[p.name], p.sort) for p in parameters}
        if action is not None and self.question.what != ALLOWED:
            call = ActionCall(action.name, given)
            answer = BOOL if action.returns is None else action.returns.sort
            results = (
                None if r is None else read_value(model, r, answer) for r in self.results.values()
            )
            ends = (self._read_state(model, self.ends[copy]) for copy in COPIES)
            steps = tuple(
                Step(call, (), r, start, end)
                for r, start, end in zip(results, starts.values(), ends, strict=True)
            )
        return Difference(self.question, world, tuple(starts.values()), steps, given)

    def _read_state(self, model: z3.ModelRef, state: dict[str, Any]) -> dict[str, Any]:
        return {v.name: read_value(model, state[v.name], v.sort) for v in self.system.variables}


def _clauses(system: TransitionSystem) -> TransitionSystem:
    """The system with nothing claimed of it but clauses."""
    return system.claiming(
        (i for i in system.invariants if i.clause is not None),
        (p for p in system.action_properties if p.clause is not None),
    )


def confirm(found: Difference) -> None:
    """Raise `Disagreement` unless the interpreter finds the same two designs to be right."""
    system = _clauses(found.question.system)
    interpreter = Interpreter(system, found.world)
    outside = [
        i.name for s in found.starts for i in system.invariants if not interpreter.holds(i, s)
    ]
    if outside:
        raise Disagreement(f"{found.question.label}: the interpreter denies {outside}")
    for step in found.steps:
        action = system.action(step.call.action)
        broken = [p.name for p in interpreter.breaks(step)]
        broken += [n for n, guard in action.guard.items() if not interpreter.value(guard, step)]
        broken += [
            m.variable.name
            for m in system.monitors
            if step.after[m.variable.name]
            != interpreter.value(m.updates.get(action.name, m.variable), step)
        ]
        if broken:
            raise Disagreement(f"{found.question.label}: the interpreter denies {broken}")
    if _seen(found, interpreter, 0) == _seen(found, interpreter, 1):
        raise Disagreement(f"{found.question.label}: the interpreter sees no difference")


def _seen(found: Difference, interpreter: Interpreter, copy: int) -> Any:
    """What was asked for, of one of the two."""
    question, system = found.question, found.question.system
    if question.what == ANSWER:
        return found.steps[copy].result
    if question.what == ALLOWED:
        assert question.action is not None
        asked = Step(
            ActionCall(question.action.name, found.arguments), (), None, found.starts[copy], {}
        )
        return interpreter.value(question.action.enabled, asked)
    state = found.steps[copy].after if found.steps else found.starts[copy]
    return interpreter.evaluate(system.observables[question.what], state)
