"""Look at the state of a manager: how each observable is read from a Python object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, cast

from mmcache_vectors.manager import Manager

from ..errors import describe_exception
from .values import integer, text

__all__ = ["READERS", "Reader", "exposes", "is_no_comparison", "why_not_compared"]

Reader = Callable[[Any, Mapping[str, object]], Any]
"""Reads one observable from a manager; the second argument is the requests of its world by id.

It raises whatever the manager raises, and `TypeError` for what cannot be compared.
"""


_CANNOT = "which cannot be compared"


def _unusable(name: str, value: object) -> NoReturn:
    raise TypeError(f"{name} is of type {type(value).__qualname__}, {_CANNOT}")


def _number(name: str) -> Reader:
    def read(manager: Any, requests: Mapping[str, object]) -> int:
        value = getattr(manager, name)
        number = integer(value)
        return _unusable(name, value) if number is None else number

    return read


_ONLY_TEXTS, _ONLY_INTEGERS = frozenset({str}), frozenset({int})
_CONTAINERS = frozenset({set, dict, list, tuple, frozenset})
"""What is nearly always there, and needs no closer look."""


def _texts(name: str, values: Iterable[object]) -> tuple[str, ...]:
    given = tuple(values)
    if _ONLY_TEXTS.issuperset(map(type, given)):
        return cast(tuple[str, ...], given)
    found = []
    for value in given:
        plain = text(value)
        found.append(_unusable(f"what is in {name}", value) if plain is None else plain)
    return tuple(found)


def _cached(manager: Any, requests: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    value = manager.cached
    if not isinstance(value, Mapping):
        _unusable("cached", value)
    found: dict[str, tuple[str, ...]] = {}
    for mm_hash, references in value.items():
        if type(references) not in _CONTAINERS and (
            not isinstance(references, Iterable) or isinstance(references, str)
        ):
            _unusable("what cached has of a hash", references)
        (name,) = (mm_hash,) if type(mm_hash) is str else _texts("cached", [mm_hash])
        found[name] = tuple(sorted(_texts("cached", references)))
    return found


def _freeable(manager: Any, requests: Mapping[str, object]) -> tuple[str, ...]:
    value = manager.freeable
    if not isinstance(value, Iterable) or isinstance(value, str | set | frozenset):
        _unusable("freeable", value)
    return _texts("freeable", value)


def _held(manager: Any, requests: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    held: dict[str, tuple[int, ...]] = {}
    for request_id, request in requests.items():
        inputs = manager.get_cached_input_ids(request)
        if type(inputs) in _CONTAINERS and _ONLY_INTEGERS.issuperset(map(type, inputs)):
            if inputs:
                held[request_id] = tuple(sorted(inputs))
            continue
        numbers = [integer(i) for i in inputs] if isinstance(inputs, Iterable) else [None]
        known = [n for n in numbers if n is not None]
        if len(known) < len(numbers):
            _unusable("what get_cached_input_ids gives", inputs)
        if known:
            held[request_id] = tuple(sorted(known))
    return held


READERS: dict[Manager, dict[str, Reader]] = {
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


_ATTRIBUTES = {"held": "get_cached_input_ids"}
"""Where an observable is, if not under its own name."""


def exposes(probe: object, name: str) -> bool:
    """Whether the attribute or method is there from which the observable is read."""
    try:
        return hasattr(probe, _ATTRIBUTES.get(name, name))
    except KeyboardInterrupt:
        raise
    except BaseException:  # it is there, and whoever looks at it is told so
        return True


def why_not_compared(
    probe: object, name: str, read: Reader, requests: Mapping[str, object], *, new: bool
) -> str | None:
    """Why what is there cannot be compared, seen on this instance; None if it can.

    What cannot be read at all is told of a `new` instance only: later it is the manager's failure.
    """
    try:
        read(probe, requests)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if is_no_comparison(error):
            return str(error)
        return f"{name} cannot be read: {describe_exception(error)}" if new else None
    return None


def is_no_comparison(error: BaseException) -> bool:
    """Whether a reader raised it for what is there and cannot be compared."""
    return isinstance(error, TypeError) and str(error).endswith(_CANNOT)
