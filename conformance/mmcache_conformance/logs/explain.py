"""What is wrong with an event, for people: the reason, the ledger before it, and the history."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from mmcache import EncoderDecoderCacheManager

from ..verdicts.model import Decision
from .follow import Follower, Refusal
from .format import Created, LogEvent, read_events

__all__ = ["Illegal", "Wrong", "duty_broken", "event_text", "explain", "hashes_of", "names"]

_HISTORY = 12
"""The last events that are told of a hash."""

_SHOWN = 12
"""The hashes that are named before it says "and so many more"."""


class Illegal(msgspec.Struct, frozen=True, kw_only=True):
    """An event that the specification does not allow."""

    line: int
    event: dict[str, Any]
    clauses: tuple[str, ...]
    reason: str
    expected: str
    got: str
    ledger: tuple[str, ...]
    """The state before the event, for people."""
    history: dict[str, tuple[str, ...]]
    """For each hash that the event is about: the last events that concerned it."""
    decisions: tuple[Decision, ...] = ()
    """The known wrong decisions that answer all of the log up to here, this event included."""


@dataclass(frozen=True)
class Wrong:
    """What is wrong with an event, before it is explained."""

    reason: str
    hashes: tuple[str, ...]
    clauses: tuple[str, ...] = ()
    expected: str = ""
    got: str = ""
    unmade: tuple[str, ...] = ()
    """Of the hashes, those that are cached and that nobody makes."""


_DUTIES = {
    "missed": "can_allocate is asked only after check_and_update_cache has missed",
    "budget_not_negative": "encoder_compute_budget is not negative",
    "pending_not_negative": "num_embeds_to_schedule is not negative",
    "room": "allocate is called only for what fits the free slots",
    "not_charged_yet": "an input is allocated once until it is released",
}


def duty_broken(guard: Refusal, event: LogEvent) -> Wrong:
    """The caller did not heed a guard of the specification."""
    return Wrong(f"the caller broke a duty: {_DUTIES[guard]}", hashes_of(event))


def hashes_of(event: LogEvent) -> tuple[str, ...]:
    """The hash that the event names by itself, if any."""
    name: str | None = getattr(event, "identifier", None)
    return () if name is None else (name,)


def names(hashes: Iterable[str]) -> str:
    """Some of the hashes, in alphabetical order."""
    return _listed(sorted(hashes))


def _listed(hashes: Collection[str], if_none: str = "nothing") -> str:
    more = len(hashes) - _SHOWN
    shown = ", ".join(islice(hashes, _SHOWN)) or if_none
    return shown + (f" and {more} more" if more > 0 else "")


def event_text(event: LogEvent) -> str:
    """The event as people write a call."""
    fields = msgspec.structs.asdict(event)
    returns = fields.pop("returns", None)
    shown = [f"{k}={v}" for k, v in fields.items() if k not in {"manager", "seq"}]
    call = f"{event.__struct_config__.tag}({', '.join(shown)})"
    if returns is None:
        return call
    answer = names(returns) if isinstance(returns, tuple) else str(returns).lower()
    return f"{call} -> {answer}"


def explain(
    wrong: Wrong,
    number: int,
    event: LogEvent,
    before: Follower,
    lines: Callable[[], Iterable[bytes]] | None,
    source: str,
    *,
    since: int = 0,
) -> Illegal:
    """The whole story.

    Args:
        wrong: What is wrong.
        number: The line of the event.
        event: The event.
        before: The state before it.
        lines: Opens the log again, for the history.
        source: Its name.
        since: The line of the reset from which on the manager is followed; 0 if from its beginning.
    """
    history = {h: deque[str](maxlen=_HISTORY) for h in wrong.hashes[:3]}
    if lines is not None:
        _look_back(history, lines(), source, event.manager, range(since, number))
    return Illegal(
        line=number,
        event={"op": event.__struct_config__.tag, **msgspec.structs.asdict(event)},
        clauses=wrong.clauses,
        reason=wrong.reason,
        expected=wrong.expected,
        got=wrong.got,
        ledger=tuple(_ledger(before)),
        history={h: tuple(seen) for h, seen in history.items()},
    )


def _look_back(
    history: Mapping[str, deque[str]],
    lines: Iterable[bytes],
    source: str,
    manager: str,
    within: range,
) -> None:
    """Follow these lines again, up to the illegal event, and note what concerned the hashes."""
    follower: Follower | None = None
    status = dict.fromkeys(history, "")
    for number, event in read_events(lines, source):
        if number >= within.stop:
            return
        if event.manager != manager:
            continue
        if follower is None:
            assert isinstance(event, Created)
            follower = Follower(event)
        elif number < within.start:
            continue
        else:
            follower.apply(event)
        for mm_hash, seen in history.items():
            now = _status(follower, mm_hash)
            mentioned = mm_hash in hashes_of(event)
            if mentioned or (now != status[mm_hash] and number > 2):
                seen.append(f"line {number}: {event_text(event)}  ({now})")
            status[mm_hash] = now


def _status(follower: Follower, mm_hash: str) -> str:
    """The status of a hash."""
    manager = follower.manager
    if isinstance(manager, EncoderDecoderCacheManager):
        passes = {
            "allocated in this pass": manager.allocated,
            "allocated in the pass before": manager.to_free,
        }
        words = [word for word, hashes in passes.items() if mm_hash in hashes]
        return ", ".join(words) or "not allocated in this pass or the one before"
    words = ["not cached"]
    if mm_hash in manager.cached:
        users = sorted(manager.cached[mm_hash])
        words = [f"cached, {follower.size_of(mm_hash)} embeddings"]
        words.append(f"referenced by {_listed(users)}" if users else "freeable")
    if mm_hash in manager.freed:
        words.append("evicted since the last report")
    return ", ".join(words)


def _ledger(follower: Follower) -> Iterator[str]:
    """The whole ledger."""
    manager = follower.manager
    if isinstance(manager, EncoderDecoderCacheManager):
        yield f"{manager.cache_size} embeddings, {manager.num_free_slots} free"
        charged = [f"{r}[{k}]" for r in follower.carried for k in follower.positions(r)]
        yield f"charged: {_listed(charged, 'none')}"
        allocated = sorted(set(manager.allocated))
        yield f"allocated since the last report: {_listed(allocated, 'none')}"
        yield f"allocated in the pass before: {_listed(sorted(set(manager.to_free)), 'none')}"
        return
    yield (
        f"{manager.cache_size} embeddings, {manager.num_free_slots} free, "
        f"{manager.num_freeable_slots} free or freeable"
    )
    yield f"cached: {_listed(manager.cached, 'none')}"
    yield f"freeable, oldest first: {_listed(manager.freeable, 'none')}"
    yield f"evicted since the last report: {_listed(sorted(set(manager.freed)), 'none')}"
