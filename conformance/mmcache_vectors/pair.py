"""The vector of a pair: one JSON file, requests to two processor caches, what must come back.

The messages between the two caches, and when each arrives, are the harness's to decide. Like
`manager`, this module imports no solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from . import document
from .document import Count, Name, canonical, schema_of, slug
from .manager import VectorError

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "ClearReceiver",
    "ClearSender",
    "Deliver",
    "Invalidate",
    "PairCall",
    "PairExpect",
    "PairItem",
    "PairParameters",
    "PairProvenance",
    "PairRequest",
    "PairStep",
    "PairVector",
    "ProcessRequest",
    "VectorError",
    "Withdraw",
    "content_id",
    "decode",
    "encode",
    "json_schema",
    "load",
    "origin",
]

FORMAT: Literal["mmcache/pair-vector"] = "mmcache/pair-vector"
FORMAT_VERSION: Literal[1] = 1


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class PairItem(_Strict, frozen=True):
    """One item of a prompt: its hash, its modality, and its size in bytes when it is processed."""

    identifier: Name
    modality: Name
    size: Count


class PairRequest(_Strict, frozen=True):
    """A request and its items, in the order of the prompt. It may be processed more than once."""

    request_id: Name
    items: tuple[PairItem, ...]


class PairParameters(_Strict, frozen=True):
    """The world of the vector: the capacity of either side in bytes, and the requests."""

    capacity: Count
    requests: tuple[PairRequest, ...]


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    pass


class ProcessRequest(_Call, frozen=True, tag="process"):
    """P0 processes the request and records its items: which are sent with their data?"""

    request: Name


class Deliver(_Call, frozen=True, tag="deliver"):
    """The request arrives at P1: what data does it get for each item?

    What was withdrawn and travels all the same arrives before it, if it was recorded before it.
    """

    request: Name


class Withdraw(_Call, frozen=True, tag="withdraw"):
    """The request is rejected, or cancelled, after it was recorded and before it arrives."""

    request: Name


class Invalidate(_Call, frozen=True, tag="invalidate"):
    """P0 hears that P1 has missed this hash; it hears late, so P1 may hold it again."""

    identifier: Name


class ClearSender(_Call, frozen=True, tag="clear_sender"):
    """An operator clears the cache: the part of P0, which comes first."""


class ClearReceiver(_Call, frozen=True, tag="clear_receiver"):
    """The same: the part of P1."""


PairCall = ProcessRequest | Deliver | Withdraw | Invalidate | ClearSender | ClearReceiver


class PairExpect(_Strict, frozen=True, omit_defaults=True):
    """What the specified pair answers."""

    sent: tuple[bool, ...] | None = None
    """Of `process`: for each item in the order of the prompt, whether it is sent with its data."""
    data: tuple[Name, ...] | None = None
    """Of `deliver`: for each item, with which item its data came, as `request/position`."""


class PairStep(_Strict, frozen=True, omit_defaults=True):
    """A call, and what is expected of it."""

    call: PairCall
    expect: PairExpect = PairExpect()
    if_undone: PairExpect | None = None
    """What is expected instead where a withdrawn request does not travel: as if it had never been
    processed. Of steps behind a `withdraw` only, and only where it is something else."""


class PairProvenance(_Strict, frozen=True):
    """Which specification the answers are of."""

    spec_digest: str


class PairVector(_Strict, frozen=True):
    """The whole file."""

    format: Literal["mmcache/pair-vector"]
    format_version: Literal[1]
    id: Name
    description: str
    variant: str
    """The wrong decision whose shortest vector this is; `specified` for a walk."""
    clauses: tuple[str, ...]
    """The clauses that are broken by it, or put to the test."""
    kills: tuple[str, ...]
    """The variants that answer otherwise somewhere in this vector."""
    provenance: PairProvenance
    parameters: PairParameters
    steps: Annotated[tuple[PairStep, ...], msgspec.Meta(min_length=1)]

    @property
    def kind(self) -> Literal["processor_cache"]:
        """What it tests."""
        return "processor_cache"


def origin(request: str, position: int) -> str:
    """How the data of an item is called."""
    return f"{request}/{position}"


def content_id(name: str, parameters: PairParameters, steps: tuple[PairStep, ...]) -> str:
    """A stable id: the name, and eight hex digits of what the vector does and expects."""
    return document.content_id(name, (parameters, steps))


def encode(vector: PairVector) -> bytes:
    """The canonical bytes."""
    return canonical(vector)


def decode(content: bytes, source: str) -> PairVector:
    """Parse and check. Raises `VectorError`, which names `source` and the JSON path."""
    vector = document.parse(
        content,
        source,
        PairVector,
        format=FORMAT,
        version=FORMAT_VERSION,
        noun="pair vector",
        error=VectorError,
    )
    for path, reason in _faults(vector):
        raise VectorError(f"{source}: at {path}: {reason}")
    return vector


def _faults(vector: PairVector) -> Iterator[tuple[str, str]]:
    """Where it contradicts itself, and how."""
    requests = {r.request_id: r for r in vector.parameters.requests}
    if len(requests) != len(vector.parameters.requests):
        yield "$.parameters.requests", "a request_id occurs twice"
    kinds: dict[str, PairItem] = {}
    for k, request in enumerate(vector.parameters.requests):
        for n, item in enumerate(request.items):
            if kinds.setdefault(item.identifier, item) != item:
                path = f"$.parameters.requests[{k}].items[{n}]"
                yield path, f"{item.identifier} has two sizes or modalities"
    line: list[str] = []
    for k, step in enumerate(vector.steps):
        yield from _misplaced(step.call, line, requests, kinds, f"$.steps[{k}]")
        for name, expect in (("expect", step.expect), ("if_undone", step.if_undone)):
            yield from _misfit(step.call, expect, requests, f"$.steps[{k}].{name}")
    expected = content_id(slug(vector.id), vector.parameters, vector.steps)
    if vector.id != expected:
        reason = f"the content makes it {expected!r}; a vector that was edited needs its new id"
        yield "$.id", reason


def _misplaced(
    call: PairCall,
    line: list[str],
    requests: dict[str, PairRequest],
    kinds: dict[str, PairItem],
    path: str,
) -> Iterator[tuple[str, str]]:
    """Whether the call can come here; `line` has what is on its way, and is kept up."""
    if isinstance(call, Invalidate):
        if call.identifier not in kinds:
            yield f"{path}.call.identifier", f"no item {call.identifier!r} in $.parameters"
        return
    if isinstance(call, ClearSender | ClearReceiver):
        return
    request = call.request
    if request not in requests:
        yield f"{path}.call.request", f"no request {request!r} in $.parameters"
    elif isinstance(call, ProcessRequest):
        if request in line:
            yield f"{path}.call.request", f"{request} is on its way already"
        line.append(request)
    elif request not in line:
        yield f"{path}.call.request", f"{request} is not on its way"
    elif isinstance(call, Deliver):
        if line[0] != request:
            yield f"{path}.call.request", f"{line[0]} is ahead of {request}"
        line.remove(request)
    else:
        line.remove(request)


def _misfit(
    call: PairCall, expect: PairExpect | None, requests: dict[str, PairRequest], path: str
) -> Iterator[tuple[str, str]]:
    """Whether what is expected is an answer to the call."""
    if expect is None:
        return
    wanted = {"sent": isinstance(call, ProcessRequest), "data": isinstance(call, Deliver)}
    for name, due in wanted.items():
        said = getattr(expect, name)
        if (said is not None) is not due:
            yield f"{path}.{name}", "is expected of this call" if due else "is no answer to it"
        elif due:
            items = (
                requests[call.request].items if isinstance(call, ProcessRequest | Deliver) else ()
            )
            if len(said) != len(items):
                yield f"{path}.{name}", f"{len(said)} answers about {len(items)} items"


def load(path: Path) -> PairVector:
    """Read one file. Raises `VectorError`."""
    return decode(document.read(path, error=VectorError), str(path))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the format (draft 2020-12)."""
    return schema_of(PairVector, "mmcache pair vector, version 1")
