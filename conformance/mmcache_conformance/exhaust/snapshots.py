"""Copy and compare the state of a Python object, fast.

An object is *plain* if its state is what its `__dict__` shows, made of numbers, texts and the
built-in containers. Such a state is copied container by container, and has a *fingerprint*: equal
for states that differ only in the order of a dict or set, or in the order and number of the
elements of a list. An `OrderedDict` and a `deque` keep their order.

Copying and fingerprinting are most of the work of a search, so they are done by functions that are
written for the *shape* of the state: what type each attribute has, and each element in it.

Anything else is *opaque*: copied by `deepcopy`, and told apart by what it shows.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from copy import deepcopy
from functools import reduce
from typing import Any, Protocol

import msgspec

from mmcache_vectors.manager import Observed

__all__ = ["NotPlain", "Snapshots", "snapshots_for"]


class NotPlain(TypeError):
    """The state holds something other than numbers, texts and built-in containers."""


class Snapshots(Protocol):
    """How the states of one class are kept. A snapshot is plain data, or the object itself."""

    plain: bool

    def take(self, manager: object) -> Any:
        """The state of a manager that is not used any more."""

    def learn(self, snapshot: Any) -> None:
        """Note the shape of a state before it is copied. Raises `NotPlain`."""

    def copy(self, snapshot: Any) -> Any: ...

    def manager(self, snapshot: Any) -> object:
        """A manager in this state, which it will change."""

    def same(self, snapshot: Any, other: Any) -> bool:
        """Whether the two are surely equal."""

    def fingerprint(self, snapshot: Any, observe: Callable[[Any], Observed]) -> Hashable: ...


def snapshots_for(manager: object) -> Snapshots:
    """The fast way if the object is plain, else the slow one."""
    slots = any("__slots__" in vars(cls) for cls in type(manager).__mro__)
    if slots or type(getattr(manager, "__dict__", None)) is not dict:
        return _Opaque()
    try:
        return _Plain(manager)
    except NotPlain:
        return _Opaque()


class _Plain:
    plain = True

    def __init__(self, manager: object) -> None:
        self._live: Any = object.__new__(type(manager))
        self._shapes = {name: _shape_of(value) for name, value in vars(manager).items()}
        self._compile()

    def take(self, manager: object) -> dict[str, Any]:
        return vars(manager)

    def learn(self, snapshot: dict[str, Any]) -> None:
        if snapshot.keys() != self._shapes.keys():
            names = sorted(snapshot.keys() ^ self._shapes.keys())
            raise NotPlain(f"attributes come and go: {', '.join(names)}")
        known = self._shapes
        shapes = {name: _merged(known[name], _shape_of(v)) for name, v in snapshot.items()}
        if shapes != known:
            self._shapes = shapes
            self._compile()

    def _compile(self) -> None:
        copied = (f"{n!r}: {_copy_code(sh, f's[{n!r}]', 0)}" for n, sh in self._shapes.items())
        frozen = (_frozen_code(sh, f"s[{n!r}]", 0) for n, sh in sorted(self._shapes.items()))
        names = {
            "OrderedDict": OrderedDict,
            "deque": deque,
            "deepcopy": deepcopy,
            "frozen": _frozen,
        }
        self._copy = eval(f"lambda s: {{{', '.join(copied)}}}", names)
        self._frozen = eval(f"lambda s: ({', '.join(frozen)},)", names)

    def copy(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = self._copy(snapshot)
        return copied

    def manager(self, snapshot: dict[str, Any]) -> object:
        self._live.__dict__ = snapshot
        return self._live

    def same(self, snapshot: dict[str, Any], other: dict[str, Any]) -> bool:
        return snapshot == other

    def fingerprint(self, snapshot: dict[str, Any], observe: Callable[[Any], Observed]) -> Hashable:
        try:
            frozen: Hashable = self._frozen(snapshot)
            hash(frozen)
        except (KeyError, TypeError, AttributeError, ValueError):
            self.learn(snapshot)  # of a shape that was not met before
            frozen = tuple([_frozen(value) for _, value in sorted(snapshot.items())])
        return frozen


class _Opaque:
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


# --- shapes ------------------------------------------------------------------------------------


class _Shape(msgspec.Struct, frozen=True):
    """A type, and the shape of what is in it; `None` where nothing was in it yet."""

    type: type
    inside: _Shape | None = None


_SCALAR = _Shape(type(None))
"""A number or a text, which is never changed in place."""

_MIXED = _Shape(object)
"""Not always the same."""

_SCALARS = (int, bool, str, float, bytes, type(None))
_SETS = (set, frozenset)
_SEQUENCES = (list, tuple, deque)
_MAPS = (dict, OrderedDict)


def _shape_of(value: Any) -> _Shape:
    kind = type(value)
    if kind in _SCALARS:
        return _SCALAR
    if kind in _SETS:
        return _Shape(kind)
    if kind in _MAPS:
        return _Shape(kind, reduce(_merged_inside, map(_shape_of, value.values()), None))
    if kind in _SEQUENCES:
        return _Shape(kind, reduce(_merged_inside, map(_shape_of, value), None))
    raise NotPlain(f"a {kind.__qualname__} in the state")


def _merged_inside(one: _Shape | None, other: _Shape | None) -> _Shape | None:
    if one is None or other is None:
        return other if one is None else one
    return _merged(one, other)


def _merged(one: _Shape, other: _Shape) -> _Shape:
    if one == other:
        return one
    if one.type is not other.type:
        return _MIXED
    return _Shape(one.type, _merged_inside(one.inside, other.inside))


def _copy_code(shape: _Shape, of: str, depth: int) -> str:
    kind, inside, x = shape.type, shape.inside, f"x{depth}"
    if shape == _SCALAR or kind is frozenset:
        return of
    if kind is set or (kind in (list, dict, OrderedDict, deque) and inside == _SCALAR):
        return f"{of}.copy()"
    if inside is None or kind not in (list, dict, OrderedDict):
        return f"deepcopy({of})"
    copied = _copy_code(inside, x, depth + 1)
    if kind is list:
        return f"[{copied} for {x} in {of}]"
    pairs = f"k{depth}, {x} in {of}.items()"
    if kind is dict:
        return f"{{k{depth}: {copied} for {pairs}}}"
    return f"OrderedDict([(k{depth}, {copied}) for {pairs}])"


def _frozen_code(shape: _Shape, of: str, depth: int) -> str:
    """What `_frozen` computes; a container of another type than expected is left to it."""
    kind, inside, x = shape.type, shape.inside, f"x{depth}"
    if shape == _SCALAR:
        return of
    if kind in _SETS:
        code = f"frozenset({of})"
    elif inside is None or kind not in (list, dict, OrderedDict):
        return f"frozen({of})"
    elif kind is list:
        code = f"frozenset([{_frozen_code(inside, x, depth + 1)} for {x} in {of}])"
    elif inside == _SCALAR:
        code = f"{'frozenset' if kind is dict else 'tuple'}({of}.items())"
    else:
        pair = f"(k{depth}, {_frozen_code(inside, x, depth + 1)})"
        whole = "frozenset" if kind is dict else "tuple"
        code = f"{whole}([{pair} for k{depth}, {x} in {of}.items()])"
    return f"({code} if {of}.__class__ is {kind.__name__} else frozen({of}))"


def _frozen(value: Any) -> Hashable:
    """What the code for the value's shape computes, for any shape."""
    kind = type(value)
    if kind in _SCALARS:
        return value  # type: ignore[no-any-return]
    if kind in _SETS:
        return frozenset(value)
    if kind is list:
        return frozenset(map(_frozen, value))
    if kind in _SEQUENCES:
        return tuple(map(_frozen, value))
    if kind in _MAPS:
        pairs = [(k, _frozen(v)) for k, v in value.items()]
        return frozenset(pairs) if kind is dict else tuple(pairs)
    raise NotPlain(f"a {kind.__qualname__} in the state")
