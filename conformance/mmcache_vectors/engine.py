"""The system vector: one JSON file, one workload for a whole engine, what must hold pass by pass.

It fixes requests, the engine's configuration, and the clauses that every pass must keep. It does
not fix what a contract leaves free: which request is preempted, how prompts are chunked, in which
pass what happens. So a correct engine with another policy passes. Like `format`, this module
imports no solver.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from .manager import Count, Name, VectorError, slug

__all__ = [
    "SYSTEM_FORMAT",
    "SYSTEM_FORMAT_VERSION",
    "Abort",
    "Clause",
    "Engine",
    "Event",
    "PassesHold",
    "ResetBothSides",
    "Situation",
    "SystemItem",
    "SystemProvenance",
    "SystemRequest",
    "SystemVector",
    "VectorError",
    "decode_system",
    "encode_system",
    "load_system",
    "system_content_id",
    "system_schema",
]

SYSTEM_FORMAT = "mmcache/system-vector"
SYSTEM_FORMAT_VERSION = 1

Positive = Annotated[int, msgspec.Meta(ge=1)]
Clause = Literal["L1", "S1", "S2", "S3", "S4", "S5", "S7", "S8"]
Situation = Literal[
    "encoding_withdrawn",
    "encoding_shared_when_withdrawn",
    "encoded_while_held",
    "encoded_after_prefix_hit",
    "hit_while_waiting",
    "hash_dropped",
    "reset_while_held",
]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class SystemItem(_Strict, frozen=True):
    """A multimodal item: `num_embeds` placeholder tokens from `position` on, one embedding each."""

    identifier: Name
    position: Count
    num_embeds: Positive


class SystemRequest(_Strict, frozen=True):
    """A request. Its prompt is its text and its items, so it has the tokens of both."""

    request_id: Name
    arrival: Count
    """The pass before which it is added; requests of one arrival are added in this order."""
    priority: int
    """The lower, the sooner; read only under the policy `priority`."""
    items: tuple[SystemItem, ...]
    num_text_tokens: Count
    max_tokens: Positive
    """It generates so many tokens, whatever they are."""
    text: Name
    """Names the text: under one name, the text tokens at equal positions are equal."""

    @property
    def num_prompt_tokens(self) -> int:
        return self.num_text_tokens + sum(item.num_embeds for item in self.items)


class Engine(_Strict, frozen=True, omit_defaults=True):
    """The configuration. Sizes are in embeddings, lengths in tokens."""

    cache_size: Count
    encoder_budget: Count
    """What the encoder may compute in one pass."""
    num_blocks: Positive
    """Blocks that requests can use; an engine that keeps one for itself needs one more."""
    block_size: Positive
    chunk_size: Positive
    """The most tokens of one request in one pass."""
    token_budget: Positive
    policy: Literal["fcfs", "priority"]
    prefix_caching: bool
    lookahead: Count = 0
    """How many tokens past the scheduled ones a drafter reads."""
    chunked_items: bool = True
    """Whether an item may be computed in several passes."""


class Abort(_Strict, frozen=True, tag_field="op", tag="abort"):
    """The request is aborted; nothing happens if it has finished."""

    before_pass: Count
    request: Name


class ResetBothSides(_Strict, frozen=True, tag_field="op", tag="reset"):
    """The ledger and the worker forget everything, as new weights demand."""

    before_pass: Count


Event = Abort | ResetBothSides


class PassesHold(_Strict, frozen=True):
    """What must hold, whatever the engine decides."""

    every_pass: tuple[Clause, ...]
    """The clauses that hold after each pass, as the runner of system vectors checks them."""
    stall_after: Positive
    """So many passes in a row without a token, while some request is unfinished, are a stall."""
    max_passes: Positive
    """All requests finish within so many passes; generous, for chunking is the engine's."""


class SystemProvenance(_Strict, frozen=True):
    """The abstract path that the solver found, and of which the vector is an instance."""

    spec_digest: str
    solver: str
    goal: str
    actions: tuple[tuple[str, str, int], ...]
    """Action, request, and input id (-1 where there is none)."""


class SystemVector(_Strict, frozen=True):
    format: Literal["mmcache/system-vector"]
    format_version: Literal[1]
    id: Name
    description: str
    variant: str
    """The wrong decision whose counterexample this is; `specified` for a control."""
    clauses: tuple[str, ...]
    """The clauses that the wrong decision breaks here."""
    kills: tuple[str, ...]
    """The variants that fail here, on the reference engine with that one decision changed."""
    situation: Situation | None
    """What an engine must come to, or its passing says little; None where anything will do."""
    provenance: SystemProvenance
    engine: Engine
    requests: tuple[SystemRequest, ...]
    events: tuple[Event, ...]
    expect: PassesHold


def system_content_id(
    name: str,
    engine: Engine,
    requests: tuple[SystemRequest, ...],
    events: tuple[Event, ...],
    expect: PassesHold,
) -> str:
    """A stable id: the name, and eight hex digits of what the vector does and expects."""
    content = msgspec.json.encode((engine, requests, events, expect), order="deterministic")
    return f"{name}-{hashlib.sha256(content).hexdigest()[:8]}"


def encode_system(vector: SystemVector) -> bytes:
    """Canonical bytes: sorted keys, two spaces, one newline at the end."""
    compact = msgspec.json.encode(vector, order="sorted")
    return msgspec.json.format(compact, indent=2) + b"\n"


def decode_system(content: bytes, source: str) -> SystemVector:
    """Parse and check. Raises `VectorError`, which names `source` and the JSON path."""
    try:
        header: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise VectorError(f"{source}: not JSON: {error}") from None
    if not isinstance(header, dict) or header.get("format") != SYSTEM_FORMAT:
        raise VectorError(
            f'{source}: at $.format: not a system vector; it should say "{SYSTEM_FORMAT}"'
        )
    version = header.get("format_version")
    if version != SYSTEM_FORMAT_VERSION:
        raise VectorError(
            f"{source}: at $.format_version: version {version!r}, but this suite reads version "
            f"{SYSTEM_FORMAT_VERSION}; install the suite that the vector was made for"
        )
    try:
        vector = msgspec.convert(header, SystemVector, strict=True)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at ")
        raise VectorError(f"{source}: at {path.strip('`') or '$'}: {reason}") from None
    for path, reason in _faults(vector):
        raise VectorError(f"{source}: at {path}: {reason}")
    return vector


def _faults(vector: SystemVector) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    sizes: dict[str, int] = {}
    ids = [request.request_id for request in vector.requests]
    if len(set(ids)) != len(ids):
        found.append(("$.requests", "a request_id occurs twice"))
    for k, request in enumerate(vector.requests):
        end = 0
        for n, item in enumerate(request.items):
            path = f"$.requests[{k}].items[{n}]"
            if sizes.setdefault(item.identifier, item.num_embeds) != item.num_embeds:
                found.append((f"{path}.num_embeds", f"{item.identifier} has two sizes"))
            if item.position < end:
                found.append((f"{path}.position", "overlaps the item before it"))
            end = item.position + item.num_embeds
        if end > request.num_prompt_tokens:
            found.append((f"$.requests[{k}].items", "an item ends after the prompt"))
    for k, event in enumerate(vector.events):
        if isinstance(event, Abort) and event.request not in ids:
            found.append((f"$.events[{k}].request", f"no request {event.request!r}"))
    expected = system_content_id(
        slug(vector.id), vector.engine, vector.requests, vector.events, vector.expect
    )
    if vector.id != expected:
        reason = f"the content makes it {expected!r}; a vector that was edited needs its new id"
        found.append(("$.id", reason))
    return found


def load_system(path: Path) -> SystemVector:
    """Read one file. Raises `VectorError`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise VectorError(f"{path}: {error.strerror}") from None
    return decode_system(content, str(path))


def system_schema() -> dict[str, Any]:
    """The JSON Schema of the format (draft 2020-12)."""
    schema = msgspec.json.schema(SystemVector)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmcache system vector, version 1",
        **schema,
    }
