"""The worlds of one pattern, of which only the numbers differ; searched until nothing is left.

Every world that answers the questions of a search alike, under whatever names, is done with then;
Z3 names one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import z3

from ...evaluate.finite import Finite, Names
from ...evaluate.interpreter import ActionCall, World
from ...evaluate.stepping import Packed, Question, Signs, Stepper, Symbols, Undetermined
from ...kernel.system import Scope
from ...kernel.terms import INT, MapSort
from ..unrolling import Start
from .patterns import Pattern, Renaming
from .relevance import Plan
from .renaming import Image
from .starts import PassStarts
from .walk import BreadthFirst, Budget, TooMuch

__all__ = ["Found", "Kind", "Progress"]

Progress = Callable[[str], None]
"""Is told what is being done."""


@dataclass(frozen=True)
class Found:
    """A shortest path: in which scope, from which start, by which calls."""

    scope: Scope
    world: World
    calls: tuple[ActionCall, ...]

    @property
    def length(self) -> int:
        return len(self.calls)


class Kind:
    """The worlds of one scope and one pattern: they differ in their numbers only."""

    def __init__(
        self,
        plan: Plan,
        scope: Scope,
        pattern: Pattern,
        start: Start,
        budget: Budget,
    ) -> None:
        self.plan, self.scope, self.start, self.budget = plan, scope, start, budget
        self.functions, self.renamings = pattern.functions, pattern.renamings
        self._attempts = plan.attempts
        self._made: Stepper | None = None
        self._pass_starts: PassStarts | None = None
        system = plan.system
        self.names: list[tuple[str, str | None]] = [(c.name, None) for c in system.constants]
        for f in system.functions:
            if f.range == INT and f.name not in scope.fixed:
                self.names += [(f.name, x) for x in scope.universe[f.domain.name]]
        self._domain = {f.name: f.domain.name for f in system.functions}
        finite = Finite(scope.universe)
        finite.declare(system.constants, system.functions)
        for name, table in self.functions.items():
            for x, y in table.items():
                finite.functions[name][x] = y if isinstance(y, int) else {y: True}
        finite.constraints.clear()
        self._numbers = [
            finite.constants[name] if x is None else finite.functions[name][x]
            for name, x in self.names
        ]
        self.solver = z3.Solver()
        for (name, _), number in zip(self.names, self._numbers, strict=True):
            if name in scope.at_least:
                self.solver.add(number >= scope.at_least[name])
        for axiom in system.axioms:
            self.solver.add(finite(axiom.formula, Names()))
        self._not_negative = [number >= 0 for number in self._numbers]

    def search(self, bound: int, progress: Progress) -> Found | None:
        """A shortest path in any of these worlds, unless it is longer than `bound`."""
        best: Found | None = None
        count = 0
        while bound and (numbers := self._another()) is not None:
            count += 1
            progress(f"{self.scope.name}, kind {count}, up to {bound} calls")
            found, asked = self._search_one(numbers, bound)
            if found is not None:
                best, bound = found, found.length - 1
            self._done_with(asked)
        return best

    def _another(self) -> tuple[int, ...] | None:
        """The numbers of a world that nothing is known of, small ones if there are."""
        for most in (1, 2, 3, 4, None):
            small = [] if most is None else [n <= most for n in self._numbers] + self._not_negative
            answer = self.solver.check(*small)
            if answer == z3.sat:
                model = self.solver.model()
                return tuple(model.eval(n, True).as_long() for n in self._numbers)
            if answer == z3.unknown:
                raise TooMuch("Z3 does not know whether there are more worlds")
        return None

    def least(self, length: int, below: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """The least numbers of a world with a path of this length, if they are below these.

        None of them is below zero, also of those that no axiom and no scope bounds.
        """
        self.solver.add(*self._not_negative)
        if below is not None:
            self.solver.add(self._precede(below))
        best = None
        while (numbers := self._another()) is not None:
            found, asked = self._search_one(numbers, length)
            if found is None:
                self._done_with(asked)
                continue
            self.solver.push()
            self.solver.add(*self._answers(asked, range(1 + len(self.names))))
            best = self._first_numbers()
            self.solver.pop()
            self.solver.add(self._precede(best))
        return best

    def path(self, numbers: tuple[int, ...], length: int) -> Found:
        """The first of the shortest paths in this world."""
        found, _ = self._search_one(numbers, length, ordered=True)
        assert found is not None
        return found

    def _precede(self, numbers: tuple[int, ...]) -> z3.BoolRef:
        """The numbers come before these in the order of the dictionary."""
        earlier: z3.BoolRef = z3.BoolVal(False)
        for mine, theirs in zip(reversed(self._numbers), reversed(numbers), strict=True):
            earlier = z3.Or(mine < theirs, z3.And(mine == theirs, earlier))
        return earlier

    def _first_numbers(self) -> tuple[int, ...]:
        """The first numbers that the solver allows; it allows some, and none below zero."""
        chosen = []
        for number in self._numbers:
            value = 0
            while self.solver.check(number == value) != z3.sat:
                value += 1
            self.solver.add(number == value)
            chosen.append(value)
        return tuple(chosen)

    def _answers(self, asked: Mapping[Question, bool], moved: Sequence[int]) -> list[z3.BoolRef]:
        """The questions have these answers."""
        answers = []
        for question, negative in asked.items():
            parts = [c if s == 0 else c * self._numbers[moved[s] - 1] for s, c in question]
            amount = z3.Sum(parts)
            answers.append(amount < 0 if negative else amount >= 0)
        return answers

    def _done_with(self, asked: Mapping[Question, bool]) -> None:
        """No world that answers these questions alike, under whatever names, again."""
        for renaming in self.renamings:
            moved = self._moved_digits(renaming)
            self.solver.add(z3.Not(z3.And(*self._answers(asked, moved))))

    def _moved_digits(self, renaming: Renaming) -> list[int]:
        """For each digit of a form, up to the last number: where it goes."""
        places = {name: 1 + k for k, name in enumerate(self.names)}
        return [0, *(places[self._moved(n, renaming)] for n in self.names)]

    def _moved(self, name: tuple[str, str | None], renaming: Renaming) -> tuple[str, str | None]:
        function, x = name
        return (function, None) if x is None else (function, renaming[self._domain[function]][x])

    def _search_one(
        self, numbers: tuple[int, ...], bound: int, *, ordered: bool = False
    ) -> tuple[Found | None, dict[Question, bool]]:
        given = dict(zip(self.names, numbers, strict=True))
        alike = [
            r for r in self.renamings if all(given[self._moved(n, r)] == given[n] for n in given)
        ]
        while self._attempts:
            stepper = self._stepper()
            stepper.enter(Signs(stepper.layout.symbols, numbers))
            try:
                images = [Image(stepper.layout, r, self._moved_digits(r)).of for r in alike]
                walk = BreadthFirst(stepper, images, self.budget, ordered)
                path = walk.shortest(self._starts(stepper), bound)
            except Undetermined as wrong:
                self.plan.strike(wrong)
                self._made = self._pass_starts = None
                continue
            asked = self._closed(stepper.signs.asked, alike)
            if path is None:
                return None, asked
            return Found(self.scope, self._world(numbers), path), asked
        raise TooMuch("a comparison that depends on more than order and size")

    def _starts(self, stepper: Stepper) -> Iterable[Packed]:
        if self.start == "init":
            return [stepper.initial()]
        if self._pass_starts is None:
            self._pass_starts = PassStarts(stepper, self.plan.system)
        return self._pass_starts.states()

    def _closed(
        self, asked: Mapping[Question, bool], alike: Sequence[Renaming]
    ) -> dict[Question, bool]:
        """With each question that was asked, those that renaming makes of it."""
        closed: dict[Question, bool] = {}
        for renaming in alike:
            moved = self._moved_digits(renaming)
            for question, negative in asked.items():
                closed[tuple(sorted((moved[s], c) for s, c in question))] = negative
        return closed

    def _stepper(self) -> Stepper:
        if self._made is not None:
            return self._made
        attempt = self._attempts[0]
        ages = {name: k for k, scale in enumerate(attempt.scales) for name in scale}
        plan, universe = self.plan, self.scope.universe
        scales: list[int] = []
        for v in plan.variables:
            if v.name in ages:
                count = len(universe[v.sort.key.name]) if isinstance(v.sort, MapSort) else 1
                scales += [ages[v.name]] * count
        most = max(
            (sum(p.sort == INT for p in a.parameters) for a in plan.system.actions), default=0
        )
        symbols = Symbols(tuple(self.names), tuple(sorted(scales)), most)
        functions = {name: dict(table) for name, table in self.functions.items()}
        constants = {}
        for name, x in self.names:
            if x is None:
                constants[name] = symbols.number(name, x)
            else:
                functions.setdefault(name, {})[x] = symbols.number(name, x)
        for f in plan.system.functions:
            functions.setdefault(f.name, {})
        world = World(universe, constants, functions)
        self._made = Stepper(
            plan.system,
            world,
            plan.variables,
            ages,
            attempt.alive,
            plan.wanted,
            symbols,
            plan.free,
        )
        return self._made

    def _world(self, numbers: tuple[int, ...]) -> World:
        functions = {name: dict(table) for name, table in self.functions.items()}
        constants = {}
        for (name, x), number in zip(self.names, numbers, strict=True):
            if x is None:
                constants[name] = number
            else:
                functions.setdefault(name, {})[x] = number
        for f in self.plan.system.functions:
            functions.setdefault(f.name, {})
        return World(self.scope.universe, constants, functions)
