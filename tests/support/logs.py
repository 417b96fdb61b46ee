"""Logs for tests: of recorded random work, and from events."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from mmcache_conformance.logs.format import (
    Allocated,
    Asked,
    Created,
    Freed,
    Header,
    LogEvent,
    Reported,
)
from mmcache_conformance.logs.record import Recorder, record_class

from .requests import Item, Request

HEADER = msgspec.json.encode(Header(producer="a test"))


def lines_of(events: Iterable[LogEvent]) -> list[bytes]:
    return [line + b"\n" for line in (HEADER, *map(msgspec.json.encode, events))]


# Two items fill a cache of 8, and the third, of another request, takes the place of both.
A, B, C = ("r", 0, "A", 4), ("r", 1, "B", 4), ("q", 0, "C", 8)
BOTH = [(Allocated, *A), (Allocated, *B), (Reported, ())]
REPLACED = [(Freed, "r"), (Asked, *C, 8, 0, True), (Allocated, *C), (Reported, ("A", "B"))]


def events_of(*calls: Any, name: str = "m", worker: bool = False) -> list[LogEvent]:
    """The log of a manager of 8 embeddings: for each call its class, and what follows `seq`."""
    made: list[LogEvent] = [Created(name, 0, "encoder_cache", 8, worker)]
    return made + [cls(name, k, *given) for k, (cls, *given) in enumerate(calls, start=1)]


def fresh_classes() -> tuple[type[EncoderCacheManager], type[EncoderCacheManager]]:
    """Copies of the reference's classes, to be wrapped."""
    return (
        type("Ledger", (EncoderCacheManager,), dict(vars(EncoderCacheManager))),
        type(
            "EncoderDecoder", (EncoderDecoderCacheManager,), dict(vars(EncoderDecoderCacheManager))
        ),
    )


def work(manager: EncoderCacheManager, passes: int, seed: int, size_of: dict[str, int]) -> None:
    """Serve random requests as a scheduler does."""
    chance = random.Random(seed)
    running: list[Request] = []
    for number in range(passes):
        names = chance.choices(sorted(size_of), k=chance.randint(1, 3))
        running.append(Request(f"r{number}", tuple(Item(n, size_of[n]) for n in names)))
        for request in list(running):
            budget, pending = 40, 0
            todo: list[int] = []
            for k, item in enumerate(request.mm_features):
                if k in manager.get_cached_input_ids(request):
                    continue
                if any(request.mm_features[j] == item for j in todo):
                    continue
                if manager.check_and_update_cache(request, k):
                    continue
                if not manager.can_allocate(request, k, budget, pending):
                    break
                todo.append(k)
                budget, pending = budget - item.num_embeds, pending + item.num_embeds
            for k in todo:
                manager.allocate(request, k)
            if chance.random() < 0.4:
                manager.free_encoder_input(
                    request, chance.randrange(len(names)) % len(request.mm_features)
                )
            if chance.random() < 0.3:
                manager.free(request)
                running.remove(request)
        manager.get_freed_mm_hashes()
        if chance.random() < 0.01:
            manager.reset()


SIZES = {f"h{k}": 1 + k % 5 for k in range(12)}


def recorded(directory: Path, passes: int = 200, seed: int = 1) -> list[bytes]:
    """The log of two managers that work in turn in one process."""
    ledger, encoder_decoder = fresh_classes()
    recorder = Recorder(directory, "the reference")
    record_class(ledger, "encoder_cache", recorder)
    record_class(encoder_decoder, "encoder_decoder", recorder)
    managers = ledger(12), encoder_decoder(12), ledger(5)
    for k in range(4):
        for manager in managers:
            work(manager, passes // 4, seed + k, SIZES)
    recorder.close()
    (path,) = directory.glob("*.jsonl")
    return path.read_bytes().splitlines(keepends=True)
