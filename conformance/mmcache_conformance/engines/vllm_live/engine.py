"""A vLLM that runs: front end, engine core, scheduler, first runner, model code, in this process.

It is driven by the public interface of its engine, one step at a time, and only watched. Two things
are set from within, as no option gives them: the capacity of the ledger, and what the encoder may
compute in one pass. A mirror obeys the same outputs as the runner, and what both hold and gather is
compared at each pass: so a mirror is believed where there is no runner.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import describe_exception
from ..protocol import NotSupported, PassRecord, Place
from ..vllm.mirror import Mirror, Work
from ..vllm.watch import Heard, watch_ledger, watch_preemptions
from .model import IMAGE_EMBEDS, IMAGE_SIDE
from .units import LiveRequest, LiveSettings, Units

__all__ = ["LiveEngine", "set_aside"]


class _Watched(dict[str, Any]):
    """The worker's tensors by hash, which remembers what was looked for."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self.gathered: set[str] = set()
        self.missed: set[str] = set()
        self.most = len(self)

    def begin(self) -> None:
        """A pass begins."""
        self.gathered, self.missed, self.most = set(), set(), len(self)

    def get(self, key: str, default: Any = None) -> Any:
        self._look(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._look(key)
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.most = max(self.most, len(self))

    def _look(self, key: str) -> None:
        self.gathered.add(key)
        if key not in self:
            self.missed.add(key)


@dataclass
class _Seen(Heard):
    """What a pass shows while it is made."""

    work: Work | None = None
    """What the mirror did of it; None until the runner is given something."""
    without_payload: set[str] = field(default_factory=set)


class LiveEngine:
    """One engine, started with some settings.

    Attributes, to be read and not written:
        scheduler: vLLM's, of whatever class.
        runner: vLLM's model runner.
        broken: It has raised, and can do no more.
    """

    def __init__(self, model: Path, settings: LiveSettings, log: Path) -> None:
        """Start it. What it says meanwhile goes to the end of `log`. Raises what vLLM raises."""
        self._log = log
        with set_aside(log), _frozen():
            self._llm = _start(model, settings)
        self._engine = self._llm.llm_engine
        self.core: Any = self._engine.engine_core.engine_core
        self.scheduler: Any = self.core.scheduler
        self.runner = _runner(self.core.model_executor)
        self.broken = False
        self._names: dict[str, str] = {}
        """Our names of requests, by vLLM's."""
        self._units: Units | None = None
        self._passes = 0
        self._seen = _Seen()
        self._mirror = Mirror()
        manager = type(self.scheduler.encoder_cache_manager)
        self.put_ledger(manager(cache_size=settings.cache_size))
        self.scheduler.max_num_encoder_input_tokens = settings.encoder_budget
        self._worker = _Watched(self.runner.encoder_cache)
        self.runner.encoder_cache = self._worker
        watch_preemptions(self.scheduler, lambda: self._seen, self._name)
        self._watch_runner()

    def put_ledger(self, manager: Any) -> None:
        """Have the scheduler keep this ledger, which is new, and watch it."""
        self.scheduler.encoder_cache_manager = manager
        watch_ledger(manager, lambda: self._seen, self._name)

    def take_payloads(self) -> None:
        """Have the first runner take in what comes with an order to encode, as the second does."""
        encode = self.runner._execute_mm_encoder

        def encoding(output: Any, *arguments: Any, **named: Any) -> Any:
            for request_id, items in (getattr(output, "encoder_input_updates", None) or {}).items():
                mine = self.runner.requests[request_id].mm_features
                for i, data in items.items():
                    mine[i] = dataclasses.replace(mine[i], data=data)
            return encode(output, *arguments, **named)

        self.runner._execute_mm_encoder = encoding

    def stop(self) -> None:
        """End the engine, and what it holds of this process."""
        from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

        with set_aside(self._log), _frozen():
            self._engine.engine_core.shutdown()
            del self._llm, self._engine, self.core, self.scheduler, self.runner
            cleanup_dist_env_and_memory()

    # --- between passes ------------------------------------------------------------------------

    def begin(self, units: Units) -> None:
        """A workload begins, of a vector in these units."""
        self._units = units
        self._passes = 0
        self._names = {}

    def add(self, name: str, request: LiveRequest) -> None:
        """Send a request through the front end. Raises what vLLM raises."""
        from vllm import SamplingParams

        prompt: dict[str, Any] = {"prompt": request.prompt}
        if request.images:
            prompt["multi_modal_data"] = {"image": [_image(n) for n in request.images]}
            prompt["multi_modal_uuids"] = {"image": list(request.images)}
        before = set(self.scheduler.requests)
        sampling = SamplingParams(temperature=0, max_tokens=request.max_tokens, ignore_eos=True)
        self._engine.add_request(name, prompt, sampling, priority=request.priority)
        (own,) = set(self.scheduler.requests) - before
        self._names[own] = name

    def abort(self, name: str) -> None:
        """The request ends before its time."""
        self._engine.abort_request([name])

    def reset(self) -> None:
        """Both sides forget what is cached."""
        if not hasattr(self.core, "reset_encoder_cache"):
            raise NotSupported("this release cannot reset the encoder cache")
        self.core.reset_encoder_cache()
        self._mirror.reset()

    # --- a pass --------------------------------------------------------------------------------

    def record(self) -> PassRecord:
        """One step. What the worker misses, and what the engine raises, is told, not raised."""
        self._seen = seen = _Seen()
        held = tuple(sorted(self._worker))
        self._worker.begin()
        number, self._passes = self._passes, self._passes + 1
        error = None
        try:
            with set_aside(self._log):
                self._engine.step()
        except Exception as raised:
            self.broken = True
            if not self._worker.missed:
                error = describe_exception(raised)
        missed = tuple(sorted(self._worker.missed)) if self.broken else ()
        work = seen.work or Work()
        if error is None:
            worker = self._worker
            error = self._mirror.unlike(work, set(worker), worker.gathered, missed)
        scheduler = self.scheduler
        if seen.work is None:
            seen.cached = tuple(sorted(scheduler.encoder_cache_manager.cached))
        running = tuple(self._name(r.request_id) for r in scheduler.running)
        everyone = (self._name(r) for r in scheduler.requests)
        return PassRecord(
            number=number,
            **self._scheduled(work),
            allocated=tuple(sorted(seen.allocated)),
            hits=tuple(sorted(seen.hits)),
            cached=seen.cached,
            gathered=tuple(sorted(self._worker.gathered)),
            missed=missed,
            without_payload=tuple(sorted(seen.without_payload)),
            held_before=held,
            worker=tuple(sorted(self._worker)),
            peak=self._worker.most * IMAGE_EMBEDS,
            preempted=tuple(seen.preempted),
            running=running,
            waiting=tuple(r for r in everyone if r not in running),
            references={
                h: tuple(sorted(map(self._name, requests)))
                for h, requests in scheduler.encoder_cache_manager.cached.items()
            },
            error=error,
        )

    def _scheduled(self, work: Work) -> dict[str, Any]:
        """What a pass has ordered, in the units of the vector."""
        assert self._units is not None
        starts = work.starts
        return {
            "num_scheduled_tokens": {
                self._name(r): self._units.count(starts[r], n) for r, n in work.tokens.items()
            },
            "starts": {self._name(r): self._units.start(n) for r, n in starts.items()},
            "scheduled_encoder_inputs": {self._name(r): ids for r, ids in work.encodes.items()},
            "report": work.report,
        }

    def _name(self, request_id: str) -> str:
        return self._names.get(request_id, request_id)

    # --- listening -----------------------------------------------------------------------------

    def _watch_runner(self) -> None:
        """What it is given, repairs of the scheduler included, and what it encodes from."""
        execute = self.core.model_executor.execute_model
        encode = self.runner._execute_mm_encoder

        def executing(output: Any, *arguments: Any, **named: Any) -> Any:
            self._seen.work = self._mirror.step(output)
            return execute(output, *arguments, **named)

        def encoding(output: Any, *arguments: Any, **named: Any) -> Any:
            for place in _places(output):
                feature = self.runner.requests[place[0]].mm_features[place[1]]
                if feature.data is None:
                    self._seen.without_payload.add(feature.identifier)
            return encode(output, *arguments, **named)

        self.core.model_executor.execute_model = executing
        self.runner._execute_mm_encoder = encoding


def _places(output: Any) -> Iterator[Place]:
    for request_id, input_ids in output.scheduled_encoder_inputs.items():
        for input_id in input_ids:
            yield request_id, input_id


@contextlib.contextmanager
def set_aside(log: Path) -> Iterator[None]:
    """Have whatever is written to standard output and error, also by compiled code, in a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    own = [os.dup(1), os.dup(2)]
    with log.open("ab", buffering=0) as file:
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, kept in enumerate(own, start=1):
                os.dup2(kept, number)
                os.close(kept)


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    """Spare vLLM's collections of garbage the objects that its imports have made.

    It makes nine of them in a start and a stop, which was more than half of the time of both.
    """
    gc.freeze()
    unfreeze = gc.unfreeze
    gc.unfreeze = lambda: None
    try:
        yield
    finally:
        gc.unfreeze = unfreeze


def _start(model: Path, settings: LiveSettings) -> Any:
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm import LLM

    return LLM(
        model=str(model),
        enforce_eager=True,
        dtype="float32",
        seed=0,
        generation_config="vllm",
        disable_log_stats=True,
        async_scheduling=False,
        scheduling_policy=settings.policy,
        enable_prefix_caching=settings.prefix_caching,
        block_size=settings.block_size,
        # vLLM keeps one block for itself.
        num_gpu_blocks_override=settings.num_blocks + 1,
        max_model_len=settings.num_blocks * settings.block_size,
        max_num_batched_tokens=settings.token_budget,
        max_num_seqs=8,
        long_prefill_token_threshold=settings.chunk,
        disable_chunked_mm_input=not settings.chunked_items,
        limit_mm_per_prompt={"image": 16},
        mm_processor_cache_gb=0,
    )


def _runner(executor: Any) -> Any:
    """The model runner of the only worker."""
    worker = executor.driver_worker
    return getattr(worker, "worker", worker).model_runner


def _image(name: str) -> Any:
    """A picture of noise, the same for one name in every process."""
    from PIL import Image

    need = IMAGE_SIDE * IMAGE_SIDE * 3
    noise = hashlib.shake_128(name.encode()).digest(need)
    return Image.frombytes("RGB", (IMAGE_SIDE, IMAGE_SIDE), noise)
