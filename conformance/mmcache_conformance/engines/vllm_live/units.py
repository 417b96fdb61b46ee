"""An engine vector in the units of a live engine, and what was seen there in those of the vector.

A CPU's KV blocks are multiples of 32 tokens, so that a vector's block, chunk, budget and text are
multiplied alike: which tokens lie in one block, one chunk, one item stays as it is. An item of the
vector becomes an image, which has 28 tokens and 25 embeddings, and text up to the end of its place;
since an image reaches into the last unit of its place, tokens overlap it live if they do in the
vector. Items are therefore of one size, of which the cache holds a whole number.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmcache_vectors.engine import EngineSettings, WorkloadItem, WorkloadRequest

from ..protocol import EngineCase, NotSupported
from .model import IMAGE, IMAGE_EMBEDS, IMAGE_TOKENS, WORDS

__all__ = ["LiveRequest", "LiveSettings", "Units"]

_BLOCK = 32
"""Tokens of a KV block on a CPU."""


@dataclass(frozen=True)
class LiveSettings:
    """What a live engine is started with. Lengths are in tokens, sizes in embeddings."""

    policy: str
    prefix_caching: bool
    block_size: int
    num_blocks: int
    """Blocks that requests can use."""
    chunk: int
    """The most tokens of one request in one pass; 0 where every request is shorter."""
    token_budget: int
    cache_size: int
    encoder_budget: int
    chunked_items: bool


@dataclass(frozen=True)
class LiveRequest:
    """What is asked of a live engine."""

    prompt: str
    """Words, and `<image>` once for each image."""
    images: tuple[str, ...]
    """The names of the images, in the order of the prompt."""
    max_tokens: int
    priority: int


class Units:
    """The translation for one vector."""

    def __init__(self, case: EngineCase) -> None:
        """Raises `NotSupported`: it cannot be said in the units of a live engine."""
        items = [item for request in case.requests for item in request.items]
        sizes = {item.num_embeds for item in items}
        engine = case.engine
        if len(sizes) > 1:
            raise NotSupported("items of several sizes; the images of the live model have one")
        if _BLOCK % engine.block_size:
            raise NotSupported(f"blocks of {engine.block_size} tokens do not divide {_BLOCK}")
        if engine.lookahead:
            raise NotSupported("a look-ahead; the live model has no drafter")
        self.scale = _BLOCK // engine.block_size
        (self._size,) = sizes or {1}
        if items and self._size * self.scale < IMAGE_TOKENS:
            raise NotSupported(f"an item of {self._size} tokens is too short for an image")
        if (self._size - 1) * self.scale >= IMAGE_TOKENS:
            raise NotSupported(f"an item of {self._size} tokens is too long for an image")
        self._longest = engine.num_blocks * _BLOCK
        self._texts: dict[str, int] = {}

    def settings(self, engine: EngineSettings) -> LiveSettings:
        """The configuration."""
        longest = engine.num_blocks * _BLOCK
        chunk = engine.chunk_size * self.scale
        return LiveSettings(
            policy=engine.policy,
            prefix_caching=engine.prefix_caching,
            block_size=_BLOCK,
            num_blocks=engine.num_blocks,
            chunk=chunk if chunk < longest else 0,
            token_budget=engine.token_budget * self.scale,
            cache_size=engine.cache_size // self._size * IMAGE_EMBEDS,
            encoder_budget=engine.encoder_budget // self._size * IMAGE_EMBEDS,
            chunked_items=engine.chunked_items,
        )

    def request(self, request: WorkloadRequest) -> LiveRequest:
        """The words of the prompt: those of one text are alike, those of others differ."""
        word = WORDS[self._texts.setdefault(request.text, len(self._texts)) % len(WORDS)]
        words: list[str] = []
        length = 0
        """Of the tokens so far, in those of the live model."""
        for item in request.items:
            words += [word] * (item.position * self.scale - length)
            words.append(IMAGE)
            length = item.position * self.scale + IMAGE_TOKENS
        generated = 1 + (request.max_tokens - 1) * self.scale
        # vLLM counts the last token, which needs no block: the last unit of the prompt is cut.
        end = min(request.num_prompt_tokens * self.scale, self._longest - generated)
        if end <= (request.num_prompt_tokens - 1) * self.scale or end < length:
            raise NotSupported(f"{request.request_id} has more tokens than all blocks")
        words += [word] * (end - length)
        return LiveRequest(
            " ".join(words),
            tuple(item.identifier for item in request.items),
            generated,
            request.priority,
        )

    def position(self, item: WorkloadItem) -> int:
        """Where the image begins."""
        return item.position * self.scale

    def start(self, tokens: int) -> int:
        """A position, in the tokens of the vector."""
        return tokens // self.scale

    def count(self, start: int, tokens: int) -> int:
        """So many tokens from a position on, in those of the vector; 0 only if there are none."""
        return -(-(start + tokens) // self.scale) - start // self.scale
