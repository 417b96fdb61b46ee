"""How fast is the reference, against vLLM's own class and against the number of cached hashes?

    python -m tests.tools.bench manager

Both classes serve the same trace on vLLM's call pattern, one after the other in one process and
in alternating order; the ratio is the median over the rounds. The driver's own work is inside
both times, so the ratio is nearer to 1 than the managers are. The garbage collector is off while
a round is timed. Numbers are of this machine; compare ratios, not times.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from mmcache_conformance.errors import TargetError
from mmcache_conformance.targets.python import ManagerClasses
from mmcache_conformance.targets.vllm.source import find_source, load_classes
from tests.support.requests import Item, Request

Manager = Any
"""The reference's class or vLLM's."""


def vllm_classes() -> ManagerClasses | None:
    """The classes of vLLM 0.33.0, to compare with; nothing where its source cannot be had."""
    try:
        return load_classes(find_source("0.33.0"))
    except TargetError as error:
        print(f"without vLLM: {error}")
        return None


# --- the trace ---------------------------------------------------------------------------------


@dataclass
class Pass:
    """What one scheduling pass does: items to look up, requests that run, requests that end."""

    windows: list[tuple[Request, range]] = field(default_factory=list)
    running: list[tuple[Request, int]] = field(default_factory=list)
    """Each running request with the number of its items that are consumed by now."""
    finished: list[Request] = field(default_factory=list)


def trace(passes: int, arrivals: int, pictures: int, decode: int, seed: int) -> list[Pass]:
    """Requests with 1 to 6 items, two looked up per pass; few pictures are asked for very often."""
    chance = random.Random(seed)
    sizes = {f"picture-{k:06}": chance.choice((64, 256, 576, 1024)) for k in range(pictures)}
    names = list(sizes)
    script = [Pass() for _ in range(passes)]
    for start in range(passes):
        for k in range(arrivals):
            count = chance.choice((1, 1, 1, 2, 2, 4, 6))
            asked = [names[int(pictures * chance.random() ** 3)] for _ in range(count)]
            # A copy of the string, as a request that came over the wire has.
            items = [Item("".join(name), sizes[name]) for name in asked]
            request = Request(f"request-{start}-{k}", tuple(items))
            steps = (count + 1) // 2
            for step, at in enumerate(script[start : start + steps + decode]):
                if step < steps:
                    at.windows.append((request, range(2 * step, min(2 * step + 2, count))))
                at.running.append((request, min(2 * step + 2, count)))
            if start + steps + decode <= passes:
                script[start + steps + decode - 1].finished.append(request)
    return script


def serve(manager: Manager, script: Sequence[Pass], shares: bool) -> tuple[int, int, int]:
    """Drive a manager as vLLM's scheduler does. The numbers of calls, hits and evictions.

    For encoder-decoder models (not `shares`) the scheduler looks nothing up.
    """
    calls = hits = evictions = 0
    size_of = manager.get_cached_num_encoder_embeds
    look_up, admit, charge = (
        manager.check_and_update_cache,
        manager.can_allocate,
        manager.allocate,
    )
    positions, release, end = manager.get_cached_input_ids, manager.free_encoder_input, manager.free
    for now in script:
        left = 1 << 30
        for request, window in now.windows:
            pending = 0
            chosen: dict[str, int] = {}
            again = []
            for i in window:
                mm_hash = request.mm_features[i].identifier
                if shares and mm_hash in chosen:
                    again.append(i)
                    continue
                if shares:
                    size_of(request, i)
                    calls += 2
                    if look_up(request, i):
                        hits += 1
                        continue
                calls += 1
                if not admit(request, i, left, pending):
                    break
                chosen[mm_hash if shares else str(i)] = i
                size = request.get_num_encoder_embeds(i)
                pending += size
                left -= size
            for i in chosen.values():
                charge(request, i)
            for i in again:
                if request.mm_features[i].identifier in chosen:
                    look_up(request, i)
            calls += len(chosen) + len(again)
        evictions += len(manager.get_freed_mm_hashes())
        manager.get_manager_metadata()
        for request, consumed in now.running:
            held = positions(request)
            if held:
                for i in list(held):
                    if i < consumed:
                        release(request, i)
                        calls += 1
        for request in now.finished:
            end(request)
        calls += 2 + len(now.running) + len(now.finished)
    return calls, hits, evictions


# --- the measurements --------------------------------------------------------------------------


def timed(
    run: Callable[..., Any], *arguments: Any, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = run(*arguments)
        return clock() - start, result
    finally:
        gc.enable()


def compare(
    title: str,
    classes: dict[str, Callable[[int], Manager]],
    script: list[Pass],
    capacity: int,
    rounds: int,
    shares: bool = True,
) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in classes}
    made: dict[str, tuple[int, int, int]] = {}
    order = list(classes)
    for _ in range(rounds):
        for name in order:
            manager = classes[name](capacity)
            took, (calls, hits, evictions) = timed(serve, manager, script, shares)
            seconds[name].append(took)
            made[name] = calls, hits, evictions
        order.reverse()
    print(f"\n{title}: {len(script):,} passes")
    for name, each in seconds.items():
        middle = statistics.median(each)
        calls, hits, evictions = made[name]
        print(
            f"  {name:<10} {calls:,} calls ({hits:,} hits, {evictions:,} hashes reported), "
            f"{calls / middle:,.0f} calls/s, {middle / len(script) * 1e6:.1f} us per pass"
        )
    if len(classes) == 2:
        ours, theirs = seconds.values()
        ratios = [t / o for o, t in zip(ours, theirs, strict=True)]
        print(
            f"  ratio      {statistics.median(ratios):.2f}x vLLM's speed "
            f"(rounds from {min(ratios):.2f}x to {max(ratios):.2f}x)"
        )


def flatness(
    classes: dict[str, Callable[[int], Manager]], lengths: Sequence[int], steps: int, rounds: int
) -> None:
    """The time per call by the number of hashes cached: half hits, half misses that evict.

    Random access to a large table costs cache misses of the processor, whatever the algorithm:
    the last line is what a bare `OrderedDict` of that length takes to drop its oldest entry,
    take a new one, and find another.
    """
    print(f"\ntime per call by cached hashes (median of {rounds})")
    for name, cls in (*classes.items(), ("bare dict", _BareTable)):
        row = []
        for n in lengths:
            manager = cls(n)
            for k in range(n):
                request = Request(f"filler-{k}", (Item(f"old-{k}", 1),))
                manager.allocate(request, 0)
                manager.free(request)
            each = []
            for r in range(rounds):
                chance = random.Random(r)
                # The younger half: still there when its turn comes.
                resident = list(manager.freeable)[n // 2 :]
                requests = [
                    Request(f"probe-{r}-{k}", (Item(mm_hash, 1),))
                    for k in range(min(steps, n // 4))
                    for mm_hash in (f"new-{r}-{k}", chance.choice(resident))
                ]
                took, calls = timed(_probe, manager, requests)
                each.append(took / calls)
            row.append(f"{n:>9,}: {statistics.median(each) * 1e9:4.0f} ns")
        print(f"  {name:<10} {'   '.join(row)}")


def _probe(manager: Manager, requests: list[Request]) -> int:
    if isinstance(manager, _BareTable):
        return manager.probe(requests)
    calls = 0
    for request in requests:
        if not manager.check_and_update_cache(request, 0):
            manager.can_allocate(request, 0, 1, 0)
            manager.allocate(request, 0)
            calls += 2
        manager.free_encoder_input(request, 0)
        manager.free(request)
        calls += 3
    manager.get_freed_mm_hashes()
    return calls + 1


class _BareTable:
    def __init__(self, length: int) -> None:
        self.freeable: OrderedDict[str, int] = OrderedDict()

    def allocate(self, request: Request, input_id: int) -> None:
        self.freeable[request.mm_features[input_id].identifier] = 1

    def free(self, request: Request) -> None:
        pass

    def probe(self, requests: list[Request]) -> int:
        table = self.freeable
        for request in requests:
            mm_hash = request.mm_features[0].identifier
            if mm_hash not in table:
                table.popitem(last=False)
                table[mm_hash] = 1
        return len(requests)


def main(quick: bool = False) -> None:
    shared: dict[str, Callable[[int], Manager]] = {"reference": EncoderCacheManager}
    single: dict[str, Callable[[int], Manager]] = {"reference": EncoderDecoderCacheManager}
    vllm = vllm_classes()
    if vllm is not None and vllm.encoder_cache is not None and vllm.encoder_decoder is not None:
        shared["vLLM"] = vllm.encoder_cache
        single["vLLM"] = vllm.encoder_decoder
    passes, rounds = (50, 1) if quick else (2000, 9)
    busy = trace(passes, arrivals=8, pictures=3000, decode=2, seed=1)
    compare("encoder-bound mix", shared, busy, capacity=300_000, rounds=rounds)
    decoding = trace(passes, arrivals=4, pictures=3000, decode=30, seed=2)
    compare("decode-bound mix", shared, decoding, capacity=300_000, rounds=rounds)
    compare("encoder-decoder", single, decoding, 10**7, rounds, shares=False)
    lengths = (10**2, 10**3) if quick else (10**3, 10**4, 10**5, 10**6)
    flatness(shared, lengths, steps=10_000, rounds=1 if quick else 5)
