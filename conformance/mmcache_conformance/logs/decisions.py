"""Which known wrong decision a log follows, up to the event that is not allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mmcache_vectors.manager import Call, Item, Parameters, Request

from ..oracle.decisions import agreeing, decided
from ..oracle.engine_decisions import engine_decided
from ..targets.protocol import Answer
from ..verdicts.model import Decision
from .follow import call_of
from .format import (
    Allocated,
    Asked,
    Created,
    Freed,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    read_events,
)

__all__ = ["decisions_in", "decisions_of_pass"]

_MOST_EVENTS = 1000
_MOST_INPUTS = 64
"""Beyond these the specification's interpreter would keep its reader waiting for minutes."""

_UNKNOWN = "?"
"""What is at a position that no event names."""


def decisions_in(lines: Iterable[bytes], source: str, accused: LogEvent) -> tuple[Decision, ...]:
    """The decisions whose manager answers all that the log says, the illegal event included.

    None if there is none, and none if the log up to there is too long to be played again, or if one
    position has had several hashes in it, which the worlds of the specification do not have.
    """
    created: Created | None = None
    events: list[LogEvent] = []
    for _, event in read_events(lines, source):
        if event.manager != accused.manager:
            continue
        if created is None:
            assert isinstance(event, Created), "the first reading has seen to that"
            created = event
            continue
        events.append(event)
        if event.seq == accused.seq:
            break
        if len(events) > _MOST_EVENTS:
            return ()
    if created is None:
        return ()
    parameters = _world(created, events)
    calls = [(call, event) for event in events if (call := call_of(event)) is not None]
    if parameters is None or not calls or calls[-1][1].seq != accused.seq:
        return ()
    answers = [Answer(_returned(event)) for _, event in calls]
    names = agreeing(created.kind, parameters, [call for call, _ in calls], answers)
    return tuple(decided(name) for name in names)


def _returned(event: LogEvent) -> bool | tuple[str, ...] | None:
    return event.returns if isinstance(event, LookedUp | Asked | Reported) else None


def _world(created: Created, events: Iterable[LogEvent]) -> Parameters | None:
    items: dict[str, dict[int, Item]] = {}
    sizes: dict[str, int] = {_UNKNOWN: 0}
    for event in events:
        call: Call | None = call_of(event)
        request: str | None = getattr(call, "request", None)
        if request is None:
            continue
        mine = items.setdefault(request, {})
        input_id: int | None = getattr(call, "input_id", None)
        if isinstance(event, LookedUp | Asked | Allocated):
            item = Item(event.identifier, event.num_embeds)
            if mine.setdefault(event.input_id, item) != item:
                if mine[event.input_id].identifier != _UNKNOWN:
                    return None
                mine[event.input_id] = item
            if sizes.setdefault(item.identifier, item.num_embeds) != item.num_embeds:
                return None
        elif input_id is not None:
            mine.setdefault(input_id, Item(_UNKNOWN, 0))
    requests = []
    for name, at in items.items():
        last = max(at, default=-1)
        if last >= _MOST_INPUTS:
            return None
        filled = tuple(at.get(k, Item(_UNKNOWN, 0)) for k in range(last + 1))
        requests.append(Request(name, filled))
    if sum(len(r.items) for r in requests) > _MOST_INPUTS:
        return None
    return Parameters(created.cache_size, tuple(requests))


def decisions_of_pass(
    lines: Iterable[bytes], source: str, accused: PassEnded, unmade: Collection[str]
) -> tuple[Decision, ...]:
    """The decision of an engine that leaves these hashes cached, and orders nobody to make them.

    It shows in the calls of the pass: whoever allocated the hash was freed before the pass ended,
    which is what a preemption does. An order without its payload shows by itself. Otherwise no
    known decision is told.
    """
    if accused.without_payload and not unmade:
        return (engine_decided("payload_stripped_under_prefix_hit"),)
    allocators: dict[str, str] = {}
    """Who has allocated each hash since the pass began."""
    freed: set[str] = set()
    """Of these, the hashes whose allocator was freed afterwards."""
    for _, event in read_events(lines, source):
        if event.manager != accused.manager:
            continue
        if event.seq == accused.seq:
            break
        if isinstance(event, PassEnded | WasReset | Created):
            allocators, freed = {}, set()
        elif isinstance(event, Allocated):
            allocators[event.identifier] = event.request
            freed.discard(event.identifier)
        elif isinstance(event, Freed):
            freed |= {h for h, request in allocators.items() if request == event.request}
    if unmade and freed.issuperset(unmade):
        return (engine_decided("preemption_keeps_unencoded_entry"),)
    return ()
