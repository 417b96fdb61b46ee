"""What a ledger raises when it is called in a way that its specification excludes.

Every error is raised before anything is changed: the ledger is as it was before the call.
"""

from __future__ import annotations

__all__ = [
    "AlreadyAllocatedError",
    "InputChangedError",
    "LedgerError",
    "NegativeSizeError",
    "NoRoomError",
    "SizeChangedError",
]


class LedgerError(ValueError):
    """A call that the ledger refuses. The ledger is as it was before the call."""


class NegativeSizeError(LedgerError):
    """A capacity, an item or a pending amount of fewer than zero embeddings."""


class NoRoomError(LedgerError):
    """`allocate` of an item that is larger than the free slots."""


class SizeChangedError(LedgerError):
    """`allocate` of a cached hash with another size than it was first allocated with."""


class InputChangedError(LedgerError):
    """A position that the request holds now carries another hash than when it was taken."""


class AlreadyAllocatedError(LedgerError):
    """Encoder-decoder `allocate` of an input that is charged and was not released since."""


def described(request_id: str, input_id: int, mm_hash: str) -> str:
    return f"request {request_id!r} input {input_id} (hash {mm_hash!r})"


def no_room(request_id: str, input_id: int, mm_hash: str, size: int, free: int) -> NoRoomError:
    return NoRoomError(
        f"{described(request_id, input_id, mm_hash)} needs {size} embeddings and {free} are free: "
        "allocate only after can_allocate has said yes"
    )


def negative_size(request_id: str, input_id: int, mm_hash: str, size: int) -> NegativeSizeError:
    return NegativeSizeError(
        f"{described(request_id, input_id, mm_hash)} has {size} embeddings: "
        "get_num_encoder_embeds must give 0 or more"
    )
