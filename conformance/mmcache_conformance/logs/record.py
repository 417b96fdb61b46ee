"""Record what the encoder-cache managers of a running vLLM are asked and answer.

vLLM calls `vllm_plugin` in each of its processes, by the entry point group `vllm.general_plugins`.
With `MMCACHE_RECORD=DIR` in the environment, every manager and every scheduler that is made is then
watched, in memory, whatever its class (`watch`); a process that makes one writes a log into DIR.
Without it nothing is imported and nothing is changed.

Whatever goes wrong here is a warning, and ends the recording; vLLM goes on as if nothing were.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
from pathlib import Path
from typing import IO

import msgspec

from mmcache_vectors.manager import Manager

from .format import Created, Ended, Header, LogEvent
from .watch import record_class, record_scheduler

__all__ = ["VARIABLE", "Recorder", "record_class", "record_scheduler", "vllm_plugin"]

VARIABLE = "MMCACHE_RECORD"

_log = logging.getLogger("mmcache.record")

_encode = msgspec.json.Encoder().encode


def vllm_plugin() -> None:
    """Start recording in this process, if the environment asks for it. Never raises."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return
    try:
        import vllm
        from vllm.v1.core import encoder_cache_manager as module

        recorder = Recorder(Path(directory), f"vllm {getattr(vllm, '__version__', '?')}")
        record_class(module.EncoderCacheManager, "encoder_cache", recorder)
        encoder_decoder = getattr(module, "EncoderDecoderCacheManager", None)
        if encoder_decoder is not None:
            record_class(encoder_decoder, "encoder_decoder", recorder)
        try:
            from vllm.v1.core.sched.scheduler import Scheduler
        except Exception as error:
            _log.warning("what a pass orders is not recorded: %s", error)
        else:
            record_scheduler(Scheduler, recorder)
    except Exception as error:
        _log.warning("%s is set, but nothing is recorded: %s", VARIABLE, error)


class Recorder:
    """One log file for this process, opened when there is something to write.

    The lines of a scheduling pass are written together, when its report is read.
    """

    def __init__(self, directory: Path, of: str) -> None:
        self._directory = directory
        self._of = of
        self._file: IO[bytes] | None = None
        self._process = 0
        self._records: tuple[str, ...] = ()
        self._numbers = itertools.count()
        self._lines: list[bytes] = []
        self._managers: list[_Recorded] = []

    def begin(self, kind: Manager, cache_size: int, records: tuple[str, ...]) -> _Recorded:
        """A manager begins its life, of which these calls are recorded.

        Raises:
            OSError: There is nowhere to write.
        """
        if self._process != os.getpid():
            self._open(records)
        recorded = _Recorded(self, f"{self._process}-{next(self._numbers)}")
        own = None if records == self._records else records
        recorded.write(Created(recorded.name, 0, kind, cache_size, records=own))
        self._managers.append(recorded)
        self.flush()
        return recorded

    def add(self, event: LogEvent) -> None:
        self._lines.append(_encode(event))

    def flush(self) -> None:
        """Write what was added. What cannot be written ends the recording, and is never repeated.

        Raises:
            OSError: It cannot be written.
        """
        lines, self._lines = self._lines, []
        if self._file is None or not lines or self._process != os.getpid():
            return
        left = memoryview(b"\n".join(lines) + b"\n")
        try:
            while left:
                left = left[self._file.write(left) or 0 :]
        except OSError:
            file, self._file = self._file, None
            file.close()
            raise

    def close(self) -> None:
        """Say that all managers have ended, and let go of the file."""
        if self._file is None or self._process != os.getpid():
            return
        for recorded in self._managers:
            recorded.write(Ended(recorded.name, recorded.seq))
        try:
            self.flush()
        except OSError as error:
            _log.warning("the end of the recording is lost: %s", error)
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, records: tuple[str, ...]) -> None:
        """A process that was forked from this one writes its own file."""
        self._process = os.getpid()
        self._records = records
        self._lines, self._managers = [], []
        self._directory.mkdir(parents=True, exist_ok=True)
        for number in itertools.count():
            path = self._directory / f"mmcache-{self._process}-{number}.jsonl"
            try:
                self._file = path.open("xb", buffering=0)
                break
            except FileExistsError:
                continue
        header = Header(producer=f"mmcache-spec, {self._of}", records=records)
        self._lines.append(_encode(header))
        atexit.register(self.close)


class _Recorded:
    """One manager of the log. It stops at the first trouble, and at an exception of the manager."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.name = name
        self.seq = 0
        self.busy = False
        """A method of the manager is running: what it calls of itself is its own affair."""
        self.passing = False
        """A pass of its scheduler is running."""
        self.unsent: dict[str, set[int]] = {}
        """By request: the inputs whose raw item the worker was not sent."""
        self._recorder = recorder
        self._stopped = False

    def write(self, event: LogEvent) -> None:
        if not self._stopped:
            self.seq += 1
            self._recorder.add(event)

    def flush(self) -> None:
        self._recorder.flush()

    def stop(self, why: object) -> None:
        if not self._stopped:
            self._stopped = True
            _log.warning("the recording of encoder-cache manager %s ends: %s", self.name, why)
