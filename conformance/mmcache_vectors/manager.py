"""The vector of a manager: one JSON file, one sequence of calls, what must come back.

This module is the typed model of the format; the published JSON Schema is generated from it.
It imports no solver: engines' test runs read vectors through it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from . import document
from .document import Count, DocumentError, Name, canonical, schema_of, slug

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "Allocate",
    "Call",
    "CanAllocate",
    "CheckAndUpdateCache",
    "Expect",
    "Free",
    "FreeEncoderInput",
    "GetFreedMmHashes",
    "Item",
    "Manager",
    "Observed",
    "Parameters",
    "Provenance",
    "Request",
    "Reset",
    "Step",
    "Vector",
    "VectorError",
    "content_id",
    "decode",
    "encode",
    "is_vector",
    "json_schema",
    "load",
]

FORMAT: Literal["mmcache/vector"] = "mmcache/vector"
FORMAT_VERSION: Literal[1] = 1

Manager = Literal["encoder_cache", "encoder_decoder"]


class VectorError(DocumentError):
    """A vector file that cannot be used."""


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One multimodal item of a request: its hash, and its size in embeddings."""

    identifier: Name
    num_embeds: Count


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request and its items; an item's index is the `input_id` of the calls."""

    request_id: Name
    items: tuple[Item, ...]


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The world of the vector: the capacity in embeddings, and the requests."""

    cache_size: Count
    requests: tuple[Request, ...]


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    pass


class CheckAndUpdateCache(_Call, frozen=True, tag="check_and_update_cache"):
    """Look the item up; a hit (true) takes a reference."""

    request: Name
    input_id: Count


class CanAllocate(_Call, frozen=True, tag="can_allocate"):
    """Ask for admission. Budget and pending size are in embeddings."""

    request: Name
    input_id: Count
    encoder_compute_budget: Count
    num_embeds_to_schedule: Count


class Allocate(_Call, frozen=True, tag="allocate"):
    """Charge the item and take a reference."""

    request: Name
    input_id: Count


class FreeEncoderInput(_Call, frozen=True, tag="free_encoder_input"):
    """Release one position of the request."""

    request: Name
    input_id: Count


class Free(_Call, frozen=True, tag="free"):
    """Release every position of the request."""

    request: Name


class GetFreedMmHashes(_Call, frozen=True, tag="get_freed_mm_hashes"):
    """Read, and clear, what the worker shall drop."""


class Reset(_Call, frozen=True, tag="reset"):
    """Forget everything."""


Call = (
    CheckAndUpdateCache
    | CanAllocate
    | Allocate
    | FreeEncoderInput
    | Free
    | GetFreedMmHashes
    | Reset
)


class Observed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The state after a call, as far as an implementation exposes it.

    Each field is a capability of its own; an implementation that lacks one leaves it out.
    """

    num_free_slots: int | None = None
    num_freeable_slots: int | None = None
    cached: dict[str, tuple[str, ...]] | None = None
    """Each cached hash with the ids of the requests that reference it, sorted."""
    freeable: tuple[str, ...] | None = None
    """The unreferenced hashes, oldest first."""
    held: dict[str, tuple[int, ...]] | None = None
    """For each request that holds any: the input ids that it holds, sorted."""


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the specified manager answers. A report is a set of hashes, here sorted."""

    returns: bool | tuple[str, ...] | None
    observe: Observed


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call, and what is expected of it."""

    call: Call
    expect: Expect


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the vector comes from. It is the least model, so no solver version or seed matters."""

    spec_digest: str
    solver: str
    seed: int


class Vector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Calls of one manager, and what the specification answers to each."""

    format: Literal["mmcache/vector"]
    format_version: Literal[1]
    id: Name
    description: str
    manager: Manager
    goal: str
    variant: str
    """The wrong decision whose shortest counterexample this is; `specified` for a witness."""
    clauses: tuple[str, ...]
    kills: tuple[str, ...]
    """The variants that answer otherwise somewhere in this vector."""
    requires: tuple[str, ...]
    """Capabilities without which the vector does not apply."""
    provenance: Provenance
    parameters: Parameters
    steps: Annotated[tuple[Step, ...], msgspec.Meta(min_length=1)]
    """At least one: a vector that asks nothing would be passed by anything."""

    @property
    def kind(self) -> Manager:
        """What it tests."""
        return self.manager


def content_id(name: str, manager: Manager, parameters: Parameters, steps: tuple[Step, ...]) -> str:
    """A stable id: the name, and eight hex digits of what the vector does and expects."""
    return document.content_id(name, (manager, parameters, steps))


def encode(vector: Vector) -> bytes:
    """The canonical bytes."""
    return canonical(vector)


def is_vector(content: bytes) -> bool:
    """Whether a file says of itself that it is one, of whatever version."""
    try:
        header: object = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def decode(content: bytes, source: str) -> Vector:
    """Parse and check a vector. Raises `VectorError`, which names `source` and the JSON path."""
    vector = document.parse(
        content,
        source,
        Vector,
        format=FORMAT,
        version=FORMAT_VERSION,
        noun="vector",
        error=VectorError,
    )
    _check_references(vector, source)
    return vector


def _check_references(vector: Vector, source: str) -> None:
    items = {r.request_id: len(r.items) for r in vector.parameters.requests}
    if len(items) != len(vector.parameters.requests):
        raise VectorError(f"{source}: at $.parameters.requests: a request_id occurs twice")
    for k, step in enumerate(vector.steps):
        name: str | None = getattr(step.call, "request", None)
        if name is None:
            continue
        if name not in items:
            raise VectorError(
                f"{source}: at $.steps[{k}].call.request: no request {name!r} in $.parameters"
            )
        input_id: int | None = getattr(step.call, "input_id", None)
        if input_id is not None and input_id >= items[name]:
            raise VectorError(
                f"{source}: at $.steps[{k}].call.input_id: {name} has {items[name]} items"
            )
    expected = content_id(slug(vector.id), vector.manager, vector.parameters, vector.steps)
    if vector.id != expected:
        raise VectorError(
            f"{source}: at $.id: the content makes it {expected!r}; "
            "a vector that was edited needs its new id"
        )


def load(path: Path) -> Vector:
    """Read one vector file. Raises `VectorError`."""
    return decode(document.read(path, error=VectorError), str(path))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the format (draft 2020-12)."""
    return schema_of(Vector, "mmcache conformance vector, version 1")
