"""The ledger of a shared encoder cache: which items are resident, and who needs them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Set
from typing import Self

from .errors import (
    InputChangedError,
    NegativeSizeError,
    SizeChangedError,
    described,
    negative_size,
    no_room,
)
from .request import Request

__all__ = ["EncoderCacheManager"]

_NO_POSITIONS: Set[int] = frozenset()


class EncoderCacheManager:
    """Decides what an engine's encoder cache holds. It never touches a tensor.

    Items are shared between requests by their hash. A hash that no request needs any more stays
    cached, *freeable*, until its room is wanted; then the one that has been freeable longest goes
    first. The workers learn of evictions from `get_freed_mm_hashes`, once a scheduling pass.

    Every call takes amortised constant time, whatever the numbers of cached hashes and of items
    in a request; `free` and the report take as much for each position and hash that they deal
    with. All sizes are in encoder embeddings.

    Attributes, to be read and not written:
        cache_size: The capacity.
        num_free_slots: The capacity less the sizes of the cached hashes (L3).
        num_freeable_slots: The free slots, and what evicting every freeable hash would add (L4).
        cached: The ids of the requests that reference a cached hash; an empty set for one that
            is freeable (L5).
        freeable: The sizes of the hashes that no request references, oldest first (L5, L6).
        freed: The hashes evicted since the last report, some perhaps cached again.
    """

    def __init__(self, cache_size: int) -> None:
        """An empty ledger of `cache_size` embeddings.

        Raises:
            NegativeSizeError: `cache_size` is negative.
        """
        if cache_size < 0:
            raise NegativeSizeError(
                f"cache_size is {cache_size}: give the capacity in embeddings, 0 or more"
            )
        self.cache_size = cache_size
        self.reset()

    @classmethod
    def create_manager(cls, *, cache_size: int, vllm_config: object) -> Self:
        """What vLLM calls. `vllm_config` is not read."""
        return cls(cache_size=cache_size)

    def reset(self) -> None:
        """Forget everything, as new weights demand; late releases then change nothing (L10).

        Nothing is reported as evicted: the caller empties the workers with it.
        """
        self.num_free_slots = self.cache_size
        self.num_freeable_slots = self.cache_size
        self.cached: dict[str, set[str]] = {}
        self.freeable: OrderedDict[str, int] = OrderedDict()
        self.freed: list[str] = []
        self._sizes: dict[str, int] = {}
        self._held: dict[str, dict[int, str]] = {}
        """The hash at each position that a request holds, so that a release reads no request."""
        self._unordered: set[str] = set()
        """The requests whose held positions were not taken in ascending order."""
        self._repeats: dict[tuple[str, str], int] = {}
        """For a request and a hash: at how many further positions the request holds it."""

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """Look an item up. A hit takes a reference for the position; a miss changes nothing (L11).

        A hit goes by the hash alone: the request's size for it is not read. A caller that does
        not trust its hashes compares with `get_cached_num_encoder_embeds` first, as vLLM does.

        Raises:
            InputChangedError: The position is held with another hash.
        """
        mm_hash = request.mm_features[input_id].identifier
        references = self.cached.get(mm_hash)
        if references is None:
            return False
        self._attach(request.request_id, input_id, mm_hash, references)
        return True

    def get_cached_num_encoder_embeds(self, request: Request, input_id: int) -> int | None:
        """The size with which the item's hash was allocated, or None where it is not cached."""
        return self._sizes.get(request.mm_features[input_id].identifier)

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        """Admit an item that missed, and make room for it by evicting (L6, L7).

        True exactly where the item's size is within `encoder_compute_budget` and fits the
        freeable slots together with `num_embeds_to_schedule`, the embeddings that were admitted
        before it and not allocated yet. Evicts the oldest freeable hashes, and no more of them
        than it must. A refusal changes nothing.

        Raises:
            NegativeSizeError: The item's size or `num_embeds_to_schedule` is negative.
        """
        size = request.get_num_encoder_embeds(input_id)
        if size < 0:
            mm_hash = request.mm_features[input_id].identifier
            raise negative_size(request.request_id, input_id, mm_hash, size)
        if num_embeds_to_schedule < 0:
            raise NegativeSizeError(
                f"num_embeds_to_schedule is {num_embeds_to_schedule}: give the embeddings that "
                "were admitted and not allocated yet, 0 or more"
            )
        if size > encoder_compute_budget:
            return False
        need = size + num_embeds_to_schedule
        if need > self.num_freeable_slots:
            return False
        while need > self.num_free_slots:
            mm_hash, evicted = self.freeable.popitem(last=False)
            del self.cached[mm_hash], self._sizes[mm_hash]
            self.freed.append(mm_hash)
            self.num_free_slots += evicted
        return True

    def allocate(self, request: Request, input_id: int) -> None:
        """Charge the item's size and take the first reference (L3).

        Ask `can_allocate` before. A hash that is cached already is charged once: this position
        takes a reference as a hit does, and needs no room.

        Raises:
            NoRoomError: The item is larger than the free slots.
            SizeChangedError: The hash is cached with another size.
            InputChangedError: The position is held with another hash.
            NegativeSizeError: The item's size is negative.
        """
        mm_hash = request.mm_features[input_id].identifier
        size = request.get_num_encoder_embeds(input_id)
        request_id = request.request_id
        references = self.cached.get(mm_hash)
        if references is not None:
            if size != self._sizes[mm_hash]:
                raise SizeChangedError(
                    f"{described(request_id, input_id, mm_hash)} has {size} embeddings and is "
                    f"cached with {self._sizes[mm_hash]}: one hash must stand for one content; "
                    "compare with get_cached_num_encoder_embeds before, and reject the request"
                )
            self._attach(request_id, input_id, mm_hash, references)
            return
        if size > self.num_free_slots:
            raise no_room(request_id, input_id, mm_hash, size, self.num_free_slots)
        if size < 0:
            raise negative_size(request_id, input_id, mm_hash, size)
        self._hold(request_id, input_id, mm_hash)
        self.cached[mm_hash] = {request_id}
        self._sizes[mm_hash] = size
        self.num_free_slots -= size
        self.num_freeable_slots -= size

    def get_cached_input_ids(self, request: Request) -> Set[int]:
        """The positions that the request holds: allocated or hit, and not released since.

        A live, read-only set, in ascending order. Copy it to release inputs while going through
        it.
        """
        request_id = request.request_id
        held = self._held.get(request_id)
        if held is None:
            return _NO_POSITIONS
        if request_id in self._unordered:
            self._order(request_id, held)
        return held.keys()

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        """The request has consumed one position.

        Its reference ends with the last position at which it holds the hash (L8); a hash without
        a reference becomes freeable (L5). A position that is not held changes nothing (L9).
        """
        request_id = request.request_id
        held = self._held.get(request_id)
        if held is None:
            return
        mm_hash = held.pop(input_id, None)
        if mm_hash is None:
            return
        if not held:
            del self._held[request_id]
            self._unordered.discard(request_id)
        self._release(request_id, mm_hash)

    def free(self, request: Request) -> None:
        """The request ends or is rolled back: release what it holds, by ascending position.

        So hashes become freeable in the order of the last position that held them (L6, L8).
        A request that holds nothing changes nothing (L9).
        """
        request_id = request.request_id
        held = self._held.pop(request_id, None)
        if held is None:
            return
        if request_id in self._unordered:
            self._order(request_id, held)
        for mm_hash in held.values():
            self._release(request_id, mm_hash)

    def withdraw(self, request: Request, input_id: int) -> tuple[str, int] | None:
        """The pass will not encode, after all, what it allocated for this input (S2).

        For an engine that preempts a request which it has scheduled in the same pass: call it for
        each input of the request that this pass has allocated, and `free` for the rest. What an
        earlier pass allocated is encoded, and stays cached: do not withdraw it.

        The request loses every position at which it holds the hash. If another request has taken
        a reference meanwhile, the entry stays and must be encoded in its name; if none has, the
        allocation is undone. What was evicted for it stays evicted. A position that is not held
        changes nothing (L9).

        Returns:
            The request id and input id for which the hash is to be encoded instead, of the least
            request id if there are several; None where nothing is to be encoded.
        """
        request_id = request.request_id
        held = self._held.get(request_id, {})
        mm_hash = held.get(input_id)
        if mm_hash is None:
            return None
        for position in [k for k, h in held.items() if h == mm_hash]:
            self.free_encoder_input(request, position)
        if references := self.cached[mm_hash]:
            heir = min(references)
            return heir, min(k for k, h in self._held[heir].items() if h == mm_hash)
        self._undo(mm_hash)
        return None

    def get_freed_mm_hashes(self) -> list[str]:
        """The report: what the workers shall drop. Reading it clears it (L2).

        The hashes evicted since the last report and not cached now (L1), each once, in the order
        of eviction.
        """
        if not self.freed:
            return []
        evicted, self.freed = self.freed, []
        return [mm_hash for mm_hash in dict.fromkeys(evicted) if mm_hash not in self.cached]

    def get_manager_metadata(self) -> None:
        """Nothing more to tell the workers than the report."""

    def _undo(self, mm_hash: str) -> None:
        """Forget an unreferenced entry that no worker holds, as if it were never allocated."""
        self.num_free_slots += self.freeable.pop(mm_hash)
        del self.cached[mm_hash], self._sizes[mm_hash]

    def _attach(self, request_id: str, input_id: int, mm_hash: str, references: set[str]) -> None:
        if not self._hold(request_id, input_id, mm_hash):
            return
        if request_id in references:
            repeat = request_id, mm_hash
            self._repeats[repeat] = self._repeats.get(repeat, 0) + 1
            return
        if not references:
            self.num_freeable_slots -= self.freeable.pop(mm_hash)
        references.add(request_id)

    def _hold(self, request_id: str, input_id: int, mm_hash: str) -> bool:
        """Note that the request holds the position; False if it did already."""
        held = self._held.get(request_id)
        if held is None:
            self._held[request_id] = {input_id: mm_hash}
        elif input_id not in held:
            if input_id < next(reversed(held)):
                self._unordered.add(request_id)
            held[input_id] = mm_hash
        elif held[input_id] == mm_hash:
            return False
        else:
            raise InputChangedError(
                f"{described(request_id, input_id, mm_hash)} is held with hash {held[input_id]!r}: "
                "free the input before its item changes"
            )
        return True

    def _order(self, request_id: str, held: dict[int, str]) -> None:
        ascending = sorted(held.items())
        held.clear()
        held.update(ascending)
        self._unordered.remove(request_id)

    def _release(self, request_id: str, mm_hash: str) -> None:
        if self._repeats:
            repeat = request_id, mm_hash
            further = self._repeats.pop(repeat, 0)
            if further > 1:
                self._repeats[repeat] = further - 1
            if further:
                return
        references = self.cached[mm_hash]
        references.remove(request_id)
        if not references:
            size = self._sizes[mm_hash]
            self.freeable[mm_hash] = size
            self.num_freeable_slots += size
