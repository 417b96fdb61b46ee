"""The reference's processor cache beside vLLM's, request by request: both sides, nothing between.

vLLM's is that of the release below, with its own request procedure, on stand-ins for tensors; it
weighs every item, which the reference is told.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from mmcache.processor_cache import Receiver, Sender, SentItem
from mmcache_conformance.pairs.vllm import VllmSides
from mmcache_conformance.pairs.vllm_source import Tensor, load_released

RELEASE = "0.33.0"
CAPACITY = 32


def main(quick: bool = False) -> None:
    """Prints microseconds a request, and the ratio."""
    luck = random.Random(1)
    count = 100 if quick else 3_000
    requests = [[f"h{luck.randrange(2 * CAPACITY)}" for _ in range(3)] for _ in range(count)]
    ours, theirs = (_best(run, requests) for run in (_ours, _theirs))
    print(
        f"reference {ours:.0f} µs a request, vLLM {RELEASE} {theirs:.0f} µs: {theirs / ours:.1f} x"
    )


def _best(run: Callable[[list[list[str]]], float], requests: list[list[str]]) -> float:
    return min(run(requests) for _ in range(5)) / len(requests) * 1e6


def _ours(requests: list[list[str]]) -> float:
    sender, receiver = Sender[str](CAPACITY), Receiver[str](CAPACITY)
    started = time.perf_counter()
    for hashes in requests:
        receiver.handle(sender.process([SentItem(h, 1, "data") for h in hashes]))
    return time.perf_counter() - started


def _theirs(requests: list[list[str]]) -> float:
    released = load_released(RELEASE)
    sides = VllmSides(released, CAPACITY)
    item: Any = released.item({"data": Tensor(1, "data")})
    places = {"image": [SimpleNamespace(offset=k) for k in range(3)]}
    started = time.perf_counter()
    for hashes in requests:
        by_modality = {"image": hashes}
        cached = {"image": sides.p0.is_cached(hashes)}
        sent = sides.merge(by_modality, {"image": [item] * 3}, places, cached)["image"]
        sides.handle(
            [
                SimpleNamespace(data=d, mm_hash=h, identifier=h)
                for d, h in zip(sent, hashes, strict=True)
            ]
        )
    return time.perf_counter() - started
