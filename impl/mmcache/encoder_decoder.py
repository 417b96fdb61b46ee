"""The ledger of encoder-decoder models: nothing is shared, and nothing is kept."""

from __future__ import annotations

from collections.abc import Set

from .encoder_cache import EncoderCacheManager
from .errors import AlreadyAllocatedError, described, negative_size, no_room
from .request import Request

__all__ = ["EncoderDecoderCacheManager"]

_NOTHING_CHARGED: dict[int, int] = {}


class EncoderDecoderCacheManager(EncoderCacheManager):
    """Limits how many encoder embeddings are in flight. Every input is charged and credited once.

    It is an `EncoderCacheManager` in which nothing is ever cached: every look-up misses, `cached`
    and `freeable` stay empty, the freeable slots are the free slots, and `can_allocate` has
    nothing to evict.

    Attributes, to be read and not written:
        cache_size: The capacity in embeddings.
        num_free_slots: The capacity less the inputs that are charged (E1).
        num_freeable_slots: The same.
        allocated: The hashes allocated since the last report, each allocation on its own.
        to_free: The hashes allocated in the pass before it: the next report (E2).
    """

    def reset(self) -> None:
        """Forget everything; late releases then change nothing (L10)."""
        super().reset()
        self.allocated: list[str] = []
        self.to_free: list[str] = []
        self._charged: dict[str, dict[int, int]] = {}

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """Always a miss (L11)."""
        return False

    def get_cached_num_encoder_embeds(self, request: Request, input_id: int) -> None:
        """Nothing is cached."""

    def allocate(self, request: Request, input_id: int) -> None:
        """Charge the input (E1), and note its hash for the report of the pass after this (E2).

        Raises:
            NoRoomError: The item is larger than the free slots.
            AlreadyAllocatedError: The input is charged and was not released since.
            NegativeSizeError: The item's size is negative.
        """
        mm_hash = request.mm_features[input_id].identifier
        size = request.get_num_encoder_embeds(input_id)
        request_id = request.request_id
        charged = self._charged.get(request_id, _NOTHING_CHARGED)
        if input_id in charged:
            raise AlreadyAllocatedError(
                f"{described(request_id, input_id, mm_hash)} is charged with {charged[input_id]} "
                "embeddings already: free the input before it is encoded again"
            )
        if size > self.num_free_slots:
            raise no_room(request_id, input_id, mm_hash, size, self.num_free_slots)
        if size < 0:
            raise negative_size(request_id, input_id, mm_hash, size)
        self._charged.setdefault(request_id, {})[input_id] = size
        self.allocated.append(mm_hash)
        self._credit(-size)

    def get_cached_input_ids(self, request: Request) -> Set[int]:
        """The positions that are charged: those that are left for the caller to release.

        A live, read-only set. A scheduler that goes through it on every decode step, as vLLM's
        does, finds it empty after the first.
        """
        return self._charged.get(request.request_id, _NOTHING_CHARGED).keys()

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        """Credit what the input was charged; one that is not charged changes nothing (E1)."""
        charged = self._charged.get(request.request_id)
        if charged is None or input_id not in charged:
            return
        self._credit(charged.pop(input_id))
        if not charged:
            del self._charged[request.request_id]

    def free(self, request: Request) -> None:
        """Credit every input of the request that is still charged (E1)."""
        self._credit(sum(self._charged.pop(request.request_id, _NOTHING_CHARGED).values()))

    def withdraw(self, request: Request, input_id: int) -> None:
        """Credit an input that this pass has charged and will not encode, and report it never.

        An input that is not charged changes nothing (E1).
        """
        if input_id in self._charged.get(request.request_id, _NOTHING_CHARGED):
            self.free_encoder_input(request, input_id)
            self.allocated.remove(request.mm_features[input_id].identifier)

    def get_freed_mm_hashes(self) -> list[str]:
        """The report: the hashes allocated one pass before, each once. Reading it ends a pass (E2).

        So the workers keep an embedding for the step that computes and uses it, and drop it
        with the next.
        """
        told = self.to_free
        self.to_free = list(dict.fromkeys(self.allocated))
        self.allocated = []
        return told

    def _credit(self, size: int) -> None:
        self.num_free_slots += size
        self.num_freeable_slots += size
