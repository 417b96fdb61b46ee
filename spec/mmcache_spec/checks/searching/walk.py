"""States in the order of their distance from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...evaluate.interpreter import ActionCall
from ...evaluate.stepping import Packed, Stepper, Successor

__all__ = ["BreadthFirst", "Budget", "TooMuch"]


class TooMuch(Exception):
    """The search would need more states than it may have, or cannot be made at all."""


@dataclass
class Budget:
    """How many states a search may still have."""

    states: int

    def spend(self) -> None:
        self.states -= 1
        if self.states < 0:
            raise TooMuch("more states than the search may have")


class BreadthFirst:
    """A search through one world. Of a state and its images one is looked at.

    Where `ordered`, calls are tried in the order in which they are declared, and so the first of
    the shortest paths is found.
    """

    def __init__(
        self,
        stepper: Stepper,
        images: Sequence[Callable[[Packed], Packed]],
        budget: Budget,
        ordered: bool,
    ) -> None:
        self._stepper = stepper
        self._steps = self._in_order if ordered else stepper.successors
        self._images = images
        self._budget = budget
        self._came: dict[Packed, tuple[Packed, int]] = {}
        self.seen: set[Packed] = set()

    def shortest(self, starts: Iterable[Packed], bound: int) -> tuple[ActionCall, ...] | None:
        stepper, seen, images = self._stepper, self.seen, self._images
        level = []
        for state in starts:
            if state not in seen:
                level.append(state)
                if not stepper.breaks(state):
                    seen.update(image(state) for image in images)
        for _ in range(bound):
            following: list[Packed] = []
            for state in level:
                for number, after, broke in self._steps(state):
                    if broke:
                        return self._path(state, number, after, True)
                    if after in seen:
                        continue
                    if stepper.breaks(after):
                        return self._path(state, number, after, False)
                    self._budget.spend()
                    for image in images:
                        seen.add(image(after))
                    self._came[after] = state, number
                    following.append(after)
            level = following
            if not level:
                break
        return None

    def _in_order(self, state: Packed) -> list[Successor]:
        return sorted(self._stepper.successors(state), key=lambda s: (s[0], s[2]))

    def _path(
        self, last: Packed, number: int, after: Packed, broke: bool
    ) -> tuple[ActionCall, ...]:
        calls = [self._stepper.call(number, last, after, broke)]
        state = last
        while state in self._came:
            before, number = self._came[state]
            calls.append(self._stepper.call(number, before, state, False))
            state = before
        return tuple(reversed(calls))
