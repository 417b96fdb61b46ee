"""Record what the encoder-cache managers of a running vLLM are asked and answer.

vLLM calls `vllm_plugin` in each of its processes, by the entry point group `vllm.general_plugins`.
With `MMCACHE_RECORD=DIR` in the environment, the methods of its manager classes are then wrapped,
in memory; a process that makes a manager, which is the scheduler's, writes a log into DIR. Without
it nothing is imported and nothing is changed.

Whatever goes wrong here is a warning, and ends the recording; vLLM goes on as if nothing were.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import itertools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from mmcache_vectors.manager import Manager

from .format import (
    Allocated,
    Asked,
    Created,
    Ended,
    Freed,
    FreedInput,
    Header,
    LogEvent,
    LookedUp,
    Reported,
    WasReset,
)

__all__ = ["VARIABLE", "Recorder", "record_class", "vllm_plugin"]

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
    except Exception as error:
        _log.warning("%s is set, but nothing is recorded: %s", VARIABLE, error)


class Recorder:
    """One log file for this process, opened when there is something to write.

    The lines of a scheduling pass are written together, when its report is read.
    """

    def __init__(self, directory: Path, of: str) -> None:
        self.kinds: dict[type, Manager] = {}
        """The classes that are recorded."""
        self._directory = directory
        self._of = of
        self._file: IO[bytes] | None = None
        self._process = 0
        self._numbers = itertools.count()
        self._lines: list[bytes] = []
        self._managers: list[_Recorded] = []

    def begin(self, kind: Manager, cache_size: int) -> _Recorded:
        """A manager begins its life. Raises `OSError` if there is nowhere to write."""
        if self._process != os.getpid():
            self._open()
        recorded = _Recorded(self, f"{self._process}-{next(self._numbers)}")
        recorded.write(Created(recorded.name, 0, kind, cache_size))
        self._managers.append(recorded)
        self.flush()
        return recorded

    def add(self, event: LogEvent) -> None:
        self._lines.append(_encode(event))

    def flush(self) -> None:
        if self._file is not None and self._lines and self._process == os.getpid():
            self._file.write(b"\n".join(self._lines) + b"\n")
        self._lines = []

    def close(self) -> None:
        """Say that all managers have ended, and let go of the file."""
        if self._file is None or self._process != os.getpid():
            return
        for recorded in self._managers:
            recorded.write(Ended(recorded.name, recorded.seq))
        self.flush()
        self._file.close()
        self._file = None

    def _open(self) -> None:
        """A process that was forked from this one writes its own file."""
        self._process = os.getpid()
        self._lines, self._managers = [], []
        self._directory.mkdir(parents=True, exist_ok=True)
        for number in itertools.count():
            path = self._directory / f"mmcache-{self._process}-{number}.jsonl"
            try:
                self._file = path.open("xb", buffering=0)
                break
            except FileExistsError:
                continue
        self._lines.append(_encode(Header(producer=f"mmcache-spec, {self._of}")))
        atexit.register(self.close)


class _Recorded:
    """One manager of the log. It stops at the first trouble, and at an exception of the manager."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.name = name
        self.seq = 0
        self.busy = False
        """A method of the manager is running: what it calls of itself is its own affair."""
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


# --- wrapping ----------------------------------------------------------------------------------

_ATTRIBUTE = "_mmcache_recorded"

_ARGUMENTS = {
    "check_and_update_cache": 2,
    "can_allocate": 4,
    "allocate": 2,
    "free_encoder_input": 2,
    "free": 1,
    "get_freed_mm_hashes": 0,
    "reset": 0,
}
"""The methods that are recorded, and how many arguments each takes."""

_OPTIONAL = {"reset"}


def record_class(cls: type, kind: Manager, recorder: Recorder) -> None:
    """Wrap the methods of a class. Raises `TypeError` if they are not as expected."""
    own: dict[str, Callable[..., Any]] = {}
    for name, count in _ARGUMENTS.items():
        method = getattr(cls, name, None)
        if method is None and name in _OPTIONAL:
            continue
        if not callable(method) or len(inspect.signature(method).parameters) != count + 1:
            raise TypeError(f"{cls.__qualname__}.{name} is not the method that it used to be")
        if _defined_by(cls, name) not in recorder.kinds:
            own[name] = method
    if cls in recorder.kinds:
        return
    above = set(recorder.kinds)
    recorder.kinds[cls] = kind
    for name, method in own.items():
        setattr(cls, name, _wrapped(name, method))
    if _defined_by(cls, "__init__") not in above:
        _wrap_init(cls, recorder)


def _defined_by(cls: type, name: str) -> type:
    return next(c for c in cls.__mro__ if name in vars(c))


def _wrap_init(cls: type, recorder: Recorder) -> None:
    original: Callable[..., None] = cls.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        if hasattr(self, _ATTRIBUTE):
            return  # the class above has begun it
        try:
            kind = next(recorder.kinds[c] for c in type(self).__mro__ if c in recorder.kinds)
            setattr(self, _ATTRIBUTE, recorder.begin(kind, self.cache_size))
        except Exception as error:
            _log.warning("an encoder-cache manager is not recorded: %s", error)

    cls.__init__ = init  # type: ignore[misc]


def _wrapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    note = _NOTES[name]

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        recorded: _Recorded | None = getattr(self, _ATTRIBUTE, None)
        if recorded is None or recorded.busy:
            return original(self, *arguments, **named)
        recorded.busy = True
        try:
            returned = original(self, *arguments, **named)
        except BaseException as error:
            recorded.stop(f"{name} raised {type(error).__name__}")
            raise
        finally:
            recorded.busy = False
        try:
            note(recorded, returned, *arguments, **named)
        except Exception as error:
            recorded.stop(error)
        return returned

    return method


def _item(request: Any, input_id: int) -> tuple[str, int, str, int]:
    identifier = request.mm_features[input_id].identifier
    return request.request_id, input_id, identifier, request.get_num_encoder_embeds(input_id)


def _looked_up(r: _Recorded, returned: bool, request: Any, input_id: int) -> None:
    r.write(LookedUp(r.name, r.seq, *_item(request, input_id), returned))


def _asked(
    r: _Recorded,
    returned: bool,
    request: Any,
    input_id: int,
    encoder_compute_budget: int,
    num_embeds_to_schedule: int,
) -> None:
    more = encoder_compute_budget, num_embeds_to_schedule, returned
    r.write(Asked(r.name, r.seq, *_item(request, input_id), *more))


def _allocated(r: _Recorded, returned: object, request: Any, input_id: int) -> None:
    r.write(Allocated(r.name, r.seq, *_item(request, input_id)))


def _freed_input(r: _Recorded, returned: object, request: Any, input_id: int) -> None:
    r.write(FreedInput(r.name, r.seq, request.request_id, input_id))


def _freed(r: _Recorded, returned: object, request: Any) -> None:
    r.write(Freed(r.name, r.seq, request.request_id))


def _reported(r: _Recorded, returned: list[str]) -> None:
    r.write(Reported(r.name, r.seq, tuple(returned)))
    r.flush()


def _was_reset(r: _Recorded, returned: object) -> None:
    r.write(WasReset(r.name, r.seq))


_NOTES: dict[str, Callable[..., None]] = {
    "check_and_update_cache": _looked_up,
    "can_allocate": _asked,
    "allocate": _allocated,
    "free_encoder_input": _freed_input,
    "free": _freed,
    "get_freed_mm_hashes": _reported,
    "reset": _was_reset,
}
