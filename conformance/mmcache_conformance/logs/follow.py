"""The reference, taken through the events of a log.

It is `mmcache.EncoderCacheManager` itself (and the one for encoder-decoder models), not a model of
its own: what it *would* answer is read off its attributes, and performing an event is the call.
That the reference is the specification is checked elsewhere, over every state of a scope, and here
by the audit of `check`, which needs the state as the interpreter takes it: `Follower.state`.

Every event takes constant time, but for what is proportional to what is released or evicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Manager,
    Reset,
)

from .format import (
    Allocated,
    Asked,
    Created,
    Freed,
    FreedInput,
    LogEvent,
    LookedUp,
    Reported,
    WasReset,
)

__all__ = [
    "REFERENCES",
    "Follower",
    "OutOfWorld",
    "Refusal",
    "RightAnswer",
    "call_of",
]

REFERENCES: Mapping[Manager, type[EncoderCacheManager]] = {
    "encoder_cache": EncoderCacheManager,
    "encoder_decoder": EncoderDecoderCacheManager,
}


class OutOfWorld(ValueError):
    """The event contradicts what the specification assumes of its world; the text says what."""


class Refusal(str):
    """The guard that excludes the call: the caller broke a duty."""

    __slots__ = ()


RightAnswer = bool | set[str] | Refusal | None

_NOTHING: set[str] = set()


def call_of(event: LogEvent) -> Call | None:
    """The call that the event records; None where nothing was called."""
    match event:
        case LookedUp():
            return CheckAndUpdateCache(event.request, event.input_id)
        case Asked():
            budget, pending = event.encoder_compute_budget, event.num_embeds_to_schedule
            return CanAllocate(event.request, event.input_id, budget, pending)
        case Allocated():
            return Allocate(event.request, event.input_id)
        case FreedInput():
            return FreeEncoderInput(event.request, event.input_id)
        case Freed():
            return Free(event.request)
        case Reported():
            return GetFreedMmHashes()
        case WasReset():
            return Reset()
    return None


class _Input:
    """What the reference reads of one input: the request, its features and the feature in one."""

    __slots__ = ("identifier", "mm_features", "num_embeds", "request_id")

    def __init__(self) -> None:
        self.request_id = self.identifier = ""
        self.num_embeds = 0
        self.mm_features = self

    def __getitem__(self, input_id: int) -> _Input:
        return self

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return self.num_embeds


class Follower:
    """One manager of a log: the reference in the state that its events lead to."""

    def __init__(
        self,
        created: Created,
        references: Mapping[Manager, type[EncoderCacheManager]] = REFERENCES,
    ) -> None:
        self.kind = created.kind
        self.manager = references[created.kind](created.cache_size)
        self._input = _Input()
        self.carried: dict[str, dict[int, tuple[str, int]]] = {}
        """By request and position: the hash and size that were hit or allocated there, by the
        log's account, and not released since."""

    def answer(self, event: LogEvent) -> RightAnswer:
        """What the specified manager answers; nothing changes.

        Raises:
            OutOfWorld: The event is of a world that the specification does not speak of.
        """
        manager = self.manager
        if isinstance(event, (LookedUp, Asked, Allocated)):
            self._check_world(event)
            if isinstance(event, LookedUp):
                return event.identifier in manager.cached
            refusal = self._refusal(event)
            if refusal is not None or isinstance(event, Allocated):
                return refusal
            need = event.num_embeds + event.num_embeds_to_schedule
            within_budget = event.num_embeds <= event.encoder_compute_budget
            return within_budget and need <= manager.num_freeable_slots
        if isinstance(event, Reported):
            if isinstance(manager, EncoderDecoderCacheManager):
                return set(manager.to_free)
            return set(manager.freed).difference(manager.cached) if manager.freed else _NOTHING
        return None

    def apply(self, event: LogEvent) -> object:
        """Perform the event, which `answer` did not refuse: what the reference returns.

        Raises:
            LedgerError: The reference refuses it all the same.
        """
        manager = self.manager
        if isinstance(event, LookedUp):
            hit = manager.check_and_update_cache(self._of(event), event.input_id)
            if hit:
                self._carries(event)
            return hit
        if isinstance(event, Asked):
            budget, pending = event.encoder_compute_budget, event.num_embeds_to_schedule
            return manager.can_allocate(self._of(event), event.input_id, budget, pending)
        if isinstance(event, Allocated):
            manager.allocate(self._of(event), event.input_id)
            self._carries(event)
        elif isinstance(event, FreedInput):
            manager.free_encoder_input(self._request(event.request), event.input_id)
            carried = self.carried.get(event.request)
            if carried is not None:
                carried.pop(event.input_id, None)
                if not carried:
                    del self.carried[event.request]
        elif isinstance(event, Freed):
            manager.free(self._request(event.request))
            self.carried.pop(event.request, None)
        elif isinstance(event, Reported):
            return set(manager.get_freed_mm_hashes())
        elif isinstance(event, WasReset):
            manager.reset()
            self.carried.clear()
        return None

    def size_of(self, mm_hash: str) -> int | None:
        """The size of a cached hash."""
        self._input.identifier = mm_hash
        return self.manager.get_cached_num_encoder_embeds(self._input, 0)

    def positions(self, request: str) -> Set[int]:
        """The positions that the request holds, by the reference's account."""
        return self.manager.get_cached_input_ids(self._request(request))

    def _check_world(self, event: LookedUp | Asked | Allocated) -> None:
        if event.identifier in self.manager.cached:
            size = self.size_of(event.identifier)
            if size != event.num_embeds:
                raise OutOfWorld(
                    f"hash {event.identifier!r} is cached with {size} embeddings and comes with "
                    f"{event.num_embeds} here: one hash stands for one content"
                )
        carried = self.carried.get(event.request)
        if carried is None or event.input_id not in carried:
            return
        before, _ = carried[event.input_id]
        if before != event.identifier:
            raise OutOfWorld(
                f"input {event.input_id} of request {event.request!r} holds {before!r} and now "
                f"carries {event.identifier!r}: an input has one hash until it is released"
            )

    def _refusal(self, event: Asked | Allocated) -> Refusal | None:
        """The guard of the specification that the caller did not heed."""
        manager = self.manager
        cached = event.identifier in manager.cached
        if isinstance(event, Asked):
            if cached:
                return Refusal("missed")
            if event.encoder_compute_budget < 0:
                return Refusal("budget_not_negative")
            return Refusal("pending_not_negative") if event.num_embeds_to_schedule < 0 else None
        once = self.kind == "encoder_decoder"  # it shares nothing, and charges each allocation
        if once and event.input_id in self.positions(event.request):
            return Refusal("not_charged_yet")
        return None if cached or event.num_embeds <= manager.num_free_slots else Refusal("room")

    def _of(self, event: LookedUp | Asked | Allocated) -> _Input:
        found = self._input
        found.request_id, found.identifier = event.request, event.identifier
        found.num_embeds = event.num_embeds
        return found

    def _request(self, request: str) -> _Input:
        self._input.request_id = request
        return self._input

    def _carries(self, event: LookedUp | Allocated) -> None:
        carried = self.carried.setdefault(event.request, {})
        carried[event.input_id] = event.identifier, event.num_embeds
