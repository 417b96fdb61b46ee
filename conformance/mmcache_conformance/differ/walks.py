"""The specified side: random walks through one world, each step with what must come back.

A walk makes calls that a caller may make. Each state is kept with the calls that were made from
it, so that later walks of the same world can go the same way for nothing and then turn off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import msgspec

from mmcache_spec.evaluate.compiled import CompiledCall, CompiledSystem, Packed, with_numbers
from mmcache_spec.evaluate.interpreter import ActionCall, World
from mmcache_spec.oracle import input_name, spec_calls
from mmcache_spec.phases import Ask, Place, draw_phases
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Observed,
    Parameters,
    Request,
    Reset,
)

from ..oracle.systems import specified
from ..targets.protocol import ALLOCATE_AGAIN, call_name
from ..verdicts.changes import LARGEST_NUMBER
from .view import View, WalkedScene
from .worlds import CAPACITY, NEWCOMER, Shape, open_world

__all__ = ["CompiledShape", "Edge", "WalkedWorld"]

_Kind = Callable[[str, int], Call]

_HABITS: tuple[tuple[int, ...], ...] = (
    (40, 50, 60, 50, 10, 20, 1),
    (40, 50, 60, 50, 10, 20, 6),
    (80, 30, 80, 10, 3, 10, 1),
    (20, 80, 60, 30, 30, 10, 0),
    (20, 60, 60, 80, 10, 5, 1),
    (30, 80, 80, 20, 30, 5, 0),
    (50, 40, 50, 60, 20, 40, 1),
)
"""How often each call is drawn, in the order of `CALLS`; a walk has one of these habits."""

_MOST_TRIES = 40
"""Calls drawn in vain, because the guards refuse them, before a walk ends."""

_WANDERS = 0.4
"""How many walks are of habit alone; the others begin, or go all the way, from phase to phase."""

_SCRIPTS, _SCRIPT = 5, 40
"""So many beginnings by phases are made for a world, of so many calls; longer walks have phases of
their own all the way."""

_MOST_IN_VAIN = 12
"""Phases without a call, before a walk goes on by habit."""

_POSITIONS = {*range(13), 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257}
"""The positions that walks are about: each costs a compilation, and widths end at these."""

_GOES_ON = 0.55
"""How often a walk takes a call that an earlier one has made from the same state."""


@dataclass(frozen=True)
class Edge:
    """One call from one state: what is sent, and what must come back."""

    call: Call
    encoded: bytes
    returns: bool | tuple[str, ...] | None
    observed: Observed
    node: _Node


class _Node:
    """A state of one world, what it shows, and the calls that were made from it."""

    __slots__ = ("edges", "made", "observed", "state")

    def __init__(self, state: Packed, observed: Observed) -> None:
        self.state = state
        self.observed = observed
        self.edges: list[Edge] = []
        self.made: dict[Call, Edge | None] = {}
        """None for a call that the guards refuse."""


class CompiledShape:
    """The specification, compiled for one shape call by call, as walks come to need them."""

    def __init__(self, shape: Shape, capabilities: frozenset[str]) -> None:
        self.shape = shape
        self.system = specified(shape.manager)
        self.world: World = open_world(shape)
        self.compiled = CompiledSystem(self.system, self.world)
        self.capabilities = capabilities
        self.actions = {action.name for action in self.system.actions}
        if ALLOCATE_AGAIN not in capabilities:
            self.actions.discard(ALLOCATE_AGAIN)
        self._functions: dict[Call, list[CompiledCall]] = {}

    def functions(self, call: Call) -> list[CompiledCall]:
        """What may perform the call, of which the guards of at most one allow it."""
        if self.asks_for_admission(call):
            call = _OF_NEWCOMER
        if call not in self._functions:
            choices = [c for c in spec_calls(self.system, call) if c.action in self.actions]
            if call is _OF_NEWCOMER:
                numbers = {**choices[0].arguments, "input": NEWCOMER}
                choices = [ActionCall(choices[0].action, numbers)]
            self._functions[call] = [self.compiled.compile(choice) for choice in choices]
        return self._functions[call]

    def asks_for_admission(self, call: Call) -> bool:
        """Whether what answers is compiled for the newcomer, which is not cached."""
        return isinstance(call, CanAllocate) and self.shape.manager == "encoder_cache"


class WalkedWorld:
    """One world of a shape, and the states that walks have come to in it."""

    def __init__(self, shape: CompiledShape, parameters: Parameters, shown: frozenset[str]) -> None:
        """`shown` are the observables that the target shows: no others are expected of it."""
        self.parameters = parameters
        self.encoded = msgspec.json.encode(parameters)
        self._shape = shape
        self._variables = [v.name for v in shape.compiled.variables]
        world = shape.world
        names = {
            f"h{k}": item.identifier
            for request, carried in zip(parameters.requests, shape.shape.requests, strict=True)
            for item, k in zip(request.items, carried, strict=True)
        }
        self._numbers = {
            f"z_h{k}": item.num_embeds
            for request, carried in zip(parameters.requests, shape.shape.requests, strict=True)
            for item, k in zip(request.items, carried, strict=True)
        }
        names[NEWCOMER] = ""
        self._numbers[f"z_{NEWCOMER}"] = 0
        self._twins = self._bits_of_twins(names)
        self._numbers[CAPACITY] = parameters.cache_size
        self._view = View(shape.compiled, world, names, parameters, shown)
        closed = CompiledSystem(shape.system, _closed(world, self._numbers))
        start = closed.initial()
        self._root = _Node(start, self._view.observed(start))
        self._nodes = {start: self._root}
        self._functions: dict[Call, list[CompiledCall]] = {}
        self._scripts: list[tuple[Edge, ...]] = []
        self._habits = [
            [
                name
                for name, often in zip(_KINDS, habit, strict=True)
                for _ in range(often)
                if name in shape.capabilities
            ]
            for habit in _HABITS
        ]
        every = [
            (number, k, h)
            for number, carried in enumerate(shape.shape.requests)
            for k, h in enumerate(carried)
        ]
        pairs = list(zip(parameters.requests, shape.shape.requests, strict=True))
        self._items = {request.request_id: request.items for request, _ in pairs}
        self._hashes = {request.request_id: carried for request, carried in pairs}
        self._places = [Place(k, *at) for k, at in enumerate(every) if at[1] in _POSITIONS]

    def walk(self, random: Random, length: int) -> Iterator[Edge]:
        """So many calls, or fewer where nothing may be called any more."""
        kinds = self._habits[int(random.random() * len(self._habits))]
        if not kinds:
            kinds = sorted(self._shape.capabilities.intersection(_KINDS))
            if not kinds:
                return
        node = self._root
        if random.random() >= _WANDERS:
            if length > _SCRIPT:
                yield from self._by_phases(random, length, kinds)
                return
            script = self._script(random, kinds)
            begun = script[: min(length, random.randint(1, 2 * len(script)))] if script else ()
            for edge in begun:
                yield edge
                node = edge.node
            length -= len(begun)
        for _ in range(length):
            following = self._by_habit(random, node, kinds)
            if following is None:
                return
            yield following
            node = following.node

    def _script(self, random: Random, kinds: list[str]) -> tuple[Edge, ...]:
        """Phases that several walks of the world begin with, each so far as it likes."""
        if len(self._scripts) < _SCRIPTS:
            self._scripts.append(tuple(self._by_phases(random, _SCRIPT, kinds)))
            return self._scripts[-1]
        return random.choice(self._scripts)

    def _by_habit(self, random: Random, node: _Node, kinds: list[str]) -> Edge | None:
        """A call that an earlier walk has made from there, or another."""
        edges = node.edges
        if len(edges) > 2 and random.random() < _GOES_ON:
            return edges[int(random.random() * len(edges))]
        return self._new_edge(random, node, kinds)

    def _by_phases(self, random: Random, length: int, kinds: list[str]) -> Iterator[Edge]:
        scene = WalkedScene(self._view, self._places, self.parameters, self._root.state)
        node = self._root
        phases, vain = draw_phases(random), 0
        while length > 0:
            before = length
            asks = iter([Ask()]) if vain > _MOST_IN_VAIN else random.choice(phases)(scene, random)
            for ask in asks:
                edge = self._asked(random, node, ask, kinds)
                if edge is None:
                    continue
                yield edge
                node = edge.node
                scene.state = node.state
                length -= 1
                if length == 0:
                    return
            vain = vain + 1 if length == before else 0
            if vain > _MOST_IN_VAIN + 1:
                return

    def _asked(self, random: Random, node: _Node, ask: Ask, kinds: list[str]) -> Edge | None:
        """The call that a phase wants, if the target has it and the guards allow it."""
        if not ask.kind:
            return self._by_habit(random, node, kinds)
        if ask.kind not in self._shape.capabilities:
            return None
        return self._made(node, *self._wanted(ask))

    def _wanted(self, ask: Ask) -> tuple[Call, Call]:
        if ask.kind == "get_freed_mm_hashes":
            return _REPORT, _REPORT
        if ask.kind == "reset":
            return _RESET, _RESET
        if ask.kind == "free":
            return Free(self.parameters.requests[ask.at].request_id), Free(f"r{ask.at + 1}")
        request, name, k = self._named(self._places[ask.at])
        if ask.kind == "can_allocate":
            budget = max(0, min(ask.budget, LARGEST_NUMBER))
            made = CanAllocate(request.request_id, k, budget, ask.pending)
            return made, CanAllocate(name, k, 0, 0)
        make = _MAKERS[ask.kind]
        return make(request.request_id, k), make(name, k)

    def _new_edge(self, random: Random, node: _Node, kinds: list[str]) -> Edge | None:
        for _ in range(_MOST_TRIES):
            kind = kinds[int(random.random() * len(kinds))]
            found = self._made(node, *self._draw(random, node, kind))
            if found is not None:
                return found
        return None

    def _made(self, node: _Node, call: Call, specified_call: Call) -> Edge | None:
        if call not in node.made:
            node.made[call] = edge = self._made_now(node, call, specified_call)
            if edge is not None:
                node.edges.append(edge)
        return node.made[call]

    def _made_now(self, node: _Node, call: Call, specified_call: Call) -> Edge | None:
        if self._twins and self._clashes(node.state, specified_call):
            return None
        numbers = self._numbers
        if isinstance(call, CanAllocate) and self._shape.asks_for_admission(call):
            if self._view.is_cached(node.state, self._hashes[call.request][call.input_id]):
                return None
            size = self._items[call.request][call.input_id].num_embeds
            numbers = {**numbers, f"z_{NEWCOMER}": size}
        functions = self._functions.get(specified_call)
        if functions is None:
            compiled = self._shape.functions(specified_call)
            functions = [with_numbers(f, numbers) for f in compiled]
            self._functions[specified_call] = functions
        integers = (
            (call.encoder_compute_budget, call.num_embeds_to_schedule)
            if isinstance(call, CanAllocate)
            else ()
        )
        for function in functions:
            done = function(node.state, *integers)
            if done is None:
                continue
            result, state = done
            after = self._nodes.get(state)
            if after is None:
                after = self._nodes[state] = _Node(state, self._view.observed(state))
            returns = self._view.report(result) if isinstance(call, GetFreedMmHashes) else result
            return Edge(call, msgspec.json.encode(call), returns, after.observed, after)
        return None

    def _clashes(self, state: Packed, call: Call) -> bool:
        """Whether the identifier is known with another size, as `Replay` has it."""
        position = getattr(call, "input_id", None)
        if position is None:
            return False
        twins = self._twins.get(input_name(getattr(call, "request", ""), position), 0)
        at = self._variables.index
        known: int = state[at("cached")] | state[at("freed")]
        return bool(known & twins)

    def _bits_of_twins(self, names: dict[str, str]) -> dict[str, int]:
        """For each place whose identifier has two sizes, the bits of its other hashes."""
        hashes = self._shape.world.universe["Hash"]
        hash_of = self._shape.world.functions["hash_of"]
        twins = {
            i: sum(1 << k for k, g in enumerate(hashes) if g != h and names[g] == names[h])
            for i, h in hash_of.items()
        }
        return {i: bits for i, bits in twins.items() if bits and "freed" in self._variables}

    def _draw(self, random: Random, node: _Node, kind: str) -> tuple[Call, Call]:
        """A call, and the same call in the names of the shape; there, without its numbers."""
        if kind == "get_freed_mm_hashes":
            return _REPORT, _REPORT
        if kind == "reset":
            return _RESET, _RESET
        if kind == "free":
            number = int(random.random() * len(self.parameters.requests))
            return Free(self.parameters.requests[number].request_id), Free(f"r{number + 1}")
        place = self._places[int(random.random() * len(self._places))]
        request, name, k = self._named(place)
        if kind == "can_allocate":
            size = request.items[k].num_embeds
            budget, pending = self._amounts(random, node, size)
            made = CanAllocate(request.request_id, k, budget, pending)
            return made, CanAllocate(name, k, 0, 0)
        make = _MAKERS[kind]
        return make(request.request_id, k), make(name, k)

    def _named(self, place: Place) -> tuple[Request, str, int]:
        """The request, what it is called in the shape, and the position."""
        return self.parameters.requests[place.request], f"r{place.request + 1}", place.position

    def _amounts(self, random: Random, node: _Node, size: int) -> tuple[int, int]:
        """A budget and a pending size, often just at a boundary of this state."""
        chance = random.random()
        if chance < 0.5:
            return size + int(chance * 8), 0
        if chance < 0.55:
            return max(0, size - 1), 0
        free, freeable = self._view.slots(node.state)
        edge = (freeable if chance < 0.85 else free) - size
        pending = max(0, edge + random.choice((-1, 0, 0, 0, 1)))
        budget = size + random.choice((0, 0, 1, 1 << 40))
        return min(budget, LARGEST_NUMBER), pending


_OF_NEWCOMER = CanAllocate("r1", 0, 0, 0)
_REPORT, _RESET = GetFreedMmHashes(), Reset()
_MAKERS: dict[str, _Kind] = {
    "check_and_update_cache": CheckAndUpdateCache,
    "allocate": Allocate,
    "free_encoder_input": FreeEncoderInput,
}
_KINDS = tuple(
    call_name(call)
    for call in (
        CheckAndUpdateCache("r", 0),
        CanAllocate("r", 0, 0, 0),
        Allocate("r", 0),
        FreeEncoderInput("r", 0),
        Free("r"),
        _REPORT,
        _RESET,
    )
)


def _closed(world: World, numbers: dict[str, int]) -> World:
    """The world with its numbers."""
    sizes = {h: numbers[f"z_{h}"] for h in world.universe["Hash"]}
    embeds = {i: sizes[h] for i, h in world.functions["hash_of"].items()}
    functions = {**world.functions, "size": sizes, "embeds": embeds}
    return World(world.universe, {"capacity": numbers[CAPACITY]}, functions)
