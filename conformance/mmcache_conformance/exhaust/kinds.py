"""What a state may be made of: which classes never change, which hold others, which are plain."""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from numbers import Number
from types import ModuleType
from typing import Any

__all__ = [
    "CONTAINERS",
    "LOCKS",
    "MAPS",
    "SCALARS",
    "NotPlain",
    "base_of",
    "entries",
    "is_scalar",
    "is_tuple",
    "is_value",
    "parts_of",
    "slots_of",
]


class NotPlain(TypeError):
    """The state holds something that cannot be copied piece by piece."""


SCALARS = frozenset({int, bool, str, float, bytes, type(None)})
MAPS = (dict, OrderedDict, defaultdict, Counter)
CONTAINERS = (*MAPS, list, set, deque)
LOCKS: tuple[type, ...] = (type(threading.Lock()), type(threading.RLock()))
_CONSTANTS = (
    str,
    bytes,
    Number,
    Enum,
    type,
    range,
    ModuleType,
    logging.Logger,
    *LOCKS,
)
"""What a copy may keep: it never changes, or, as a lock between two calls, not so that it matters.
A class of ours is one if it has `never_changes`."""


@cache
def is_scalar(kind: Any) -> bool:
    """Whether an object of the class never changes."""
    if kind in SCALARS or getattr(kind, "never_changes", False):
        return True
    if not issubclass(kind, _CONSTANTS) or kind.__hash__ is None:
        return False
    return issubclass(kind, Enum | type | logging.Logger) or not _adds_state(kind)


def _adds_state(kind: type) -> bool:
    """Whether it is a class made in Python, whose objects may have more than the built-in part."""
    return bool(kind.__flags__ & _MADE_IN_PYTHON) and kind.__dictoffset__ != 0


@cache
def is_tuple(kind: Any) -> bool:
    return kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_make"))


_MADE_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_OWN_WAYS = (
    "__reduce__",
    "__reduce_ex__",
    "__getstate__",
    "__setstate__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__copy__",
    "__deepcopy__",
    "__getattribute__",
)


@cache
def base_of(kind: Any) -> Any:
    """What an object is below all that is made in Python: `object`, or a container.

    Nothing where the class says itself how it is copied, or keeps what Python does not see.
    """
    for cls in kind.__mro__:
        if cls is object or cls in CONTAINERS:
            base = cls
            break
        if not cls.__flags__ & _MADE_IN_PYTHON:
            return None
        ways = [way for way in _OWN_WAYS if way in vars(cls)]
        if ways and not (is_dataclass(cls) and set(ways) == {"__getstate__", "__setstate__"}):
            return None
    if base is object:
        if kind is object:
            return None
        try:
            object.__reduce_ex__(object.__new__(kind), 2)
        except TypeError:  # it is larger than what Python sees of it
            return None
    return base


@cache
def slots_of(kind: Any) -> tuple[str, ...]:
    names = []
    for cls in kind.__mro__:
        slots = vars(cls).get("__slots__", ()) if cls.__flags__ & _MADE_IN_PYTHON else ()
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in {"__dict__", "__weakref__"}:
                continue
            own = cls.__name__.lstrip("_")
            mangled = name.startswith("__") and not name.endswith("__") and own
            names.append(f"_{own}{name}" if mangled else name)
    return tuple(names)


def parts_of(record: Any) -> dict[str, Any]:
    """What an object knows by name: its slots, and its `__dict__`."""
    parts = {}
    for name in slots_of(record.__class__):
        try:
            parts[name] = object.__getattribute__(record, name)
        except AttributeError:
            continue  # nothing was written to it yet
    return parts | getattr(record, "__dict__", {})


def is_value(value: Any) -> bool:
    """Whether a key or an element of a set is what it shows, so that a copy may keep it."""
    kind: Any = value.__class__
    if is_scalar(kind):
        return True
    if is_tuple(kind) or kind is frozenset:
        return all(map(is_value, value))
    if base_of(kind) is not object or "__dataclass_params__" not in vars(kind):
        return False
    parameters, fields = kind.__dataclass_params__, kind.__dataclass_fields__.values()
    compared = parameters.frozen and parameters.eq and all(f.compare for f in fields)
    return compared and all(map(is_value, parts_of(value).values()))


def entries(base: Any, value: Any) -> tuple[list[Any], list[Any]]:
    """The keys and the values of a map, in order, whatever its class makes of them."""
    keys = list(base.__iter__(value))
    return keys, [dict.__getitem__(value, key) for key in keys]
