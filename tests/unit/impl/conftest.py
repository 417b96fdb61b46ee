"""What the tests of the reference share: requests with items of a given hash and size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Item:
    identifier: str
    num_embeds: int


@dataclass(frozen=True)
class Request:
    request_id: str
    mm_features: tuple[Item, ...]

    def get_num_encoder_embeds(self, input_id: int) -> int:
        return self.mm_features[input_id].num_embeds


@pytest.fixture(name="request_of")
def _request_of() -> Callable[..., Request]:
    """Build a request: its id, and its items as `A4` for hash A of 4 embeddings."""

    def build(request_id: str, *items: str) -> Request:
        return Request(request_id, tuple(Item(item[0], int(item[1:])) for item in items))

    return build
