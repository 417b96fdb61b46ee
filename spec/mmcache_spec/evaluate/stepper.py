"""The same definitions as fast Python over linear forms: one world stands for many.

`compiled` knows the size of every hash. Here sizes, capacity and ages are symbols, and an integer
of the model is a linear form in them, packed into one Python integer with a digit for each symbol:
so the sum of two forms is the sum of two integers. A comparison looks the sign of a difference up
in a table, which knows the numbers of one world and remembers what it was asked. Every world that
gives the same answers to the same questions has the same states and steps: a search through one is
a search through all of them.

Ages are digits of which only the order is known. A value that nobody may look at is a digit of
which nothing is known. A question that this does not answer raises `Undetermined`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from ..kernel.system import Action, ActionProperty, Invariant, TransitionSystem
from ..kernel.terms import BOOL, INT, Binder, MapSort, Op, SetSort, Symbol, Term, subterms
from .compiled import CompiledSystem, Emitter, choice, code, is_code, sum_of, text_of
from .interpreter import ActionCall, World

__all__ = [
    "Form",
    "Question",
    "Signs",
    "Stepper",
    "Symbols",
    "Undetermined",
    "is_integer",
]

Form = int
"""A linear form: a signed digit of `WIDTH` bits for each symbol, the constant first."""

WIDTH = 16
MOST_CHOICES = 2000
HALF, MASK = 1 << (WIDTH - 1), (1 << WIDTH) - 1

Question = tuple[tuple[int, int], ...]
"""A form as pairs of symbol and coefficient, in order; symbol 0 is the constant 1."""


class Undetermined(Exception):
    """A comparison that what is known of the symbols does not decide."""

    def __init__(self, what: str, scales: frozenset[int] = frozenset()) -> None:
        super().__init__(what)
        self.scales = scales
        """The time scales of which a forgotten age was asked for."""


def coefficients(form: Form) -> Question:
    """The symbols of a form and their coefficients."""
    found = []
    symbol = 0
    while form:
        digit = ((form + HALF) & MASK) - HALF
        if digit:
            found.append((symbol, digit))
        form = (form - digit) >> WIDTH
        symbol += 1
    return tuple(found)


def packed(question: Iterable[tuple[int, int]]) -> Form:
    return sum(digit << (WIDTH * symbol) for symbol, digit in question)


@dataclass(frozen=True)
class Symbols:
    """Which digit is what: numbers of the world first, then ages, then unknowns, then arguments."""

    numbers: tuple[tuple[str, str | None], ...]
    """A constant, or a function and its argument."""
    scales: tuple[int, ...]
    """For each age of a state, the time scale: ages of different scales are not compared."""
    arguments: int

    def number(self, name: str, argument: str | None) -> Form:
        return 1 << (WIDTH * (1 + self.numbers.index((name, argument))))

    def age(self, scale: int, rank: int) -> Form:
        return 1 << (WIDTH * (self.first_age + self.scales.index(scale) + rank))

    def unknown(self, slot: int) -> Form:
        return 1 << (WIDTH * (self.first_unknown + slot))

    def argument(self, index: int) -> Form:
        return 1 << (WIDTH * (self.first_argument + index))

    @property
    def first_age(self) -> int:
        return 1 + len(self.numbers)

    @property
    def first_unknown(self) -> int:
        return self.first_age + len(self.scales)

    @property
    def first_argument(self) -> int:
        return self.first_unknown + len(self.scales)

    def scale_of(self, symbol: int) -> int:
        """The time scale of an age."""
        return self.scales[symbol - self.first_age]

    def forgotten(self, question: Question) -> frozenset[int]:
        """The scales of the unknowns in a question."""
        first, last = self.first_unknown, self.first_argument
        return frozenset(self.scales[s - first] for s, _ in question if first <= s < last)


class Signs(dict[Form, bool]):
    """Whether a form is negative; and every question about the numbers of the world asked so far.

    There are no other comparisons: a ≤ b is a - b - 1 < 0, and a = b is neither less.
    """

    def __init__(self, symbols: Symbols, numbers: Sequence[int]) -> None:
        super().__init__()
        self._symbols = symbols
        self._numbers = (1, *numbers)
        self.asked: dict[Question, bool] = {}

    def __missing__(self, form: Form) -> bool:
        question = coefficients(form)
        if question and question[-1][0] >= self._symbols.first_age:
            negative = self._of_ages(question)
        else:
            negative = sum(digit * self._numbers[symbol] for symbol, digit in question) < 0
            if question and question[-1][0] > 0:
                self.asked[question] = negative
        self[form] = negative
        return negative

    def value(self, form: Form) -> int:
        """The number that the form has in this world."""
        return sum(digit * self._numbers[symbol] for symbol, digit in coefficients(form))

    def _of_ages(self, question: Question) -> bool:
        """No age is negative; of two, the one of the higher rank is greater by one or more."""
        constant = sum(digit for symbol, digit in question if symbol == 0)
        rest = tuple(pair for pair in question if pair[0] != 0)
        if len(rest) == 1 and rest[0][0] < self._symbols.first_unknown:  # An age.
            ((_, digit),) = rest
            if digit > 0 and constant >= 0:
                return False
            if digit < 0 and constant < 0:
                return True
        if len(rest) == 2:
            (low, one), (high, two) = rest
            known = self._symbols.first_age <= low and high < self._symbols.first_unknown
            if known and self._symbols.scale_of(low) == self._symbols.scale_of(high):
                if (one, two) == (-1, 1) and constant >= -1:
                    return False
                if (one, two) == (1, -1) and constant <= 0:
                    return True
        raise Undetermined(str(question), self._symbols.forgotten(question))


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


def is_integer(variable: Symbol) -> bool:
    sort = variable.sort.value if isinstance(variable.sort, MapSort) else variable.sort
    return sort == INT


Packed = tuple[Any, ...]
Successor = tuple[int, Packed, bool]
"""The number of the call, the state after it, and whether the call breaks something."""


class Stepper:
    """All steps out of a state of one world, at once."""

    def __init__(
        self,
        system: TransitionSystem,
        world: World,
        variables: tuple[Symbol, ...],
        ages: Mapping[str, int],
        alive: Sequence[str | None],
        wanted: Sequence[Invariant | ActionProperty],
        symbols: Symbols,
    ) -> None:
        """`world` has forms for numbers. `ages` are variables of which only the order counts,
        with their time scales; for each scale, ages of elements outside of the set `alive` are
        forgotten."""
        self.system = system
        self.variables = (
            *(v for v in variables if v.name not in ages),
            *sorted((v for v in variables if v.name in ages), key=lambda v: ages[v.name]),
        )
        self.ages = ages
        self.symbols = symbols
        self.signs = Signs(symbols, ())
        self._compiled = CompiledSystem(system, world, with_ghosts=True)
        by_name = {v.name: v for v in variables}
        self.alive = tuple(None if name is None else by_name[name] for name in alive)
        self.normal = _Normal(self)
        self.wanted = wanted
        self.calls: list[ActionCall] = []
        self._with_integers: dict[int, _WithIntegers] = {}
        self._expand = self._write()
        self._breaks = self._write_invariants([p for p in wanted if isinstance(p, Invariant)])

    @cached_property
    def integer_places(self) -> list[int]:
        """Where in a state there are integers, or tuples of them."""
        plain = [v for v in self.variables if v.name not in self.ages]
        found = [k for k, v in enumerate(plain) if is_integer(v)]
        return [*found, len(plain)] if self.ages else found

    def enter(self, signs: Signs) -> None:
        """Go to a world, given by its signs."""
        self.signs = signs
        for call in self._with_integers.values():
            call.forget()

    @cached_property
    def age_slots(self) -> list[tuple[str, str | None]]:
        slots: list[tuple[str, str | None]] = []
        for v in self.variables:
            if v.name in self.ages:
                if isinstance(v.sort, MapSort):
                    slots += [(v.name, k) for k in self._compiled.elements(v.sort.key)]
                else:
                    slots.append((v.name, None))
        return slots

    def is_alive(self, slot: int, lives: Sequence[int]) -> bool:
        """Whether the age matters, where the sets that tell have these elements."""
        name, element = self.age_slots[slot]
        scale = self.ages[name]
        teller = self.alive[scale]
        if element is None or teller is None:
            return True
        assert isinstance(teller.sort, SetSort)
        return bool(lives[scale] & self._compiled.bit(teller.sort, (element,)))

    def lives_in(self, values: Mapping[str, Any]) -> list[int]:
        return [-1 if v is None else values[v.name] for v in self.alive]

    # Values between the outside and here: a state is a tuple of the variables in their order; the
    # ages are one flat tuple at the end.

    def pack(self, values: Mapping[str, Any]) -> Packed:
        flat: list[Any] = []
        aged: list[Form] = []
        for v in self.variables:
            value = values[v.name]
            if v.name in self.ages:
                aged += value if isinstance(value, tuple) else [value]
            else:
                flat.append(value)
        if not self.ages:
            return tuple(flat)
        return (*flat, self.normal[(*aged, *self.lives_in(values))])

    def initial(self) -> Packed:
        writer = self._emitter({})
        by_name = {v.name: term for v, term in self.system.init}
        values = {v.name: writer.value(by_name[v.name], {}) for v in self.variables}
        if writer.lines or any(is_code(v) for v in values.values()):
            raise Undetermined("the initial state is not a constant")
        return self.pack(values)

    def successors(self, state: Packed) -> list[Successor]:
        out: list[Successor] = []
        allowed: list[int] = []
        self._expand(state, self.signs, self.normal, out.append, allowed.append)
        for number in allowed:
            out += self._with_integers[number].successors(number, state)
        return out

    def breaks(self, state: Packed) -> bool:
        """Whether the state violates a wanted invariant."""
        return bool(self._breaks(state, self.signs))

    def call(self, number: int, before: Packed, after: Packed, broke: bool) -> ActionCall:
        """The call with its integers, which are forms."""
        if number in self._with_integers:
            return self._with_integers[number].call(before, after, broke)
        return self.calls[number]

    def predicate(self, formula: Term) -> Callable[[Packed], bool]:
        """Of a state, whether the formula holds."""
        writer = self._emitter({})
        value = writer.value(formula, {})
        body = [self.unpacking(), *writer.lines, f"return bool({text_of(value)})"]
        function = _made("check(s, S)", body)
        return lambda state: bool(function(state, self.signs))

    def condition(self, formula: Term) -> tuple[tuple[str, ...], Callable[..., bool]]:
        """The names of the variables of a formula, and its truth, given their values."""
        names = self._names_in(formula)
        writer = self._emitter({})
        value = writer.value(formula, {})
        body = [*self._entries(names), *writer.lines, f"return bool({text_of(value)})"]
        return names, _made(f"truth({', '.join(['S', *map(_local, names)])})", body)

    def amount(self, term: Term) -> tuple[tuple[str, ...], Callable[..., Any]]:
        """The names of the variables of a term, and its value, given theirs."""
        names = self._names_in(term)
        writer = self._emitter({})
        value = writer.value(term, {})
        body = [*self._entries(names), *writer.lines, f"return {text_of(value)}"]
        return names, _made(f"amount({', '.join(['S', *map(_local, names)])})", body)

    def _names_in(self, term: Term) -> tuple[str, ...]:
        found = (s for s in subterms(term) if isinstance(s, Symbol))
        return tuple(dict.fromkeys(s.name for s in found if s.role in ("state", "ghost")))

    def _entries(self, names: Iterable[str]) -> list[str]:
        lines = []
        for v in self.variables:
            if v.name in names and isinstance(v.sort, MapSort):
                keys = range(len(self._compiled.elements(v.sort.key)))
                parts = "".join(f"{_local(v.name)}_{k}, " for k in keys)
                lines.append(f"({parts}) = {_local(v.name)}")
        return lines

    def width(self, sort: SetSort) -> int:
        """The number of elements that a set of this sort may have."""
        return prod(len(self._compiled.elements(e)) for e in sort.elements)

    # Writing the code.

    def _emitter(self, arguments: Mapping[str, Any]) -> _StepEmitter:
        return _StepEmitter(self._compiled, arguments)

    def unpacking(self) -> str:
        names = [_local(v.name) for v in self.variables if v.name not in self.ages]
        if self.ages:
            slots = [
                _local(name) if key is None else f"{_local(name)}_{self._key(name, key)}"
                for name, key in self.age_slots
            ]
            names.append("(" + "".join(f"{x}, " for x in slots) + ")")
        for v in self.variables:
            if v.name not in self.ages and isinstance(v.sort, MapSort):
                keys = range(len(self._compiled.elements(v.sort.key)))
                at = names.index(_local(v.name))
                names[at] = "(" + "".join(f"{_local(v.name)}_{k}, " for k in keys) + ")"
        return f"{', '.join(names)}, = s" if names else "pass"

    def _key(self, name: str, key: str) -> int:
        (sort,) = (v.sort for v in self.variables if v.name == name)
        assert isinstance(sort, MapSort)
        return list(self._compiled.elements(sort.key)).index(key)

    def _result(self, after: Mapping[str, Any]) -> str:
        parts = [text_of(after[v.name]) for v in self.variables if v.name not in self.ages]
        if self.ages:
            aged: list[str] = []
            for v in self.variables:
                if v.name in self.ages:
                    value = after[v.name]
                    aged += map(text_of, value) if isinstance(value, tuple) else [text_of(value)]
            lives = ["-1" if v is None else text_of(after[v.name]) for v in self.alive]
            parts.append(f"N[({', '.join([*aged, *lives])},)]")
        return "(" + "".join(f"{p}, " for p in parts) + ")"

    def _write(self) -> Callable[..., None]:
        body = [self.unpacking()]
        elements = [(a, c) for a in self.system.actions for c in self._element_calls(a)]
        for action, call in elements:
            number = len(self.calls)
            self.calls.append(call)
            if any(p.sort == INT for p in action.parameters):
                with_integers = _WithIntegers(self, action, call)
                if with_integers.possible:
                    self._with_integers[number] = with_integers
                    body += self._when_allowed(number, action, call)
                continue
            lines, after, bad = self.one(action, call.arguments, indented=True)
            if lines is None:
                continue
            body += lines
            depth = self._last_depth
            body.append(" " * depth + f"out(({number}, {after}, {bad}))")
        return _made("expand(s, S, N, out, more)", body)

    def _when_allowed(self, number: int, action: Action, call: ActionCall) -> list[str]:
        """A note that the call may happen, if the guards without integer arguments allow it."""
        integers = {p.name for p in action.parameters if p.sort == INT}
        writer = self._emitter(call.arguments)
        conditions = [
            text_of(writer.value(guard, {}))
            for guard in action.guard.values()
            if not any(isinstance(s, Symbol) and s.name in integers for s in subterms(guard))
        ]
        test = " and ".join(c for c in conditions if c != "True") or "True"
        return [*writer.lines, f"if {test}: more({number})"]

    def _element_calls(self, action: Action) -> Iterable[ActionCall]:
        parameters = [p for p in action.parameters if p.sort != INT]
        choices = [self._compiled.elements(p.sort) for p in parameters]
        for values in product(*choices):
            yield ActionCall(
                action.name, dict(zip((p.name for p in parameters), values, strict=True))
            )

    def one(
        self, action: Action, arguments: Mapping[str, Any], *, indented: bool
    ) -> tuple[list[str] | None, str, str]:
        """The lines of one call, its state after, and the condition that it breaks something."""
        writer = self._emitter(arguments)
        lines: list[str] = []
        depth = 0
        for guard in action.guard.values():
            value = writer.value(guard, {})
            lines += [" " * depth + line for line in writer.lines]
            writer.lines.clear()
            if not is_code(value):
                if not value:
                    return None, "", ""
                continue
            if indented:
                lines.append(" " * depth + f"if {value}:")
                depth += 1
            else:
                lines.append(f"if not {value}: return None")
        updates = action.updates
        claims = [
            p.formula
            for p in self.wanted
            if isinstance(p, ActionProperty) and p.action == action.name
        ]
        moved = {v.name for v in self.variables}
        effects = [term for v, term in action.effect if v.name in moved]
        if action.returns is not None and any(map(_speaks_of_the_answer, (*claims, *effects))):
            writer.answer = writer.value(action.returns, {})
        after = {
            v.name: writer.value(updates[v.name], {}) if v.name in updates else writer.state_of(v)
            for v in self.variables
        }
        writer.after = after
        held = [writer.value(formula, {}) for formula in claims]
        bad = [f"not {text_of(h)}" for h in held]
        lines += [" " * depth + line for line in writer.lines]
        self._last_depth = depth
        return lines, self._result(after), " or ".join(bad) or "False"

    def _write_invariants(self, wanted: Sequence[Invariant]) -> Callable[..., bool]:
        writer = self._emitter({})
        body = [self.unpacking()]
        for invariant in wanted:
            value = writer.value(invariant.formula, {})
            body += writer.lines
            writer.lines.clear()
            body.append(f"if not {text_of(value)}: return True")
        body.append("return False")
        return _made("breaks(s, S)", body)


class _WithIntegers:
    """A call with integer arguments: each choice of them that makes a difference."""

    def __init__(self, stepper: Stepper, action: Action, call: ActionCall) -> None:
        self._stepper = stepper
        self._call = call
        self._names = [p.name for p in action.parameters if p.sort == INT]
        self._digits = tuple(stepper.symbols.argument(k) for k in range(len(self._names)))
        unknown = {name: code(f"a_{name}") for name in self._names}
        lines, after, bad = stepper.one(action, {**call.arguments, **unknown}, indented=False)
        self.possible = lines is not None
        body = [stepper.unpacking(), *(lines or []), f"return {after or None}, {bad or None}"]
        head = ", ".join(["s", "S", "P", "N", *(f"a_{n}" for n in self._names)])
        self._function = _made(f"call({head})", body)
        self._places = _Places(stepper, action)
        self.forget()

    def forget(self) -> None:
        stepper = self._stepper
        self._known: dict[Packed, list[tuple[tuple[int, ...], Packed, bool]]] = {}
        self._probe = _Probe(stepper.signs, stepper.symbols, len(self._names))

    def successors(self, number: int, state: Packed) -> list[Successor]:
        change = self._places.changed
        return [(number, change(state, new), bad) for _, new, bad in self._outcomes(state)]

    def call(self, before: Packed, after: Packed, broke: bool) -> ActionCall:
        given = next(
            numbers
            for numbers, new, bad in self._outcomes(before)
            if (self._places.changed(before, new), bad) == (after, broke)
        )
        integers = dict(zip(self._names, given, strict=True))
        return ActionCall(self._call.action, {**self._call.arguments, **integers})

    def _outcomes(self, state: Packed) -> list[tuple[tuple[int, ...], Packed, bool]]:
        key = self._places.read_in(state)
        if key not in self._known:
            self._known[key] = self._try_all(state)
        return self._known[key]

    def _try_all(self, state: Packed) -> list[tuple[tuple[int, ...], Packed, bool]]:
        outcomes: dict[tuple[Packed, bool], tuple[int, ...]] = {}
        probe = self._probe
        scripts: list[tuple[bool, ...]] = [()]
        while scripts:
            script = scripts.pop()
            probe.begin(script)
            done = self._function(
                state, self._stepper.signs, probe, self._stepper.normal, *self._digits
            )
            for k in range(len(script), len(probe.chosen)):
                scripts.append((*probe.chosen[:k], False))
            if done is not None:
                after, bad = done
                if self._keeps_arguments(after):
                    outcomes |= self._one_by_one(state)
                    continue
                outcomes.setdefault((self._places.changed_in(after), bool(bad)), probe.examples())
        return [(given, new, bad) for (new, bad), given in outcomes.items()]

    def _one_by_one(self, state: Packed) -> dict[tuple[Packed, bool], tuple[int, ...]]:
        """What comes of each choice that the last run allows, where it matters for ever.

        The limits must be numbers that no size has a part in.
        """
        ranges = []
        for least, most in zip(self._probe.least, self._probe.most, strict=True):
            if not least or not most or not all(abs(f) < HALF for f in least | most):
                raise Undetermined(f"{self._call.action} keeps an integer without limits")
            ranges.append(range(max(least), min(most) + 1))
        stepper = self._stepper
        outcomes: dict[tuple[Packed, bool], tuple[int, ...]] = {}
        for given in product(*ranges):
            signs = stepper.signs
            done = self._function(state, signs, signs, stepper.normal, *given)
            if done is not None:
                after, bad = done
                outcomes.setdefault((self._places.changed_in(after), bool(bad)), given)
        return outcomes

    def _keeps_arguments(self, after: Packed) -> bool:
        first = self._stepper.symbols.first_argument
        integers = [after[k] for k in self._stepper.integer_places]
        found = (coefficients(form) for value in integers for form in _integers_in(value))
        return any(question and question[-1][0] >= first for question in found)


def _integers_in(value: Any) -> Iterable[int]:
    if isinstance(value, tuple):
        for part in value:
            yield from _integers_in(part)
    elif isinstance(value, int):
        yield value


def _local(name: str) -> str:
    """The name that a variable of the model has in the code, as `Emitter` writes it."""
    return f"s_{name.replace(' ', '_')}"


def _speaks_of_the_answer(term: Term) -> bool:
    return any(isinstance(s, Symbol) and s.role == "result" for s in subterms(term))


class _Places:
    """Which components of a state a call reads, and which it changes."""

    def __init__(self, stepper: Stepper, action: Action) -> None:
        plain = [v.name for v in stepper.variables if v.name not in stepper.ages]
        aged = len(plain)
        claims = [p for p in stepper.wanted if isinstance(p, ActionProperty)]
        terms = [*action.guard.values(), *(t for _, t in action.effect)]
        terms += [p.formula for p in claims if p.action == action.name]
        terms += [] if action.returns is None else [action.returns]
        names = {s.name for t in terms for s in subterms(t) if isinstance(s, Symbol)}
        kept = {v.name for v in stepper.variables}
        moved = {v.name for v, _ in action.effect} & kept
        ordering = {*stepper.ages, *(v.name for v in stepper.alive if v is not None)}
        if moved & ordering:
            names |= ordering
        read = {aged if n in stepper.ages else plain.index(n) for n in names & kept}
        written = {aged if n in stepper.ages else plain.index(n) for n in moved}
        if moved & ordering and stepper.ages:
            written.add(aged)
        self._read = sorted(read)
        self._written = sorted(written)

    def read_in(self, state: Packed) -> Packed:
        return tuple(state[k] for k in self._read)

    def changed_in(self, state: Packed) -> Packed:
        return tuple(state[k] for k in self._written)

    def changed(self, state: Packed, new: Packed) -> Packed:
        after = list(state)
        for k, value in zip(self._written, new, strict=True):
            after[k] = value
        return tuple(after)


class _Normal(dict[tuple[Form, ...], tuple[Form, ...]]):
    """The ages of a state, as ranks; those that are not alive, as unknowns."""

    def __init__(self, stepper: Stepper) -> None:
        super().__init__()
        self._stepper = stepper

    def __missing__(self, key: tuple[Form, ...]) -> tuple[Form, ...]:
        stepper = self._stepper
        signs, symbols = stepper.signs, stepper.symbols
        count = len(stepper.age_slots)
        values, lives = key[:count], key[count:]
        unknown = {k for k in range(count) if not stepper.is_alive(k, lives)}
        unknown |= {k for k in range(count) if symbols.forgotten(coefficients(values[k]))}
        made = [symbols.unknown(k) for k in range(count)]
        for scale in range(len(stepper.alive)):
            order: list[list[int]] = []
            for k in range(count):
                if symbols.scales[k] == scale and k not in unknown:
                    self._insert(order, k, values, signs)
            for rank, group in enumerate(order):
                for k in group:
                    made[k] = symbols.age(scale, rank)
        found = tuple(made)
        self[key] = found
        return found

    @staticmethod
    def _insert(
        order: list[list[int]], new: int, values: Sequence[Form], signs: Mapping[Form, bool]
    ) -> None:
        """Put an age where it belongs among those in order."""
        if signs[values[new]]:
            raise Undetermined("a negative age")
        for at, group in enumerate(order):
            if signs[values[new] - values[group[0]]]:
                order.insert(at, [new])
                return
            if not signs[values[group[0]] - values[new]]:
                group.append(new)
                return
        order.append([new])


ASKS = re.compile(r"\b[SP]\[")
WORD = re.compile(r"\w+")


class _Cells(type(code(""))):  # type: ignore[misc]
    """A set that is not known yet, by the condition of each membership."""

    cells: tuple[Any, ...]


def _cells(cells: Sequence[Any]) -> Any:
    bits = sum_of([choice(c, 1 << k, 0) for k, c in enumerate(cells)], " | ")
    if not is_code(bits):
        return bits
    made = _Cells(bits)
    made.cells = tuple(cells)
    return made


class _StepEmitter(Emitter):
    """Comparisons of integers ask for signs, and are made only where they are needed."""

    def __init__(self, of: CompiledSystem, arguments: Mapping[str, Any]) -> None:
        super().__init__(of, arguments)
        self._tainted = {str(a) for a in arguments.values() if is_code(a)}
        self.after: Mapping[str, Any] = {}

    def state_of(self, variable: Symbol) -> Any:
        return self._state(variable, "s")

    def _symbol(self, symbol: Symbol, bound: Mapping[Symbol, str]) -> Any:
        match symbol.role:
            case "next":
                return self.after[symbol.name]
        return super()._symbol(symbol, bound)

    def kept(self, term: Term, bound: Mapping[Symbol, str], value: Any) -> Any:
        """A comparison may be one that is not to be made, so it stays where it is needed."""
        if is_code(value):
            asks = ASKS.search(value) is not None
            if asks and (bound or term.sort == BOOL):
                return value
            if term.sort == BOOL and len(value) < 160:
                return value
        return super().kept(term, bound, value)

    def _named(self, value: Any) -> Any:
        name = super()._named(value)
        if is_code(name) and name is not value and self._uncertain(value):
            self._tainted.add(str(name))
        return name

    def _uncertain(self, text: str) -> bool:
        """Whether the expression depends on an integer argument."""
        return bool(self._tainted) and not self._tainted.isdisjoint(WORD.findall(text))

    def _binder(self, term: Binder, bound: Mapping[Symbol, str]) -> Any:
        if term.name != "setof":
            return super()._binder(term, bound)
        choices = product(*(self._of.elements(v.sort) for v in term.variables))
        inner = [{**bound, **dict(zip(term.variables, c, strict=True))} for c in choices]
        cells = [self.value(term.body, b) for b in inner]
        return _cells(cells)

    def _op(self, term: Term, bound: Mapping[Symbol, str]) -> Any:
        assert isinstance(term, Op)
        if term.name == "member":
            members = self.value(term.args[0], bound)
            if isinstance(members, _Cells):
                element = [self.value(a, bound) for a in term.args[1:]]
                return members.cells[self._bit(term.args[0], element).bit_length() - 1]
        return super()._op(term, bound)

    def _total(self, term: Op, bits: Any) -> Any:
        if not isinstance(bits, _Cells):
            return super()._total(term, bits)
        assert term.function is not None
        weights = self._of.world.functions[term.function.name]
        each = [weights[x] for x in self._of.elements(term.function.domain)]
        return sum_of([choice(c, w, 0) for c, w in zip(bits.cells, each, strict=True)], " + ")

    def compared(self, term: Op, left: Any, right: Any) -> Any:
        sort = term.args[0].sort
        if isinstance(sort, MapSort) and sort.value == INT:
            pairs = zip(left, right, strict=True)
            parts = [self._compared("eq", a, b) for a, b in pairs]
            return code(f"all(({', '.join(text_of(p) for p in parts)},))")
        if sort == INT:
            return self._compared(term.name, left, right)
        return super().compared(term, left, right)

    def _compared(self, name: str, left: Any, right: Any) -> Any:
        if not is_code(left) and not is_code(right) and left == right:
            return name != "lt"
        one, two = text_of(left), text_of(right)
        table = "P" if self._uncertain(f"{one} {two}") else "S"
        match name:
            case "lt":
                return code(f"{table}[{one} - {two}]")
            case "le":
                return code(f"{table}[{one} - {two} - 1]")
        return code(f"(not {table}[{one} - {two}] and not {table}[{two} - {one}])")

    def largest(self, values: list[Any]) -> Any:
        if not values:
            return 0
        return code(f"largest(S, ({', '.join(text_of(v) for v in values)},))")


def largest(signs: Mapping[Form, bool], values: Iterable[Form | None]) -> Form:
    """The greatest of those that are not None, 0 where there is none."""
    best: Form | None = None
    for value in values:
        if value is not None and (best is None or signs[best - value]):
            best = value
    return 0 if best is None else best


def _made(head: str, body: Sequence[str]) -> Callable[..., Any]:
    source = f"def {head}:\n" + "".join(f"    {line}\n" for line in body)
    names: dict[str, Any] = {"largest": largest}
    exec(compile(source, f"<{head}>", "exec"), names)
    function: Callable[..., Any] = names[head.partition("(")[0]]
    return function
