"""The reference engine as a target: `reference-pass`, or with one wrong decision, by its name.

`mmcache` is imported when a target starts: to run vectors on something else needs none of it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mmcache_vectors.engine import Abort

from .protocol import PassRecord, Place, SystemCase, SystemImplementation

__all__ = ["REFERENCE_PASS", "REFERENCE_VARIANTS", "ReferencePass", "ReferenceVariant"]

REFERENCE_PASS = "reference-pass"


@dataclass(frozen=True)
class ReferenceVariant:
    """How a variant of the specification is built from the reference."""

    decisions: Mapping[str, str] = field(default_factory=dict)
    """Fields of `EngineDecisions`."""
    report: str = "filtered"
    two_phase: bool = False
    order: str = "drop_encode_gather"
    resets: str = "both_sides"


REFERENCE_VARIANTS: dict[str, ReferenceVariant] = {
    "specified": ReferenceVariant(),
    "encode_gather_drop": ReferenceVariant(order="encode_gather_drop"),
    "encode_if_missing_then_drop": ReferenceVariant(order="encode_if_missing_then_drop"),
    "two_phase_entries": ReferenceVariant({"withdrawal": "keeps_entry"}, two_phase=True),
    "preemption_keeps_unencoded_entry": ReferenceVariant({"withdrawal": "keeps_entry"}),
    "preemption_undoes_shared_entry": ReferenceVariant({"withdrawal": "undoes"}),
    "payload_stripped_under_prefix_hit": ReferenceVariant({"payload": "stripped_under_prefix_hit"}),
    "waiting_keeps_references": ReferenceVariant({"waiting": "keeps_references"}),
    "skipped_keeps_references": ReferenceVariant({"skipped": "keeps_references"}),
    "unfiltered_drop_encode_gather": ReferenceVariant(report="unfiltered"),
    "unfiltered_encode_gather_drop": ReferenceVariant(
        report="unfiltered", order="encode_gather_drop"
    ),
    "unfiltered_encode_if_missing_then_drop": ReferenceVariant(
        report="unfiltered", order="encode_if_missing_then_drop"
    ),
    "retain_everything": ReferenceVariant(report="nothing"),
    "reset_only_scheduler": ReferenceVariant(resets="only_scheduler"),
}
"""Under the names of the specification's variants."""


class ReferencePass:
    """`SchedulingPass` and `WorkerEncoderCache` of the reference, specified or with one mistake."""

    def __init__(self, variant: str = "specified") -> None:
        self.spec = REFERENCE_PASS if variant == "specified" else f"{REFERENCE_PASS}:{variant}"
        self._variant = REFERENCE_VARIANTS[variant]
        self._name = "the reference pass" if variant == "specified" else f"the variant {variant}"
        self._mmcache: Any = None

    def start(self) -> SystemImplementation:
        self._mmcache = importlib.import_module("mmcache")
        return SystemImplementation(self._name, None)

    def stop(self) -> None:
        """Nothing to let go of."""

    def run(self, case: SystemCase) -> Iterator[PassRecord]:
        run = ReferenceRun(self._mmcache, self._variant, case)
        while run.number < case.max_passes and not run.over:
            yield run.step()


class ReferenceRun:
    """One workload on the reference engine. `decisions` are all that it has taken so far."""

    def __init__(self, mmcache: Any, variant: ReferenceVariant, case: SystemCase) -> None:
        engine = case.engine
        self._case = case
        self._variant = variant
        self._miss = mmcache.EncoderCacheMiss
        self._sizes = {i.identifier: i.num_embeds for r in case.requests for i in r.items}
        self._requests = {
            r.request_id: mmcache.EngineRequest(
                r.request_id,
                tuple(mmcache.EngineItem(i.identifier, i.position, i.num_embeds) for i in r.items),
                r.num_prompt_tokens,
                r.max_tokens,
                r.priority,
                r.text,
            )
            for r in case.requests
        }
        self.scheduler = mmcache.SchedulingPass(
            mmcache.EngineParameters(
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
            _manager(mmcache, variant)(engine.cache_size),
            mmcache.EngineDecisions(**variant.decisions),
        )
        self.worker = mmcache.WorkerEncoderCache(variant.order)
        self._payloads: set[Place] = set()
        self._computed: dict[str, int] = {}
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
            if self._variant.resets == "both_sides":
                self.worker.reset()
        for request in self._case.requests:
            if request.arrival == self.number:
                self.scheduler.add(self._requests[request.request_id])

    def _starts(self, output: Any) -> dict[str, int]:
        return {r: self.scheduler.computed(r) for r in output.num_scheduled_tokens}

    def _hashes(self, inputs: Mapping[str, tuple[int, ...]]) -> set[str]:
        requests = self._requests
        return {requests[r].mm_features[i].identifier for r, ids in inputs.items() for i in ids}

    def _work(self, output: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The worker's step: what it missed, and what it had no raw item of."""
        self._payloads = {p for p in self._payloads if p[0] not in output.finished}
        self._payloads |= output.payloads
        encode: dict[str, Any] = {}
        without: set[str] = set()
        for request_id, ids in output.scheduled_encoder_inputs.items():
            for i in ids:
                mm_hash = self._requests[request_id].mm_features[i].identifier
                if (request_id, i) in self._payloads:
                    encode[mm_hash] = lambda mm_hash=mm_hash: mm_hash
                else:
                    encode.setdefault(mm_hash, None)
                    without.add(mm_hash)
        gathered = self._hashes(output.gathered_inputs)
        missed: tuple[str, ...] = ()
        try:
            self.worker.step(output.free_encoder_mm_hashes, encode, sorted(gathered))
        except self._miss:
            missed = tuple(sorted(gathered - set(self.worker.embeddings)))
        return missed, tuple(sorted(without))


def _places(output: Any, action: str) -> tuple[Place, ...]:
    return tuple(sorted({(r, i) for name, r, i in output.decisions if name == action}))


def _manager(mmcache: Any, variant: ReferenceVariant) -> Any:
    """The reference ledger, or one that reports wrongly."""
    if variant.two_phase:
        return mmcache.TwoPhaseEncoderCacheManager
    manager: Any = mmcache.EncoderCacheManager
    if variant.report == "filtered":
        return manager

    class Unfiltered(manager):  # type: ignore[misc]
        def get_freed_mm_hashes(self) -> list[str]:
            evicted = list(dict.fromkeys(self.freed))
            self.freed.clear()
            return evicted

    class Nothing(manager):  # type: ignore[misc]
        def get_freed_mm_hashes(self) -> list[str]:
            self.freed.clear()
            return []

    return Unfiltered if variant.report == "unfiltered" else Nothing
