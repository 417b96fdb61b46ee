"""A plain state piece by piece: looked at, copied, made hashable, and the orders within it."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable
from typing import Any

from .functions import CALLABLES, bound_to, function_of, is_constant_callable, rebound
from .kinds import (
    CONTAINERS,
    LOCKS,
    MAPS,
    SCALARS,
    NotPlain,
    base_of,
    entries,
    is_scalar,
    is_tuple,
    is_value,
    parts_of,
    slots_of,
)

__all__ = [
    "Contents",
    "copied",
    "frozen",
    "orders",
]


class Contents:
    """What there is in a state. Raises `NotPlain`."""

    def __init__(self, state: Any) -> None:
        self.shares = False
        """Something is reached in two ways, perhaps in a circle."""
        self.has_records = False
        self.met: set[int] = set()
        self._at(state)

    def _at(self, value: Any) -> None:
        kind: Any = type(value)
        if is_scalar(kind) or is_constant_callable(value):
            return
        if kind in CALLABLES:
            self.shares = True  # what it is bound to is somewhere else as well
        if not is_tuple(kind) and kind is not frozenset:
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
        if kind in CALLABLES:
            return bound_to(value)
        if is_tuple(kind):
            return value  # type: ignore[no-any-return]
        base = base_of(kind)
        if base is None:
            raise NotPlain(f"a {kind.__qualname__} in the state")
        parts: list[Any] = []
        if kind not in CONTAINERS:
            self.has_records = True
            parts += parts_of(value).values()
        if base in MAPS:
            keys, values = entries(base, value)
            _expect_values(keys)
            parts += values
            factory: Any = getattr(value, "default_factory", None)
            if not (is_scalar(factory.__class__) or is_constant_callable(factory)):
                raise NotPlain(f"a defaultdict with a {type(factory).__qualname__} in the state")
        elif base is set:
            _expect_values(set.__iter__(value))
        elif base is not object:
            parts += base.__iter__(value)
        return parts


def _expect_values(values: Iterable[Any]) -> None:
    for value in values:
        if not is_value(value):
            raise NotPlain(f"a {type(value).__qualname__} as a key or in a set")


def copied(value: Any, memory: dict[int, Any] | None) -> Any:
    """A copy that shares nothing mutable. `memory` is what was copied so far, if that matters."""
    kind = value.__class__
    if memory is None:  # most states by far, in the quickest way
        if kind is dict:
            return {k: x if x.__class__ in SCALARS else copied(x, None) for k, x in value.items()}
        if kind is set:
            return value.copy()
    elif id(value) in memory:
        return memory[id(value)]
    if kind in SCALARS or kind is frozenset:
        return value
    if kind is list:
        new: Any = []
        if memory is not None:
            memory[id(value)] = new
        new.extend([x if x.__class__ in SCALARS else copied(x, memory) for x in value])
        return new
    if is_tuple(kind):
        inside = [copied(x, memory) for x in value]
        return tuple(inside) if kind is tuple else kind._make(inside)
    if is_scalar(kind):
        return value
    if kind in CALLABLES:
        known = {} if memory is None else memory
        return rebound(value, lambda x: copied(x, known), known)
    base = base_of(kind)
    if base is None:
        raise NotPlain(f"a {kind.__qualname__} in the state")
    new = base.__new__(kind)
    if memory is not None:
        memory[id(value)] = new  # before what is inside, which may lead back here
    _fill(new, value, base, memory)
    if kind not in CONTAINERS:
        for name, x in parts_of(value).items():
            if name in slots_of(kind):
                object.__setattr__(new, name, copied(x, memory))
            else:
                new.__dict__[name] = copied(x, memory)
    return new


def _fill(new: Any, value: Any, base: Any, memory: dict[int, Any] | None) -> None:
    """What the built-in part of an object holds."""
    if base is defaultdict:
        defaultdict.__init__(new, value.default_factory)
    elif base is deque:
        deque.__init__(new, (), value.maxlen)
    elif base is OrderedDict:
        OrderedDict.__init__(new)
    if base in MAPS:
        store = OrderedDict.__setitem__ if base is OrderedDict else dict.__setitem__
        for key, x in zip(*entries(base, value), strict=True):
            store(new, key, x if x.__class__ in SCALARS else copied(x, memory))
    elif base is set:
        set.update(new, set.__iter__(value))
    elif base is not object:
        base.extend(new, [copied(x, memory) for x in base.__iter__(value)])


def frozen(value: Any, met: dict[int, int]) -> Hashable:
    """Hashable, and equal for what counts as one. `met` numbers what may be met again."""
    kind = value.__class__
    if kind in SCALARS or kind is frozenset:
        return value  # type: ignore[no-any-return]
    if is_tuple(kind):
        return kind, *[frozen(x, met) for x in value]
    if kind in LOCKS:
        return kind  # type: ignore[no-any-return]
    if is_scalar(kind):
        return value  # type: ignore[no-any-return]
    if kind in CALLABLES:
        return function_of(value), *[frozen(x, met) for x in bound_to(value)]
    following = len(met)
    number = met.setdefault(id(value), following)
    if number != following:
        return "met before", number
    base = kind if kind in CONTAINERS else base_of(kind)
    held: Hashable = None
    if base in MAPS:
        keys, values = entries(base, value)
        hashed = [x if x.__class__ in SCALARS else frozen(x, met) for x in values]
        pairs = list(zip(keys, hashed, strict=True))
        held = tuple(pairs) if base is OrderedDict else frozenset(pairs)
    elif base is set:
        held = frozenset(set.__iter__(value))
    elif base is list:
        items = list.__iter__(value)
        held = frozenset([x if x.__class__ in SCALARS else frozen(x, met) for x in items])
    elif base is deque:
        held = tuple([frozen(x, met) for x in deque.__iter__(value)])
    elif base is None:
        raise NotPlain(f"a {kind.__qualname__} in the state")
    if kind in CONTAINERS:
        return kind, held
    parts = frozenset([(name, frozen(x, met)) for name, x in parts_of(value).items()])
    return kind, held, parts


_REPEATED = 3
"""So often something in a list is told from once more."""


def orders(state: Any) -> frozenset[Hashable]:
    """The order of each dict, and of each list without what is in it again, by the place.

    And of each list, what is in it again and how often.
    """
    found: list[Hashable] = []
    met: set[int] = set()

    def look(value: Any, place: tuple[Hashable, ...]) -> None:
        kind = value.__class__
        if kind in SCALARS or id(value) in met or is_scalar(kind):
            return
        if kind in CALLABLES:
            for k, x in enumerate(bound_to(value)):
                look(x, (*place, k))
            return
        if is_tuple(kind):
            for k, x in enumerate(value):
                look(x, (*place, k))
            return
        met.add(id(value))
        base = kind if kind in CONTAINERS else base_of(kind)
        if base in MAPS:
            keys, values = entries(base, value)
            if len(keys) > 1 and base is not OrderedDict:
                found.append((place, tuple(keys)))
            for key, x in zip(keys, values, strict=True):
                look(x, (*place, key))
        elif base is list or base is deque:
            items = list(base.__iter__(value))
            if len(items) > 1 and base is list:
                texts = Counter(x if x.__class__ in SCALARS else repr(x) for x in items)
                found.append((place, tuple(texts)))
                again = frozenset((x, min(n, _REPEATED)) for x, n in texts.items() if n > 1)
                found.append((place, again))
            for k, x in enumerate(items):
                look(x, (*place, k))
        if kind not in CONTAINERS:
            for name, x in parts_of(value).items():
                look(x, (*place, name))

    if state.__class__ is dict:  # of the attributes themselves the order means nothing
        for name, value in state.items():
            look(value, (name,))
    else:
        look(state, ())
    return frozenset(found)
