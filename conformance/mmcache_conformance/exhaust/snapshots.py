"""Copy and compare the state of a Python object.

An object is *plain* if its state is what its `__dict__` shows, made of numbers, texts, members of
enumerations, the built-in containers and objects of dataclasses. Such a state is copied piece by
piece, and has a *fingerprint*: equal for states that differ only in the order of a dict or set,
or in the order and number of the elements of a list. An `OrderedDict` and a `deque` keep their
order. What is reached in two ways is copied once, and the fingerprint says that it is one.

Anything else is *opaque*: copied by `deepcopy`, and told apart by what it shows.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from enum import Enum
from functools import cache
from typing import Any, Protocol

import msgspec

from mmcache_vectors.manager import Observed

__all__ = ["NotPlain", "Opaque", "Snapshots", "snapshots_for"]


class NotPlain(TypeError):
    """The state holds something that cannot be copied piece by piece."""


class Snapshots(Protocol):
    """How the states of one class are kept. A snapshot is plain data, or the object itself."""

    plain: bool

    def take(self, manager: object) -> Any:
        """The state of a manager that is not used any more."""

    def learn(self, snapshot: Any) -> None:
        """Look at a state before it is copied for the first time. Raises `NotPlain`."""

    def copy(self, snapshot: Any) -> Any: ...

    def manager(self, snapshot: Any) -> object:
        """A manager in this state, which it will change."""

    def same(self, snapshot: Any, other: Any) -> bool:
        """Whether the two are surely equal."""

    def fingerprint(self, snapshot: Any, observe: Callable[[Any], Observed]) -> Hashable: ...


def snapshots_for(manager: object) -> Snapshots:
    """Piece by piece if the object is plain, else by `deepcopy`."""
    try:
        return Plain(manager)
    except NotPlain:
        return Opaque()


class Plain:
    """States as the `__dict__` of the object."""

    plain = True

    def __init__(self, manager: object) -> None:
        """Raises `NotPlain` if the object keeps its state elsewhere."""
        cls = type(manager)
        if any(vars(c).get("__slots__") for c in cls.__mro__) or issubclass(cls, _BUILT_IN):
            raise NotPlain(f"{cls.__qualname__} keeps its state outside of __dict__")
        self._live: Any = object.__new__(cls)
        self._shares = self._has_records = False
        self.learn(vars(manager))

    def take(self, manager: object) -> dict[str, Any]:
        return vars(manager)

    def learn(self, snapshot: dict[str, Any]) -> None:
        look = _Look(snapshot)
        self._shares |= look.shares
        self._has_records |= look.has_records

    def copy(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = _copied(snapshot, {} if self._shares else None)
        return copied

    def manager(self, snapshot: dict[str, Any]) -> object:
        self._live.__dict__ = snapshot
        return self._live

    def same(self, snapshot: dict[str, Any], other: dict[str, Any]) -> bool:
        # A dataclass may compare less than it knows.
        return not self._has_records and snapshot == other

    def fingerprint(self, snapshot: dict[str, Any], observe: Callable[[Any], Observed]) -> Hashable:
        return _frozen(snapshot, {})


class Opaque:
    """States as objects of their own."""

    plain = False

    def take(self, manager: object) -> object:
        return manager

    def learn(self, snapshot: object) -> None:
        return

    def copy(self, snapshot: object) -> object:
        return deepcopy(snapshot)

    def manager(self, snapshot: object) -> object:
        return snapshot

    def same(self, snapshot: object, other: object) -> bool:
        return False

    def fingerprint(self, snapshot: object, observe: Callable[[Any], Observed]) -> Hashable:
        return msgspec.json.encode(observe(snapshot), order="sorted")


# --- what a state is made of -------------------------------------------------------------------

_SCALARS = frozenset({int, bool, str, float, bytes, type(None)})
_MAPS = frozenset({dict, OrderedDict, defaultdict, Counter})
_MUTABLE = frozenset({list, set, deque, *_MAPS})
_BUILT_IN = (int, str, float, bytes, list, set, frozenset, deque, dict, tuple, BaseException, type)


@cache
def _is_scalar(kind: Any) -> bool:
    return kind in _SCALARS or issubclass(kind, Enum)


@cache
def _is_tuple(kind: Any) -> bool:
    return kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_make"))


@cache
def _is_record(kind: Any) -> bool:
    """A dataclass that is nothing else besides."""
    return not issubclass(kind, _BUILT_IN) and dataclasses.is_dataclass(kind)


def _parts(record: Any) -> dict[str, Any]:
    """What an object of a dataclass knows: its fields, and whatever was added."""
    names = (f.name for f in dataclasses.fields(record))
    fields = {name: getattr(record, name) for name in names if hasattr(record, name)}
    return fields | getattr(record, "__dict__", {})


def _is_value(value: Any) -> bool:
    """Whether a key or an element of a set is what it shows, so that a copy may keep it."""
    kind: Any = type(value)
    if _is_scalar(kind):
        return True
    if _is_tuple(kind) or kind is frozenset:
        return all(map(_is_value, value))
    if not _is_record(kind) or not kind.__dataclass_params__.frozen:
        return False
    compared = kind.__dataclass_params__.eq and all(f.compare for f in dataclasses.fields(value))
    return compared and all(map(_is_value, _parts(value).values()))


class _Look:
    """What there is in a state. Raises `NotPlain`."""

    def __init__(self, state: Any) -> None:
        self.shares = False
        """Something is reached in two ways, perhaps in a circle."""
        self.has_records = False
        self._met: set[int] = set()
        self._at(state)

    def _at(self, value: Any) -> None:
        kind: Any = type(value)
        if _is_scalar(kind):
            return
        if kind in _MUTABLE or _is_record(kind):
            if id(value) in self._met:
                self.shares = True
                return
            self._met.add(id(value))
        for inside in self._inside(kind, value):
            self._at(inside)

    def _inside(self, kind: Any, value: Any) -> Iterable[Any]:
        if kind in _MAPS:
            _expect_values(value)
            return value.values()  # type: ignore[no-any-return]
        if kind is set or kind is frozenset:
            _expect_values(value)
            return ()
        if kind in _MUTABLE or _is_tuple(kind):
            return value  # type: ignore[no-any-return]
        if _is_record(kind):
            self.has_records = True
            return _parts(value).values()
        raise NotPlain(f"a {kind.__qualname__} in the state")


def _expect_values(values: Iterable[Any]) -> None:
    for value in values:
        if not _is_value(value):
            raise NotPlain(f"a {type(value).__qualname__} as a key or in a set")


def _copied(value: Any, memory: dict[int, Any] | None) -> Any:
    """A copy that shares nothing mutable. `memory` is what was copied so far, if that matters."""
    kind = value.__class__
    if memory is None:  # most states by far, in the quickest way
        if kind is dict:
            return {k: x if x.__class__ in _SCALARS else _copied(x, None) for k, x in value.items()}
        if kind is set:
            return value.copy()
    elif id(value) in memory:
        return memory[id(value)]
    if kind in _SCALARS or kind is frozenset:
        return value
    if kind is set:
        new: Any = value.copy()
    elif kind in _MAPS:
        new = kind(value.default_factory) if kind is defaultdict else kind()
    elif kind in _MUTABLE:
        new = kind(maxlen=value.maxlen) if kind is deque else []
    elif _is_record(kind):
        new = object.__new__(kind)
    elif _is_scalar(kind):
        return value
    else:
        inside = [_copied(x, memory) for x in value]
        return tuple(inside) if kind is tuple else kind._make(inside)
    if memory is not None:
        memory[id(value)] = new  # before what is inside, which may lead back here
    if kind in _MAPS:
        for key, x in value.items():
            new[key] = x if x.__class__ in _SCALARS else _copied(x, memory)
    elif kind is not set and kind in _MUTABLE:
        new.extend([_copied(x, memory) for x in value])
    elif kind is not set:
        for name, x in _parts(value).items():
            object.__setattr__(new, name, _copied(x, memory))
    return new


def _frozen(value: Any, met: dict[int, int]) -> Hashable:
    """Hashable, and equal for what counts as one. `met` numbers what may be met again."""
    kind = value.__class__
    if kind in _SCALARS:
        return value  # type: ignore[no-any-return]
    if kind in _MUTABLE or _is_record(kind):
        following = len(met)
        number = met.setdefault(id(value), following)
        if number != following:
            return "met before", number
    if kind is set:
        return kind, frozenset(value)
    if kind in _MAPS:
        items = value.items()
        pairs = [(k, x if x.__class__ in _SCALARS else _frozen(x, met)) for k, x in items]
        return kind, tuple(pairs) if kind is OrderedDict else frozenset(pairs)
    if kind is list:
        return kind, frozenset([x if x.__class__ in _SCALARS else _frozen(x, met) for x in value])
    if kind is deque or _is_tuple(kind):
        return kind, *[_frozen(x, met) for x in value]
    if _is_record(kind):
        return kind, frozenset([(name, _frozen(x, met)) for name, x in _parts(value).items()])
    if kind is frozenset or _is_scalar(kind):
        return value  # type: ignore[no-any-return]
    raise NotPlain(f"a {kind.__qualname__} in the state")
