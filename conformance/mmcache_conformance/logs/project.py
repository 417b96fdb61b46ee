"""As much of the reference's state as one event can touch, in the words of the specification.

The interpreter goes through every element of its universe, so it is given a small one: all actions
are pointwise, and what they do to other hashes, requests and inputs is nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from mmcache_spec.evaluate.interpreter import World
from mmcache_spec.oracle import input_name

from ..oracle.systems import specified
from .follow import Follower
from .format import Allocated, Asked, Freed, FreedInput, LogEvent, LookedUp, Reported, WasReset

__all__ = ["Projection", "projection", "state_of"]

_UNKNOWN = "?"
"""The hash of an input that is released and was not held: whatever it is, nothing depends on it."""


class Projection:
    """As much of a world as one event can touch, as the interpreter takes it.

    All actions are pointwise: what they do to other hashes, requests and inputs is nothing.
    """

    def __init__(
        self,
        capacity: int,
        sizes: Mapping[str, int],
        inputs: Mapping[tuple[str, int], tuple[str, int]],
        requests: Iterable[str] = (),
    ) -> None:
        """`inputs` gives the hash and the size at each position of a request."""
        self.sizes = sizes
        self.inputs = {input_name(r, k): (r, k, h) for (r, k), (h, _) in inputs.items()}
        counts = dict.fromkeys((*(r for r, _ in inputs), *requests), 0)
        for request, position in inputs:
            counts[request] = max(counts[request], position + 1)
        self.world = World(
            universe={
                "Hash": tuple(sizes),
                "Request": tuple(counts),
                "Input": tuple(self.inputs),
            },
            constants={"capacity": capacity},
            functions={
                "size": sizes,
                "hash_of": {n: h for n, (_, _, h) in self.inputs.items()},
                "owner": {n: r for n, (r, _, _) in self.inputs.items()},
                "position": {n: k for n, (_, k, _) in self.inputs.items()},
                "inputs_of": counts,
                "embeds": {input_name(r, k): size for (r, k), (_, size) in inputs.items()},
            },
        )

    @property
    def extent(self) -> int:
        """How much there is for the interpreter to go through."""
        return len(self.sizes) + len(self.inputs)


def projection(follower: Follower, event: LogEvent) -> Projection:
    """What the event can touch, from the state before it."""
    sizes: dict[str, int] = {}
    inputs: dict[tuple[str, int], tuple[str, int]] = {}
    requests: tuple[str, ...] = ()
    manager, carried = follower.manager, follower.carried
    match event:
        case LookedUp() | Allocated() | Asked():
            sizes[event.identifier] = event.num_embeds
            inputs[event.request, event.input_id] = event.identifier, event.num_embeds
        case FreedInput(request=r, input_id=k):
            mm_hash, size = carried.get(r, {}).get(k, (_UNKNOWN, 1))
            sizes[mm_hash], inputs[r, k] = size, (mm_hash, size)
        case Freed(request=r):
            requests = (r,)
            for k, (mm_hash, size) in carried.get(r, {}).items():
                sizes[mm_hash], inputs[r, k] = size, (mm_hash, size)
        case Reported():
            sizes = dict.fromkeys(sorted({*_told(manager), *event.returns}), 1)
        case WasReset():
            sizes = dict.fromkeys(sorted({*_told(manager), *manager.cached}), 1)
            inputs = {(r, k): x for r, at in carried.items() for k, x in at.items()}
            sizes |= dict(inputs.values())
    if isinstance(event, Asked):
        sizes |= _oldest(manager, event.num_embeds + event.num_embeds_to_schedule)
    elif not isinstance(event, Reported):
        for mm_hash, size in sizes.items():
            users = manager.cached.get(mm_hash, ())
            requests = (*requests, *users)
            for r in users:
                held = carried.get(r, {})
                inputs |= {(r, k): (h, size) for k, (h, _) in held.items() if h == mm_hash}
    return Projection(manager.cache_size, sizes, inputs, requests)


def _told(manager: EncoderCacheManager) -> Iterable[str]:
    """What this report and the next may name."""
    if isinstance(manager, EncoderDecoderCacheManager):
        return [*manager.allocated, *manager.to_free]
    return manager.freed


def _oldest(manager: EncoderCacheManager, need: int) -> dict[str, int]:
    """The freeable hashes that could be evicted for so much, and three more.

    Whatever is younger has enough that is older: no eviction for `need` reaches it.
    """
    found: dict[str, int] = {}
    room, spare = manager.num_free_slots, 3
    for mm_hash, size in manager.freeable.items():
        if room >= need:
            spare -= 1
        if spare < 0:
            break
        found[mm_hash] = size
        room += size
    return found


def state_of(follower: Follower, within: Projection) -> dict[str, Any]:
    """The reference's state, in the variables of the specification.

    The record of an observer (the ghost variables) is what the proved invariants say of it.
    """
    manager, held = follower.manager, _held(follower, within)
    if isinstance(manager, EncoderDecoderCacheManager):
        known = _encoder_decoder_state(manager, within, held)
    else:
        known = _ledger_state(manager, within, held)
    return {v.name: known[v.name] for v in specified(follower.kind).variables}


def _held(follower: Follower, within: Projection) -> frozenset[tuple[str]]:
    """The inputs that the reference holds; also those that, by the log's account, it must not."""
    requests = within.world.universe["Request"]
    positions = {r: follower.positions(r) for r in requests}
    known = {n for n, (r, k, _) in within.inputs.items() if k in positions[r]}
    stray = {
        input_name(r, k)
        for r in requests
        for k in positions[r] - follower.carried.get(r, {}).keys()
    }
    return frozenset((n,) for n in known | stray)


def _ledger_state(
    manager: EncoderCacheManager, within: Projection, held: frozenset[tuple[str]]
) -> dict[str, Any]:
    sizes = within.sizes
    order = {h: k for k, h in enumerate(h for h in manager.freeable if h in sizes)}
    since, clock = {h: order.get(h, 0) for h in sizes}, len(order)
    cached = frozenset((h,) for h in sizes if h in manager.cached)
    freed = frozenset((h,) for h in manager.freed if h in sizes)
    return {
        "cached": cached,
        "references": frozenset((h, r) for (h,) in cached for r in manager.cached[h]),
        "held": held,
        "freeable": frozenset((h,) for h in order),
        "since": since,
        "clock": clock,
        "freed": freed,
        "free_slots": manager.num_free_slots,
        "freeable_slots": manager.num_freeable_slots,
        # The record.
        "needed": held,
        "ended": since,
        "now": clock,
        "stored": cached,
        "evicted": freed,
        "worker": cached | freed,
    }


def _encoder_decoder_state(
    manager: EncoderDecoderCacheManager,
    within: Projection,
    held: frozenset[tuple[str]],
) -> dict[str, Any]:
    allocated = frozenset((h,) for h in manager.allocated if h in within.sizes)
    to_free = frozenset((h,) for h in manager.to_free if h in within.sizes)
    return {
        "outstanding": held,
        "free_slots": manager.num_free_slots,
        "allocated": allocated,
        "to_free": to_free,
        # The record.
        "needed": held,
        "this_pass": allocated,
        "last_pass": to_free,
    }
