"""Pairs of processor caches that are wrong in one way each, made of the reference."""

from __future__ import annotations

from collections.abc import Sequence

from mmcache.processor_cache import CacheMiss, Message, Receiver, Sender, SentItem

__all__ = [
    "AssertingReceiver",
    "BareSender",
    "CarelessReceiver",
    "ClearingReceiver",
    "EagerSender",
    "ForgetfulSender",
    "HidingSender",
    "LosingSender",
    "MuteSender",
    "StaleReceiver",
    "UnboundedReceiver",
    "UndoingSender",
    "UnorderedReceiver",
    "WaitingReceiver",
]


class LosingSender(Sender[str]):
    """P5: a rejected request is not sent, and what was recorded of it stays."""

    def withdraw(self, message: Message[str]) -> bool:
        return False


class UndoingSender(Sender[str]):
    """P1, once something was recorded since: what was recorded of a rejected request is undone."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._before: list[tuple[tuple[str, ...], dict[str, int], int, dict[str, None]]] = []

    def process(self, items: Sequence[SentItem[str]]) -> Message[str]:
        held = self._held
        self._before.append((held.keys(), dict(held._sizes), held.used, dict(self._forgotten)))
        return super().process(items)

    def withdraw(self, message: Message[str]) -> bool:
        _, sizes, used, forgotten = self._before.pop()
        self._held._sizes, self._held.used = sizes, used
        self._forgotten = forgotten
        return False


class MuteSender(Sender[str]):
    """P6: what is forgotten is not told."""

    def process(self, items: Sequence[SentItem[str]]) -> Message[str]:
        return Message(super().process(items).items)


class ForgetfulSender(Sender[str]):
    """P8: it does not hear of a miss."""

    def invalidate(self, key: str) -> None:
        pass


class BareSender(Sender[str]):
    """P1: it withholds data from the beginning."""

    def process(self, items: Sequence[SentItem[str]]) -> Message[str]:
        message = super().process(items)
        return Message(tuple(SentItem(i.key, i.size) for i in message.items), message.forget)


class EagerSender(Sender[str]):
    """P4: it sends data that it had said it need not have."""

    def process(self, items: Sequence[SentItem[str]]) -> Message[str]:
        return Message(tuple(items), super().process(items).forget)


class HidingSender(EagerSender):
    """The same, and it does not show what it holds; then it is no clause that breaks."""

    keys = None  # type: ignore[assignment]


class StaleReceiver(Receiver[str]):
    """P7: data that arrives does not replace what is held."""

    def handle(self, message: Message[str]) -> list[str]:
        old = dict(self._data)
        found = super().handle(Message(message.items))
        return [old.get(item.key, data) for item, data in zip(message.items, found, strict=True)]


class ClearingReceiver(Receiver[str]):
    """P2: a clear empties it at once."""

    def clear(self) -> None:
        self._held.clear()
        self._data.clear()


class UnboundedReceiver(Receiver[str]):
    """P3: it never evicts."""

    def __init__(self, capacity: int) -> None:
        super().__init__(10**9)


class AssertingReceiver(ClearingReceiver):
    """P9: a miss is an assertion, which ends the engine."""

    def handle(self, message: Message[str]) -> list[str]:
        try:
            return super().handle(message)
        except CacheMiss as miss:
            raise AssertionError(str(miss)) from None


class UnorderedReceiver(Receiver[str]):
    """P2: a hit is no use."""

    def handle(self, message: Message[str]) -> list[str]:
        self._held.use = lambda key: None  # type: ignore[method-assign]
        return super().handle(message)


class CarelessReceiver(Receiver[str]):
    """P2: an insertion does not spare later items of its request."""

    def _store(self, key: str, size: int, data: str, later: frozenset[str]) -> None:
        super()._store(key, size, data, frozenset())


class WaitingReceiver(Receiver[str]):
    """P10: a call never ends."""

    def handle(self, message: Message[str]) -> list[str]:
        while True:
            pass
