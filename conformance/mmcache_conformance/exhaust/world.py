"""The world that `exhaust` goes through, its alphabet, and the specified side of the lock-step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mmcache_spec.evaluate.compiled import CompiledCall, CompiledSystem, Packed
from mmcache_spec.kernel.terms import SetSort
from mmcache_spec.oracle import observe, spec_calls, world_of
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Manager,
    Observed,
    Parameters,
    Request,
    Reset,
)

from ..oracle.systems import specified
from ..targets.protocol import ALLOCATE_AGAIN, call_name

__all__ = ["SearchScope", "SpecifiedManager", "alphabet", "parameters_of_scope"]

_Doing = tuple[CompiledCall, tuple[int, ...]]
"""A function of the state, and the integers to call it with."""

Successor = tuple[int, Any, Packed]
"""The index of a call, its result, and the state after it."""

SIZES = (1, 2, 3, 2)
"""Repeated where there are more hashes: different enough that every count of evictions occurs."""


class SearchScope(msgspec.Struct, frozen=True):
    """How large the world is. `inputs` are those of each request."""

    manager: Manager = "encoder_cache"
    hashes: int = 4
    requests: int = 2
    inputs: int = 4
    capacity: int = 6
    sizes: tuple[int, ...] = ()
    """Of the hashes, in embeddings; as many as there are hashes, or none for the usual ones."""


def parameters_of_scope(scope: SearchScope) -> Parameters:
    """The world: hashes A, B, ... and requests r1, r2, ...

    The first request carries the hashes in turn. So does every other, but its last input repeats
    its first, so that references with several positions occur.
    """
    names = [chr(ord("A") + k) if scope.hashes <= 26 else f"h{k}" for k in range(scope.hashes)]
    sizes = scope.sizes or tuple(SIZES[k % len(SIZES)] for k in range(scope.hashes))
    items = [Item(name, size) for name, size in zip(names, sizes, strict=True)]

    def carried(r: int, p: int) -> Item:
        repeats = r > 0 and p > 0 and p == scope.inputs - 1
        return items[0 if repeats else p % scope.hashes]

    requests = (
        Request(f"r{r + 1}", tuple(carried(r, p) for p in range(scope.inputs)))
        for r in range(scope.requests)
    )
    return Parameters(scope.capacity, tuple(requests))


def alphabet(parameters: Parameters) -> Iterator[Call]:
    """Every call of the world; for `can_allocate`, with the budgets and pending sizes that matter.

    The budget is one short of the size, the size, or more than the capacity; with the second, the
    pending size takes every value up to the first that cannot fit.
    """
    capacity = parameters.cache_size
    for request in parameters.requests:
        for input_id, item in enumerate(request.items):
            at, size = (request.request_id, input_id), item.num_embeds
            yield CheckAndUpdateCache(*at)
            if size > 0:
                yield CanAllocate(*at, size - 1, 0)
            for pending in range(max(0, capacity - size) + 2):
                yield CanAllocate(*at, size, pending)
            yield CanAllocate(*at, max(size, capacity) + 1, 0)
            yield Allocate(*at)
            yield FreeEncoderInput(*at)
        yield Free(request.request_id)
    yield GetFreedMmHashes()
    yield Reset()


class SpecifiedManager:
    """The specified manager: packed states, in which only the order of times is kept."""

    def __init__(self, scope: SearchScope, capabilities: frozenset[str]) -> None:
        self.parameters = parameters_of_scope(scope)
        self.system = specified(scope.manager)
        self.compiled = CompiledSystem(self.system, world_of(self.parameters))
        self.calls = [c for c in alphabet(self.parameters) if call_name(c) in capabilities]
        self._actions = {action.name for action in self.system.actions}
        if ALLOCATE_AGAIN not in capabilities:
            self._actions.discard(ALLOCATE_AGAIN)
        self._choices = [self._compile(call) for call in self.calls]
        self._reporting = {k for k, c in enumerate(self.calls) if isinstance(c, GetFreedMmHashes)}
        names = [v.name for v in self.compiled.variables]
        self._times = (
            tuple(names.index(n) for n in ("freeable", "since", "clock"))
            if "since" in names
            else None
        )
        self._canonical: dict[tuple[int, tuple[int, ...]], tuple[tuple[int, ...], int]] = {}
        self._successors: dict[Packed, list[Successor]] = {}
        self._observed: dict[Packed, Observed] = {}
        self._reports: dict[int, frozenset[str]] = {}

    def initial(self) -> Packed:
        return self._in_order(self.compiled.initial())

    def successors(self, state: Packed) -> list[Successor]:
        """For each call that the guards allow: its index, its result, the next state."""
        known = self._successors.get(state)
        if known is None:
            known = self._successors[state] = list(self._compute(state))
        return known

    def observed(self, state: Packed) -> Observed:
        known = self._observed.get(state)
        if known is None:
            known = observe(self.system, self.compiled.world, self.compiled.unpack(state))
            self._observed[state] = known
        return known

    def _compute(self, state: Packed) -> Iterator[Successor]:
        known: dict[_Doing, tuple[Any, Packed] | None] = {}
        for k, choices in enumerate(self._choices):
            for doing in choices:
                if doing in known:
                    done = known[doing]
                else:
                    function, integers = doing
                    done = function(state, *integers)
                    if done is not None:
                        done = done[0], self._in_order(done[1])
                    known[doing] = done
                if done is not None:
                    result, after = done
                    yield k, self._report(result) if k in self._reporting else result, after
                    break

    def _report(self, bits: int) -> frozenset[str]:
        if bits not in self._reports:
            returns = self.system.action("get_freed_mm_hashes").returns
            assert returns is not None
            assert isinstance(returns.sort, SetSort)
            members = self.compiled.members(returns.sort, bits)
            self._reports[bits] = frozenset(h for (h,) in members)
        return self._reports[bits]

    def _in_order(self, state: Packed) -> Packed:
        """The same state with times 0, 1, 2, ...: the ledger reads no more than their order.

        Without this the clock alone would make the states infinitely many. The two tables keep what
        was computed, since the same few orders come again and again.
        """
        if self._times is None:
            return state
        freeable, since, clock = self._times
        key = state[freeable], state[since]
        known = self._canonical.get(key)
        if known is None:
            times = [(t, k) for k, t in enumerate(key[1]) if key[0] >> k & 1]
            ranked = [0] * len(key[1])
            for rank, (_, k) in enumerate(sorted(times)):
                ranked[k] = rank
            known = self._canonical[key] = tuple(ranked), len(times)
        if known == (state[since], state[clock]):
            return state
        changed = list(state)
        changed[since], changed[clock] = known
        return tuple(changed)

    def _compile(self, call: Call) -> list[_Doing]:
        """The functions that may perform the call: at most one is not refused by its guards."""
        choices = [c for c in spec_calls(self.system, call) if c.action in self._actions]
        integers = _integers(call)
        return [(self.compiled.compile(choice), integers) for choice in choices]


def _integers(call: Call) -> tuple[int, ...]:
    if isinstance(call, CanAllocate):
        return call.encoder_compute_budget, call.num_embeds_to_schedule
    return ()
