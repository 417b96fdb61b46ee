"""Workloads, and what an engine made of them pass by pass, as plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mmcache_vectors.engine import (
    Abort,
    EngineSettings,
    EngineVector,
    Event,
    WorkloadRequest,
)

from ..engines.protocol import PassRecord
from ..verdicts.model import PassFailure

__all__ = ["COLUMNS", "breach_lines", "breach_of", "pass_cells", "pass_line", "workload_lines"]

COLUMNS = ("tokens", "encode", "report", "preempted", "cached", "worker")
"""What is told of a pass."""


def workload_lines(vector: EngineVector) -> Iterator[str]:
    """The engine's configuration, the requests, and what happens between passes."""
    yield _settings(vector.engine)
    yield from map(_request, vector.requests)
    yield from map(_event, vector.events)


def _settings(engine: EngineSettings) -> str:
    prefix = "with" if engine.prefix_caching else "without"
    return (
        f"cache {engine.cache_size} and encoder budget {engine.encoder_budget} embeddings, "
        f"{engine.num_blocks} blocks of {engine.block_size}, chunks of {engine.chunk_size} and "
        f"{engine.token_budget} tokens a pass, {engine.policy}, {prefix} prefix caching"
    )


def _request(request: WorkloadRequest) -> str:
    items = (f"{i.identifier} ({i.num_embeds}) at {i.position}" for i in request.items)
    told = "; ".join(items) or "no items"
    return (
        f"request {request.request_id}: before pass {request.arrival}, priority "
        f"{request.priority}, {told}, {request.num_text_tokens} text tokens of "
        f"{request.text!r}, generates {request.max_tokens}"
    )


def _event(event: Event) -> str:
    what = f"{event.request} is aborted" if isinstance(event, Abort) else "both sides are reset"
    return f"before pass {event.before_pass}: {what}"


def breach_lines(failure: PassFailure) -> Iterator[str]:
    """The passes, and after each what it broke."""
    for record in failure.records:
        yield pass_line(record)
        yield from (f"     {text}" for text in breach_of(failure, record.number))


def breach_of(failure: PassFailure, number: int) -> list[str]:
    """What this pass broke."""
    return [f"{b.clause}: {b.says}" for b in failure.breaches if b.pass_number == number]


def pass_line(record: PassRecord) -> str:
    """One pass, on one line."""
    cells = zip(COLUMNS, pass_cells(record), strict=True)
    told = (f"{name} {cell}" for name, cell in cells)
    return f"pass {record.number}: {'; '.join(told)}"


def pass_cells(record: PassRecord) -> tuple[str, ...]:
    """What the pass did, one text a column."""
    return (
        _pairs({r: (str(n),) for r, n in record.num_scheduled_tokens.items()}),
        _pairs({r: tuple(map(str, i)) for r, i in record.scheduled_encoder_inputs.items()}),
        _names(record.report),
        _names(record.preempted),
        _names(record.cached),
        _names(record.worker),
    )


def _pairs(values: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{name}: {' '.join(of)}" for name, of in values.items()) or "-"


def _names(names: Collection[str]) -> str:
    return ", ".join(names) or "-"
