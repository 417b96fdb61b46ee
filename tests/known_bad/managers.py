"""Managers with one wrong decision each: the reference, and one method of it changed.

Each names the clauses that the decision breaks (`clauses`) and, where a real engine once took it,
the public report (`report`). Defects of a scheduler or a worker are not here: no manager shows
them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager, Request

__all__ = ["ENCODER_DECODERS", "HISTORIC", "LEDGERS", "WrongEncoderDecoder", "WrongLedger"]


class WrongLedger(EncoderCacheManager):
    """A ledger that is wrong in one way."""

    report: ClassVar[str | None] = None
    clauses: ClassVar[tuple[str, ...]]
    conformance_capabilities: ClassVar[tuple[str, ...]] = ("allocate_again",)


class WrongEncoderDecoder(EncoderDecoderCacheManager):
    """A ledger of encoder-decoder models that is wrong in one way."""

    report: ClassVar[str | None] = None
    clauses: ClassVar[tuple[str, ...]]


def hash_of(request: Request, input_id: int) -> str:
    return request.mm_features[input_id].identifier


# --- the report --------------------------------------------------------------------------------


class UnfilteredReport(WrongLedger):
    """The report names what was evicted and came back in the same pass."""

    report = "vllm#52482"
    clauses = ("L1",)

    def get_freed_mm_hashes(self) -> list[str]:
        told, self.freed = list(dict.fromkeys(self.freed)), []
        return told


class NothingIsEverReported(WrongLedger):
    """Workers are told to drop nothing, so that nothing is missed, and grow for ever."""

    report = "vllm#39544"
    clauses = ("L2",)

    def get_freed_mm_hashes(self) -> list[str]:
        self.freed = []
        return []


class ReportIsNotCleared(WrongLedger):
    """Reading the report does not clear it."""

    clauses = ("L2",)

    def get_freed_mm_hashes(self) -> list[str]:
        freed = list(self.freed)
        told = super().get_freed_mm_hashes()
        self.freed = freed
        return told


class RepeatedReport(WrongLedger):
    """What was evicted twice is named twice. A set of hashes is specified, so no clause breaks."""

    clauses = ()

    def get_freed_mm_hashes(self) -> list[str]:
        told, self.freed = [h for h in self.freed if h not in self.cached], []
        return told


class ReportIsAString(WrongLedger):
    """The hashes come joined into one text."""

    clauses = ()

    def get_freed_mm_hashes(self) -> Any:
        return ",".join(super().get_freed_mm_hashes())


class ReportIsNone(WrongLedger):
    """An empty report is no list."""

    clauses = ()

    def get_freed_mm_hashes(self) -> Any:
        return super().get_freed_mm_hashes() or None


# --- admission and eviction --------------------------------------------------------------------


class AdmissionIsAnInteger(WrongLedger):
    """1 and 0 instead of True and False."""

    clauses = ("L7",)

    def can_allocate(self, *arguments: Any) -> Any:
        return int(super().can_allocate(*arguments))


class RefusesEverything(WrongLedger):
    """Nothing is ever admitted."""

    clauses = ("L7",)

    def can_allocate(self, *arguments: Any) -> bool:
        return False


class IgnoresPending(WrongLedger):
    """What was admitted before in the same pass is not counted."""

    clauses = ("L6", "L7")

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        return super().can_allocate(request, input_id, budget, min(pending, 0))


class IgnoresTheBudget(WrongLedger):
    """However little may be computed, the item is admitted."""

    clauses = ("L7",)

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        return super().can_allocate(request, input_id, 10**9, pending)


class EvictsTheNewest(WrongLedger):
    """The hash that was released last goes first."""

    clauses = ("L6",)

    def can_allocate(self, *arguments: Any) -> bool:
        self.freeable = type(self.freeable)(reversed(self.freeable.items()))
        admitted = super().can_allocate(*arguments)
        self.freeable = type(self.freeable)(reversed(self.freeable.items()))
        return admitted


class EvictsOneTooMany(WrongLedger):
    """One slot more than is needed is made free."""

    clauses = ("L6",)

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        admitted = super().can_allocate(request, input_id, budget, pending)
        if admitted:
            super().can_allocate(request, input_id, budget, pending + 1)
        return admitted


class RefusalEvicts(WrongLedger):
    """Room is made for an item that is refused all the same."""

    clauses = ("L7",)

    def can_allocate(self, request: Request, input_id: int, budget: int, pending: int) -> bool:
        admitted = super().can_allocate(request, input_id, budget, pending)
        if not admitted and pending > 0:
            super().can_allocate(request, input_id, budget, 0)
        return admitted


# --- charging and references -------------------------------------------------------------------


class RepeatedItemChargedTwice(WrongLedger):
    """An item that occurs twice in one request is charged for both positions."""

    report = "vllm#23544"
    clauses = ("L3",)

    def allocate(self, request: Request, input_id: int) -> None:
        resident = hash_of(request, input_id) in self.cached
        super().allocate(request, input_id)
        if resident:
            self.num_free_slots -= request.get_num_encoder_embeds(input_id)
            self.num_freeable_slots -= request.get_num_encoder_embeds(input_id)


class Uncharged(WrongLedger):
    """The free slots are those from before the allocation."""

    clauses = ("L3",)

    def allocate(self, request: Request, input_id: int) -> None:
        free = self.num_free_slots
        super().allocate(request, input_id)
        self.num_free_slots = free


class ForgetsTheReference(WrongLedger):
    """What is allocated belongs to nobody, and is not freeable either."""

    clauses = ("L8",)

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        self.cached[hash_of(request, input_id)] = set()


class FreeableTooEarly(WrongLedger):
    """What is allocated is in use and freeable at once."""

    clauses = ("L5",)

    def allocate(self, request: Request, input_id: int) -> None:
        super().allocate(request, input_id)
        self.freeable[hash_of(request, input_id)] = request.get_num_encoder_embeds(input_id)


class HitLeavesItFreeable(WrongLedger):
    """A hash that is taken up again may still be evicted."""

    clauses = ("L5",)

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        freeable, slots = self.freeable.copy(), self.num_freeable_slots
        hit = super().check_and_update_cache(request, input_id)
        self.freeable, self.num_freeable_slots = freeable, slots
        return hit


class AttachedIsTakenForAMiss(WrongLedger):
    """The look-up of an item that the request references already is answered as a miss."""

    report = "TensorRT-LLM#15734"
    clauses = ("L11",)

    def check_and_update_cache(self, request: Request, input_id: int) -> bool:
        if request.request_id in self.cached.get(hash_of(request, input_id), ()):
            return False
        return super().check_and_update_cache(request, input_id)


# --- release and reset -------------------------------------------------------------------------


class FirstOccurrenceRelease(WrongLedger):
    """The first consumed position ends the reference that the others need."""

    report = "vllm#54284"
    clauses = ("L8", "L15")

    def _release(self, request_id: str, mm_hash: str) -> None:
        self._repeats.pop((request_id, mm_hash), None)
        if request_id in self.cached.get(mm_hash, ()):
            super()._release(request_id, mm_hash)


class AbortedRequestKeepsItsReferences(WrongLedger):
    """The end of a request releases nothing."""

    report = "vllm#12545"
    clauses = ("L13",)

    def free(self, request: Request) -> None:
        pass


class ReleaseByAnotherKey(WrongLedger):
    """What is released is not the key that was acquired: the reference stays."""

    report = "sglang#20162"
    clauses = ("L13",)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        held = self._held.get(request.request_id, {})
        held.pop(input_id, None)


class ReleaseCreditsTwice(WrongLedger):
    """A second release of the same input is credited again."""

    report = "TensorRT-LLM#17876"
    clauses = ("L9",)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        mm_hash = hash_of(request, input_id)
        again = input_id not in self.get_cached_input_ids(request)
        if again and mm_hash in self.freeable:
            self.num_freeable_slots += self.freeable[mm_hash]
        super().free_encoder_input(request, input_id)


class LastPositionIsReleasedFirst(WrongLedger):
    """A request that ends releases its positions in descending order."""

    clauses = ("L15",)

    def free(self, request: Request) -> None:
        for input_id in sorted(self.get_cached_input_ids(request), reverse=True):
            self.free_encoder_input(request, input_id)


class ResetKeepsWhatIsHeld(WrongLedger):
    """After a reset, requests still hold what is not cached any more."""

    clauses = ("L10",)

    def reset(self) -> None:
        held = getattr(self, "_held", {})
        super().reset()
        self._held = held


# --- encoder-decoder models --------------------------------------------------------------------


class RepeatedCredit(WrongEncoderDecoder):
    """Every decode step credits the input again."""

    report = "vllm#55733"
    clauses = ("E1",)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        before = self.num_free_slots
        super().free_encoder_input(request, input_id)
        if self.num_free_slots == before:
            self._credit(request.get_num_encoder_embeds(input_id))


class SamePassNotice(WrongEncoderDecoder):
    """A hash is reported in the pass that allocates it, before the worker has encoded it."""

    report = "vllm#32789"
    clauses = ("E2",)

    def get_freed_mm_hashes(self) -> list[str]:
        told, self.allocated = list(dict.fromkeys(self.allocated)), []
        return told


class NoticeInEveryPass(WrongEncoderDecoder):
    """What was reported once is reported again in each pass."""

    clauses = ("E2",)

    def get_freed_mm_hashes(self) -> list[str]:
        told = super().get_freed_mm_hashes()
        self.to_free += [h for h in told if h not in self.to_free]
        return told


class ReleaseHastensNotice(WrongEncoderDecoder):
    """An input that is released in the pass of its allocation is never reported."""

    clauses = ("E2",)

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        super().free_encoder_input(request, input_id)
        mm_hash = hash_of(request, input_id)
        if mm_hash in self.allocated:
            self.allocated.remove(mm_hash)


class InheritedReset(WrongEncoderDecoder):
    """`reset` is that of the shared ledger and knows nothing of what is charged and noted."""

    report = "vllm#33452"
    clauses = ("E2",)

    def reset(self) -> None:
        kept = {n: v for n, v in vars(self).items() if n in {"allocated", "to_free", "_charged"}}
        super().reset()
        vars(self).update(kept)


LEDGERS: tuple[type[WrongLedger], ...] = tuple(WrongLedger.__subclasses__())
ENCODER_DECODERS: tuple[type[WrongEncoderDecoder], ...] = tuple(
    WrongEncoderDecoder.__subclasses__()
)
HISTORIC: tuple[type[WrongLedger] | type[WrongEncoderDecoder], ...] = (
    *(cls for cls in LEDGERS if cls.report is not None),
    *(cls for cls in ENCODER_DECODERS if cls.report is not None),
)
"""Those that a real engine once was like."""
