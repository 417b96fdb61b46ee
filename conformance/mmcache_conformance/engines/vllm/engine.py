"""vLLM's scheduler with a worker that is a dictionary of hashes, driven pass by pass.

The scheduler is real, the worker is a mirror (`mirror`). What it computes is a token that means
nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mmcache_vectors.engine import WorkloadItem

from ...errors import describe_exception
from ..protocol import NotSupported, PassRecord
from .mirror import Mirror, Work
from .scheduler import SchedulerSettings, make_scheduler
from .watch import Heard, watch_ledger, watch_preemptions

__all__ = ["EncoderCacheMiss", "SchedulerSettings", "VllmEngine", "WorkloadItem"]


class EncoderCacheMiss(RuntimeError):
    """The worker gathers an item that it does not hold: an engine would be dead now."""


@dataclass
class _Seen(Heard):
    """What a pass shows while it is made."""

    work: Work = field(default_factory=Work)
    held_before: tuple[str, ...] = ()


class VllmEngine:
    """A scheduler and its mirrored worker.

    Attributes, to be read and not written:
        settings: The configuration.
        scheduler: vLLM's.
        worker: The mirror.
    """

    def __init__(self, settings: SchedulerSettings, *, second_runner: bool = False) -> None:
        self.settings = settings
        self.scheduler: Any = make_scheduler(settings)
        self.scheduler.use_v2_model_runner = second_runner
        self.worker = Mirror(second_runner=second_runner)
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
        self.worker.reset()

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
        self._seen = seen = _Seen(held_before=tuple(sorted(self.worker.held)))
        number, self._passes = self._passes, self._passes + 1
        error = None
        try:
            output = self.scheduler.schedule()
            seen.work = self.worker.step(output)
            if not seen.work.missed:
                done = _worker_output(self.scheduler, output)
                self.scheduler.update_from_output(output, done)
        except Exception as raised:
            error = describe_exception(raised)
        running = tuple(r.request_id for r in self.scheduler.running)
        references = self.manager.cached.items()
        work = seen.work
        return PassRecord(
            number=number,
            num_scheduled_tokens=dict(work.tokens),
            starts=dict(work.starts),
            scheduled_encoder_inputs=dict(work.encodes),
            allocated=tuple(sorted(seen.allocated)),
            hits=tuple(sorted(seen.hits)),
            report=work.report,
            cached=seen.cached,
            gathered=work.gathered,
            missed=work.missed,
            without_payload=work.without_payload,
            held_before=seen.held_before,
            worker=tuple(sorted(self.worker.held)),
            peak=work.peak,
            preempted=tuple(seen.preempted),
            running=running,
            waiting=tuple(r for r in self.scheduler.requests if r not in running),
            references={h: tuple(sorted(r)) for h, r in references},
            error=error,
        )


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
