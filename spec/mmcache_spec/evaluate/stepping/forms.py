"""Linear forms in the numbers of a world, packed into integers, and the signs that they have there.

An integer of the model is a linear form in sizes, capacity and ages, with a digit for each symbol:
so the sum of two forms is the sum of two integers. A comparison looks the sign of a difference up
in a table, which knows the numbers of one world and remembers what it was asked.

Ages are digits of which only the order is known. A value that nobody may look at is a digit of
which nothing is known. A question that this does not answer raises `Undetermined`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "HALF",
    "WIDTH",
    "Form",
    "Question",
    "Signs",
    "Symbols",
    "Undetermined",
    "coefficients",
    "packed",
]

Form = int
"""A linear form: a signed digit of `WIDTH` bits for each symbol, the constant first."""

WIDTH = 16
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
