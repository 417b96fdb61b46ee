"""The one pair of stand-ins for an engine's request and its items."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Item", "Request", "request_of"]


@dataclass(frozen=True, slots=True)
class Item:
    """A multimodal item: its hash, and its size in embeddings."""

    identifier: str
    num_embeds: int


@dataclass(frozen=True, slots=True)
class Request:
    """What a manager reads of a request."""

    request_id: str
    mm_features: tuple[Item, ...]

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return self.mm_features[input_id].num_embeds


def request_of(request_id: str, *items: str) -> Request:
    """Build a request: its id, and its items as `A4` for hash A of 4 embeddings."""
    return Request(request_id, tuple(Item(item[0], int(item[1:])) for item in items))
