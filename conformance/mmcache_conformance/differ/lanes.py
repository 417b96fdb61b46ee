"""The way to a target and back for many sequences at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..errors import AdapterError
from ..targets.command import CommandTarget, Posted
from ..targets.protocol import Answer, Case, ManagerTarget

__all__ = ["Answered", "CallsToPlay", "Lane", "lane_to"]


class CallsToPlay(Protocol):
    """What a lane needs to know of a sequence of calls."""

    @property
    def posted(self) -> Posted:
        """The JSON of the case, for a program."""

    @property
    def case(self) -> Case:
        """The case itself, for a class."""


Answered = tuple[Answer, ...] | AdapterError


class Lane(Protocol):
    """Send, do something else meanwhile, and receive."""

    def send(self, batch: Sequence[CallsToPlay]) -> None:
        """Begin with a batch. One is on its way at a time."""

    def receive(self) -> list[Answered]:
        """One entry a sequence of the batch, in order: its answers, or why there are none.

        Where there are none, that is the last entry: the rest of the batch was not played.
        """

    def fresh(self) -> None:
        """Forget, if that can be, what was played before."""

    @property
    def gave_up(self) -> bool:
        """Whether nothing is played any more: the target has been silent too often."""


class _ClassLane:
    """A class in this process: it is asked when the answers are wanted."""

    def __init__(self, target: ManagerTarget) -> None:
        self._target = target
        self._batch: Sequence[CallsToPlay] = ()

    def send(self, batch: Sequence[CallsToPlay]) -> None:
        self._batch = batch

    def receive(self) -> list[Answered]:
        found: list[Answered] = []
        for sequence in self._batch:
            found.append(self._one(sequence))
            if isinstance(found[-1], AdapterError):
                break
        return found

    def fresh(self) -> None:
        """What a class keeps outside of its objects cannot be taken from it."""

    @property
    def gave_up(self) -> bool:
        return False

    def _one(self, sequence: CallsToPlay) -> Answered:
        try:
            return self._target.run(sequence.case)
        except AdapterError as error:
            return error


class _CommandLane:
    """A program: the batch is in its pipe while the next one is made."""

    def __init__(self, target: CommandTarget) -> None:
        self._target = target
        self._count = 0
        self._wrong: AdapterError | None = None

    def send(self, batch: Sequence[CallsToPlay]) -> None:
        self._count, self._wrong = len(batch), None
        try:
            self._target.post([sequence.posted for sequence in batch])
        except AdapterError as error:
            self._wrong = error

    def receive(self) -> list[Answered]:
        if self._wrong is not None:
            return [self._wrong]
        answers, wrong = self._target.collect()
        found: list[Answered] = list(answers)
        if wrong is not None:
            if len(found) == self._count:  # it said something after the last reply
                found.pop()
            found.append(wrong)
        return found

    def fresh(self) -> None:
        self._target.restart()

    @property
    def gave_up(self) -> bool:
        return self._target.ended is not None


def lane_to(target: ManagerTarget) -> Lane:
    """The way to a started target."""
    return _CommandLane(target) if isinstance(target, CommandTarget) else _ClassLane(target)
