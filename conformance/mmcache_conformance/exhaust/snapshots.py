"""Copy and compare the state of a Python object.

An object is *plain* if its state is what its `__dict__` and its slots show, made of numbers, texts,
members of enumerations, containers and objects that are plain themselves; a class may extend a
container. Such a state is copied piece by piece, and has a *fingerprint*: equal for states that
differ only in the order of a dict or set, or in the order and number of the elements of a list. An
`OrderedDict` and a `deque` keep their order. What is reached in two ways is copied once, and the
fingerprint says that it is one.

A class that says itself how it is copied or pickled, or that keeps something where Python does not
see it, is *opaque*: copied by `deepcopy`, and told apart by what it shows.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import deepcopy
from dataclasses import is_dataclass
from enum import Enum
from functools import cache, partial
from numbers import Number
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
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

    def orders(self, snapshot: Any) -> frozenset[Hashable]:
        """Of each list and dict, by its place: in which order it is filled."""


def snapshots_for(manager: object) -> Snapshots:
    """Piece by piece if the object is plain, else by `deepcopy`."""
    kinds: tuple[type[Plain] | type[Whole], ...] = (Plain, Whole)
    for kind in kinds:
        try:
            return kind(manager)
        except NotPlain:
            continue
    return Opaque()


class Plain:
    """States as the `__dict__` of the object, which is the quickest."""

    plain = True

    def __init__(self, manager: object) -> None:
        """Raises `NotPlain` if the object has a state elsewhere, or holds itself."""
        cls: Any = type(manager)
        if _base_of(cls) is not object or any(True for _ in _slots(cls)):
            raise NotPlain(f"{cls.__qualname__} keeps its state outside of __dict__")
        self._live: Any = object.__new__(cls)
        self._shares = self._has_records = False
        self._look(vars(manager), manager)

    def take(self, manager: object) -> dict[str, Any]:
        return vars(manager)

    def learn(self, snapshot: dict[str, Any]) -> None:
        self._look(snapshot, self._live)

    def _look(self, snapshot: dict[str, Any], manager: object) -> None:
        look = _Look(snapshot)
        if id(manager) in look.met:
            raise NotPlain(f"a {type(manager).__qualname__} that holds itself")
        self._shares |= look.shares
        self._has_records |= look.has_records

    def copy(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = _copied(snapshot, {} if self._shares else None)
        return copied

    def manager(self, snapshot: dict[str, Any]) -> object:
        self._live.__dict__ = snapshot
        return self._live

    def same(self, snapshot: dict[str, Any], other: dict[str, Any]) -> bool:
        # An object may compare less than it knows; and two dicts are equal in whatever order.
        return not self._has_records and snapshot == other and repr(snapshot) == repr(other)

    def fingerprint(self, snapshot: dict[str, Any], observe: Callable[[Any], Observed]) -> Hashable:
        return _frozen(snapshot, {})

    def orders(self, snapshot: dict[str, Any]) -> frozenset[Hashable]:
        return _orders(snapshot)


class Whole:
    """States as objects of their own, copied piece by piece.

    For classes with slots, for containers, and for what holds itself.
    """

    plain = True

    def __init__(self, manager: object) -> None:
        """Raises `NotPlain`."""
        self.learn(manager)

    def take(self, manager: object) -> object:
        return manager

    def learn(self, snapshot: object) -> None:
        _Look(snapshot)

    def copy(self, snapshot: object) -> object:
        return _copied(snapshot, {})

    def manager(self, snapshot: object) -> object:
        return snapshot

    def same(self, snapshot: object, other: object) -> bool:
        return False

    def fingerprint(self, snapshot: object, observe: Callable[[Any], Observed]) -> Hashable:
        return _frozen(snapshot, {})

    def orders(self, snapshot: object) -> frozenset[Hashable]:
        return _orders(snapshot)


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

    def orders(self, snapshot: object) -> frozenset[Hashable]:
        return frozenset()


# --- what a state is made of -------------------------------------------------------------------

_SCALARS = frozenset({int, bool, str, float, bytes, type(None)})
_MAPS = (dict, OrderedDict, defaultdict, Counter)
_CONTAINERS = (*_MAPS, list, set, deque)
_LOCKS: tuple[type, ...] = (type(threading.Lock()), type(threading.RLock()))
_CONSTANTS = (
    str,
    bytes,
    Number,
    Enum,
    type,
    range,
    ModuleType,
    logging.Logger,
    *_LOCKS,
)
"""What a copy may keep: it never changes, or, as a lock between two calls, not so that it matters.
A class of ours is one if it has `never_changes`."""


@cache
def _is_scalar(kind: Any) -> bool:
    """Whether an object of the class never changes."""
    if kind in _SCALARS or getattr(kind, "never_changes", False):
        return True
    if not issubclass(kind, _CONSTANTS) or kind.__hash__ is None:
        return False
    return issubclass(kind, Enum | type | logging.Logger) or not _adds_state(kind)


def _adds_state(kind: type) -> bool:
    """Whether it is a class made in Python, whose objects may have more than the built-in part."""
    return bool(kind.__flags__ & _MADE_IN_PYTHON) and kind.__dictoffset__ != 0


@cache
def _is_tuple(kind: Any) -> bool:
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
def _base_of(kind: Any) -> Any:
    """What an object is below all that is made in Python: `object`, or a container.

    Nothing where the class says itself how it is copied, or keeps what Python does not see.
    """
    for cls in kind.__mro__:
        if cls is object or cls in _CONTAINERS:
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
def _slots_of(kind: Any) -> tuple[str, ...]:
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


def _slots(kind: Any) -> Iterator[str]:
    yield from _slots_of(kind)


def _parts(record: Any) -> dict[str, Any]:
    """What an object knows by name: its slots, and its `__dict__`."""
    parts = {}
    for name in _slots_of(record.__class__):
        try:
            parts[name] = object.__getattribute__(record, name)
        except AttributeError:
            continue  # nothing was written to it yet
    return parts | getattr(record, "__dict__", {})


def _is_value(value: Any) -> bool:
    """Whether a key or an element of a set is what it shows, so that a copy may keep it."""
    kind: Any = value.__class__
    if _is_scalar(kind):
        return True
    if _is_tuple(kind) or kind is frozenset:
        return all(map(_is_value, value))
    if _base_of(kind) is not object or "__dataclass_params__" not in vars(kind):
        return False
    parameters, fields = kind.__dataclass_params__, kind.__dataclass_fields__.values()
    compared = parameters.frozen and parameters.eq and all(f.compare for f in fields)
    return compared and all(map(_is_value, _parts(value).values()))


_BOUND: tuple[type, ...] = (BuiltinFunctionType, MethodType, MethodWrapperType)
_CALLABLES = frozenset({*_BOUND, FunctionType, partial, CellType})
"""Functions, and what they are made of: of the state is what they are bound to."""


def _is_constant_callable(value: Any) -> bool:
    """Whether it is a function that has nothing but its arguments and its module."""
    return type(value) in _CALLABLES and all(
        _is_scalar(x.__class__) or _is_constant_callable(x) for x in _bound_to(value)
    )


def _bound_to(value: Any) -> tuple[Any, ...]:
    """What a function, or a cell of a closure, has of the state. Raises `NotPlain`."""
    kind: Any = value.__class__
    if kind in _BOUND:
        owner: Any = getattr(value, "__self__", None)
        return () if owner is None or isinstance(owner, ModuleType | type) else (owner,)
    if kind is partial:
        return value.func, value.args, value.keywords, vars(value)
    if kind is CellType:
        try:
            return (value.cell_contents,)
        except ValueError:
            return ()  # nothing was written to it yet
    if vars(value):
        raise NotPlain("a function with attributes in the state")
    defaults = *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()
    if not all(_is_scalar(x.__class__) for x in defaults):
        raise NotPlain("a function with a default that may change in the state")
    return value.__closure__ or ()


def _rebound(value: Any, memory: dict[int, Any]) -> Any:
    """The function, bound to the copies of what it is bound to."""
    kind: Any = value.__class__
    if kind is CellType:
        memory[id(value)] = cell = CellType()
        for inside in _bound_to(value):
            cell.cell_contents = _copied(inside, memory)
        return cell
    if kind is FunctionType:
        if value.__closure__ is None:
            return value
        cells = tuple(_copied(cell, memory) for cell in value.__closure__)
        new: Any = FunctionType(
            value.__code__, value.__globals__, value.__name__, value.__defaults__, cells
        )
        new.__kwdefaults__, new.__qualname__ = value.__kwdefaults__, value.__qualname__
        return memory.setdefault(id(value), new)
    if kind is partial:
        function, arguments, named, known = (_copied(x, memory) for x in _bound_to(value))
        new = partial(function, *arguments, **named)
        vars(new).update(known)
        return memory.setdefault(id(value), new)
    owners = _bound_to(value)
    if not owners:
        return value
    owner = _copied(owners[0], memory)
    if kind is MethodType:
        return MethodType(value.__func__, owner)
    return getattr(owner, value.__name__)


def _function_of(value: Any) -> Hashable:
    """What a function does, whatever it is bound to."""
    kind: Any = value.__class__
    if kind is MethodType:
        return value.__func__  # type: ignore[no-any-return]
    if kind is FunctionType:
        return value.__code__ if value.__closure__ else value  # type: ignore[no-any-return]
    if kind in _BOUND:
        return value.__name__ if _bound_to(value) else value  # type: ignore[no-any-return]
    return kind  # type: ignore[no-any-return]


class _Look:
    """What there is in a state. Raises `NotPlain`."""

    def __init__(self, state: Any) -> None:
        self.shares = False
        """Something is reached in two ways, perhaps in a circle."""
        self.has_records = False
        self.met: set[int] = set()
        self._at(state)

    def _at(self, value: Any) -> None:
        kind: Any = type(value)
        if _is_scalar(kind) or _is_constant_callable(value):
            return
        if kind in _CALLABLES:
            self.shares = True  # what it is bound to is somewhere else as well
        if not _is_tuple(kind) and kind is not frozenset:
            if id(value) in self.met:
                self.shares = True
                return
            self.met.add(id(value))
        for inside in self._inside(kind, value):
            self._at(inside)

    def _inside(self, kind: Any, value: Any) -> Iterable[Any]:
        if kind is frozenset:
            _expect_values(value)
            return ()
        if kind in _CALLABLES:
            return _bound_to(value)
        if _is_tuple(kind):
            return value  # type: ignore[no-any-return]
        base = _base_of(kind)
        if base is None:
            raise NotPlain(f"a {kind.__qualname__} in the state")
        parts: list[Any] = []
        if kind not in _CONTAINERS:
            self.has_records = True
            parts += _parts(value).values()
        if base in _MAPS:
            keys, values = _entries(base, value)
            _expect_values(keys)
            parts += values
            factory: Any = getattr(value, "default_factory", None)
            if not (_is_scalar(factory.__class__) or _is_constant_callable(factory)):
                raise NotPlain(f"a defaultdict with a {type(factory).__qualname__} in the state")
        elif base is set:
            _expect_values(set.__iter__(value))
        elif base is not object:
            parts += base.__iter__(value)
        return parts


def _entries(base: Any, value: Any) -> tuple[list[Any], list[Any]]:
    """The keys and the values of a map, in order, whatever its class makes of them."""
    keys = list(base.__iter__(value))
    return keys, [dict.__getitem__(value, key) for key in keys]


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
    if kind is list:
        new: Any = []
        if memory is not None:
            memory[id(value)] = new
        new.extend([x if x.__class__ in _SCALARS else _copied(x, memory) for x in value])
        return new
    if _is_tuple(kind):
        inside = [_copied(x, memory) for x in value]
        return tuple(inside) if kind is tuple else kind._make(inside)
    if _is_scalar(kind):
        return value
    if kind in _CALLABLES:
        return _rebound(value, {} if memory is None else memory)
    base = _base_of(kind)
    if base is None:
        raise NotPlain(f"a {kind.__qualname__} in the state")
    new = base.__new__(kind)
    if memory is not None:
        memory[id(value)] = new  # before what is inside, which may lead back here
    _fill(new, value, base, memory)
    if kind not in _CONTAINERS:
        for name, x in _parts(value).items():
            if name in _slots_of(kind):
                object.__setattr__(new, name, _copied(x, memory))
            else:
                new.__dict__[name] = _copied(x, memory)
    return new


def _fill(new: Any, value: Any, base: Any, memory: dict[int, Any] | None) -> None:
    """What the built-in part of an object holds."""
    if base is defaultdict:
        defaultdict.__init__(new, value.default_factory)
    elif base is deque:
        deque.__init__(new, (), value.maxlen)
    elif base is OrderedDict:
        OrderedDict.__init__(new)
    if base in _MAPS:
        store = OrderedDict.__setitem__ if base is OrderedDict else dict.__setitem__
        for key, x in zip(*_entries(base, value), strict=True):
            store(new, key, x if x.__class__ in _SCALARS else _copied(x, memory))
    elif base is set:
        set.update(new, set.__iter__(value))
    elif base is not object:
        base.extend(new, [_copied(x, memory) for x in base.__iter__(value)])


def _frozen(value: Any, met: dict[int, int]) -> Hashable:
    """Hashable, and equal for what counts as one. `met` numbers what may be met again."""
    kind = value.__class__
    if kind in _SCALARS or kind is frozenset:
        return value  # type: ignore[no-any-return]
    if _is_tuple(kind):
        return kind, *[_frozen(x, met) for x in value]
    if kind in _LOCKS:
        return kind  # type: ignore[no-any-return]
    if _is_scalar(kind):
        return value  # type: ignore[no-any-return]
    if kind in _CALLABLES:
        return _function_of(value), *[_frozen(x, met) for x in _bound_to(value)]
    following = len(met)
    number = met.setdefault(id(value), following)
    if number != following:
        return "met before", number
    base = kind if kind in _CONTAINERS else _base_of(kind)
    held: Hashable = None
    if base in _MAPS:
        keys, values = _entries(base, value)
        frozen = [x if x.__class__ in _SCALARS else _frozen(x, met) for x in values]
        pairs = list(zip(keys, frozen, strict=True))
        held = tuple(pairs) if base is OrderedDict else frozenset(pairs)
    elif base is set:
        held = frozenset(set.__iter__(value))
    elif base is list:
        items = list.__iter__(value)
        held = frozenset([x if x.__class__ in _SCALARS else _frozen(x, met) for x in items])
    elif base is deque:
        held = tuple([_frozen(x, met) for x in deque.__iter__(value)])
    elif base is None:
        raise NotPlain(f"a {kind.__qualname__} in the state")
    if kind in _CONTAINERS:
        return kind, held
    parts = frozenset([(name, _frozen(x, met)) for name, x in _parts(value).items()])
    return kind, held, parts


_REPEATED = 3
"""So often something in a list is told from once more."""


def _orders(state: Any) -> frozenset[Hashable]:
    """The order of each dict, and of each list without what is in it again, by the place.

    And of each list, what is in it again and how often.
    """
    found: list[Hashable] = []
    met: set[int] = set()

    def look(value: Any, place: tuple[Hashable, ...]) -> None:
        kind = value.__class__
        if kind in _SCALARS or id(value) in met or _is_scalar(kind):
            return
        if kind in _CALLABLES:
            for k, x in enumerate(_bound_to(value)):
                look(x, (*place, k))
            return
        if _is_tuple(kind):
            for k, x in enumerate(value):
                look(x, (*place, k))
            return
        met.add(id(value))
        base = kind if kind in _CONTAINERS else _base_of(kind)
        if base in _MAPS:
            keys, values = _entries(base, value)
            if len(keys) > 1 and base is not OrderedDict:
                found.append((place, tuple(keys)))
            for key, x in zip(keys, values, strict=True):
                look(x, (*place, key))
        elif base is list or base is deque:
            items = list(base.__iter__(value))
            if len(items) > 1 and base is list:
                texts = Counter(x if x.__class__ in _SCALARS else repr(x) for x in items)
                found.append((place, tuple(texts)))
                again = frozenset((x, min(n, _REPEATED)) for x, n in texts.items() if n > 1)
                found.append((place, again))
            for k, x in enumerate(items):
                look(x, (*place, k))
        if kind not in _CONTAINERS:
            for name, x in _parts(value).items():
                look(x, (*place, name))

    if state.__class__ is dict:  # of the attributes themselves the order means nothing
        for name, value in state.items():
            look(value, (name,))
    else:
        look(state, ())
    return frozenset(found)
