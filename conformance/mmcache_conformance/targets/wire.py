"""What the harness and an adapter say to each other: one JSON object a line, version 1.

The harness writes a request on the adapter's standard input and reads one reply from its standard
output, for `start` and for every `run`; `stop` has no reply. The typed model is here, and the
published JSON Schema is generated from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from mmcache_vectors.document import Name, Positive, schema_of
from mmcache_vectors.engine import EngineSettings, WorkloadItem
from mmcache_vectors.pair import PairCall, PairParameters

from ..implementation import Kind
from .protocol import Answer, Case

__all__ = [
    "BESIDE_FEATURE",
    "DROPS_LAST",
    "ENGINE_CAPABILITIES",
    "PAIR_CALLS",
    "PAIR_STATE",
    "PROTOCOL_VERSION",
    "SNAPSHOTS_FEATURE",
    "WATCHED_FEATURE",
    "AbortRequest",
    "About",
    "CallPair",
    "EngineCall",
    "EnginePass",
    "Errored",
    "Finish",
    "Message",
    "NewPair",
    "PairTold",
    "Passed",
    "Ran",
    "ResetCaches",
    "Run",
    "Start",
    "Started",
    "StepEngine",
    "Stop",
    "Submit",
    "Workload",
    "WorkloadCase",
    "adapter_schema",
]

PROTOCOL_VERSION = 1

BESIDE_FEATURE = "beside"
"""The adapter keeps several managers alive at a time."""

SNAPSHOTS_FEATURE = "snapshots"
"""The adapter can keep copies of a manager, and go on from one."""

WATCHED_FEATURE = "watched"
"""The adapter shows the state only after those calls of a case that are `watched`."""

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


class Submit(msgspec.Struct, frozen=True, tag_field="op", tag="submit"):
    """A request arrives."""

    request_id: str
    priority: int
    items: tuple[WorkloadItem, ...]
    num_prompt_tokens: int
    """Its text and its items."""
    max_tokens: int
    text: str
    """Names the text: under one name, the text tokens at equal positions are equal."""


class AbortRequest(msgspec.Struct, frozen=True, tag_field="op", tag="abort"):
    """The request ends before its time; one that has finished changes nothing."""

    request: str


class ResetCaches(msgspec.Struct, frozen=True, tag_field="op", tag="reset"):
    """The ledger and the worker forget everything."""


class StepEngine(msgspec.Struct, frozen=True, tag_field="op", tag="step"):
    """Make so many passes, whether or not there is anything to do: schedule, work, update."""

    times: Positive


class Finish(msgspec.Struct, frozen=True, tag_field="op", tag="finish"):
    """Make passes until no request is left, one at least and so many at most."""

    times: Positive


EngineCall = Submit | AbortRequest | ResetCaches | StepEngine | Finish


class WorkloadCase(msgspec.Struct, frozen=True):
    """A workload for a new engine."""

    id: str
    engine: EngineSettings
    calls: tuple[EngineCall, ...]


class Workload(msgspec.Struct, frozen=True, tag_field="cmd", tag="workload"):
    """Make these calls on a new engine. Only if the adapter has the capability `engine`."""

    seq: SequenceNumber
    case: WorkloadCase


class NewPair(msgspec.Struct, frozen=True, tag_field="cmd", tag="pair"):
    """Make a new pair of processor caches: for those with the capability `processor_cache`."""

    seq: SequenceNumber
    parameters: PairParameters


class CallPair(msgspec.Struct, frozen=True, tag_field="cmd", tag="call"):
    """Make this call on the pair.

    When a message arrives is the harness's decision, so it asks one call at a time.
    """

    seq: SequenceNumber
    call: PairCall


class Stop(msgspec.Struct, frozen=True, tag_field="cmd", tag="stop"):
    """Exit. There is no reply; the end of the input means the same."""


Message = Start | Run | Workload | NewPair | CallPair | Stop

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
    capabilities: dict[Kind, tuple[str, ...]]
    """For each kind of manager that it has: the calls, the observables, and other capabilities.
    For an engine: what it can be configured to do (`ENGINE_CAPABILITIES`). For a pair of processor
    caches: the calls that not every one has, and what it shows (`PAIR_CALLS`, `PAIR_STATE`)."""
    features: tuple[str, ...] = ()
    """What it understands beyond the least: `beside`, `snapshots`, `watched`. Others are not asked
    of it."""


class Ran(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reply to `run`: one answer a call, in order; after a call that failed there is none."""

    seq: SequenceNumber
    answers: tuple[Answer, ...]
    beside: tuple[tuple[Answer, ...], ...] = ()
    """The answers of the managers beside it, in their order."""
    state: str | None = None
    """If a snapshot was asked for or restored, and the adapter knows it: a text that is the same
    for two managers only if they are in the same state, shown or not."""


class EnginePass(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one pass did, and what is left after its worker's step and the update.

    Hashes that are listed are sets: their order means nothing.
    """

    num_scheduled_tokens: dict[str, int]
    starts: dict[str, int]
    """For each scheduled request, the position of the first token that it computes."""
    scheduled_encoder_inputs: dict[str, tuple[int, ...]]
    report: tuple[str, ...]
    """What the worker was told to drop."""
    cached: tuple[str, ...]
    """The hashes that are cached when the report is made."""
    held_before: tuple[str, ...]
    """What the worker holds when its step begins."""
    worker: tuple[str, ...]
    """What it holds after its step."""
    missed: tuple[str, ...]
    """What the step gathers and the worker does not hold; no pass comes after such a one."""
    preempted: tuple[str, ...]
    running: tuple[str, ...]
    waiting: tuple[str, ...]
    references: dict[str, tuple[str, ...]]
    """The requests that reference each cached hash, after the update."""
    without_payload: tuple[str, ...] = ()
    """To be encoded, and the worker does not have the raw item."""
    peak: int | None = None
    """The most embeddings that the worker holds within its step."""
    allocated: tuple[tuple[str, int], ...] = ()
    """The inputs that the ledger allocated in this pass, whatever became of them. These and the
    hits show whether a vector's situation came up; without them its passing says less."""
    hits: tuple[tuple[str, int], ...] = ()
    error: str | None = None
    """The engine raised something; no pass comes after it."""


class Passed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reply to `workload`: one entry a pass."""

    seq: SequenceNumber
    passes: tuple[EnginePass, ...]


class PairTold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reply to `pair` and to `call`."""

    seq: SequenceNumber
    sent: tuple[bool, ...] | None = None
    """Of `process`: for each item in the order of the prompt, whether it is sent with its data."""
    data: tuple[str, ...] | None = None
    """Of `deliver`: for each item, with which item its data came, as `request/position`."""
    travels: bool | None = None
    """Of `withdraw`: whether the items of the request are delivered all the same."""
    missed: tuple[str, ...] = ()
    """P1 does not have what was sent without data; only the request ends."""
    error: str | None = None
    """The call failed otherwise, and why."""
    ended: bool = False
    """The engine has ended with that failure, and not the request alone."""
    hangs: bool = False
    """The call did not come back; the adapter has given it up."""
    sender: tuple[str, ...] | None = None
    """What P0 holds after the call, the longest unused first."""
    receiver: tuple[str, ...] | None = None
    """The same of P1."""
    ordered: tuple[str, ...] | None = None
    """The keys in the order of use of P1, where that is kept apart from the data."""


PAIR_CALLS = ("invalidate", "withdraw")
"""What not every pair can be asked. A vector that invalidates needs the first; without the second a
request that is withdrawn travels all the same."""

PAIR_STATE = ("sender", "receiver", "ordered")
"""What a pair may show after each call."""

DROPS_LAST = "drops_last"
"""The worker of an engine gathers before it drops what was reported: what is reported can still be
gathered in that step. The others drop first."""

ENGINE_CAPABILITIES = (
    "priority",
    "prefix_caching",
    "lookahead",
    "whole_items",
    "abort",
    "reset",
)
"""What not every engine can do: the policy `priority`, to find computed prefixes again, to read
ahead for a drafter, to keep an item within one pass, `abort` and `reset`. A vector that needs more
is skipped."""


class Errored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The other reply to a request: the adapter itself is at a loss. No verdict on its engine."""

    seq: SequenceNumber
    errored: str


def adapter_schema() -> dict[str, Any]:
    """The JSON Schema of every message (draft 2020-12), each under its name in `$defs`."""
    told = (Started, Ran, Passed, PairTold, Errored)
    messages = (Start, Run, Workload, NewPair, CallPair, Stop, *told)
    return schema_of(messages, "mmcache adapter protocol, version 1")
