"""Managers with the defects that real engines had: the reference, with one decision taken wrongly.

Each names the public report, and the clauses that the report is about. Defects of a scheduler or a
worker are not here: no manager shows them.
"""

from __future__ import annotations

from typing import Any

from mmcache import EncoderCacheManager, EncoderDecoderCacheManager


class UnfilteredReport(EncoderCacheManager):
    """The report names what was evicted and came back in the same pass."""

    report = "vllm#52482"
    clauses = ("L1",)

    def get_freed_mm_hashes(self) -> list[str]:
        told, self.freed = list(dict.fromkeys(self.freed)), []
        return told


class FirstOccurrenceRelease(EncoderCacheManager):
    """The first consumed position ends the reference that the others need."""

    report = "vllm#54284"
    clauses = ("L8",)

    def _release(self, request_id: str, mm_hash: str) -> None:
        self._repeats.pop((request_id, mm_hash), None)
        if request_id in self.cached.get(mm_hash, ()):
            super()._release(request_id, mm_hash)


class RepeatedItemChargedTwice(EncoderCacheManager):
    """An item that occurs twice in one request is charged for both positions."""

    report = "vllm#23544"
    clauses = ("L3",)
    conformance_capabilities = ("allocate_again",)

    def allocate(self, request: Any, input_id: int) -> None:
        resident = request.mm_features[input_id].identifier in self.cached
        super().allocate(request, input_id)
        if resident:
            self.num_free_slots -= request.get_num_encoder_embeds(input_id)
            self.num_freeable_slots -= request.get_num_encoder_embeds(input_id)


class AbortedRequestKeepsItsReferences(EncoderCacheManager):
    """The end of a request releases nothing."""

    report = "vllm#12545"
    clauses = ("L5",)

    def free(self, request: Any) -> None:
        pass


class NothingIsEverReported(EncoderCacheManager):
    """Workers are told to drop nothing, so that nothing is missed, and grow for ever."""

    report = "vllm#39544"
    clauses = ("L2",)

    def get_freed_mm_hashes(self) -> list[str]:
        self.freed = []
        return []


class AttachedIsTakenForAMiss(EncoderCacheManager):
    """The look-up of an item that the request references already is answered as a miss."""

    report = "TensorRT-LLM#15734"
    clauses = ("L11",)

    def check_and_update_cache(self, request: Any, input_id: int) -> bool:
        mm_hash = request.mm_features[input_id].identifier
        if request.request_id in self.cached.get(mm_hash, ()):
            return False
        return super().check_and_update_cache(request, input_id)


class ReleaseByAnotherKey(EncoderCacheManager):
    """What is released is not the key that was acquired: the reference stays."""

    report = "sglang#20162"
    clauses = ("L5",)

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        held = self._held.get(request.request_id, {})
        held.pop(input_id, None)


class ReleaseCreditsTwice(EncoderCacheManager):
    """A second release of the same input is credited again."""

    report = "TensorRT-LLM#17876"
    clauses = ("L9",)

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        mm_hash = request.mm_features[input_id].identifier
        again = input_id not in self.get_cached_input_ids(request)
        if again and mm_hash in self.freeable:
            self.num_freeable_slots += self.freeable[mm_hash]
        super().free_encoder_input(request, input_id)


class RepeatedCredit(EncoderDecoderCacheManager):
    """Every decode step credits the input again."""

    report = "vllm#55733"
    clauses = ("E1",)

    def free_encoder_input(self, request: Any, input_id: int) -> None:
        self._charged.get(request.request_id, {}).pop(input_id, None)
        self._credit(request.get_num_encoder_embeds(input_id))


class SamePassNotice(EncoderDecoderCacheManager):
    """A hash is reported in the pass that allocates it, before the worker has encoded it."""

    report = "vllm#32789"
    clauses = ("E2",)

    def get_freed_mm_hashes(self) -> list[str]:
        told, self.allocated = list(dict.fromkeys(self.allocated)), []
        return told


class InheritedReset(EncoderDecoderCacheManager):
    """`reset` is that of the shared ledger and knows nothing of what is charged and noted."""

    report = "vllm#33452"
    clauses = ("L10",)

    def reset(self) -> None:
        kept = {n: v for n, v in vars(self).items() if n in {"allocated", "to_free", "_charged"}}
        super().reset()
        vars(self).update(kept)


LEDGERS = tuple(cls for cls in EncoderCacheManager.__subclasses__() if cls.__module__ == __name__)
ENCODER_DECODERS = tuple(
    cls for cls in EncoderDecoderCacheManager.__subclasses__() if cls.__module__ == __name__
)
