"""Look at the state of a manager: how each observable is read from a Python object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from mmcache_vectors.manager import Manager

__all__ = ["READERS", "Reader", "exposes"]

Reader = Callable[[Any, Mapping[str, object]], Any]
"""Reads one observable from a manager; the second argument is the requests of its world by id.

It raises whatever the manager raises, and `TypeError` for what cannot be compared.
"""


def _unusable(name: str, value: object) -> NoReturn:
    raise TypeError(f"{name} is of type {type(value).__qualname__}, which cannot be compared")


def _number(name: str) -> Reader:
    def read(manager: Any, requests: Mapping[str, object]) -> int:
        value = getattr(manager, name)
        return value if type(value) is int else _unusable(name, value)

    return read


def _cached(manager: Any, requests: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    value = manager.cached
    if not isinstance(value, Mapping):
        _unusable("cached", value)
    return {h: tuple(sorted(references)) for h, references in value.items()}


def _freeable(manager: Any, requests: Mapping[str, object]) -> tuple[str, ...]:
    value = manager.freeable
    if not isinstance(value, Iterable) or isinstance(value, str | set | frozenset):
        _unusable("freeable", value)
    return tuple(value)


def _held(manager: Any, requests: Mapping[str, object]) -> dict[str, tuple[int, ...]]:
    ask = manager.get_cached_input_ids
    held = {request_id: tuple(sorted(ask(q))) for request_id, q in requests.items()}
    return {request_id: inputs for request_id, inputs in held.items() if inputs}


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


def exposes(probe: object, read: Reader) -> bool:
    """Whether a new instance shows this observable in a form that can be compared."""
    try:
        read(probe, {})
    except Exception:
        return False
    return True
