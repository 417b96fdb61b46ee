"""Serve a pair of processor caches of this kit over the adapter protocol."""

from __future__ import annotations

from typing import BinaryIO, Protocol, runtime_checkable

import msgspec

from mmcache_vectors.pair import (
    Deliver,
    PairParameters,
    PairRequest,
)

from ..errors import describe_exception
from ..implementation import Implementation
from ..pairs.play import answered, asked, with_keys
from ..pairs.protocol import PairSides
from ..targets.wire import (
    About,
    CallPair,
    Errored,
    Message,
    NewPair,
    PairTold,
    Start,
    Started,
    Stop,
)

__all__ = ["ServedPair", "serve_pair"]


@runtime_checkable
class ServedPair(Protocol):
    """A pair that can be made anew, and asked call by call."""

    def start(self) -> Implementation: ...
    def fresh(self, parameters: PairParameters) -> PairSides: ...


def serve_pair(target: ServedPair, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until `stop` or the end of the input. Raises `TargetError`."""
    decode = msgspec.json.Decoder(Message, strict=True).decode
    encode = msgspec.json.Encoder().encode
    served = _Served(target)
    for line in requests:
        request = decode(line)
        if isinstance(request, Stop):
            return
        reply: msgspec.Struct
        try:
            if isinstance(request, Start):
                reply = served.introduced()
            elif isinstance(request, NewPair):
                reply = served.made(request)
            elif isinstance(request, CallPair):
                reply = served.told(request)
            else:
                reply = Errored(request.seq, "it serves a pair of processor caches alone")
        except Exception as error:
            if isinstance(request, Start):
                raise
            reply = Errored(request.seq, describe_exception(error))
        replies.write(encode(reply) + b"\n")
        replies.flush()


class _Served:
    def __init__(self, target: ServedPair) -> None:
        self._target = target
        self._requests: dict[str, PairRequest] = {}
        self._sides: PairSides | None = None

    def introduced(self) -> Started:
        found = self._target.start()
        about = About(found.name, found.language, found.version, found.source)
        return Started(1, about, {"processor_cache": found.capabilities["processor_cache"]})

    def made(self, request: NewPair) -> PairTold:
        self._requests = {r.request_id: r for r in request.parameters.requests}
        self._sides = self._target.fresh(request.parameters)
        return PairTold(request.seq)

    def told(self, request: CallPair) -> PairTold:
        sides, call = self._sides, request.call
        if sides is None:
            raise ValueError("no pair was made before this call")
        answer = answered(
            lambda: asked(call, sides, self._requests), delivers=isinstance(call, Deliver)
        )
        if answer.not_offered is not None:
            raise ValueError(f"it has no {answer.not_offered}")
        if not answer.hangs:
            answer = with_keys(answer, sides)
        told = {name: getattr(answer, name) for name in _SHARED}
        return PairTold(request.seq, **told)


_SHARED = tuple(n for n in PairTold.__struct_fields__ if n != "seq")
