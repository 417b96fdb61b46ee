"""How much of everything there is in a long walk: the words in which long vectors are chosen.

An amount may have a limit that nobody speaks of: a table of 32 rows, a count in 8 bits. The word
for it names what is counted and the bound that it is beyond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Reset,
)

from ..evaluate.interpreter import World

__all__ = ["AMOUNT", "BOUNDS", "Amounts"]

State = Mapping[str, Any]

BOUNDS = (4, 8, 16, 32, 64, 128, 256)
"""Where tables, words of bits and small counters end."""

AMOUNT = ": more than "
"""What is in every word of an amount, and in no other."""

_LEVELS = (8, 32, 128)


class Amounts:
    """What one life has seen so far; `after` is told of every call."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._life: Counter[tuple[str, str]] = Counter()
        self._before: State = {}

    def levels(self, state: State) -> Iterator[str]:
        """How much there is at this moment, in few words."""
        for what, amount in self._there(state):
            for bound in _LEVELS:
                if amount > bound:
                    yield f"more than {bound} {what}"

    def after(self, call: Call, answer: Expect, state: State) -> Iterator[str]:
        """The words for this call and the state that it has led to."""
        for what, amount in (*self._there(state), *self._done(call, answer, state)):
            for bound in BOUNDS:
                if amount > bound:
                    yield f"{what}{AMOUNT}{bound}"
        self._before = state

    def _there(self, state: State) -> Iterator[tuple[str, int]]:
        given = self._world.functions
        if "outstanding" in state:
            charged = Counter(given["owner"][i] for (i,) in state["outstanding"])
            yield "charged inputs", charged.total()
            yield "charged inputs of a request", max(charged.values(), default=0)
            yield "requests that are charged", len(charged)
            yield "to be reported", len(state["allocated"] | state["to_free"])
            return
        users = Counter(h for h, _ in state["references"])
        held = [i for (i,) in state["held"]]
        yield "users of a hash", max(users.values(), default=0)
        yield "hashes in use", len(users)
        yield "hashes cached", len(state["cached"])
        yield "idle", len(state["freeable"])
        yield "evicted and not reported", len(state["freed"])
        yield "requests that hold something", len({r for _, r in state["references"]})
        of_request = Counter(given["owner"][i] for i in held)
        yield "positions that a request holds", max(of_request.values(), default=0)
        of_hash = Counter((given["owner"][i], given["hash_of"][i]) for i in held)
        yield "positions of a hash in a request", max(of_hash.values(), default=0)
        yield "the last position that is held", max((given["position"][i] for i in held), default=0)

    def _done(self, call: Call, answer: Expect, state: State) -> Iterator[tuple[str, int]]:
        """What the call did, and how often such a thing was done in this life."""
        match call:
            case CheckAndUpdateCache(r, k):
                what = "hits of a hash" if answer.returns else "misses of a hash"
                yield self._again(what, self._hash(r, k))
            case CanAllocate(r, k):
                if "cached" in state and self._before:
                    yield from self._evicted(state)
                verdict = "admissions" if answer.returns else "refusals"
                yield self._again(f"{verdict} of a hash", self._hash(r, k))
            case Allocate(r, k):
                yield self._again("allocations of a hash", self._hash(r, k))
            case FreeEncoderInput(r, k):
                yield self._again("releases of a position", f"{r}/{k}")
            case Free(r):
                yield self._again("ends of a request", r)
                if "freeable" in state and self._before:
                    yield "left idle by one end", len(state["freeable"] - self._before["freeable"])
            case GetFreedMmHashes():
                told = answer.returns if isinstance(answer.returns, tuple) else ()
                yield "hashes in a report", len(told)
                for mm_hash in told:
                    yield self._again("reports of a hash", mm_hash)
                yield self._again("reports", "")
            case Reset():
                yield self._again("resets", "")
        yield self._again("calls of a life", "")

    def _evicted(self, state: State) -> Iterator[tuple[str, int]]:
        gone = {h for (h,) in self._before["cached"] - state["cached"]}
        yield "evicted by one admission", len(gone)
        self._life["evicted", ""] += len(gone)
        yield "evicted in a life", self._life["evicted", ""]
        if gone and state["freeable"]:  # here it shows in which order they go
            yield "left idle by an admission that evicts", len(state["freeable"])
            for what in ("hits of a hash", "allocations of a hash"):
                most = max(self._life[what, h] for h in gone)
                yield f"{what} that goes before others", most
            yield "calls before some go and some stay", self._life["calls of a life", ""]
            yield self._again("admissions for which some go and some stay", "")

    def _again(self, what: str, of: str) -> tuple[str, int]:
        self._life[what, of] += 1
        return what, self._life[what, of]

    def _hash(self, request: str, input_id: int) -> str:
        found: str = self._world.functions["hash_of"][f"{request}/{input_id}"]
        return found
