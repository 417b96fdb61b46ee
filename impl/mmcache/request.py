"""What a ledger reads of a request. vLLM's own `Request` satisfies it, and so can any object."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Feature", "Features", "Request"]


class Feature(Protocol):
    """One multimodal item of a request."""

    @property
    def identifier(self) -> str:
        """The hash that stands for the item's content (`mm_hash`)."""


class Features(Protocol):
    """The items of a request by position. Their number is never asked for."""

    def __getitem__(self, input_id: int, /) -> Feature: ...


class Request(Protocol):
    """A request with multimodal items; `input_id` is the position of an item in it."""

    @property
    def request_id(self) -> str: ...

    @property
    def mm_features(self) -> Features: ...

    def get_num_encoder_embeds(self, input_id: int) -> int:
        """The item's size in embeddings."""
