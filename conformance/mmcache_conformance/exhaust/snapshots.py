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

from collections.abc import Callable, Hashable
from copy import deepcopy
from typing import Any, Protocol

import msgspec

from mmcache_vectors.manager import Observed

from .kinds import NotPlain, base_of, slots_of
from .marks import Marker
from .pieces import Contents, copied, frozen, orders

__all__ = ["NotPlain", "Opaque", "Snapshots", "snapshots_for"]


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

    def mark(self, snapshot: Any) -> bytes | None:
        """Equal for states that nothing tells apart, and for no others; None where there is none.

        Of states that nothing tells apart some have different ones.
        """

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
        if base_of(cls) is not object or slots_of(cls):
            raise NotPlain(f"{cls.__qualname__} keeps its state outside of __dict__")
        self._live: Any = object.__new__(cls)
        self._marker = Marker()
        self._shares = self._has_records = False
        self._look(vars(manager), manager)

    def take(self, manager: object) -> dict[str, Any]:
        return vars(manager)

    def learn(self, snapshot: dict[str, Any]) -> None:
        self._look(snapshot, self._live)

    def _look(self, snapshot: dict[str, Any], manager: object) -> None:
        look = Contents(snapshot)
        if id(manager) in look.met:
            raise NotPlain(f"a {type(manager).__qualname__} that holds itself")
        self._shares |= look.shares
        self._has_records |= look.has_records

    def copy(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        new: dict[str, Any] = copied(snapshot, {} if self._shares else None)
        return new

    def manager(self, snapshot: dict[str, Any]) -> object:
        self._live.__dict__ = snapshot
        return self._live

    def mark(self, snapshot: dict[str, Any]) -> bytes | None:
        return self._marker.mark(snapshot)

    def same(self, snapshot: dict[str, Any], other: dict[str, Any]) -> bool:
        # An object may compare less than it knows; and two dicts are equal in whatever order.
        return not self._has_records and snapshot == other and repr(snapshot) == repr(other)

    def fingerprint(self, snapshot: dict[str, Any], observe: Callable[[Any], Observed]) -> Hashable:
        return frozen(snapshot, {})

    def orders(self, snapshot: dict[str, Any]) -> frozenset[Hashable]:
        return orders(snapshot)


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
        Contents(snapshot)

    def copy(self, snapshot: object) -> object:
        return copied(snapshot, {})

    def manager(self, snapshot: object) -> object:
        return snapshot

    def mark(self, snapshot: object) -> bytes | None:
        return None

    def same(self, snapshot: object, other: object) -> bool:
        return False

    def fingerprint(self, snapshot: object, observe: Callable[[Any], Observed]) -> Hashable:
        return frozen(snapshot, {})

    def orders(self, snapshot: object) -> frozenset[Hashable]:
        return orders(snapshot)


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

    def mark(self, snapshot: object) -> bytes | None:
        return None

    def same(self, snapshot: object, other: object) -> bool:
        return False

    def fingerprint(self, snapshot: object, observe: Callable[[Any], Observed]) -> Hashable:
        return msgspec.json.encode(observe(snapshot), order="sorted")

    def orders(self, snapshot: object) -> frozenset[Hashable]:
        return frozenset()
