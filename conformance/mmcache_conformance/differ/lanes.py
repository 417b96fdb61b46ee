"""The way to a target and back for many sequences at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..errors import AdapterError, TargetError
from ..implementation import Implementation
from ..targets.command import CommandTarget, Posted
from ..targets.protocol import Answer, Case, ManagerTarget

__all__ = ["Lane", "Played", "lane_to", "start"]


class Played(Protocol):
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

    def send(self, batch: Sequence[Played]) -> None:
        """Begin with a batch. One is on its way at a time."""

    def receive(self) -> list[Answered]:
        """One entry a sequence of the batch, in order: its answers, or why there are none."""

    def fresh(self) -> None:
        """Forget, if that can be, what was played before."""


class _ClassLane:
    """A class in this process: it is asked when the answers are wanted."""

    def __init__(self, target: ManagerTarget) -> None:
        self._target = target
        self._batch: Sequence[Played] = ()

    def send(self, batch: Sequence[Played]) -> None:
        self._batch = batch

    def receive(self) -> list[Answered]:
        return [self._one(sequence) for sequence in self._batch]

    def fresh(self) -> None:
        """What a class keeps outside of its objects cannot be taken from it."""

    def _one(self, sequence: Played) -> Answered:
        try:
            return self._target.run(sequence.case)
        except AdapterError as error:
            return error


class _CommandLane:
    """A program: the batch is in its pipe while the next one is made."""

    def __init__(self, target: CommandTarget) -> None:
        self._target = target
        self._batch: list[Posted] = []
        self._wrong: AdapterError | None = None

    def send(self, batch: Sequence[Played]) -> None:
        self._batch = [sequence.posted for sequence in batch]
        self._post(self._batch)

    def receive(self) -> list[Answered]:
        found: list[Answered] = []
        while len(found) < len(self._batch):
            wrong = self._wrong
            if wrong is None:
                answers, wrong = self._target.collect()
                found += answers
            if wrong is not None:
                if len(found) == len(self._batch):  # it said something after the last reply
                    found.pop()
                found.append(wrong)
                if len(found) < len(self._batch):
                    self._post(self._batch[len(found) :])
        return found

    def fresh(self) -> None:
        self._target.restart()

    def _post(self, batch: list[Posted]) -> None:
        self._wrong = None
        try:
            self._target.post(batch)
        except AdapterError as error:
            self._wrong = error


def start(target: ManagerTarget) -> Implementation:
    """Start the target. Raises `TargetError`, after it was stopped again."""
    try:
        return target.start()
    except TargetError:
        target.stop()
        raise


def lane_to(target: ManagerTarget) -> Lane:
    """The way to a started target."""
    return _CommandLane(target) if isinstance(target, CommandTarget) else _ClassLane(target)
