"""The processor cache of two processes: what one sends bare, the other has.

The API process (P0) holds a `Sender`, the engine's process (P1) a `Receiver` of the same capacity.
`Sender.process` makes the message for one request; whoever carries messages carries all of them, in
order, and also that of a request that was rejected after it was made. `Receiver.handle` gives back
the data of every item. What the sender forgets is told with its next message.

Both sides do the same at each item, in the order of the prompt: a hit becomes the newest; what is
new goes in, and the longest unused go out, but none that a later item of the same request is. Where
that leaves no room, the item is sent and stored on neither side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["CacheMiss", "Message", "Receiver", "Sender", "SentItem"]

T = TypeVar("T")


class CacheMiss(RuntimeError):
    """Items came without data and are not held: a message was lost, or came out of order.

    The request can be processed again once `Sender.invalidate` was called for each of `keys`.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(f"sent without data and not held: {', '.join(keys)}")
        self.keys = tuple(keys)


@dataclass(frozen=True)
class SentItem(Generic[T]):
    """One item of a request: its key, its size in bytes, and its data where it is sent."""

    key: str
    size: int
    data: T | None = None


@dataclass(frozen=True)
class Message(Generic[T]):
    """What P0 sends for one request: its items, and what P1 is to forget before it handles them."""

    items: tuple[SentItem[T], ...]
    forget: tuple[str, ...] = ()


class _Recent:
    """Keys and their sizes, the longest unused first, within a capacity."""

    def __init__(self, capacity: int) -> None:
        if capacity < 0:
            raise ValueError(f"capacity is {capacity}; it is a number of bytes, 0 or more")
        self.capacity = capacity
        self.used = 0
        self._sizes: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._sizes

    def keys(self) -> tuple[str, ...]:
        return tuple(self._sizes)

    def use(self, key: str) -> None:
        """Make it the newest."""
        self._sizes[key] = self._sizes.pop(key)

    def insert(self, key: str, size: int, spared: frozenset[str]) -> tuple[bool, list[str]]:
        """Whether it went in, and what went out for it; nothing does where it does not fit."""
        if self.used + size > self.capacity:
            stays = sum(self._sizes[k] for k in spared if k in self._sizes)
            if stays + size > self.capacity:
                return False, []
        gone: list[str] = []
        for oldest in self._sizes:
            if self.used + size <= self.capacity:
                break
            if oldest not in spared:
                gone.append(oldest)
                self.used -= self._sizes[oldest]
        for out in gone:
            del self._sizes[out]
        self._sizes[key] = size
        self.used += size
        return True, gone

    def remove(self, key: str) -> bool:
        """Whether it was there."""
        size = self._sizes.pop(key, None)
        self.used -= size or 0
        return size is not None

    def clear(self) -> None:
        self._sizes.clear()
        self.used = 0


def _later(keys: Sequence[str]) -> list[frozenset[str]]:
    """For each item, the keys of those behind it."""
    behind: list[frozenset[str]] = []
    seen: frozenset[str] = frozenset()
    for key in reversed(keys):
        behind.append(seen)
        seen |= {key}
    return behind[::-1]


class Sender(Generic[T]):
    """P0's side: keys and sizes, no data.

    Args:
        capacity: In bytes, the same as the receiver's.

    Raises:
        ValueError: The capacity is negative.
    """

    def __init__(self, capacity: int) -> None:
        self._held = _Recent(capacity)
        self._forgotten: dict[str, None] = {}

    def holds(self, key: str) -> bool:
        """Whether the data would not have to be processed now. It is no use of the key.

        What it says of the keys of one request holds until that request is processed, whatever
        else the request has.
        """
        return key in self._held

    def keys(self) -> tuple[str, ...]:
        """What it holds, the longest unused first."""
        return self._held.keys()

    def process(self, items: Sequence[SentItem[T]]) -> Message[T]:
        """Record a request, and make its message.

        Args:
            items: In the order of the prompt, each with its data where `holds` said no.

        Raises:
            ValueError: Data is missing, or a size is negative; nothing is recorded.
        """
        absent = [i.key for i in items if i.data is None and i.key not in self._held]
        if absent:
            raise ValueError(f"neither data nor held: {', '.join(absent)}")
        if wrong := next((i for i in items if i.size < 0), None):
            raise ValueError(f"size of {wrong.key} is {wrong.size}; it is a number of bytes")
        sent: list[SentItem[T]] = []
        for item, later in zip(items, _later([i.key for i in items]), strict=True):
            if item.key in self._held:
                self._held.use(item.key)
                sent.append(SentItem(item.key, item.size))
                continue
            self._held.insert(item.key, item.size, later)
            sent.append(item)
        if not items:
            return Message(())
        forget = tuple(self._forgotten)
        self._forgotten.clear()
        return Message(tuple(sent), forget)

    def invalidate(self, key: str) -> None:
        """P1 has missed it: its data is sent the next time."""
        if self._held.remove(key):
            self._forgotten[key] = None

    def clear(self) -> None:
        """Forget everything. P1 does so with the next message."""
        self._forgotten.update(dict.fromkeys(self._held.keys()))
        self._held.clear()


class Receiver(Generic[T]):
    """P1's side: the data.

    Args:
        capacity: In bytes, the same as the sender's.

    Raises:
        ValueError: The capacity is negative.
    """

    def __init__(self, capacity: int) -> None:
        self._held = _Recent(capacity)
        self._data: dict[str, T] = {}

    def keys(self) -> tuple[str, ...]:
        """What it holds, the longest unused first."""
        return self._held.keys()

    def handle(self, message: Message[T]) -> list[T]:
        """The data of every item, in the order of the prompt.

        Raises:
            CacheMiss: Some were sent without data and are not held. All others were handled.
        """
        for key in message.forget:
            if self._held.remove(key):
                del self._data[key]
        found: list[T] = []
        missed: dict[str, None] = {}
        for item, later in zip(message.items, _later([i.key for i in message.items]), strict=True):
            if item.data is not None:
                self._store(item.key, item.size, item.data, later)
                found.append(item.data)
            elif item.key in self._held:
                self._held.use(item.key)
                found.append(self._data[item.key])
            else:
                missed[item.key] = None
        if missed:
            raise CacheMiss(tuple(missed))
        return found

    def clear(self) -> None:
        """Nothing: what is on its way may still count on what is here. `Sender.clear` is told."""

    def _store(self, key: str, size: int, data: T, later: frozenset[str]) -> None:
        """Data that arrives replaces what is held."""
        if key in self._held:
            self._held.use(key)
            self._data[key] = data
            return
        stored, gone = self._held.insert(key, size, later)
        for out in gone:
            del self._data[out]
        if stored:
            self._data[key] = data
