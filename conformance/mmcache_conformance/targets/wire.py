"""What the harness and an adapter say to each other: one JSON object a line, version 1.

The harness writes a request on the adapter's standard input and reads one reply from its standard
output, for `start` and for every `run`; `stop` has no reply. The typed model is here, and the
published JSON Schema is generated from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from mmcache_vectors.document import Name, schema_of
from mmcache_vectors.manager import Manager

from .protocol import Answer, Case

__all__ = [
    "BESIDE_FEATURE",
    "PROTOCOL_VERSION",
    "SNAPSHOTS_FEATURE",
    "About",
    "Errored",
    "Message",
    "Ran",
    "Run",
    "Start",
    "Started",
    "Stop",
    "adapter_schema",
]

PROTOCOL_VERSION = 1

BESIDE_FEATURE = "beside"
"""The adapter keeps several managers alive at a time."""

SNAPSHOTS_FEATURE = "snapshots"
"""The adapter can keep copies of a manager, and go on from one."""

SequenceNumber = Annotated[int, msgspec.Meta(ge=1)]
SnapshotNumber = Annotated[int, msgspec.Meta(ge=0)]

# --- what the harness says ---------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, tag_field="cmd", tag="start"):
    """Who are you? The first request, and the first again after a crash."""

    protocol: Literal[1] = 1


class Run(msgspec.Struct, frozen=True, tag_field="cmd", tag="run", omit_defaults=True):
    """Make these calls on a new manager."""

    seq: SequenceNumber
    """Counts the requests since `start`; the reply repeats it."""
    case: Case
    beside: tuple[Case, ...] = ()
    """Managers to be made as well, if the adapter has the feature: then the first call of the case
    and of each of these, in this order, then the second of each, and so on."""
    restore: SnapshotNumber | None = None
    """Not on a new manager, but on a copy of the one that was kept under this number. As the next
    two, only if the adapter has the feature `snapshots`."""
    snapshot: SnapshotNumber | None = None
    """Keep a copy of the manager as it is after the calls, under this number."""
    drop: tuple[SnapshotNumber, ...] = ()
    """First forget what is kept under these numbers."""


class Stop(msgspec.Struct, frozen=True, tag_field="cmd", tag="stop"):
    """Exit. There is no reply; the end of the input means the same."""


Message = Start | Run | Stop

# --- what an adapter says ----------------------------------------------------------------------


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The implementation behind the adapter."""

    name: Name
    language: Name
    version: str | None = None
    source: str | None = None
    """A link to its source."""


class Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reply to `start`."""

    protocol: Literal[1]
    implementation: About
    capabilities: dict[Manager, tuple[str, ...]]
    """For each kind of manager that it has: the calls, the observables, and other capabilities."""
    features: tuple[str, ...] = ()
    """What it understands beyond the least: `beside`, `snapshots`. Others are not asked of it."""


class Ran(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reply to `run`: one answer a call, in order; after a call that failed there is none."""

    seq: SequenceNumber
    answers: tuple[Answer, ...]
    beside: tuple[tuple[Answer, ...], ...] = ()
    """The answers of the managers beside it, in their order."""
    state: str | None = None
    """If a snapshot was asked for or restored, and the adapter knows it: a text that is the same
    for two managers only if they are in the same state, shown or not."""


class Errored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The other reply to `run`: the adapter itself is at a loss. No verdict on its engine."""

    seq: SequenceNumber
    errored: str


def adapter_schema() -> dict[str, Any]:
    """The JSON Schema of every message (draft 2020-12), each under its name in `$defs`."""
    messages = (Start, Run, Stop, Started, Ran, Errored)
    return schema_of(messages, "mmcache adapter protocol, version 1")
