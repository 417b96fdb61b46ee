"""Whether a line is the reply to a request, for managers, engines and pairs alike."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from ..errors import AdapterError
from .process import shown_line
from .wire import Errored

__all__ = ["reply_to"]


class _Numbered(Protocol):
    @property
    def seq(self) -> int:
        """Which request it is for."""


R = TypeVar("R", bound=_Numbered)


def reply_to(asked: int, line: bytes, decoder: msgspec.json.Decoder[R]) -> R:
    """The reply to the request of this number. Raises `AdapterError` for whatever is none."""
    try:
        reply = decoder.decode(line)
    except _NO_REPLY as error:
        gave_up = _gave_up(line)
        if gave_up is None:
            raise AdapterError(f"not a reply ({error}): {shown_line(line)}") from None
        if gave_up.seq == asked:
            raise AdapterError(f"the adapter gave up: {gave_up.errored}") from None
        raise _another(gave_up.seq, asked) from None
    if reply.seq != asked:
        raise _another(reply.seq, asked)
    return reply


_NO_REPLY = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _gave_up(line: bytes) -> Errored | None:
    try:
        return msgspec.json.decode(line, type=Errored, strict=True)
    except _NO_REPLY:
        return None


def _another(got: int, asked: int) -> AdapterError:
    return AdapterError(f"a reply to request {got}, where {asked} was asked")
