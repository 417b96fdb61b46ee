"""What stands between the runner of system vectors and an engine: a workload in, passes out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import msgspec

from mmcache_vectors.engine import Engine, Event, SystemRequest, SystemVector

__all__ = [
    "NotSupported",
    "PassRecord",
    "SystemCase",
    "SystemImplementation",
    "SystemTarget",
    "case_of_system",
]


class NotSupported(Exception):
    """The engine lacks something that the workload needs; the text says what."""


Place = tuple[str, int]
"""An input: the id of its request, and its index among the items."""


class SystemCase(msgspec.Struct, frozen=True):
    """A system vector without its expectations."""

    id: str
    engine: Engine
    requests: tuple[SystemRequest, ...]
    events: tuple[Event, ...]
    max_passes: int


class PassRecord(msgspec.Struct, frozen=True):
    """What one pass did, and what is left after its worker step and update.

    Hashes and places are sorted. What an engine decides freely is here to be told, not judged.
    """

    number: int
    num_scheduled_tokens: dict[str, int]
    starts: dict[str, int]
    """For each scheduled request, the position of the first token that it computes."""
    scheduled_encoder_inputs: dict[str, tuple[int, ...]]
    allocated: tuple[Place, ...]
    """The inputs that the ledger allocated in this pass, whatever became of them."""
    hits: tuple[Place, ...]
    report: tuple[str, ...]
    cached: tuple[str, ...]
    """The hashes that are cached when the report is made."""
    gathered: tuple[str, ...]
    missed: tuple[str, ...]
    """Gathered and not held: here a real engine would be dead, so nothing comes after it."""
    without_payload: tuple[str, ...]
    """To be encoded, and the worker does not have the raw item."""
    held_before: tuple[str, ...]
    """What the worker holds when its step begins."""
    worker: tuple[str, ...]
    peak: int
    """The most embeddings that the worker holds within its step."""
    preempted: tuple[str, ...]
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    references: dict[str, tuple[str, ...]]
    """The requests that reference each cached hash."""
    error: str | None = None
    """The engine raised something else; nothing comes after it."""


class SystemImplementation(msgspec.Struct, frozen=True):
    """Who is tested."""

    name: str
    version: str | None


class SystemTarget(Protocol):
    """One engine under test. `start` comes first, `stop` last."""

    @property
    def spec(self) -> str:
        """The text that names this target on the command line."""

    def start(self) -> SystemImplementation:
        """Make ready. Raises `TargetError`."""

    def run(self, case: SystemCase) -> Iterator[PassRecord]:
        """The passes on a fresh engine, up to `max_passes` or the end of the work.

        Ends after a record with something `missed` or an `error`. Raises `NotSupported`; any other
        exception is a fault of the adapter.
        """

    def stop(self) -> None:
        """Let go of everything."""


def case_of_system(vector: SystemVector) -> SystemCase:
    """The vector as a target may see it."""
    most = vector.expect.max_passes
    return SystemCase(vector.id, vector.engine, vector.requests, vector.events, most)
