"""vLLM's scheduler with a worker that is a dictionary of hashes, driven pass by pass.

The scheduler is real. The worker keeps what either of vLLM's runners would keep, in their order of
work: it drops, then encodes, then gathers every item that the scheduled tokens overlap. What it
computes is a token that means nothing.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mmcache_vectors.engine import WorkloadItem

from ...errors import describe_exception
from ..protocol import NotSupported, PassRecord
from .scheduler import SchedulerSettings, make_scheduler
from .watch import Heard, watch_ledger, watch_preemptions

__all__ = ["EncoderCacheMiss", "SchedulerSettings", "VllmEngine", "WorkloadItem"]


class EncoderCacheMiss(RuntimeError):
    """The worker gathers an item that it does not hold: an engine would be dead now."""


@dataclass
class _Seen(Heard):
    """What a pass shows while it is made."""

    tokens: dict[str, int] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    encodes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    report: tuple[str, ...] = ()
    gathered: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    without_payload: tuple[str, ...] = ()
    held_before: tuple[str, ...] = ()
    peak: int = 0


class VllmEngine:
    """A scheduler and its mirrored worker.

    The first runner keeps the features of a request as they came with its first output; the second
    gets them anew when the request resumes, and does not encode what it holds.

    Attributes, to be read and not written:
        settings: The configuration.
        scheduler: vLLM's.
        worker: The hashes that the worker holds.
    """

    def __init__(self, settings: SchedulerSettings, *, second_runner: bool = False) -> None:
        self.settings = settings
        self.scheduler: Any = make_scheduler(settings)
        self.scheduler.use_v2_model_runner = second_runner
        self.worker: set[str] = set()
        self._second_runner = second_runner
        self._features: dict[str, list[Any]] = {}
        """For each request, the items as the worker knows them."""
        self._sizes: dict[str, int] = {}
        self._hasher: Any = None
        if settings.prefix_caching:
            self._hasher = _block_hasher(settings.block_size)
        self._arrivals = 0
        self._passes = 0
        self._seen = _Seen()
        watch_ledger(self.manager, lambda: self._seen)
        watch_preemptions(self.scheduler, lambda: self._seen)

    @property
    def manager(self) -> Any:
        """The scheduler's ledger."""
        return self.scheduler.encoder_cache_manager

    # --- between passes ------------------------------------------------------------------------

    def add(
        self,
        request_id: str,
        tokens: int,
        items: Iterable[WorkloadItem] = (),
        *,
        priority: int = 0,
        max_tokens: int = 1,
        first_token: int = 1,
    ) -> None:
        """A request of so many prompt tokens, items included. Text is `first_token` repeated."""
        from vllm.multimodal.inputs import (
            MultiModalFeatureSpec,
            MultiModalKwargsItem,
            PlaceholderRange,
        )
        from vllm.sampling_params import SamplingParams
        from vllm.v1.request import Request

        features = [
            MultiModalFeatureSpec(
                data=_raw_item(MultiModalKwargsItem),
                modality="image",
                identifier=item.identifier,
                mm_position=PlaceholderRange(offset=item.position, length=item.num_embeds),
                **_accepted(MultiModalFeatureSpec, mm_hash=item.identifier),
            )
            for item in items
        ]
        prompt = [first_token] * tokens
        for feature in features:
            position = feature.mm_position
            prompt[position.offset : position.offset + position.length] = [0] * position.length
        sampling = SamplingParams(max_tokens=max_tokens, ignore_eos=True)
        self._arrivals += 1
        self.scheduler.add_request(
            Request(
                request_id=request_id,
                prompt_token_ids=prompt,
                sampling_params=sampling,
                pooling_params=None,
                mm_features=features,
                arrival_time=float(self._arrivals),
                priority=priority,
                block_hasher=self._hasher,
                **_accepted(Request, eos_token_id=None),
            )
        )

    def abort(self, request_id: str) -> None:
        """The request ends before its time."""
        from vllm.v1.request import RequestStatus

        self.scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED)

    def reset(self) -> None:
        """Both sides forget what is cached."""
        if not hasattr(self.scheduler, "reset_encoder_cache"):
            raise NotSupported("this release cannot reset the encoder cache")
        self.scheduler.reset_encoder_cache()
        self.worker.clear()

    # --- a pass --------------------------------------------------------------------------------

    def run(self, most: int = 1000) -> list[PassRecord]:
        """Passes until nothing is left to do. Raises `EncoderCacheMiss`."""
        passes: list[PassRecord] = []
        while self.scheduler.has_unfinished_requests() and len(passes) < most:
            passes.append(self.step())
        return passes

    def step(self) -> PassRecord:
        """One pass: schedule, the worker's step, the scheduler's update.

        Raises:
            EncoderCacheMiss: Where a real worker would.
            RuntimeError: The scheduler raised something else.
        """
        record = self.record()
        if record.missed:
            raise EncoderCacheMiss(f"Encoder cache miss for {', '.join(record.missed)}")
        if record.error is not None:
            raise RuntimeError(record.error)
        return record

    def record(self) -> PassRecord:
        """One pass. What the worker misses, and what the scheduler raises, is told, not raised."""
        self._seen = seen = _Seen(held_before=tuple(sorted(self.worker)))
        number, self._passes = self._passes, self._passes + 1
        error = None
        try:
            output = self.scheduler.schedule()
            self._work(output)
            if not seen.missed:
                done = _worker_output(self.scheduler, output)
                self.scheduler.update_from_output(output, done)
        except Exception as raised:
            error = describe_exception(raised)
        running = tuple(r.request_id for r in self.scheduler.running)
        references = self.manager.cached.items()
        return PassRecord(
            number=number,
            num_scheduled_tokens=seen.tokens,
            starts=seen.starts,
            scheduled_encoder_inputs=seen.encodes,
            allocated=tuple(sorted(seen.allocated)),
            hits=tuple(sorted(seen.hits)),
            report=seen.report,
            cached=seen.cached,
            gathered=seen.gathered,
            missed=seen.missed,
            without_payload=seen.without_payload,
            held_before=seen.held_before,
            worker=tuple(sorted(self.worker)),
            peak=seen.peak,
            preempted=tuple(seen.preempted),
            running=running,
            waiting=tuple(r for r in self.scheduler.requests if r not in running),
            references={h: tuple(sorted(r)) for h, r in references},
            error=error,
        )

    def _work(self, output: Any) -> None:
        """The worker's step."""
        seen = self._seen
        seen.starts = self._receive(output)
        seen.encodes = {r: tuple(ids) for r, ids in output.scheduled_encoder_inputs.items()}
        seen.tokens = dict(output.num_scheduled_tokens)
        seen.report = tuple(sorted(output.free_encoder_mm_hashes))
        self.worker -= set(output.free_encoder_mm_hashes)
        features = [self._features[r][i] for r, ids in seen.encodes.items() for i in ids]
        wanted = [f for f in features if not (self._second_runner and f.identifier in self.worker)]
        # Without its payload an item is passed over in silence, as both runners do.
        seen.without_payload = tuple(sorted({f.identifier for f in wanted if f.data is None}))
        self.worker |= {f.identifier for f in wanted if f.data is not None}
        seen.peak = sum(self._sizes[h] for h in self.worker)
        gathered = {
            feature.identifier
            for request_id, count in output.num_scheduled_tokens.items()
            for feature in self._features[request_id]
            if _overlaps(feature.mm_position, seen.starts[request_id], count)
        }
        seen.gathered = tuple(sorted(gathered))
        seen.missed = tuple(sorted(gathered - self.worker))

    def _receive(self, output: Any) -> dict[str, int]:
        """The requests as this output describes them; where each of them starts."""
        for request_id in output.finished_req_ids:
            self._features.pop(request_id, None)
        starts: dict[str, int] = {}
        for new in output.scheduled_new_reqs:
            self._features[new.req_id] = list(new.mm_features)
            starts[new.req_id] = new.num_computed_tokens
        cached = output.scheduled_cached_reqs
        starts |= zip(cached.req_ids, cached.num_computed_tokens, strict=True)
        for request_id, items in getattr(output, "encoder_input_updates", {}).items():
            mine = self._features[request_id]
            for i, data in items.items():
                mine[i] = dataclasses.replace(mine[i], data=data)
        self._sizes |= {
            f.identifier: f.mm_position.length for fs in self._features.values() for f in fs
        }
        return starts


def _overlaps(position: Any, start: int, count: int) -> bool:
    return bool(position.offset < start + count and start < position.offset + position.length)


def _worker_output(scheduler: Any, output: Any) -> Any:
    """One token for every request whose prompt is complete after this pass."""
    from vllm.v1.outputs import ModelRunnerOutput

    ids = list(output.num_scheduled_tokens)

    def sampled(request_id: str) -> list[int]:
        request = scheduler.requests[request_id]
        return [7] if request.num_computed_tokens >= request.num_tokens else []

    return ModelRunnerOutput(
        req_ids=ids,
        req_id_to_index={request_id: k for k, request_id in enumerate(ids)},
        sampled_token_ids=[sampled(request_id) for request_id in ids],
        logprobs=None,
        prompt_logprobs_dict={},
        pooler_output=[],
    )


def _raw_item(cls: Any) -> Any:
    """An item without content; up to 0.14 it has to have some."""
    try:
        item = cls({})
        _ = getattr(item, "modality", None)
    except AssertionError:
        return cls.dummy("image")
    return item


def _accepted(call: Any, **named: Any) -> dict[str, Any]:
    """Those that the signature of this release has."""
    known = inspect.signature(call).parameters
    return {name: value for name, value in named.items() if name in known}


def _block_hasher(block_size: int) -> Any:
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash

    init_none_hash(sha256)
    return get_request_block_hasher(block_size, sha256)
