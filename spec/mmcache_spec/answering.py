"""A manager made of the specification that answers quickly, and keeps no steps.

`oracle.Replay` is the interpreter's: it walks the terms at every call, and says of each step all
that can be asked of it. Who only wants to know what a manager answers, of many managers and long
sequences, asks the code that `evaluate.uniform` writes of the same terms.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    Expect,
    Free,
    GetFreedMmHashes,
    Observed,
    Parameters,
    Reset,
)

from .evaluate.uniform import Packed, UniformSystem
from .kernel.system import TransitionSystem
from .kernel.terms import SetSort, Sort
from .oracle import input_name, observe, shown_name, twins_of, world_of

__all__ = ["Answering", "uniform_of"]


@lru_cache(maxsize=64)
def uniform_of(system: TransitionSystem) -> UniformSystem:
    """The code of a system, which is written once."""
    return UniformSystem(system)


class Answering:
    """One run of a system on calls of the API, as `oracle.Replay` answers them."""

    def __init__(self, system: TransitionSystem, parameters: Parameters) -> None:
        world = world_of(parameters)
        self._system = system
        self._in_world = uniform_of(system).world(world)
        self._variables = [v.name for v in self._in_world.uniform.variables]
        self._inputs = {i: k for k, i in enumerate(world.universe["Input"])}
        self._requests = {r: k for k, r in enumerate(world.universe["Request"])}
        hashes = {h: k for k, h in enumerate(world.universe["Hash"])}
        self._hash_of = [hashes[h] for h in world.functions["hash_of"].values()]
        twins = twins_of(world) if "freed" in self._variables else {}
        self._twins = {
            hashes[h]: sum(1 << hashes[g] for g in others) for h, others in twins.items()
        }
        self._shown_name = shown_name(world)
        self._state: Packed = self._in_world.initial()

    def answer(self, call: Call, *, shown: bool = True) -> Expect | None:
        """What the system answers; None where the call is one that its guards refuse.

        Without its state, which takes most of the time, where that need not be `shown`.
        """
        done = self._made(call)
        if done is None:
            return None
        returns, sort = done
        if isinstance(sort, SetSort):
            members = self._in_world.members(sort, returns)
            returns = tuple(sorted({self._shown_name(h) for (h,) in members}))
        if not shown:
            return Expect(returns, Observed())
        state = self._in_world.unpack(self._state)
        return Expect(returns, observe(self._system, self._in_world.world, state))

    def made(self, call: Call) -> bool:
        """Make a call, for who does not ask what it answers; false where it is refused."""
        return self._made(call) is not None

    def references(self, request: str, input_id: int) -> bool:
        """Whether the request references the hash that it has at this position."""
        bits: int = self._state[self._variables.index("references")]
        mm_hash = self._hash_of[self._inputs[input_name(request, input_id)]]
        return bool(bits >> mm_hash * len(self._requests) + self._requests[request] & 1)

    def _made(self, call: Call) -> tuple[Any, Sort | None] | None:
        arguments: tuple[int, ...] = ()
        if isinstance(call, Free):
            arguments = (self._requests[call.request],)
        elif not isinstance(call, GetFreedMmHashes | Reset):
            number = self._inputs[input_name(call.request, call.input_id)]
            if self._clashes(number):
                return None
            arguments = (number,)
        if isinstance(call, CanAllocate):
            arguments += (call.encoder_compute_budget, call.num_embeds_to_schedule)
        name = str(call.__struct_config__.tag)
        for action in (name, f"{name}_again"):
            function = self._in_world.calls.get(action)
            done = None if function is None else function(self._state, *arguments)
            if done is not None:
                returns, self._state = done
                asked = self._system.action(action).returns
                return returns, None if asked is None else asked.sort
        return None

    def _clashes(self, number: int) -> bool:
        """Whether the identifier is known with another size, as `oracle.Replay` has it."""
        if not self._twins:
            return False
        at = self._variables.index
        known: int = self._state[at("cached")] | self._state[at("freed")]
        return bool(known & self._twins.get(self._hash_of[number], 0))
