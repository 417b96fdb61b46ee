"""The reference engine as a target: `reference-pass`, or with one wrong decision, by its name.

A wrong decision is a subclass of the reference's pass or ledger. All of them are here, under the
names that the variants have in the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mmcache import (
    EncoderCacheManager,
    EncoderCacheMiss,
    EngineItem,
    EngineParameters,
    EngineRequest,
    PassOutput,
    SchedulingPass,
    TwoPhaseEncoderCacheManager,
    WorkerEncoderCache,
    WorkerOrder,
)
from mmcache_vectors.engine import Abort

from ..errors import TargetNameError
from ..implementation import Implementation
from .open import REFERENCE_PASS
from .protocol import EngineCase, PassRecord, Place, engine_implementation

__all__ = ["REFERENCE_VARIANTS", "ReferencePass", "ReferenceRun", "ReferenceVariant"]


# --- wrong decisions ---------------------------------------------------------------------------


class KeepsEntry(SchedulingPass):
    """Preemption cancels an encoding, and leaves the entry in the ledger (S2)."""

    def withdraw_encoding(self, request: EngineRequest, input_id: int) -> Place | None:
        return None


class UndoesSharedEntry(SchedulingPass):
    """Preemption cancels an encoding, whoever else has hit the entry since (S2)."""

    def withdraw_encoding(self, request: EngineRequest, input_id: int) -> Place | None:
        self.manager.withdraw(request, input_id)
        return None


class KeepsReferences(SchedulingPass):
    """A waiting request that gets no blocks keeps the references of its hits (S5)."""

    def give_back(self, request: EngineRequest) -> None:
        pass


class KeepsReferencesWhenSkipped(SchedulingPass):
    """A waiting request that no tokens are left for keeps the references of its hits (S5)."""

    def skip_waiting(self, request: EngineRequest) -> None:
        pass


class StripsPayloads(SchedulingPass):
    """A raw item travels once, with the first output, and not if a prefix hit covers it (S8)."""

    def payloads(
        self, ordered: frozenset[Place], first: Sequence[tuple[EngineRequest, int]]
    ) -> frozenset[Place]:
        return frozenset(
            (request.request_id, i)
            for request, covered in first
            for i, item in enumerate(request.mm_features)
            if item.end > covered or (request.request_id, i) in ordered
        )


class Unfiltered(EncoderCacheManager):
    """Reports every hash that was evicted, even one that is cached again (L1)."""

    def get_freed_mm_hashes(self) -> list[str]:
        evicted = list(dict.fromkeys(self.freed))
        self.freed.clear()
        return evicted


class ReportsNothing(EncoderCacheManager):
    """Never tells the worker what to drop (S3)."""

    def get_freed_mm_hashes(self) -> list[str]:
        self.freed.clear()
        return []


@dataclass(frozen=True)
class ReferenceVariant:
    """How a variant of the specification is built from the reference."""

    scheduling: type[SchedulingPass] = SchedulingPass
    manager: type[EncoderCacheManager] = EncoderCacheManager
    order: WorkerOrder = "drop_encode_gather"
    resets_worker: bool = True
    """Whether a reset empties the worker too."""


_GATHER_DROP: WorkerOrder = "encode_gather_drop"
_IF_MISSING: WorkerOrder = "encode_if_missing_then_drop"

REFERENCE_VARIANTS: dict[str, ReferenceVariant] = {
    "specified": ReferenceVariant(),
    "encode_gather_drop": ReferenceVariant(order=_GATHER_DROP),
    "encode_if_missing_then_drop": ReferenceVariant(order=_IF_MISSING),
    "two_phase_entries": ReferenceVariant(KeepsEntry, TwoPhaseEncoderCacheManager),
    "preemption_keeps_unencoded_entry": ReferenceVariant(KeepsEntry),
    "preemption_undoes_shared_entry": ReferenceVariant(UndoesSharedEntry),
    "payload_stripped_under_prefix_hit": ReferenceVariant(StripsPayloads),
    "waiting_keeps_references": ReferenceVariant(KeepsReferences),
    "skipped_keeps_references": ReferenceVariant(KeepsReferencesWhenSkipped),
    "unfiltered_drop_encode_gather": ReferenceVariant(manager=Unfiltered),
    "unfiltered_encode_gather_drop": ReferenceVariant(manager=Unfiltered, order=_GATHER_DROP),
    "unfiltered_encode_if_missing_then_drop": ReferenceVariant(
        manager=Unfiltered, order=_IF_MISSING
    ),
    "retain_everything": ReferenceVariant(manager=ReportsNothing),
    "reset_only_scheduler": ReferenceVariant(resets_worker=False),
}
"""Under the names of the specification's variants."""


# --- the target --------------------------------------------------------------------------------


class ReferencePass:
    """`SchedulingPass` and `WorkerEncoderCache` of the reference, specified or with one mistake."""

    def __init__(self, variant: str = "specified") -> None:
        """Raises `TargetNameError`."""
        if variant not in REFERENCE_VARIANTS:
            known = ", ".join(REFERENCE_VARIANTS)
            raise TargetNameError(
                f"no variant {variant!r} of the reference pass; there are {known}"
            )
        right = variant == "specified"
        self.name = REFERENCE_PASS if right else f"{REFERENCE_PASS}:{variant}"
        self._variant = REFERENCE_VARIANTS[variant]
        self._says = "the reference pass" if right else f"the variant {variant}"

    @property
    def drops_last(self) -> bool:
        """Whether its worker gathers before it drops."""
        return self._variant.order == _GATHER_DROP

    def start(self) -> Implementation:
        return engine_implementation(self._says)

    def stop(self) -> None:
        """Nothing to let go of."""

    def passes(self, case: EngineCase) -> Iterator[PassRecord]:
        run = ReferenceRun(self._variant, case)
        while run.number < case.max_passes and not run.over:
            yield run.step()


class ReferenceRun:
    """One workload on the reference engine. `decisions` are all that it has taken so far."""

    def __init__(self, variant: ReferenceVariant, case: EngineCase) -> None:
        engine = case.engine
        self._case = case
        self._variant = variant
        self._sizes = {i.identifier: i.num_embeds for r in case.requests for i in r.items}
        self._requests = {
            r.request_id: EngineRequest(
                r.request_id,
                tuple(EngineItem(i.identifier, i.position, i.num_embeds) for i in r.items),
                r.num_prompt_tokens,
                r.max_tokens,
                r.priority,
                r.text,
            )
            for r in case.requests
        }
        self.scheduler = variant.scheduling(
            EngineParameters(
                cache_size=engine.cache_size,
                encoder_budget=engine.encoder_budget,
                num_blocks=engine.num_blocks,
                block_size=engine.block_size,
                chunk_size=engine.chunk_size,
                token_budget=engine.token_budget,
                policy=engine.policy,
                prefix_caching=engine.prefix_caching,
                lookahead=engine.lookahead,
                chunked_items=engine.chunked_items,
            ),
            variant.manager(engine.cache_size),
        )
        self.worker: WorkerEncoderCache[str] = WorkerEncoderCache(variant.order)
        self._payloads: set[Place] = set()
        self.decisions: list[tuple[str, str, int]] = []
        self.number = 0
        self._dead = False

    @property
    def over(self) -> bool:
        """Everything has arrived and finished, or the worker has missed something."""
        arrived = all(r.arrival < self.number for r in self._case.requests)
        events = all(e.before_pass < self.number for e in self._case.events)
        idle = not (self.scheduler.running or self.scheduler.waiting)
        return self._dead or (arrived and events and idle)

    def step(self) -> PassRecord:
        """One pass, with what happens before it."""
        self._arrive()
        output = self.scheduler.schedule()
        self.decisions += output.decisions
        starts = self._starts(output)
        cached = tuple(sorted(self.scheduler.manager.cached))
        before = tuple(sorted(self.worker.embeddings))
        missed, without_payload = self._work(output)
        gathered = self._hashes(output.gathered_inputs)
        self._dead = bool(missed)
        if not self._dead:
            self.scheduler.update(output)
        self.number += 1
        return PassRecord(
            number=self.number - 1,
            num_scheduled_tokens=output.num_scheduled_tokens,
            starts=starts,
            scheduled_encoder_inputs=output.scheduled_encoder_inputs,
            allocated=_places(output, "commit"),
            hits=_places(output, "look_up"),
            report=tuple(sorted(output.free_encoder_mm_hashes)),
            cached=cached,
            gathered=tuple(sorted(gathered)),
            missed=missed,
            without_payload=without_payload,
            held_before=before,
            worker=tuple(sorted(self.worker.embeddings)),
            peak=sum(self._sizes[h] for h in self.worker.peak),
            preempted=output.preempted,
            running=self.scheduler.running,
            waiting=self.scheduler.waiting,
            references={h: tuple(sorted(r)) for h, r in self.scheduler.manager.cached.items()},
        )

    def _arrive(self) -> None:
        for event in self._case.events:
            if event.before_pass != self.number:
                continue
            if isinstance(event, Abort):
                self.scheduler.abort(event.request)
                continue
            self.scheduler.reset()
            if self._variant.resets_worker:
                self.worker.reset()
        for request in self._case.requests:
            if request.arrival == self.number:
                self.scheduler.add(self._requests[request.request_id])

    def _starts(self, output: PassOutput) -> dict[str, int]:
        return {r: self.scheduler.computed(r) for r in output.num_scheduled_tokens}

    def _hashes(self, inputs: Mapping[str, tuple[int, ...]]) -> set[str]:
        requests = self._requests
        return {requests[r].mm_features[i].identifier for r, ids in inputs.items() for i in ids}

    def _work(self, output: PassOutput) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The worker's step: what it missed, and what it had no raw item of."""
        self._payloads = {p for p in self._payloads if p[0] not in output.finished}
        self._payloads |= output.payloads
        encode: dict[str, Callable[[], str] | None] = {}
        without: set[str] = set()
        for request_id, ids in output.scheduled_encoder_inputs.items():
            for i in ids:
                mm_hash = self._requests[request_id].mm_features[i].identifier
                if (request_id, i) in self._payloads:
                    encode[mm_hash] = partial(str, mm_hash)
                else:
                    encode.setdefault(mm_hash, None)
                    without.add(mm_hash)
        gathered = self._hashes(output.gathered_inputs)
        missed: tuple[str, ...] = ()
        try:
            self.worker.step(output.free_encoder_mm_hashes, encode, sorted(gathered))
        except EncoderCacheMiss:
            missed = tuple(sorted(gathered - set(self.worker.embeddings)))
        return missed, tuple(sorted(without))


def _places(output: PassOutput, action: str) -> tuple[Place, ...]:
    return tuple(sorted({(r, i) for name, r, i in output.decisions if name == action}))
