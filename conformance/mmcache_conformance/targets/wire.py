"""What the harness and an adapter say to each other: one JSON object a line, version 1.

The harness writes a request on the adapter's standard input and reads one reply from its standard
output, for `start` and for every `run`; `stop` has no reply. The typed model is here, and the
published JSON Schema is generated from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from mmcache_vectors.manager import Manager

from .protocol import Answer, Case

__all__ = [
    "PROTOCOL_VERSION",
    "About",
    "Errored",
    "Ran",
    "Request",
    "Run",
    "Start",
    "Started",
    "Stop",
    "adapter_schema",
]

PROTOCOL_VERSION = 1

Sequence = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]

# --- what the harness says ---------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, tag_field="cmd", tag="start"):
    """Who are you? The first request, and the first again after a crash."""

    protocol: Literal[1] = 1


class Run(msgspec.Struct, frozen=True, tag_field="cmd", tag="run"):
    """Make these calls on a new manager."""

    seq: Sequence
    """Counts the requests since `start`; the reply repeats it."""
    case: Case


class Stop(msgspec.Struct, frozen=True, tag_field="cmd", tag="stop"):
    """Exit. There is no reply; the end of the input means the same."""


Request = Start | Run | Stop

# --- what an adapter says ----------------------------------------------------------------------


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The implementation behind the adapter."""

    name: Name
    language: Name
    version: str | None = None
    source: str | None = None
    """A link to its source."""


class Started(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to `start`."""

    protocol: Literal[1]
    implementation: About
    capabilities: dict[Manager, tuple[str, ...]]
    """For each kind of manager that it has: the calls, the observables, and other capabilities."""


class Ran(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to `run`: one answer a call, in order; after a call that failed there is none."""

    seq: Sequence
    answers: tuple[Answer, ...]


class Errored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The other reply to `run`: the adapter itself is at a loss. No verdict on its engine."""

    seq: Sequence
    errored: str


def adapter_schema() -> dict[str, Any]:
    """The JSON Schema of every message (draft 2020-12), each under its name in `$defs`."""
    messages = (Start, Run, Stop, Started, Ran, Errored)
    schemas, definitions = msgspec.json.schema_components(messages, ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmcache adapter protocol, version 1",
        "anyOf": list(schemas),
        "$defs": definitions,
    }
