"""The engine vector: one JSON file, one workload for a whole engine, what must hold pass by pass.

It fixes requests, the engine's configuration, and the clauses that every pass must keep. It does
not fix what a contract leaves free: which request is preempted, how prompts are chunked, in which
pass what happens. So a correct engine with another policy passes. Like `manager`, this module
imports no solver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from . import document
from .document import Count, Name, Positive, canonical, schema_of, slug
from .manager import VectorError

__all__ = [
    "ENGINE_CLAUSES",
    "FORMAT",
    "FORMAT_VERSION",
    "Abort",
    "EngineClause",
    "EngineSettings",
    "EngineVector",
    "Event",
    "PassesHold",
    "PathProvenance",
    "ResetBothSides",
    "Situation",
    "VectorError",
    "WorkloadItem",
    "WorkloadRequest",
    "content_id",
    "decode",
    "encode",
    "json_schema",
    "load",
]

FORMAT: Literal["mmcache/engine-vector"] = "mmcache/engine-vector"
FORMAT_VERSION: Literal[1] = 1

EngineClause = Literal["L1", "S1", "S2", "S3", "S4", "S5", "S7", "S8"]
ENGINE_CLAUSES: tuple[EngineClause, ...] = ("S1", "L1", "S2", "S3", "S4", "S5", "S7", "S8")
"""All that can be seen after a pass, what would end an engine first."""
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


class WorkloadItem(_Strict, frozen=True):
    """A multimodal item: `num_embeds` placeholder tokens from `position` on, one embedding each."""

    identifier: Name
    position: Count
    num_embeds: Positive


class WorkloadRequest(_Strict, frozen=True):
    """A request. Its prompt is its text and its items, so it has the tokens of both."""

    request_id: Name
    arrival: Count
    """The pass before which it is added; requests of one arrival are added in this order."""
    priority: int
    """The lower, the sooner; read only under the policy `priority`."""
    items: tuple[WorkloadItem, ...]
    num_text_tokens: Count
    max_tokens: Positive
    """It generates so many tokens, whatever they are."""
    text: Name
    """Names the text: under one name, the text tokens at equal positions are equal."""

    @property
    def num_prompt_tokens(self) -> int:
        return self.num_text_tokens + sum(item.num_embeds for item in self.items)


class EngineSettings(_Strict, frozen=True, omit_defaults=True):
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

    every_pass: tuple[EngineClause, ...]
    """The clauses that hold after each pass, as the runner of engine vectors checks them."""
    stall_after: Positive
    """So many passes in a row without a token, while some request is unfinished, are a stall."""
    max_passes: Positive
    """All requests finish within so many passes; generous, for chunking is the engine's."""


class PathProvenance(_Strict, frozen=True):
    """The abstract path that the solver found, and of which the vector is an instance."""

    spec_digest: str
    solver: str
    goal: str
    actions: tuple[tuple[str, str, int], ...]
    """Action, request, and input id (-1 where there is none)."""


class EngineVector(_Strict, frozen=True):
    """What a whole scheduler is given, and the clauses that its passes must keep."""

    format: Literal["mmcache/engine-vector"]
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
    provenance: PathProvenance
    engine: EngineSettings
    requests: Annotated[tuple[WorkloadRequest, ...], msgspec.Meta(min_length=1)]
    events: tuple[Event, ...]
    expect: PassesHold

    @property
    def kind(self) -> Literal["engine"]:
        """What it tests."""
        return "engine"


def content_id(
    name: str,
    engine: EngineSettings,
    requests: tuple[WorkloadRequest, ...],
    events: tuple[Event, ...],
    expect: PassesHold,
) -> str:
    """A stable id: the name, and eight hex digits of what the vector does and expects."""
    return document.content_id(name, (engine, requests, events, expect))


def encode(vector: EngineVector) -> bytes:
    """The canonical bytes."""
    return canonical(vector)


def decode(content: bytes, source: str) -> EngineVector:
    """Parse and check. Raises `VectorError`, which names `source` and the JSON path."""
    vector = document.parse(
        content,
        source,
        EngineVector,
        format=FORMAT,
        version=FORMAT_VERSION,
        noun="engine vector",
        error=VectorError,
    )
    for path, reason in _faults(vector):
        raise VectorError(f"{source}: at {path}: {reason}")
    return vector


def _faults(vector: EngineVector) -> Iterator[tuple[str, str]]:
    """Where it contradicts itself, and how."""
    sizes: dict[str, int] = {}
    ids = [request.request_id for request in vector.requests]
    if len(set(ids)) != len(ids):
        yield "$.requests", "a request_id occurs twice"
    for k, request in enumerate(vector.requests):
        end = 0
        for n, item in enumerate(request.items):
            path = f"$.requests[{k}].items[{n}]"
            if sizes.setdefault(item.identifier, item.num_embeds) != item.num_embeds:
                yield f"{path}.num_embeds", f"{item.identifier} has two sizes"
            if item.position < end:
                yield f"{path}.position", "overlaps the item before it"
            end = item.position + item.num_embeds
        if end > request.num_prompt_tokens:
            yield f"$.requests[{k}].items", "an item ends after the prompt"
    for k, event in enumerate(vector.events):
        if isinstance(event, Abort) and event.request not in ids:
            yield f"$.events[{k}].request", f"no request {event.request!r}"
    expected = content_id(
        slug(vector.id), vector.engine, vector.requests, vector.events, vector.expect
    )
    if vector.id != expected:
        reason = f"the content makes it {expected!r}; a vector that was edited needs its new id"
        yield "$.id", reason


def load(path: Path) -> EngineVector:
    """Read one file. Raises `VectorError`."""
    return decode(document.read(path, error=VectorError), str(path))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the format (draft 2020-12)."""
    return schema_of(EngineVector, "mmcache engine vector, version 1")
