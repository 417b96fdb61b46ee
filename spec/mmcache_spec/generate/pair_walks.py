"""What users do with pairs of processor caches: walks by seed, and scripts of single requests."""

from __future__ import annotations

import random
from dataclasses import dataclass

from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    PairItem,
    PairParameters,
    PairRequest,
    ProcessRequest,
)

from ..pair import PairSystem

__all__ = ["SCRIPTS", "WALKS", "Walk", "pair_world", "serial", "walked"]


def pair_world(capacity: int, *requests: str, sizes: str = "") -> PairParameters:
    """Requests as words: capital letters are pictures, small ones sounds; `sizes` as in `A2 B1`."""
    size = {word[0]: int(word[1:]) for word in sizes.split()}

    def item(h: str) -> PairItem:
        return PairItem(h, "image" if h.isupper() else "audio", size.get(h, 1))

    made = (PairRequest(f"r{k + 1}", tuple(map(item, r))) for k, r in enumerate(requests))
    return PairParameters(capacity, tuple(made))


# --- walks -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Walk:
    """A random walk in a larger world, by a seed."""

    name: str
    says: str
    seed: int
    mixed: bool = False
    large: bool = False
    """Whether requests may be larger than the cache."""
    clears: bool = False
    misses: bool = False
    steps: int = 50
    flying: int = 3


WALKS = (
    Walk("plain", "requests of one modality that fit, up to three on their way", 1),
    Walk("mixed", "requests of two modalities that fit", 8, mixed=True),
    Walk("large", "requests of one modality, some larger than the cache", 4, large=True),
    Walk("cleared", "requests of one modality that fit, and clears", 5, clears=True),
    Walk("missed", "requests of one modality that fit, and late notices", 6, misses=True),
)


def _walk_world(walk: Walk, luck: random.Random) -> PairParameters:
    hashes = "ABCDEF" if not walk.mixed else "AbCdEf"
    sizes = {h: luck.choice((1, 1, 2, 3)) for h in hashes}
    capacity = 6
    requests: list[str] = []
    while len(requests) < 7:
        chosen = luck.choices(hashes, k=luck.choice((1, 1, 2, 3, *(4, 5) * walk.large)))
        if walk.large or sum(sizes[h] for h in set(chosen)) <= capacity:
            requests.append("".join(chosen))
    told = " ".join(f"{h}{n}" for h, n in sizes.items())
    return pair_world(capacity, *requests, sizes=told)


def walked(walk: Walk) -> tuple[PairParameters, tuple[PairCall, ...]]:
    luck = random.Random(walk.seed)
    world = _walk_world(walk, luck)
    system = PairSystem(world)
    state, clears = system.initial(), 0
    calls: list[PairCall] = []
    while len(calls) < walk.steps:
        flying = [r for r, _ in state.line]
        idle = [r.request_id for r in world.requests if r.request_id not in flying]
        call: PairCall
        if clears and luck.random() < 0.4:
            call = ClearReceiver()
        elif walk.clears and not clears and luck.random() < 0.06:
            call = ClearSender()
        elif walk.misses and luck.random() < 0.08:
            call = Invalidate(luck.choice(luck.choice(world.requests).items).identifier)
        elif flying and (len(flying) >= walk.flying or luck.random() < 0.5):
            call = Deliver(flying[0])
        else:
            call = ProcessRequest(luck.choice(idle))
        answered = system.call(state, call)
        assert answered is not None
        state = answered[1]
        clears += isinstance(call, ClearSender) - isinstance(call, ClearReceiver)
        calls.append(call)
    calls += [Deliver(r) for r, _ in state.line]
    return world, tuple(calls)


# --- scripts -------------------------------------------------------------------------------------

SCRIPTS = (
    (
        "pair-serial-mixed",
        "A script: requests that fit, one after the other; the first has a sound between pictures.",
        pair_world(3, "AbC", "D", "E", "b"),
        "r1 r2 r3 r4",
    ),
    (
        "pair-serial-large",
        "A script: a request that is larger than the cache, its last item cached, twice.",
        pair_world(3, "A", "BCDA"),
        "r1 r2 r2",
    ),
    (
        "pair-serial-fits",
        "A script: a request that fits and has a cached item at its end, after others.",
        pair_world(3, "A", "B", "C", "DEA", "BC"),
        "r1 r2 r3 r4 r5 r4",
    ),
)
"""What users do, one request at a time: by name, what it says, its world, and the requests."""


def serial(requests: str) -> tuple[PairCall, ...]:
    return tuple(call for r in requests.split() for call in (ProcessRequest(r), Deliver(r)))
