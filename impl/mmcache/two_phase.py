"""A ledger whose entries can be hit only from the pass after their allocation on."""

from __future__ import annotations

from .encoder_cache import EncoderCacheManager
from .request import Request

__all__ = ["TwoPhaseEncoderCacheManager"]


class TwoPhaseEncoderCacheManager(EncoderCacheManager):
    """Repairs, without a change to the engine, what in-pass preemption does to a shared entry.

    An engine that preempts a request which it has scheduled in the same pass cancels its encoding
    and calls `free`, and no more. So an entry is kept from all others until the report ends the
    pass that allocates it (the specification's variant `two_phase_entries`); and if the request
    is freed before, the allocation is undone. Use it where `withdraw` is never called.

    The price: a request that brings an item which this very pass encodes for another one has to
    wait for it until the next pass. And it is a ledger of its own: it refuses what L7 would admit
    and misses what L11 would hit, and `free` leaves nothing of what its pass has allocated. The
    vectors for ledgers that share or free within one pass fail on it; the engine vectors pass.
    """

    def reset(self) -> None:
        """Forget everything (L10)."""
        super().reset()
        self._hidden: dict[str, str] = {}
        """The hashes allocated since the last report, each with the request that did it."""

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        """A hit takes a reference; what this pass allocates for another request is a miss."""
        if self._is_hidden_from(request, input_id):
            return False
        return super().check_and_update_cache(request, input_id)

    def can_allocate(
        self,
        request: Request,
        input_id: int,
        encoder_compute_budget: int,
        num_embeds_to_schedule: int,
    ) -> bool:
        """Admit an item that missed; refuse what this pass allocates for another request."""
        if self._is_hidden_from(request, input_id):
            return False
        return super().can_allocate(
            request, input_id, encoder_compute_budget, num_embeds_to_schedule
        )

    def allocate(self, request: Request, input_id: int) -> None:
        """Charge the item, and keep it from other requests until the next report."""
        mm_hash = request.mm_features[input_id].identifier
        new = mm_hash not in self.cached
        super().allocate(request, input_id)
        if new:
            self._hidden[mm_hash] = request.request_id

    def free(self, request: Request) -> None:
        """Release what the request holds, and undo what this pass has allocated for it."""
        super().free(request)
        mine = [h for h, owner in self._hidden.items() if owner == request.request_id]
        for mm_hash in mine:
            del self._hidden[mm_hash]
            self._undo(mm_hash)

    def withdraw(self, request: Request, input_id: int) -> None:
        """As in the base class, but nobody can have hit the entry."""
        self._hidden.pop(request.mm_features[input_id].identifier, None)
        super().withdraw(request, input_id)

    def get_freed_mm_hashes(self) -> list[str]:
        """The report. From now on others can hit what this pass has allocated."""
        self._hidden.clear()
        return super().get_freed_mm_hashes()

    def _is_hidden_from(self, request: Request, input_id: int) -> bool:
        owner = self._hidden.get(request.mm_features[input_id].identifier)
        return owner is not None and owner != request.request_id
