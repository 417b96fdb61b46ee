"""The specified side: random walks through one world, each step with what must come back.

A walk makes calls that a caller may make. Each state is kept with the calls that were made from
it, so that later walks of the same world can go the same way for nothing and then turn off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import NamedTuple

import msgspec

from mmcache_spec.answering import uniform_of
from mmcache_spec.evaluate.uniform import Packed, UniformCall
from mmcache_spec.oracle import twins_of, world_of
from mmcache_spec.phases import Ask, Place, draw_phases
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Manager,
    Observed,
    Parameters,
    Reset,
)

from ..oracle.systems import specified
from ..targets.protocol import ALLOCATE_AGAIN, call_name
from ..verdicts.changes import LARGEST_NUMBER
from .view import View, WalkedScene

__all__ = ["Edge", "WalkedWorld"]

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
"""So many beginnings by phases are made for a world, of so many calls at most; longer walks have
phases of their own all the way."""

_MOST_IN_VAIN = 12
"""Phases without a call, before a walk goes on by habit."""

_POSITIONS = {*range(13), 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257}
"""The positions that walks are about: widths end at these."""

_GOES_ON = 0.55
"""How often a walk takes a call that an earlier one has made from the same state."""


class Edge(NamedTuple):
    """One call from one state: what is sent, and what must come back."""

    call: Call
    encoded: bytes
    returns: bool | tuple[str, ...] | None
    observed: Observed
    node: _Node


class _Node:
    """A state of one world, what it shows, and the calls that were made from it."""

    __slots__ = ("edges", "made", "observed", "right", "state")

    def __init__(self, state: Packed, observed: Observed) -> None:
        self.state = state
        self.observed = observed
        self.right: Observed | None = None
        """What came back of it and was compared already: it is equal to `observed`."""
        self.edges: list[Edge] = []
        self.made: dict[int | tuple[int, int, int], Edge | None] = {}
        """By the number of the question, with its integers if it has any. None for a call that the
        guards refuse."""


class _Question(NamedTuple):
    """A call without its integers: how the specification is asked, and how it is sent."""

    number: int
    functions: tuple[UniformCall, ...]
    """What may perform it, of which the guards of at most one allow it."""
    about: tuple[int, ...]
    """The number of the input, or of the request."""
    twins: int
    """The bits of the other hashes that have the identifier of the one that it is about."""
    call: Call
    encoded: bytes


class WalkedWorld:
    """One world, and the states that walks have come to in it."""

    def __init__(
        self,
        manager: Manager,
        parameters: Parameters,
        capabilities: frozenset[str],
        shown: frozenset[str],
    ) -> None:
        """A world as a target sees it.

        Args:
            manager: Of which kind.
            parameters: What is in it.
            capabilities: Of the target: no other call is made.
            shown: The observables that the target shows: no others are expected of it.
        """
        self.parameters = parameters
        self.encoded = msgspec.json.encode(parameters)
        self._capabilities = capabilities
        world = world_of(parameters)
        self._in_world = uniform_of(specified(manager)).world(world)
        self._view = View(self._in_world, parameters, shown)
        start = self._in_world.initial()
        self._root = _Node(start, self._view.observed(start))
        self._nodes = {start: self._root}
        self._scripts: list[tuple[Edge, ...]] = []
        self._habits = _habits_of(capabilities)
        hashes = {h: k for k, h in enumerate(world.universe["Hash"])}
        carried = [hashes[h] for h in world.functions["hash_of"].values()]
        every = [(q, k) for q, r in enumerate(parameters.requests) for k in range(len(r.items))]
        self._places = [
            Place(number, *at, mm_hash)
            for number, (at, mm_hash) in enumerate(zip(every, carried, strict=True))
            if at[1] in _POSITIONS
        ]
        self._sizes = [
            parameters.requests[at.request].items[at.position].num_embeds for at in self._places
        ]
        self._questions = self._questions_of(manager)

    def _questions_of(self, manager: Manager) -> dict[str, list[_Question]]:
        """All that may be asked: of each kind, in the order of places or requests."""
        calls, requests = self._in_world.calls, self.parameters.requests
        twins = self._bits_of_twins()
        found: dict[str, list[_Question]] = {}
        number = 0
        for kind in _KINDS:
            actions = [kind]
            if kind == "allocate" and ALLOCATE_AGAIN in self._capabilities:
                actions.append(ALLOCATE_AGAIN)
            functions = tuple(calls[a] for a in actions if a in calls)
            made: list[tuple[Call, tuple[int, ...], int]]
            if kind == "free":
                made = [(Free(r.request_id), (k,), 0) for k, r in enumerate(requests)]
            elif kind in _ALONE:
                made = [(_ALONE[kind], (), 0)]
            else:
                make = _MAKERS[kind]
                made = [
                    (
                        make(requests[at.request].request_id, at.position),
                        (at.number,),
                        twins.get(at.mm_hash, 0),
                    )
                    for at in self._places
                ]
            found[kind] = []
            for call, about, others in made:
                encoded = msgspec.json.encode(call)
                found[kind].append(_Question(number, functions, about, others, call, encoded))
                number += 1
        return found

    def walk(self, random: Random, length: int, longest: int | None = None) -> Iterator[Edge]:
        """So many calls, or fewer where nothing may be called any more.

        No walk of the world is longer than the longest, if that is known: no script need be.
        """
        kinds = self._habits[int(random.random() * len(self._habits))]
        if not kinds:
            kinds = sorted(self._capabilities.intersection(_KINDS))
            if not kinds:
                return
        node = self._root
        if random.random() >= _WANDERS:
            if length > _SCRIPT:
                yield from self._by_phases(random, length, kinds)
                return
            script = self._script(random, min(_SCRIPT, longest or length), kinds)
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

    def forget(self) -> None:
        """No walk is made any more. States and calls hold one another: this ends that."""
        for node in self._nodes.values():
            node.edges.clear()
            node.made.clear()
        self._nodes.clear()
        self._scripts.clear()

    def _script(self, random: Random, length: int, kinds: list[str]) -> tuple[Edge, ...]:
        """Phases that several walks of the world begin with, each so far as it likes."""
        if len(self._scripts) < _SCRIPTS:
            self._scripts.append(tuple(self._by_phases(random, length, kinds)))
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
        if ask.kind not in self._capabilities:
            return None
        question = self._questions[ask.kind][ask.at]
        if ask.kind == "can_allocate":
            budget = max(0, min(ask.budget, LARGEST_NUMBER))
            return self._made(node, question, (budget, ask.pending))
        return self._made(node, question)

    def _new_edge(self, random: Random, node: _Node, kinds: list[str]) -> Edge | None:
        for _ in range(_MOST_TRIES):
            kind = kinds[int(random.random() * len(kinds))]
            choices = self._questions[kind]
            if not choices:
                continue
            at = int(random.random() * len(choices))
            if kind == "can_allocate":
                amounts = self._amounts(random, node, self._sizes[at])
                found = self._made(node, choices[at], amounts)
            else:
                found = self._made(node, choices[at])
            if found is not None:
                return found
        return None

    def _made(
        self, node: _Node, question: _Question, integers: tuple[()] | tuple[int, int] = ()
    ) -> Edge | None:
        key = (question.number, *integers) if integers else question.number
        made = node.made
        if key in made:
            return made[key]
        edge = self._made_now(node, question, integers)
        made[key] = edge
        if edge is not None:
            node.edges.append(edge)
        return edge

    def _made_now(
        self, node: _Node, question: _Question, integers: tuple[()] | tuple[int, int]
    ) -> Edge | None:
        _, functions, about, twins, call, encoded = question
        state = node.state
        if twins and self._view.known(state) & twins:
            return None
        for function in functions:
            done = function(state, *about, *integers)
            if done is None:
                continue
            result, state = done
            after = self._nodes.get(state)
            if after is None:
                after = self._nodes[state] = _Node(state, self._view.observed(state))
            if integers:
                assert isinstance(call, CanAllocate)
                call = CanAllocate(call.request, call.input_id, *integers)
                encoded = msgspec.json.encode(call)
            elif call is _REPORT:
                result = self._view.report(result)
            return Edge(call, encoded, result, after.observed, after)
        return None

    def _bits_of_twins(self) -> dict[int, int]:
        """For each hash whose identifier has two sizes, the bits of its other hashes."""
        if not self._view.is_whole:
            return {}
        hashes = self._in_world.world.universe["Hash"]
        return {
            hashes.index(h): sum(1 << hashes.index(g) for g in others)
            for h, others in twins_of(self._in_world.world).items()
        }

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


_REPORT, _RESET = GetFreedMmHashes(), Reset()
_ALONE: dict[str, Call] = {"get_freed_mm_hashes": _REPORT, "reset": _RESET}
_MAKERS: dict[str, _Kind] = {
    "check_and_update_cache": CheckAndUpdateCache,
    "can_allocate": lambda request, k: CanAllocate(request, k, 0, 0),
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


@cache
def _habits_of(capabilities: frozenset[str]) -> list[list[str]]:
    """For each habit the calls that are drawn, as often as it has them."""
    return [
        [
            name
            for name, often in zip(_KINDS, habit, strict=True)
            for _ in range(often)
            if name in capabilities
        ]
        for habit in _HABITS
    ]
