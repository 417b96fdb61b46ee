"""What stands between the runner and a pair of processor caches: calls in, answers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import msgspec

from mmcache_vectors.pair import PairCall, PairParameters, PairRequest, PairVector

from ..implementation import Implementation

__all__ = [
    "Keys",
    "NotOffered",
    "PairAnswer",
    "PairCase",
    "PairMiss",
    "PairSides",
    "PairTarget",
    "RequestFailed",
    "SideEnded",
    "call_name",
    "pair_case",
]


class PairMiss(Exception):
    """P1 was asked for hashes without data and does not have them; only the request ends."""

    def __init__(self, hashes: Sequence[str]) -> None:
        super().__init__(f"missed: {', '.join(hashes)}")
        self.hashes = tuple(hashes)


class RequestFailed(Exception):
    """P1 failed at the request for a reason of its own; only the request ends."""


class SideEnded(Exception):
    """P1, or P0, has ended with a failure; the text says which."""


class NotOffered(Exception):
    """The pair has no such call; the text says which."""


@dataclass(frozen=True)
class Keys:
    """What the sides hold, the longest unused first, as far as they show it."""

    sender: tuple[str, ...] | None = None
    receiver: tuple[str, ...] | None = None
    ordered: tuple[str, ...] | None = None
    """The keys in the receiver's order of use, where that is kept apart from the data."""


class PairSides(Protocol):
    """The two caches, fresh, with P0's own way to process a request and P1's to handle it.

    Whatever else `process` raises ends the request at P0; whatever else `deliver` raises ends P1.
    An `AdapterError` is no answer of the caches, and goes through.
    """

    def process(self, request: PairRequest) -> tuple[bool, ...]:
        """For each item in the order of the prompt: whether it is sent with its data."""

    def deliver(self, request_id: str) -> tuple[str, ...]:
        """For each item, the name of the data that P1 has for it.

        Raises:
            PairMiss: P1 does not have what was sent without data.
            RequestFailed: It failed otherwise, and goes on with the next request.
        """

    def withdraw(self, request_id: str) -> bool:
        """The request is rejected or cancelled. Whether its items travel all the same."""

    def invalidate(self, identifier: str) -> None:
        """P0 hears that P1 has missed it. Raises `NotOffered`."""

    def clear_sender(self) -> None:
        """The part of P0 in a clear."""

    def clear_receiver(self) -> None:
        """The part of P1 in a clear."""

    def keys(self) -> Keys:
        """What the sides hold."""


@dataclass(frozen=True)
class PairCase:
    """A pair vector without its expectations."""

    id: str
    parameters: PairParameters
    calls: tuple[PairCall, ...]


class PairAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came back from one call, and what the sides held after it."""

    sent: tuple[bool, ...] | None = None
    data: tuple[str, ...] | None = None
    travels: bool | None = None
    missed: tuple[str, ...] = ()
    error: str | None = None
    """The call failed for another reason than a miss."""
    ended: bool = False
    """The engine has ended with it, and not the request alone."""
    hangs: bool = False
    """The call did not come back."""
    not_offered: str | None = None
    sender: tuple[str, ...] | None = None
    receiver: tuple[str, ...] | None = None
    ordered: tuple[str, ...] | None = None


@runtime_checkable
class PairTarget(Protocol):
    """One pair under test. `start` comes first, `stop` last."""

    @property
    def name(self) -> str:
        """The text that names this target on the command line."""

    def start(self) -> Implementation:
        """Make ready. Raises `TargetError`."""

    def play(self, case: PairCase) -> tuple[PairAnswer, ...]:
        """The answers of a fresh pair, up to the first that fails."""

    def stop(self) -> None:
        """Let go of everything."""


def pair_case(vector: PairVector) -> PairCase:
    """The vector as a target may see it."""
    return PairCase(vector.id, vector.parameters, tuple(step.call for step in vector.steps))


def call_name(call: PairCall) -> str:
    """The name of the call, which is also the `op` of the format."""
    return str(call.__struct_config__.tag)
