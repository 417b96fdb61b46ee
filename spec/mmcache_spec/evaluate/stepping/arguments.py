"""Calls with integer arguments: the choices of them that make a difference.

A call is run with a symbol for each integer argument. Where it compares one with something, the run
goes one way, and another run will go the other; so each run stands for all arguments that answer
alike. Only an integer that the state keeps must be known: then each of those that are left is
tried, if numbers that no size has a part in limit them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from ...kernel.system import Action
from ...kernel.terms import INT
from ..compiled import code
from ..interpreter import ActionCall
from .forms import HALF, WIDTH, Form, Signs, Symbols, Undetermined, coefficients
from .layout import Packed, Places
from .ranks import Ranks
from .writing import CallCode, made

__all__ = ["CallWithIntegers", "WriteCall"]

WriteCall = Callable[[Mapping[str, Any]], CallCode | None]
"""From arguments to the code of a call, or to None where it is refused whatever the state."""

_Outcome = tuple[tuple[int, ...], Packed, bool]
"""Arguments, what they write, and whether that breaks something."""


class _Probe(dict[Form, bool]):
    """Signs where the integer arguments are not chosen yet: each run makes some choices.

    A run answers questions about an argument as `script` says, and beyond it with yes where that
    is possible. What it answered bounds the argument from below and from above.
    """

    def __init__(self, signs: Signs, symbols: Symbols, count: int) -> None:
        super().__init__()
        self._signs = signs
        self._first = symbols.first_argument
        self._count = count
        self._parts: dict[Form, tuple[int, int, Form]] = {}
        self.begin(())

    def begin(self, script: tuple[bool, ...]) -> None:
        self._script = script
        self.chosen: list[bool] = []
        self.least: list[set[Form]] = [set() for _ in range(self._count)]
        self.most: list[set[Form]] = [set() for _ in range(self._count)]

    def __missing__(self, form: Form) -> bool:
        if form not in self._parts:
            self._parts[form] = self._apart(form)
        index, digit, rest = self._parts[form]
        if digit == 0:
            return self._signs[rest]
        # Yes: argument + rest < 0, or rest - argument < 0.
        if digit == 1:
            yes, no = (self.most, -rest - 1), (self.least, -rest)
        else:
            yes, no = (self.least, rest + 1), (self.most, rest)
        can = [self._possible(index, *yes), self._possible(index, *no)]
        answer = can[0]
        if all(can):
            at = len(self.chosen)
            answer = self._script[at] if at < len(self._script) else True
            self.chosen.append(answer)
        side, limit = yes if answer else no
        side[index].add(limit)
        return answer

    def _apart(self, form: Form) -> tuple[int, int, Form]:
        """Which argument occurs in the form, with which sign, and the rest of the form."""
        given = [(s - self._first, d) for s, d in coefficients(form) if s >= self._first]
        if not given:
            return 0, 0, form
        if len(given) > 1 or abs(given[0][1]) != 1:
            raise Undetermined("a sum of integer arguments")
        ((index, digit),) = given
        return index, digit, form - digit * (1 << (WIDTH * (self._first + index)))

    def _possible(self, index: int, side: list[set[Form]], limit: Form) -> bool:
        """Whether some argument respects this limit too."""
        if side is self.most:
            return not any(self._signs[limit - least] for least in self.least[index])
        return not any(self._signs[most - limit] for most in self.most[index])

    def examples(self) -> tuple[int, ...]:
        """Arguments that answer as this run did, in the world of the signs."""
        made = []
        for least, most in zip(self.least, self.most, strict=True):
            if least:
                made.append(max(map(self._signs.value, least)))
            else:
                made.append(min([0, *map(self._signs.value, most)]))
        return tuple(made)


class CallWithIntegers:
    """A call with integer arguments: each choice of them that makes a difference."""

    def __init__(
        self, action: Action, call: ActionCall, code_of: WriteCall, places: Places, ranks: Ranks
    ) -> None:
        self._call = call
        self._layout = places.layout
        self._places = places
        self._ranks = ranks
        self._names = [p.name for p in action.parameters if p.sort == INT]
        symbols = self._layout.symbols
        self._digits = tuple(symbols.argument(k) for k in range(len(self._names)))
        unknown = {name: code(f"a_{name}") for name in self._names}
        written = code_of({**call.arguments, **unknown})
        self.possible = written is not None
        body = [self._layout.unpacking()]
        if written is not None:
            body += [*written.lines, f"return {written.after}, {written.bad}"]
        head = ", ".join(["s", "S", "P", "N", *(f"a_{n}" for n in self._names)])
        self._function = made(f"call({head})", body)

    def enter(self, signs: Signs) -> None:
        """Go to a world, given by its signs."""
        self._signs = signs
        self._known: dict[Packed, list[_Outcome]] = {}
        self._probe = _Probe(signs, self._layout.symbols, len(self._names))

    def steps(self, state: Packed) -> list[tuple[Packed, bool]]:
        """The states after the call, for each choice, and whether it breaks something."""
        change = self._places.changed
        return [(change(state, new), bad) for _, new, bad in self._outcomes(state)]

    def call(self, before: Packed, after: Packed, broke: bool) -> ActionCall:
        """The first choice, in forms, that leads there."""
        given = next(
            numbers
            for numbers, new, bad in self._outcomes(before)
            if (self._places.changed(before, new), bad) == (after, broke)
        )
        integers = dict(zip(self._names, given, strict=True))
        return ActionCall(self._call.action, {**self._call.arguments, **integers})

    def _outcomes(self, state: Packed) -> list[_Outcome]:
        key = self._places.read_in(state)
        if key not in self._known:
            self._known[key] = self._try_all(state)
        return self._known[key]

    def _try_all(self, state: Packed) -> list[_Outcome]:
        outcomes: dict[tuple[Packed, bool], tuple[int, ...]] = {}
        probe = self._probe
        scripts: list[tuple[bool, ...]] = [()]
        while scripts:
            script = scripts.pop()
            probe.begin(script)
            done = self._function(state, self._signs, probe, self._ranks, *self._digits)
            for k in range(len(script), len(probe.chosen)):
                scripts.append((*probe.chosen[:k], False))
            if done is not None:
                after, bad = done
                if self._keeps_arguments(after):
                    outcomes |= self._one_by_one(state)
                    continue
                outcome = self._places.changed_in(after), bool(bad)
                given = probe.examples()
                outcomes[outcome] = min(given, outcomes.get(outcome, given))
        return [(given, new, bad) for (new, bad), given in outcomes.items()]

    def _one_by_one(self, state: Packed) -> dict[tuple[Packed, bool], tuple[int, ...]]:
        """What comes of each choice that the last run allows, where it matters for ever.

        The limits must be numbers that no size has a part in.
        """
        ranges = []
        for least, most in zip(self._probe.least, self._probe.most, strict=True):
            low, high = ([f for f in side if abs(f) < HALF] for side in (least, most))
            if not low or not high:
                raise Undetermined(f"{self._call.action} keeps an integer without limits")
            ranges.append(range(max(low), min(high) + 1))
        outcomes: dict[tuple[Packed, bool], tuple[int, ...]] = {}
        for given in product(*ranges):
            signs = self._signs
            done = self._function(state, signs, signs, self._ranks, *given)
            if done is not None:
                after, bad = done
                outcomes.setdefault((self._places.changed_in(after), bool(bad)), given)
        return outcomes

    def _keeps_arguments(self, after: Packed) -> bool:
        first = self._layout.symbols.first_argument
        integers = [after[k] for k in self._layout.integer_places]
        found = (coefficients(form) for value in integers for form in _integers_in(value))
        return any(question and question[-1][0] >= first for question in found)


def _integers_in(value: Any) -> Iterable[int]:
    if isinstance(value, tuple):
        for part in value:
            yield from _integers_in(part)
    elif isinstance(value, int):
        yield value
