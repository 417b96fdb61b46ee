"""As much of a block pool as the encoder part of a scheduler needs: who gets how many blocks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

__all__ = ["KvBlocks"]

_Content = tuple[Hashable, ...]


class KvBlocks:
    """Hands out blocks of `block_size` tokens, and finds computed prefixes again.

    A block that is given back keeps its content until it is handed out again, least recently
    used first. Content is shared only after `computed` has confirmed it: a block of a pass that
    was cancelled is never found.
    """

    def __init__(self, num_blocks: int, block_size: int, *, prefix_caching: bool) -> None:
        self.block_size = block_size
        self.prefix_caching = prefix_caching
        self._free: dict[int, None] = dict.fromkeys(range(num_blocks))
        self._users = [0] * num_blocks
        self._taken: dict[str, list[int]] = {}
        self._content: dict[int, _Content] = {}
        self._found: dict[_Content, int] = {}

    def prefix(self, tokens: Sequence[Hashable]) -> int:
        """How many of the first tokens are computed already; one is always left to compute."""
        return len(self._prefix_blocks(tokens)) * self.block_size

    def admit(
        self, request_id: str, tokens: Sequence[Hashable], count: int, *, must_fit: int
    ) -> bool:
        """Give a request that has no blocks those for its first `count` tokens, or nothing.

        Only if there is also room for `must_fit` tokens, as things stand now.
        """
        prefix = self._prefix_blocks(tokens)
        idle = sum(block in self._free for block in prefix)
        if self._needed(max(count, must_fit)) - len(prefix) > len(self._free) - idle:
            return False
        for block in prefix:
            self._free.pop(block, None)
            self._users[block] += 1
        self._taken[request_id] = prefix
        return self.grow(request_id, count)

    def grow(self, request_id: str, count: int) -> bool:
        """Give the request blocks for its first `count` tokens, or nothing new."""
        blocks = self._taken[request_id]
        more = self._needed(count) - len(blocks)
        if more > len(self._free):
            return False
        blocks += [self._take() for _ in range(more)]
        return True

    def computed(self, request_id: str, tokens: Sequence[Hashable], count: int) -> None:
        """The first `count` tokens are computed: their full blocks can be found from now on."""
        if not self.prefix_caching:
            return
        for k, block in enumerate(self._taken[request_id][: count // self.block_size]):
            content = tuple(tokens[: (k + 1) * self.block_size])
            if block not in self._content and content not in self._found:
                self._content[block] = content
                self._found[content] = block

    def free(self, request_id: str) -> None:
        """Take all blocks of the request back; the end of a prefix will be reused first."""
        for block in reversed(self._taken.pop(request_id, [])):
            self._users[block] -= 1
            if not self._users[block]:
                self._free[block] = None

    def _needed(self, count: int) -> int:
        return -(-count // self.block_size)

    def _take(self) -> int:
        block = next(iter(self._free))
        del self._free[block]
        content = self._content.pop(block, None)
        if content is not None:
            del self._found[content]
        self._users[block] = 1
        return block

    def _prefix_blocks(self, tokens: Sequence[Hashable]) -> list[int]:
        blocks: list[int] = []
        if self.prefix_caching:
            for end in range(self.block_size, len(tokens), self.block_size):
                block = self._found.get(tuple(tokens[:end]))
                if block is None:
                    break
                blocks.append(block)
        return blocks
