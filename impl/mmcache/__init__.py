"""The encoder-cache ledgers as their specification has them, without any dependency."""

from .encoder_cache import EncoderCacheManager
from .encoder_decoder import EncoderDecoderCacheManager
from .errors import (
    AlreadyAllocatedError,
    InputChangedError,
    LedgerError,
    NegativeSizeError,
    NoRoomError,
    SizeChangedError,
)
from .request import Request

__all__ = [
    "AlreadyAllocatedError",
    "EncoderCacheManager",
    "EncoderDecoderCacheManager",
    "InputChangedError",
    "LedgerError",
    "NegativeSizeError",
    "NoRoomError",
    "Request",
    "SizeChangedError",
]
