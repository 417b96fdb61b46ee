"""S7 on what the passes of an engine did: who got no token though he was owed one.

A pass that gives nobody a token has asked everybody with the whole budget. By S7 a request that
runs and needs embeddings gets one, and where none needs any, the head of the queue; provided that
it gets KV blocks. Whether it would have got them is not seen. It is certain where the blocks that
nobody else can use are enough for all its tokens, and nobody was preempted; then the first such
pass breaks the clause. Elsewhere passes without a token are only counted, up to a generous number.
"""

from __future__ import annotations

from collections.abc import Iterable

from mmcache_vectors.engine import EngineVector, WorkloadRequest

from .protocol import PassRecord

__all__ = ["Progress"]


class Progress:
    """An observer of one run. Tokens are counted from what was scheduled, beyond the prompt too."""

    def __init__(self, vector: EngineVector) -> None:
        self._engine = vector.engine
        self._stall_after = vector.expect.stall_after
        self._requests = {r.request_id: r for r in vector.requests}
        self._places = {r.request_id: k for k, r in enumerate(vector.requests)}
        self._counted: dict[str, int] = {}
        """The tokens that are computed of each request, since it last began."""
        self._running: tuple[str, ...] = ()
        """Who may hold blocks when the pass begins."""
        self._idle = 0

    def observe(self, record: PassRecord) -> str | None:
        """How the pass breaks S7, for people; None where it does not."""
        says = None
        unfinished = (*record.running, *record.waiting)
        if any(record.num_scheduled_tokens.values()) or not unfinished:
            self._idle = 0
        else:
            self._idle += 1
            says = self._stalled(record, unfinished)
        for request, tokens in record.num_scheduled_tokens.items():
            self._counted[request] = record.starts.get(request, 0) + tokens
        for request in record.preempted:
            self._counted.pop(request, None)
        self._running = record.running
        return says

    def _stalled(self, record: PassRecord, unfinished: tuple[str, ...]) -> str | None:
        rest = f"unfinished: {', '.join(unfinished)}"
        owed, why = self._owed(record, unfinished)
        if not record.preempted:
            for request in owed:
                if self._has_blocks(request):
                    return f"no token of a whole budget for {request}, {why}; {rest}"
        if self._idle == self._stall_after:
            return f"{self._idle} passes without a token; {rest}"
        return None

    def _owed(self, record: PassRecord, unfinished: Iterable[str]) -> tuple[list[str], str]:
        """Each of whom gets a token if he gets blocks, and why."""
        needing = {request for requests in record.references.values() for request in requests}
        if running := [r for r in record.running if r in needing and r in self._requests]:
            return running, "which runs and needs embeddings"
        queue = sorted((r for r in unfinished if r in self._requests), key=self._place)
        return queue[:1], "the head of the queue"

    def _place(self, request: str) -> tuple[int, int, int]:
        known = self._requests[request]
        first = known.priority if self._engine.policy == "priority" else 0
        return first, known.arrival, self._places[request]

    def _has_blocks(self, request: str) -> bool:
        """Blocks for all its tokens are certainly there."""
        others = (r for r in self._running if r != request)
        used = sum(self._blocks(self._counted.get(r, 0)) for r in others)
        return used + self._blocks(_tokens(self._requests[request])) <= self._engine.num_blocks

    def _blocks(self, tokens: int) -> int:
        return -(-(tokens + self._engine.lookahead) // self._engine.block_size)


def _tokens(request: WorkloadRequest) -> int:
    return request.num_prompt_tokens + request.max_tokens
