"""Drive a Python class that has the API of vLLM's encoder cache managers.

This is the one place that knows how the API changed from release to release: what is read from a
request was renamed, parameters were renamed (they are passed by position), and methods and a
second class were added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import methodcaller
from typing import Any, NoReturn

import msgspec

from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    Free,
    GetFreedMmHashes,
    Manager,
    Observed,
    Parameters,
    Request,
    Reset,
)

from ..errors import TargetError, describe_exception
from .protocol import CALLS, MANAGERS, Answer, Case, Implementation, call_name

__all__ = ["LiveManager", "ManagerClasses", "PythonTarget", "plain_answer"]


class ManagerClasses(msgspec.Struct, frozen=True):
    """The classes to drive, and what is known of them beyond what they show by themselves.

    `adds` and `lacks` are capabilities. A class can also add some by an attribute
    `conformance_capabilities`.
    """

    name: str
    encoder_cache: type | None
    encoder_decoder: type | None
    version: str | None = None
    adds: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()


class PythonTarget:
    """Runs cases in this process, each on a new instance. `load` may raise `TargetError`."""

    def __init__(self, spec: str, load: Callable[[], ManagerClasses]) -> None:
        self.spec = spec
        self._load = load
        self._classes: dict[Manager, type] = {}
        self._observed: dict[Manager, tuple[str, ...]] = {}

    def start(self) -> Implementation:
        found = self._load()
        capabilities: dict[Manager, tuple[str, ...]] = {}
        for manager in MANAGERS:
            cls = getattr(found, manager)
            if cls is None:
                continue
            probe = _new(cls, cache_size=1)
            calls = [op for op in CALLS if callable(getattr(cls, op, None))]
            observed = [
                name
                for name, read in _READERS[manager].items()
                if name not in found.lacks and _exposes(probe, read)
            ]
            added = found.adds | set(getattr(cls, "conformance_capabilities", ()))
            self._classes[manager] = cls
            self._observed[manager] = tuple(observed)
            capabilities[manager] = (*calls, *observed, *sorted(added))
        return Implementation(found.name, found.version, "python", capabilities)

    def run(self, case: Case) -> tuple[Answer, ...]:
        requests = {r.request_id: _FakeRequest(r) for r in case.parameters.requests}
        readers = [(name, _READERS[case.manager][name]) for name in self._observed[case.manager]]
        answers: list[Answer] = []
        try:
            manager = self._classes[case.manager](cache_size=case.parameters.cache_size)
            for call in case.calls:
                returns = plain_answer(_make(manager, call, requests))
                state = {name: read(manager, requests) for name, read in readers}
                answers.append(Answer(returns, Observed(**state)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit and pytest's outcomes are answers too
            answers.append(Answer(error=describe_exception(error)))
        return tuple(answers)

    def open(self, kind: Manager, parameters: Parameters) -> LiveManager:
        """A new manager, for whoever makes the calls one by one. Raises what its class raises."""
        manager = self._classes[kind](cache_size=parameters.cache_size)
        readers = {name: _READERS[kind][name] for name in self._observed[kind]}
        requests = {r.request_id: _FakeRequest(r) for r in parameters.requests}
        return LiveManager(manager, requests, readers)

    def stop(self) -> None:
        self._classes = {}


class LiveManager:
    """A manager of a Python class, with the requests of its world."""

    def __init__(
        self,
        manager: object,
        requests: Mapping[str, _FakeRequest],
        readers: Mapping[str, _Reader],
    ) -> None:
        self.manager = manager
        self._requests = requests
        self._readers = readers

    def around(self, manager: object) -> LiveManager:
        """Another manager of the same class, in the same world."""
        return LiveManager(manager, self._requests, self._readers)

    def bind(self, call: Call) -> Callable[[Any], object]:
        """The call as a function of the manager. It gives back whatever the method does."""
        return methodcaller(call_name(call), *_arguments(call, self._requests))

    def observed(self) -> Observed:
        """The state, as far as the class shows it."""
        requests = self._requests
        readers = self._readers.items()
        return Observed(**{name: read(self.manager, requests) for name, read in readers})


# --- making a call -----------------------------------------------------------------------------


class _FakeFeature(msgspec.Struct, frozen=True):
    identifier: str


class _FakeRequest:
    """What the managers of all releases since 0.10.2 read from a request, under every name."""

    def __init__(self, request: Request) -> None:
        self.request_id = request.request_id
        self.mm_features = [_FakeFeature(item.identifier) for item in request.items]
        self.mm_hashes = [item.identifier for item in request.items]
        self.num_encoder_inputs = len(request.items)
        self.has_encoder_inputs = bool(request.items)
        self._sizes = [item.num_embeds for item in request.items]

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return self._sizes[input_id]

    def get_num_encoder_tokens(self, input_id: int) -> int:
        return self._sizes[input_id]


def _new(cls: type, *, cache_size: int) -> object:
    try:
        return cls(cache_size=cache_size)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(
            f"{cls.__qualname__}(cache_size={cache_size}) failed: {describe_exception(error)}"
        ) from None


def _make(manager: Any, call: Call, requests: Mapping[str, _FakeRequest]) -> object:
    return getattr(manager, call_name(call))(*_arguments(call, requests))


def _arguments(call: Call, requests: Mapping[str, _FakeRequest]) -> tuple[object, ...]:
    if isinstance(call, GetFreedMmHashes | Reset):
        return ()
    request = requests[call.request]
    if isinstance(call, Free):
        return (request,)
    if isinstance(call, CanAllocate):
        budget, pending = call.encoder_compute_budget, call.num_embeds_to_schedule
        return request, call.input_id, budget, pending
    return request, call.input_id


def plain_answer(value: object) -> bool | tuple[str, ...] | str | None:
    """What a method returned, as an `Answer` has it."""
    if value is None or type(value) is bool:
        return value
    if isinstance(value, list | tuple | set | frozenset) and all(type(h) is str for h in value):
        return tuple(sorted(value))
    return f"{value!r}, which is of type {type(value).__qualname__}"


# --- looking at the state ----------------------------------------------------------------------

_Reader = Callable[[Any, Mapping[str, _FakeRequest]], Any]


def _unusable(name: str, value: object) -> NoReturn:
    raise TypeError(f"{name} is of type {type(value).__qualname__}, which cannot be compared")


def _number(name: str) -> _Reader:
    def read(manager: Any, requests: Mapping[str, _FakeRequest]) -> int:
        value = getattr(manager, name)
        return value if type(value) is int else _unusable(name, value)

    return read


def _cached(manager: Any, requests: Mapping[str, _FakeRequest]) -> dict[str, tuple[str, ...]]:
    value = manager.cached
    if not isinstance(value, Mapping):
        _unusable("cached", value)
    return {h: tuple(sorted(references)) for h, references in value.items()}


def _freeable(manager: Any, requests: Mapping[str, _FakeRequest]) -> tuple[str, ...]:
    value = manager.freeable
    if not isinstance(value, Iterable) or isinstance(value, str | set | frozenset):
        _unusable("freeable", value)
    return tuple(value)


def _held(manager: Any, requests: Mapping[str, _FakeRequest]) -> dict[str, tuple[int, ...]]:
    ask = manager.get_cached_input_ids
    held = {request_id: tuple(sorted(ask(q))) for request_id, q in requests.items()}
    return {request_id: inputs for request_id, inputs in held.items() if inputs}


_READERS: dict[Manager, dict[str, _Reader]] = {
    "encoder_cache": {
        "num_free_slots": _number("num_free_slots"),
        "num_freeable_slots": _number("num_freeable_slots"),
        "cached": _cached,
        "freeable": _freeable,
        "held": _held,
    },
    # vLLM's encoder-decoder manager says that a request holds all of its inputs, whatever it holds.
    "encoder_decoder": {"num_free_slots": _number("num_free_slots")},
}


def _exposes(probe: object, read: _Reader) -> bool:
    """Whether a new instance shows this observable in a form that can be compared."""
    try:
        read(probe, {})
    except Exception:
        return False
    return True
