"""Watch the managers and schedulers of a process: every call from outside, whatever their classes.

What is wrapped is the class of the very object that was made, with the methods that it has by then:
a manager class of somebody else's, which overrides what it inherits, is recorded as it is. Of each
manager it is noted which of its calls are recorded; where one of them cannot be, the log says so.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from mmcache_vectors.manager import Manager

from .format import (
    NEEDED_CALLS,
    Allocated,
    Asked,
    Freed,
    FreedInput,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
)

__all__ = ["record_class", "record_scheduler"]

_log = logging.getLogger("mmcache.record")

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

_ATTRIBUTE = "_mmcache_recorded"
_MARK = "_mmcache_records"
"""On a method that is wrapped: the recorders that it writes for."""


class _Recorded(Protocol):
    """One manager of a log, as `record` has it."""

    name: str
    seq: int
    busy: bool
    passing: bool
    unsent: dict[str, set[int]]

    def write(self, event: LogEvent) -> None: ...
    def flush(self) -> None: ...
    def stop(self, why: object) -> None: ...


class _Recorder(Protocol):
    def begin(self, kind: Manager, cache_size: int, records: tuple[str, ...]) -> Any: ...


_kinds: WeakKeyDictionary[type, Manager] = WeakKeyDictionary()
"""Of the classes that were named: what their instances are."""


def record_class(cls: type, kind: Manager, recorder: _Recorder) -> None:
    """Watch every manager that is made of this class, or of one below it.

    Raises:
        TypeError: Its methods are not as expected.
    """
    for name in NEEDED_CALLS:
        if not _fits(name, getattr(cls, name, None)):
            raise TypeError(f"{cls.__qualname__}.{name} is not the method that it used to be")
    _kinds[cls] = kind
    _after_init(cls, lambda manager: _watch(manager, recorder, None))


def record_scheduler(cls: type, recorder: _Recorder) -> None:
    """Watch the manager of every scheduler that is made, and what each of its passes orders."""

    def made(scheduler: Any) -> None:
        kind: Manager = "encoder_cache"
        if getattr(scheduler, "is_encoder_decoder", False):
            kind = "encoder_decoder"
        _watch(scheduler.encoder_cache_manager, recorder, kind)
        _wrap(type(scheduler), "schedule", _scheduling)

    _after_init(cls, made)


def _after_init(cls: type, then: Callable[[Any], None]) -> None:
    """Have something done with each new object. Whatever goes wrong in that is a warning."""
    original: Callable[..., None] = cls.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        try:
            then(self)
        except Exception as error:
            _log.warning("a %s is not recorded: %s", type(self).__qualname__, error)

    cls.__init__ = init  # type: ignore[misc]


# --- one manager -------------------------------------------------------------------------------


def _watch(manager: Any, recorder: _Recorder, kind: Manager | None) -> None:
    """Begin the record of a manager, which may have been begun already.

    `kind` is what it is, unless its class or one above it was named.
    """
    if getattr(manager, _ATTRIBUTE, None) is not None:
        return
    cls = type(manager)
    known = (_kinds[c] for c in cls.__mro__ if c in _kinds)
    found = next(known, kind) or "encoder_cache"
    object.__setattr__(manager, _ATTRIBUTE, None)
    own = getattr(manager, "__dict__", {})  # what an object has instead of its class's method
    records = tuple(n for n in _ARGUMENTS if n not in own and _record_method(cls, n))
    recorded = recorder.begin(found, manager.cache_size, records)
    lacking = [name for name in NEEDED_CALLS if name not in records]
    if lacking:
        _log.warning("of %s, %s cannot be recorded", cls.__qualname__, ", ".join(lacking))
    object.__setattr__(manager, _ATTRIBUTE, recorded)


def _record_method(cls: type, name: str) -> bool:
    """Wrap the method that this class has by now, its own or one above it; whether it is."""
    method = inspect.getattr_static(cls, name, None)
    if getattr(method, _MARK, False):
        return True
    if not inspect.isfunction(method) or not _fits(name, method):
        return False
    return _wrap(cls, name, functools.partial(_calling, name))


def _wrap(cls: type, name: str, around: Callable[[Callable[..., Any]], Any]) -> bool:
    """Replace a method; whether it could be. One that is wrapped already stays as it is."""
    method = inspect.getattr_static(cls, name, None)
    if getattr(method, _MARK, False):
        return True
    if not inspect.isfunction(method):
        return False
    wrapped = around(method)
    setattr(wrapped, _MARK, True)
    try:
        setattr(cls, name, wrapped)
    except (AttributeError, TypeError):
        return False
    return True


def _fits(name: str, method: Any) -> bool:
    """Whether it takes the arguments that it is given."""
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*range(_ARGUMENTS[name] + 1))
    except (TypeError, ValueError):
        return False
    return True


def _calling(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    note = _NOTES[name]
    bind = inspect.signature(original).bind

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
            if named:  # by whatever names this class has for them
                arguments = tuple(bind(self, *arguments, **named).arguments.values())[1:]
            note(recorded, returned, *arguments[: _ARGUMENTS[name]])
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
    r: _Recorded, returned: bool, request: Any, input_id: int, budget: int, pending: int
) -> None:
    r.write(Asked(r.name, r.seq, *_item(request, input_id), budget, pending, returned))


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


_NOTES: Mapping[str, Callable[..., None]] = {
    "check_and_update_cache": _looked_up,
    "can_allocate": _asked,
    "allocate": _allocated,
    "free_encoder_input": _freed_input,
    "free": _freed,
    "get_freed_mm_hashes": _reported,
    "reset": _was_reset,
}


# --- one pass ----------------------------------------------------------------------------------


def _scheduling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def schedule(self: Any, *arguments: Any, **named: Any) -> Any:
        manager = getattr(self, "encoder_cache_manager", None)
        recorded: _Recorded | None = getattr(manager, _ATTRIBUTE, None)
        if recorded is None or recorded.passing:
            return original(self, *arguments, **named)
        recorded.passing = True
        try:
            output = original(self, *arguments, **named)
        finally:
            recorded.passing = False
        try:
            _note_pass(recorded, self, output)
        except Exception as error:
            recorded.stop(error)
        return output

    return schedule


def _note_pass(r: _Recorded, scheduler: Any, output: Any) -> None:
    """What the output orders. What a connector loads, it does not say."""
    places = [(q, i) for q, ids in output.scheduled_encoder_inputs.items() for i in ids]

    def hash_of(place: tuple[str, int]) -> str:
        return str(scheduler.requests[place[0]].mm_features[place[1]].identifier)

    lacking = _never_sent(r.unsent, output)
    unsent = None if lacking is None else tuple(hash_of(p) for p in places if p in lacking)
    load = () if getattr(scheduler, "ec_connector", None) is None else None
    drop = tuple(output.free_encoder_mm_hashes)
    r.write(PassEnded(r.name, r.seq, drop, tuple(map(hash_of, places)), load, unsent))
    r.flush()


def _never_sent(unsent: dict[str, set[int]], output: Any) -> set[tuple[str, int]] | None:
    """The inputs whose raw item no output has carried to the worker; None if outputs do not say.

    `unsent` is what was known before, of requests that the worker knows, and is brought up to date.
    """
    new_requests = getattr(output, "scheduled_new_reqs", None)
    if new_requests is None:
        return None
    for request_id in getattr(output, "finished_req_ids", ()):
        unsent.pop(request_id, None)
    for new in new_requests:
        features = getattr(new, "mm_features", None)
        if features is None:
            return None
        unsent[new.req_id] = {i for i, feature in enumerate(features) if feature.data is None}
    for request_id, items in (getattr(output, "encoder_input_updates", None) or {}).items():
        unsent.get(request_id, set()).difference_update(items)
    return {(request_id, i) for request_id, inputs in unsent.items() for i in inputs}
