"""The encoder-cache ledgers, a scheduling pass over them and a worker, without any dependency."""

from .encoder_cache import EncoderCacheManager
from .encoder_decoder import EncoderDecoderCacheManager
from .engine.scheduling_pass import (
    EngineDecisions,
    EngineItem,
    EngineParameters,
    EngineRequest,
    PassOutput,
    SchedulingPass,
)
from .engine.worker_cache import EncoderCacheMiss, WorkerEncoderCache, WorkerOrder
from .errors import (
    AlreadyAllocatedError,
    InputChangedError,
    LedgerError,
    NegativeSizeError,
    NoRoomError,
    SizeChangedError,
)
from .request import Request
from .two_phase import TwoPhaseEncoderCacheManager

__all__ = [
    "AlreadyAllocatedError",
    "EncoderCacheManager",
    "EncoderCacheMiss",
    "EncoderDecoderCacheManager",
    "EngineDecisions",
    "EngineItem",
    "EngineParameters",
    "EngineRequest",
    "InputChangedError",
    "LedgerError",
    "NegativeSizeError",
    "NoRoomError",
    "PassOutput",
    "Request",
    "SchedulingPass",
    "SizeChangedError",
    "TwoPhaseEncoderCacheManager",
    "WorkerEncoderCache",
    "WorkerOrder",
]
