"""A pair of Python classes as a target: `pair:module:Sender,module:Receiver`.

The classes are those of `mmcache.processor_cache`, or others with the same methods: of the sender
`process(items)`, `invalidate(key)` and `clear()`, of the receiver `handle(message)` and `clear()`;
`keys()` where a side shows what it holds. A sender that undoes what it recorded has
`withdraw(message)`, which says whether the message is to be delivered all the same; without it, all
messages travel. A miss is an exception with `keys`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mmcache_vectors.pair import PairParameters, PairRequest, origin

from ..errors import TargetError, TargetNameError, describe_exception
from ..implementation import Implementation
from ..targets.wire import PAIR_CALLS, PAIR_STATE
from .play import play
from .protocol import Keys, NotOffered, PairAnswer, PairCase, PairMiss

__all__ = ["ClassPair", "ClassSides"]


@dataclass(frozen=True)
class _Item:
    """What `process` gets for an item."""

    key: str
    size: int
    data: str | None


@dataclass
class ClassSides:
    """Two objects with the methods above."""

    sender: Any
    receiver: Any
    messages: dict[str, Any] = field(default_factory=dict)

    def process(self, request: PairRequest) -> tuple[bool, ...]:
        places = enumerate(request.items)
        items = [_Item(i.identifier, i.size, origin(request.request_id, p)) for p, i in places]
        message = self.sender.process(items)
        self.messages[request.request_id] = message
        return tuple(item.data is not None for item in message.items)

    def deliver(self, request_id: str) -> tuple[str, ...]:
        try:
            return tuple(self.receiver.handle(self.messages.pop(request_id)))
        except Exception as error:
            if isinstance(keys := getattr(error, "keys", None), list | tuple):
                raise PairMiss(keys) from None
            raise

    def withdraw(self, request_id: str) -> bool:
        undo = getattr(self.sender, "withdraw", None)
        if undo is None:
            return True
        return bool(undo(self.messages[request_id]))

    def invalidate(self, identifier: str) -> None:
        if not hasattr(self.sender, "invalidate"):
            raise NotOffered("invalidate")
        self.sender.invalidate(identifier)

    def clear_sender(self) -> None:
        self.sender.clear()

    def clear_receiver(self) -> None:
        self.receiver.clear()

    def keys(self) -> Keys:
        return Keys(_shown(self.sender), _shown(self.receiver))


def _offered(sides: ClassSides) -> Iterator[str]:
    """The calls that not every pair has, and what is shown."""
    yield from (name for name in PAIR_CALLS if callable(getattr(sides.sender, name, None)))
    keys = sides.keys()
    yield from (name for name in PAIR_STATE if getattr(keys, name) is not None)


def _shown(side: Any) -> tuple[str, ...] | None:
    keys = getattr(side, "keys", None)
    return None if keys is None else tuple(keys())


class ClassPair:
    """Two classes, each made with the capacity in bytes."""

    def __init__(self, name: str, classes: str, says: str | None = None) -> None:
        """Raises `TargetNameError`."""
        self.name = name
        self._says = says or classes
        parts = [part.partition(":") for part in classes.split(",")]
        words = [w for module, _, cls in parts for w in (*module.split("."), *cls.split("."))]
        if len(parts) != 2 or not all(word.isidentifier() for word in words):
            raise TargetNameError(f"{name!r}: give two classes, pair:module:Sender,module:Receiver")
        self._named = [(module, cls) for module, _, cls in parts]
        self._made: Callable[[PairParameters], ClassSides] | None = None

    def start(self) -> Implementation:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # as `python -m` does
        sender, receiver = (_imported(module, cls) for module, cls in self._named)
        self._made = lambda of: ClassSides(sender(of.capacity), receiver(of.capacity))
        try:
            offered = tuple(_offered(self.fresh(PairParameters(1, ()))))
        except Exception as error:
            raise TargetError(f"{self.name} cannot be made: {describe_exception(error)}") from None
        return Implementation(self._says, None, "python", {"processor_cache": offered})

    def fresh(self, parameters: PairParameters) -> ClassSides:
        """A new pair."""
        assert self._made is not None
        return self._made(parameters)

    def play(self, case: PairCase) -> tuple[PairAnswer, ...]:
        return play(case, self.fresh(case.parameters))

    def stop(self) -> None:
        """Nothing to let go of."""


def _imported(module: str, cls: str) -> Any:
    try:
        found = importlib.import_module(module)
        for name in cls.split("."):
            found = getattr(found, name)
    except Exception as error:
        raise TargetError(f"{module}:{cls}: {describe_exception(error)}") from None
    return found
