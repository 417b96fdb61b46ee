"""Deep vectors: long walks in large worlds, chosen by the pairs of situations that they show.

The other vectors are as short as can be, one situation each. Some defects need two: a fifth user of
a hash, and then the release of the first; three evictions, and then the report. A walk is a
candidate; what it brings about is known from the compiled model, and few walks are chosen that
together bring about as many pairs as all do. What the chosen ones expect is, as for every vector,
what the interpreter answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from random import Random
from typing import Any

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Parameters,
    Request,
    Reset,
    Vector,
)

from ..evaluate.compiled import CompiledCall, CompiledSystem, Packed
from ..evaluate.interpreter import World
from ..model.variants import SPECIFIED
from ..oracle import by_age, input_name, spec_calls, twins_of, world_of
from .draft import CLOSING, answered, by_hits
from .managers import specified
from .situations import situations

__all__ = ["DEEP", "deep_vectors"]

DEEP = 20
"""The most deep vectors: as many as the default run has time for."""

WORLDS = 16
WALKS_IN_A_WORLD = 40
LENGTH = 38
"""Calls of a walk; two reports follow."""

_PHASES = {"fill": 6, "drain": 4, "end": 2, "squeeze": 5, "report": 1, "revive": 2, "any": 3}
"""How often each phase of a walk is drawn. By single calls drawn at random, a cache is hardly ever
full, and hardly ever are many entries idle at once."""


@dataclass(frozen=True)
class _Walk:
    """A candidate, and the pairs of situations that it brings about."""

    world: int
    number: int
    calls: tuple[Call, ...]
    pairs: frozenset[tuple[str, str]]


def deep_vectors(executor: Executor) -> dict[str, Vector]:
    """The chosen ones, by id. The result does not depend on how the work is shared out."""
    candidates = [w for walks in executor.map(_walks, range(WORLDS)) for w in walks]
    chosen = _chosen(candidates)
    vectors = executor.map(_vector, chosen)
    return {vector.id: vector for vector in vectors}


def _chosen(candidates: list[_Walk]) -> list[_Walk]:
    """Greedily the one that adds most, by its number where several do.

    A pair counts the more, the fewer walks bring it about, and a situation by itself counts as
    fifty pairs.
    """
    found_in = Counter(pair for walk in candidates for pair in walk.pairs)
    worth = {p: (1000 if p[0] else 50_000) // count for p, count in found_in.items()}
    missing = set(worth)
    chosen: list[_Walk] = []

    def gain(walk: _Walk) -> tuple[int, ...]:
        return sum(worth[p] for p in walk.pairs & missing), -walk.world, -walk.number

    while missing and len(chosen) < DEEP:
        best = max(candidates, key=gain)
        if not best.pairs & missing:
            break
        chosen.append(best)
        missing -= best.pairs
    return sorted(chosen, key=lambda w: (w.world, w.number))


def _vector(walk: _Walk) -> Vector:
    system, parameters = specified("ledger"), _parameters(walk.world)
    return answered(
        f"deep-{walk.world}-{walk.number}",
        f"A long walk in a large world: {len(walk.pairs)} pairs of situations, one after the "
        "other.",
        f"{len(walk.pairs)} pairs of situations",
        SPECIFIED.name,
        (),
        system,
        parameters,
        [*by_hits(system, parameters, walk.calls), *CLOSING],
    )


# --- the worlds --------------------------------------------------------------------------------


def _parameters(number: int) -> Parameters:
    """Four to eight hashes, three to six requests, twelve items.

    In every fourth world an identifier has two sizes.
    """
    random = Random(f"deep world {number}")
    hashes = 8 if number % 2 else random.randint(4, 7)
    sizes = [random.randint(1, 5) if number % 3 else 1 for _ in range(hashes)]
    items = [Item(chr(ord("A") + k), size) for k, size in enumerate(random.sample(sizes, hashes))]
    if number % 4 == 3:
        items[1] = Item(items[0].identifier, items[0].num_embeds + 2)
    requests: list[list[Item]] = [[] for _ in range(random.choice((3, 5, 6, 6)))]
    for k in range(12):
        mine = requests[k if k < len(requests) else random.randrange(len(requests))]
        # Some worlds have a few hashes that everybody carries, or that one request repeats.
        few = number % 5 == 1
        repeats = number % 5 == 2 and mine and random.random() < 0.7
        item = mine[0] if repeats else items[random.randrange(2 if few else hashes)]
        mine.append(items[0] if few and not mine else item)
    if number % 7 == 4:  # one request carries nearly everything, from the ninth position on as well
        everything = [item for mine in requests[1:] for item in mine[1:]]
        requests = [requests[0] + everything, *([mine[0]] for mine in requests[1:])]
    carried = {item.identifier: item.num_embeds for mine in requests for item in mine}
    total = sum(carried.values())
    scarce = random.randint(0, total * 2 // 3) if number % 2 == 0 else random.choice((0, 1))
    capacity = max(*carried.values(), total - scarce)
    named = (Request(f"r{k + 1}", tuple(mine)) for k, mine in enumerate(requests))
    return Parameters(capacity, tuple(named))


# --- the walks ---------------------------------------------------------------------------------


def _walks(world: int) -> list[_Walk]:
    """Every candidate in one world."""
    model = _Model(_parameters(world))
    return [_walk(model, world, number) for number in range(WALKS_IN_A_WORLD)]


class _Model:
    """The specified ledger in one world, compiled call by call."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.world = world_of(parameters)
        self.system = specified("ledger")
        self.compiled = CompiledSystem(self.system, self.world)
        self.twins = twins_of(self.world)
        self._functions: dict[Call, list[CompiledCall]] = {}
        self._unpacked: dict[Packed, Mapping[str, Any]] = {}
        self.places = [(r.request_id, k) for r in parameters.requests for k in range(len(r.items))]

    def unpacked(self, state: Packed) -> Mapping[str, Any]:
        if state not in self._unpacked:
            self._unpacked[state] = self.compiled.unpack(state)
        return self._unpacked[state]

    def made(self, state: Packed, call: Call) -> tuple[Any, Packed] | None:
        """The result and the state after it; None where a caller must not make the call."""
        if self.twins and self._clashes(state, call):
            return None
        asked = call
        if isinstance(call, CanAllocate):
            asked = CanAllocate(call.request, call.input_id, 0, 0)
        if asked not in self._functions:
            choices = spec_calls(self.system, asked)
            self._functions[asked] = [self.compiled.compile(choice) for choice in choices]
        integers = (
            (call.encoder_compute_budget, call.num_embeds_to_schedule)
            if isinstance(call, CanAllocate)
            else ()
        )
        results = (function(state, *integers) for function in self._functions[asked])
        return next((done for done in results if done is not None), None)

    def _clashes(self, state: Packed, call: Call) -> bool:
        position = getattr(call, "input_id", None)
        if position is None:
            return False
        given = input_name(getattr(call, "request", ""), position)
        others = self.twins.get(self.world.functions["hash_of"][given], ())
        seen = self.unpacked(state)
        return any((twin,) in seen["cached"] | seen["freed"] for twin in others)


def _walk(model: _Model, world: int, number: int) -> _Walk:
    random = Random(f"deep walk {world} {number}")
    state = model.compiled.initial()
    calls: list[Call] = []
    planned: list[Call] = []
    before: set[str] = set()
    sizes: dict[str, int] = {}
    pairs: set[tuple[str, str]] = set()
    while len(calls) < LENGTH:
        if not planned:
            planned = _phase(random, model, model.unpacked(state))
            continue
        call = planned.pop(0)
        done = model.made(state, call)
        if done is None:
            continue
        result, after = done
        now = set(
            situations(model.world, call, result, model.unpacked(state), model.unpacked(after))
        )
        if isinstance(call, Reset):
            sizes.clear()
        if isinstance(call, Allocate):
            now |= set(_other_size(model.world, call, sizes))
        pairs |= {(first, second) for first in before for second in now}
        pairs |= {("", situation) for situation in now}
        before |= now
        calls.append(call)
        state = after
    return _Walk(world, number, tuple(calls), frozenset(pairs))


def _other_size(world: World, call: Allocate, sizes: dict[str, int]) -> Iterator[str]:
    """Whether an identifier comes back with another size. `sizes` are the last ones."""
    given = input_name(call.request, call.input_id)
    name = world.functions["identifier"][world.functions["hash_of"][given]]
    size = world.functions["embeds"][given]
    last = sizes.get(name, size)
    if last != size:
        yield f"an allocation with a {'larger' if size > last else 'smaller'} size than before"
    sizes[name] = size


def _phase(random: Random, model: _Model, state: Mapping[str, Any]) -> list[Call]:
    """A few calls with one aim. Those that a caller must not make are left out later."""
    kind = random.choices(tuple(_PHASES), weights=tuple(_PHASES.values()))[0]
    world = model.world
    places = random.sample(model.places, len(model.places))
    some = random.randint(1, 8)
    match kind:
        case "fill":
            return [call for r, k in places[:some] for call in _want(random, model, state, r, k)]
        case "drain":
            held = [(r, k) for r, k in places if (input_name(r, k),) in state["held"]]
            return [FreeEncoderInput(r, k) for r, k in held[:some]]
        case "end":
            return [Free(places[0][0])]
        case "squeeze":
            r, k = places[0]
            size = world.functions["embeds"][input_name(r, k)]
            idle = by_age(state)
            goes = idle[: random.choice((len(idle), random.randint(0, len(idle))))]
            room = state["free_slots"] + sum(world.functions["size"][h] for h in goes[:-1])
            pending = max(0, room - size + (1 if goes else 0) + random.choice((0, 0, 1)))
            report = [GetFreedMmHashes()] if random.random() < 0.5 else []
            return [CanAllocate(r, k, size, pending), *report]
        case "report":
            return [GetFreedMmHashes()]
        case "revive":
            hash_of = world.functions["hash_of"]
            idle_ones = [
                (r, k) for r, k in places if (hash_of[input_name(r, k)],) in state["freeable"]
            ]
            return [CheckAndUpdateCache(r, k) for r, k in idle_ones[:1]]
    return [_any_call(random, model, *places[0])]


def _want(
    random: Random, model: _Model, state: Mapping[str, Any], r: str, k: int
) -> tuple[Call, ...]:
    """Look up what is there, allocate what is not; as a scheduler does, or straight away."""
    given = input_name(r, k)
    if (model.world.functions["hash_of"][given],) in state["cached"]:
        return (CheckAndUpdateCache(r, k),)
    if random.random() < 0.6:
        return (Allocate(r, k),)
    size = model.world.functions["embeds"][given]
    return CheckAndUpdateCache(r, k), CanAllocate(r, k, size, 0), Allocate(r, k)


def _any_call(random: Random, model: _Model, r: str, k: int) -> Call:
    size = model.world.functions["embeds"][input_name(r, k)]
    choices: tuple[Call, ...] = (
        CheckAndUpdateCache(r, k),
        CanAllocate(r, k, max(0, size - random.randint(0, 1)), random.randint(0, 3)),
        Allocate(r, k),
        FreeEncoderInput(r, k),
        Free(r),
        GetFreedMmHashes(),
    )
    return Reset() if random.random() < 0.06 else random.choice(choices)
