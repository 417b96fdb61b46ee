"""A program as a pair of processor caches: `cmd:COMMAND` whose adapter declares itself one.

Each call is a round trip, since what comes next is the harness's decision: what was withdrawn and
travels all the same is delivered before what was recorded behind it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar

import msgspec

from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    PairParameters,
    PairRequest,
    ProcessRequest,
    Withdraw,
)

from ..errors import AdapterError, TargetError
from ..implementation import Implementation
from ..targets.command import CommandTarget
from ..targets.reply import reply_to
from ..targets.wire import PAIR_CALLS, PAIR_STATE, CallPair, NewPair, PairTold
from .bounded import NeverEnds
from .play import play
from .protocol import Keys, NotOffered, PairAnswer, PairCase, PairMiss, RequestFailed, SideEnded

__all__ = ["CommandPair"]

_KIND: Final = "processor_cache"
_REPLY = msgspec.json.Decoder(PairTold, strict=True)


class CommandPair:
    """The pair behind a `CommandTarget`, which speaks for it."""

    def __init__(self, command: CommandTarget) -> None:
        self.command = command
        self._offered: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def log(self) -> str:
        """The end of what the program wrote to standard error during the last call."""
        return self.command.log

    def start(self) -> Implementation:
        """Raises `TargetError`, also where it does not declare itself a pair."""
        found = self.command.start()
        if _KIND not in found.capabilities:
            raise TargetError(f"{found.name} says that it is no pair: it has no `{_KIND}`")
        self._offered = found.capabilities[_KIND]
        known = (*PAIR_CALLS, *PAIR_STATE)
        for name in self._offered:
            if not name.startswith("x-") and name not in known:
                raise TargetError(
                    f"its pair names the capability {name!r}; there are {', '.join(known)}"
                )
        return found

    def play(self, case: PairCase) -> tuple[PairAnswer, ...]:
        """Raises `AdapterError` for whatever is no reply."""
        sides = _CommandSides(self.command, self._offered, case.parameters)
        return play(case, sides, guarded=False)

    def stop(self) -> None:
        """Raises `AdapterError` if the program had said more than it was asked."""
        self.command.stop()


class _CommandSides:
    def __init__(
        self, command: CommandTarget, offered: Collection[str], parameters: PairParameters
    ) -> None:
        self._command = command
        self._offered = offered
        self._keys = Keys()
        self._items = {r.request_id: len(r.items) for r in parameters.requests}
        begun = command.ask(lambda seq: NewPair(seq, parameters), _read)
        if begun.error is not None:
            raise AdapterError(f"it makes no pair: {begun.error}")

    def process(self, request: PairRequest) -> tuple[bool, ...]:
        told = self._told(ProcessRequest(request.request_id))
        return _as_many(told.sent, "sent", len(request.items))

    def deliver(self, request_id: str) -> tuple[str, ...]:
        told = self._told(Deliver(request_id))
        return _as_many(told.data, "data", self._items[request_id])

    def withdraw(self, request_id: str) -> bool:
        if "withdraw" not in self._offered:
            return True
        told = self._told(Withdraw(request_id))
        if told.travels is None:
            raise AdapterError("`withdraw` is answered by `travels`, and it was left out")
        return told.travels

    def invalidate(self, identifier: str) -> None:
        if "invalidate" not in self._offered:
            raise NotOffered("invalidate")
        self._told(Invalidate(identifier))

    def clear_sender(self) -> None:
        self._told(ClearSender())

    def clear_receiver(self) -> None:
        self._told(ClearReceiver())

    def keys(self) -> Keys:
        return self._keys

    def _told(self, call: PairCall) -> PairTold:
        """The reply to a call that did not fail; what it shows is kept."""
        told = self._command.ask(lambda seq: CallPair(seq, call), _read)
        failed = told.error is not None or bool(told.missed)
        shown = {name: getattr(told, name) for name in PAIR_STATE}
        for name, value in shown.items():
            if value is not None and name not in self._offered:
                raise AdapterError(f"{name} is no capability, but was given")
            if value is None and name in self._offered and not failed:
                raise AdapterError(f"{name} was left out, or null; an empty one is []")
        self._keys = Keys(**shown)
        if told.missed:
            if told.error is not None or not isinstance(call, Deliver):
                raise AdapterError("`missed` is an answer to `deliver`, and no error beside it")
            raise PairMiss(told.missed)
        if told.error is None:
            if told.ended or told.hangs:
                raise AdapterError("it says `ended` or `hangs`, and no `error`")
            return told
        if told.hangs:
            raise NeverEnds(told.error)
        raise SideEnded(told.error) if told.ended else RequestFailed(told.error)


def _read(line: bytes, asked: int) -> PairTold:
    return reply_to(asked, line, _REPLY)


T = TypeVar("T")


def _as_many(said: tuple[T, ...] | None, name: str, items: int) -> tuple[T, ...]:
    """What was said of each item. Raises `AdapterError`."""
    if said is None or len(said) != items:
        count = "nothing" if said is None else f"{len(said)} answers"
        raise AdapterError(f"`{name}` has {count} about {items} items")
    return said
