"""The worker's side of the encoder cache: a dictionary that does as it is told, once a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Literal, TypeVar

__all__ = ["EncoderCacheMiss", "WorkerEncoderCache", "WorkerOrder"]

T = TypeVar("T")

WorkerOrder = Literal["drop_encode_gather", "encode_gather_drop", "encode_if_missing_then_drop"]


class EncoderCacheMiss(RuntimeError):
    """A step gathers embeddings that the worker does not hold (S1)."""

    def __init__(self, mm_hash: str) -> None:
        super().__init__(f"Encoder cache miss for {mm_hash}.")
        self.mm_hash = mm_hash


class WorkerEncoderCache(Generic[T]):
    """Embeddings by hash. It never answers the scheduler, and trusts what it is told.

    Attributes, to be read and not written:
        order: In which order a step drops, encodes and gathers. Under
            `encode_if_missing_then_drop` what is still held is not encoded again, and the drop
            comes before the gather. With a specified scheduler all three end alike (S6).
        embeddings: What is held, by hash.
        peak: The hashes that were held at the fullest moment of the last step (S4).
    """

    def __init__(self, order: WorkerOrder = "drop_encode_gather") -> None:
        self.order = order
        self.reset()

    def reset(self) -> None:
        """Forget everything, together with the ledger (L10)."""
        self.embeddings: dict[str, T] = {}
        self.peak: frozenset[str] = frozenset()

    def step(
        self,
        drop: Iterable[str],
        encode: Mapping[str, Callable[[], T] | None],
        gather: Iterable[str],
    ) -> dict[str, T]:
        """Make the worker step of one pass, and give what it gathers.

        Args:
            drop: The report of the ledger.
            encode: For each hash that is to be encoded, what computes its embeddings; None where
                the raw item is not at the worker (S8), which then encodes nothing.
            gather: The hashes that the scheduled tokens overlap.

        Raises:
            EncoderCacheMiss: Something that is gathered is not held. The drops and encodings
                that come before the gather are done.
        """
        if self.order == "drop_encode_gather":
            self._drop(drop)
            self._encode(encode)
            return self._gather(gather)
        if self.order == "encode_gather_drop":
            self._encode(encode)
            gathered = self._gather(gather)
            self._drop(drop)
            return gathered
        self._encode({h: one for h, one in encode.items() if h not in self.embeddings})
        self._drop(drop)
        return self._gather(gather)

    def _drop(self, hashes: Iterable[str]) -> None:
        for mm_hash in hashes:
            self.embeddings.pop(mm_hash, None)

    def _encode(self, encode: Mapping[str, Callable[[], T] | None]) -> None:
        for mm_hash, compute in encode.items():
            if compute is not None:
                self.embeddings[mm_hash] = compute()
        self.peak = frozenset(self.embeddings)

    def _gather(self, hashes: Iterable[str]) -> dict[str, T]:
        gathered: dict[str, T] = {}
        for mm_hash in hashes:
            if mm_hash not in self.embeddings:
                raise EncoderCacheMiss(mm_hash)
            gathered[mm_hash] = self.embeddings[mm_hash]
        return gathered
