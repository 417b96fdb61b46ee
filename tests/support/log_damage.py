"""Logs of whole engines, right and wrong, and random damage of them."""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from mmcache_conformance.engines.protocol import PassRecord, engine_case
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS, ReferenceRun
from mmcache_conformance.logs.format import (
    NEEDED_CALLS,
    Created,
    Ended,
    Header,
    LogEvent,
    PassEnded,
    WasReset,
    WorkerStepped,
)
from mmcache_conformance.logs.record import record_class
from mmcache_vectors.engine import EngineVector
from mmcache_vectors.manager import Manager

__all__ = ["DAMAGES", "Damaged", "damaged", "engine_log"]

_PASSES = 40


class _Memory:
    """A recorder that keeps the events; every manager has the steps of its worker in the log."""

    def __init__(self) -> None:
        self.name = "m"
        self.seq = 0
        self.busy = self.passing = False
        self.unsent: dict[str, set[int]] = {}
        self.events: list[LogEvent] = []

    def begin(self, kind: Manager, cache_size: int, records: tuple[str, ...]) -> _Memory:
        self.write(Created(self.name, 0, kind, cache_size, worker=True))
        return self

    def write(self, event: LogEvent) -> None:
        self.events.append(event)
        self.seq += 1

    def flush(self) -> None:
        """Nothing is waited for."""

    def stop(self, why: object) -> None:
        raise AssertionError(why)


def engine_log(variant: str, workload: EngineVector, *, steps: bool) -> list[bytes]:
    """What the recorder writes of a reference engine, with the orders and perhaps the steps.

    Args:
        variant: The wrong decision of the engine, or `specified`.
        workload: What it serves.
        steps: Whether the worker's steps are in the log.
    """
    how = REFERENCE_VARIANTS[variant]
    memory = _Memory()
    cls = type("Ledger", (how.manager,), {})
    for name in NEEDED_CALLS:  # its own methods, so that those of the class above stay as they are
        setattr(cls, name, _own(getattr(how.manager, name)))
    cls.reset = _own(how.manager.reset)  # type: ignore[attr-defined]
    record_class(cls, "encoder_cache", memory)
    run = ReferenceRun(replace(how, manager=cls), engine_case(workload))
    hashes = _hashes(workload)
    while not run.over and run.number < _PASSES:
        _note(memory, run.step(), hashes, steps)
    memory.write(Ended(memory.name, memory.seq))
    events = [
        e if steps or not isinstance(e, Created) else _without_worker(e) for e in memory.events
    ]
    events = [e for e in events if not (isinstance(e, WasReset) and e.seq == 1)]
    header = Header(producer="a test", records=(*NEEDED_CALLS, "reset"))
    lines = [msgspec.json.encode(x) + b"\n" for x in (header, *events)]
    return _renumbered(lines)


def _own(function: Any) -> Any:
    def method(self: Any, *arguments: Any) -> Any:
        return function(self, *arguments)

    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


def _without_worker(created: Created) -> Created:
    return msgspec.structs.replace(created, worker=False)


def _hashes(workload: EngineVector) -> dict[str, tuple[str, ...]]:
    return {r.request_id: tuple(i.identifier for i in r.items) for r in workload.requests}


def _note(
    memory: _Memory, seen: PassRecord, hashes: dict[str, tuple[str, ...]], steps: bool
) -> None:
    ordered = [hashes[r][i] for r, ids in seen.scheduled_encoder_inputs.items() for i in ids]
    without = tuple(seen.without_payload)
    memory.write(PassEnded("m", memory.seq, seen.report, tuple(ordered), (), without))
    if steps:
        made = tuple(h for h in ordered if h not in without)
        memory.write(WorkerStepped("m", memory.seq, seen.report, made, seen.gathered))


# --- damage ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Damaged:
    """A log, and what was done to it."""

    what: str
    line: int
    """The first line that is another than before."""
    lines: list[bytes]


def _renumbered(lines: Sequence[bytes]) -> list[bytes]:
    """As if the recorder had written it so."""
    fixed, seqs = [lines[0]], dict[str, int]()
    for line in lines[1:]:
        event = json.loads(line)
        event["seq"] = seqs.get(event["manager"], 0)
        seqs[event["manager"]] = event["seq"] + 1
        fixed.append(_encoded(event))
    return fixed


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def _drop(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    return [*lines[:k], *lines[k + 1 :]]


def _repeat(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    return [*lines[: k + 1], lines[k], *lines[k + 1 :]]


def _swap(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    return [*lines[: k - 1], lines[k], lines[k - 1], *lines[k + 1 :]]


def _truncate(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    return lines[:k]


def _cut(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    return [*lines[:k], lines[k][: chance.randrange(1, len(lines[k]) - 1)]]


def _forget(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    """A field is left out."""
    event = json.loads(lines[k])
    del event[chance.choice(sorted(event))]
    return [*lines[:k], _encoded(event), *lines[k + 1 :]]


def _add(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    event = json.loads(lines[k]) | {"mood": chance.random()}
    return [*lines[:k], _encoded(event), *lines[k + 1 :]]


def _retype(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    event = json.loads(lines[k])
    event[chance.choice(sorted(event))] = chance.choice([{}, 1.5, [3], None, -1])
    return [*lines[:k], _encoded(event), *lines[k + 1 :]]


def _edit(lines: list[bytes], k: int, chance: random.Random) -> list[bytes]:
    """A field says something else that it might say."""
    event = json.loads(lines[k])
    fields = [name for name in event if name not in {"op", "manager", "seq"}]
    if not fields:
        return lines
    name = chance.choice(fields)
    event[name] = _other(event[name], chance)
    return [*lines[:k], _encoded(event), *lines[k + 1 :]]


def _other(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return max(0, value + chance.choice((-2, -1, 1, 2, 5)))
    if isinstance(value, list):
        more = [*value, chance.choice("ABCDE")]
        return chance.choice([value[1:], value[:-1], more, []])
    if isinstance(value, str):
        return chance.choice(["A", "B", "C", "r0", "r1", "r2", value + "x"])
    return value


def _then_renumber(
    damage: Callable[[list[bytes], int, random.Random], list[bytes]],
) -> Callable[[list[bytes], int, random.Random], list[bytes]]:
    return lambda lines, k, chance: _renumbered(damage(lines, k, chance))


DAMAGES: dict[str, Callable[[list[bytes], int, random.Random], list[bytes]]] = {
    "drop": _drop,
    "repeat": _repeat,
    "swap": _swap,
    "truncate": _truncate,
    "cut": _cut,
    "forget a field": _forget,
    "add a field": _add,
    "retype a field": _retype,
    "edit a field": _edit,
    "drop and renumber": _then_renumber(_drop),
    "repeat and renumber": _then_renumber(_repeat),
    "swap and renumber": _then_renumber(_swap),
}
"""What is done at a line of a log, by name."""


def damaged(lines: list[bytes], what: str, chance: random.Random) -> Damaged:
    """The log, damaged at one place behind its first event."""
    k = chance.randrange(3, len(lines))
    after = DAMAGES[what](lines, k, chance)
    pairs = enumerate(zip(lines, after, strict=False), start=1)
    line = next((n for n, (a, b) in pairs if a != b), min(len(lines), len(after)) + 1)
    return Damaged(what, line, after)
