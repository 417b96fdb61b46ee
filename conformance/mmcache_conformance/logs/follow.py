"""The specified managers, made fast enough for long logs, without bounds on hashes or requests.

These two classes are *not* the specification. They are trusted because they are compared with it:
`exhaust` takes them through every state of its scopes, random walks go further, and `check` itself
runs a sample of the events of every log on the specification's interpreter. Where they and a log
disagree, it is the interpreter that says what is right.

Everything takes constant time, except what is proportional to what is released or evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

from mmcache_spec.evaluate.interpreter import World
from mmcache_spec.oracle import input_name, recorded
from mmcache_vectors.manager import Manager

from .format import (
    Allocated,
    Asked,
    Created,
    Event,
    Freed,
    FreedInput,
    LookedUp,
    Reported,
    WasReset,
)

__all__ = [
    "Answer",
    "FastEncoderDecoder",
    "FastLedger",
    "Model",
    "OutOfWorld",
    "Projection",
    "Refusal",
    "model_for",
]


class OutOfWorld(ValueError):
    """The event contradicts what the specification assumes of its world; the text says what."""


class Refusal(str):
    """The guard that excludes the call: the caller broke a duty."""

    __slots__ = ()


Answer = bool | set[str] | Refusal | None

_NOTHING: set[str] = set()

_UNKNOWN = "?"
"""The hash of an input that is released and was not held: whatever it is, nothing depends on it."""


class Projection:
    """As much of a state as one event can touch, as the interpreter takes it.

    All actions are pointwise: what they do to other hashes, requests and inputs is nothing.
    """

    def __init__(
        self,
        capacity: int,
        sizes: Mapping[str, int],
        inputs: Mapping[tuple[str, int], str],
        requests: Iterable[str] = (),
    ) -> None:
        self.sizes = sizes
        self.inputs = {input_name(r, k): (r, k, h) for (r, k), h in inputs.items()}
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
                "embeds": {n: sizes[h] for n, (_, _, h) in self.inputs.items()},
            },
        )

    @property
    def extent(self) -> int:
        return len(self.sizes) + len(self.inputs)


class Model(Protocol):
    """A specified manager that takes events."""

    kind: Manager

    def answer(self, event: Event) -> Answer:
        """What the specified manager answers; nothing changes. Raises `OutOfWorld`."""

    def apply(self, event: Event) -> None:
        """Perform the event, which was answered without a refusal."""

    def projection(self, event: Event) -> Projection: ...

    def state(self, within: Projection) -> dict[str, Any]: ...

    def about(self, mm_hash: str) -> str:
        """The status of a hash, for people."""

    def summary(self) -> Iterator[str]:
        """The whole ledger, for people."""


def model_for(created: Created) -> Model:
    if created.kind == "encoder_decoder":
        return FastEncoderDecoder(created.cache_size)
    return FastLedger(created.cache_size)


class FastLedger:
    """The ledger of a shared cache."""

    kind: Manager = "encoder_cache"

    def __init__(self, cache_size: int) -> None:
        self.cache_size = cache_size
        self._reset()

    def _reset(self) -> None:
        self.free_slots = self.cache_size
        self.freeable_slots = self.cache_size
        self.sizes: dict[str, int] = {}
        """Of the cached hashes."""
        self.references: dict[str, dict[str, int]] = {}
        """For each cached hash and request: at how many positions."""
        self.held: dict[str, dict[int, str]] = {}
        self.freeable: dict[str, int] = {}
        """Oldest first."""
        self.freed: set[str] = set()

    def answer(self, event: Event) -> Answer:
        if isinstance(event, (LookedUp, Allocated, Asked)):
            known = self.sizes.get(event.identifier)
            if known is not None:
                if known != event.num_embeds:
                    raise _two_sizes(event.identifier, known, event.num_embeds)
                if isinstance(event, Asked):
                    return Refusal("missed")
                held = self.held.get(event.request)
                if held is not None:
                    before = held.get(event.input_id)
                    if before is not None and before != event.identifier:
                        raise _two_hashes(event.request, event.input_id, before, event.identifier)
            if isinstance(event, LookedUp):
                return known is not None
            if isinstance(event, Asked):
                return self._admits(event)
            if known is None and event.num_embeds > self.free_slots:
                return Refusal("room")
        elif isinstance(event, Reported):
            return self.freed - self.sizes.keys() if self.freed else _NOTHING
        return None

    def _admits(self, event: Asked) -> bool | Refusal:
        if event.encoder_compute_budget < 0:
            return Refusal("budget_not_negative")
        if event.num_embeds_to_schedule < 0:
            return Refusal("pending_not_negative")
        need = event.num_embeds + event.num_embeds_to_schedule
        return event.num_embeds <= event.encoder_compute_budget and need <= self.freeable_slots

    def apply(self, event: Event) -> None:
        if isinstance(event, LookedUp):
            if event.identifier in self.sizes:
                self._attach(event.request, event.input_id, event.identifier)
        elif isinstance(event, Asked):
            if self._admits(event) is True:
                self._evict(event.num_embeds + event.num_embeds_to_schedule)
        elif isinstance(event, Allocated):
            self._allocate(event)
        elif isinstance(event, FreedInput):
            self._free_input(event.request, event.input_id)
        elif isinstance(event, Freed):
            self._free_all(event.request)
        elif isinstance(event, Reported):
            if self.freed:
                self.freed = set()
        elif isinstance(event, WasReset):
            self._reset()

    def _evict(self, need: int) -> None:
        while self.free_slots < need:
            oldest = next(iter(self.freeable))
            self.free_slots += self.freeable.pop(oldest)
            del self.sizes[oldest], self.references[oldest]
            self.freed.add(oldest)

    def _allocate(self, event: Allocated) -> None:
        mm_hash, size = event.identifier, event.num_embeds
        if mm_hash not in self.sizes:
            self.sizes[mm_hash] = self.freeable[mm_hash] = size
            self.references[mm_hash] = {}
            self.free_slots -= size
        self._attach(event.request, event.input_id, mm_hash)

    def _free_input(self, request: str, input_id: int) -> None:
        held = self.held.get(request)
        if held is None:
            return
        mm_hash = held.pop(input_id, None)
        if mm_hash is None:
            return
        if not held:
            del self.held[request]
        self._release(request, mm_hash)

    def _free_all(self, request: str) -> None:
        held = self.held.pop(request, None)
        if held is not None:
            for input_id in sorted(held):
                self._release(request, held[input_id])

    def _attach(self, request: str, input_id: int, mm_hash: str) -> None:
        held = self.held.setdefault(request, {})
        if input_id in held:
            return
        held[input_id] = mm_hash
        users = self.references[mm_hash]
        if not users:
            self.freeable_slots -= self.freeable.pop(mm_hash)
        users[request] = users.get(request, 0) + 1

    def _release(self, request: str, mm_hash: str) -> None:
        users = self.references[mm_hash]
        if users[request] > 1:
            users[request] -= 1
            return
        del users[request]
        if not users:
            size = self.freeable[mm_hash] = self.sizes[mm_hash]
            self.freeable_slots += size

    # For the interpreter, and for people.

    def projection(self, event: Event) -> Projection:
        sizes: dict[str, int] = {}
        inputs: dict[tuple[str, int], str] = {}
        requests: tuple[str, ...] = ()
        match event:
            case LookedUp() | Allocated() | Asked():
                sizes[event.identifier] = self.sizes.get(event.identifier, event.num_embeds)
                inputs[event.request, event.input_id] = event.identifier
            case FreedInput(request=r, input_id=k):
                mm_hash = self.held.get(r, {}).get(k, _UNKNOWN)
                sizes[mm_hash] = self.sizes.get(mm_hash, 1)
                inputs[r, k] = mm_hash
            case Freed(request=r):
                requests = (r,)
                sizes = {h: self.sizes[h] for h in self.held.get(r, {}).values()}
            case Reported():
                sizes = {h: self.sizes.get(h, 1) for h in sorted({*self.freed, *event.returns})}
        if isinstance(event, Asked):
            sizes |= self._oldest(event.num_embeds + event.num_embeds_to_schedule)
        elif not isinstance(event, Reported):
            for mm_hash in sizes:
                for r in self.references.get(mm_hash, ()):
                    inputs |= {(r, k): h for k, h in self.held[r].items() if h == mm_hash}
        return Projection(self.cache_size, sizes, inputs, requests)

    def _oldest(self, need: int) -> dict[str, int]:
        """The freeable hashes that could be evicted for so much, and three more.

        Whatever is younger has enough that is older: no eviction for `need` reaches it.
        """
        found: dict[str, int] = {}
        room, spare = self.free_slots, 3
        for mm_hash, size in self.freeable.items():
            if room >= need:
                spare -= 1
            if spare < 0:
                break
            found[mm_hash] = size
            room += size
        return found

    def state(self, within: Projection) -> dict[str, Any]:
        sizes, inputs = within.sizes, within.inputs
        requests = within.world.universe["Request"]
        order = {h: k for k, h in enumerate(h for h in self.freeable if h in sizes)}
        cached = frozenset((h,) for h in sizes if h in self.sizes)
        freed = frozenset((h,) for h in sizes if h in self.freed)
        state = {
            "cached": cached,
            "references": frozenset(
                (h, r) for (h,) in cached for r in requests if r in self.references[h]
            ),
            "held": frozenset(
                (n,) for n, (r, k, h) in inputs.items() if self.held.get(r, {}).get(k) == h
            ),
            "freeable": frozenset((h,) for h in order),
            "since": {h: order.get(h, 0) for h in sizes},
            "clock": len(order),
            "freed": freed,
            "free_slots": self.free_slots,
            "freeable_slots": self.freeable_slots,
        }
        return recorded(state)

    def about(self, mm_hash: str) -> str:
        words = []
        if mm_hash in self.sizes:
            words.append(f"cached, {self.sizes[mm_hash]} embeddings")
            users = self.references[mm_hash]
            words.append(f"referenced by {_listed(users)}" if users else "freeable")
        else:
            words.append("not cached")
        if mm_hash in self.freed:
            words.append("evicted since the last report")
        return ", ".join(words)

    def summary(self) -> Iterator[str]:
        yield (
            f"{self.cache_size} embeddings, {self.free_slots} free, "
            f"{self.freeable_slots} free or freeable"
        )
        yield f"cached: {_listed(self.sizes)}"
        yield f"freeable, oldest first: {_listed(self.freeable)}"
        yield f"evicted since the last report: {_listed(sorted(self.freed))}"


class FastEncoderDecoder:
    """The ledger of encoder-decoder models."""

    kind: Manager = "encoder_decoder"

    def __init__(self, cache_size: int) -> None:
        self.cache_size = cache_size
        self._reset()

    def _reset(self) -> None:
        self.free_slots = self.cache_size
        self.charged: dict[str, dict[int, tuple[str, int]]] = {}
        """For each request and position: the hash, and what was charged."""
        self.allocated: set[str] = set()
        self.to_free: set[str] = set()

    def answer(self, event: Event) -> Answer:
        match event:
            case LookedUp():
                return False
            case Asked():
                return self._can_allocate(event)
            case Allocated():
                return self._refuses(event)
            case Reported():
                return self.to_free
        return None

    def apply(self, event: Event) -> None:
        match event:
            case Allocated():
                self._allocate(event)
            case FreedInput(request=request, input_id=input_id):
                self._free_encoder_input(request, input_id)
            case Freed(request=request):
                self.free_slots += sum(s for _, s in self.charged.pop(request, {}).values())
            case Reported():
                self.to_free, self.allocated = self.allocated, set()
            case WasReset():
                self._reset()

    def _can_allocate(self, event: Asked) -> bool | Refusal:
        budget, pending = event.encoder_compute_budget, event.num_embeds_to_schedule
        if budget < 0:
            return Refusal("budget_not_negative")
        if pending < 0:
            return Refusal("pending_not_negative")
        return event.num_embeds <= budget and event.num_embeds + pending <= self.free_slots

    def _refuses(self, event: Allocated) -> Refusal | None:
        if event.input_id in self.charged.get(event.request, ()):
            return Refusal("not_charged_yet")
        return Refusal("room") if event.num_embeds > self.free_slots else None

    def _allocate(self, event: Allocated) -> None:
        charged = self.charged.setdefault(event.request, {})
        charged[event.input_id] = event.identifier, event.num_embeds
        self.free_slots -= event.num_embeds
        self.allocated.add(event.identifier)

    def _free_encoder_input(self, request: str, input_id: int) -> None:
        charged = self.charged.get(request)
        if charged is None or input_id not in charged:
            return
        self.free_slots += charged.pop(input_id)[1]
        if not charged:
            del self.charged[request]

    # For the interpreter, and for people.

    def projection(self, event: Event) -> Projection:
        sizes: dict[str, int] = {}
        inputs: dict[tuple[str, int], str] = {}
        requests: tuple[str, ...] = ()
        match event:
            case LookedUp() | Allocated() | Asked():
                sizes[event.identifier] = event.num_embeds
                inputs[event.request, event.input_id] = event.identifier
            case FreedInput(request=r, input_id=k):
                mm_hash, size = self.charged.get(r, {}).get(k, (_UNKNOWN, 1))
                sizes[mm_hash], inputs[r, k] = size, mm_hash
            case Freed(request=r):
                requests = (r,)
                for k, (mm_hash, size) in self.charged.get(r, {}).items():
                    sizes[mm_hash], inputs[r, k] = size, mm_hash
            case Reported():
                sizes = dict.fromkeys(sorted({*self.allocated, *self.to_free, *event.returns}), 1)
        return Projection(self.cache_size, sizes, inputs, requests)

    def state(self, within: Projection) -> dict[str, Any]:
        allocated = frozenset((h,) for h in within.sizes if h in self.allocated)
        to_free = frozenset((h,) for h in within.sizes if h in self.to_free)
        state = {
            "outstanding": frozenset(
                (n,) for n, (r, k, _) in within.inputs.items() if k in self.charged.get(r, ())
            ),
            "free_slots": self.free_slots,
            "allocated": allocated,
            "to_free": to_free,
        }
        return recorded(state)

    def about(self, mm_hash: str) -> str:
        words = [
            word
            for word, hashes in (
                ("allocated in this pass", self.allocated),
                ("allocated in the pass before", self.to_free),
            )
            if mm_hash in hashes
        ]
        return ", ".join(words) or "not allocated in this pass or the one before"

    def summary(self) -> Iterator[str]:
        yield f"{self.cache_size} embeddings, {self.free_slots} free"
        charged = [f"{r}[{k}]" for r, inputs in self.charged.items() for k in inputs]
        yield f"charged: {_listed(charged)}"
        yield f"allocated since the last report: {_listed(sorted(self.allocated))}"
        yield f"allocated in the pass before: {_listed(sorted(self.to_free))}"


_SHOWN = 12


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(islice(names, _SHOWN))
    more = len(names) - _SHOWN
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _two_sizes(mm_hash: str, known: int, size: int) -> OutOfWorld:
    return OutOfWorld(
        f"hash {mm_hash!r} is cached with {known} embeddings and comes with {size} here: one hash "
        "stands for one content"
    )


def _two_hashes(request: str, input_id: int, before: str, now: str) -> OutOfWorld:
    return OutOfWorld(
        f"input {input_id} of request {request!r} holds {before!r} and now carries {now!r}: an "
        "input has one hash until it is released"
    )
