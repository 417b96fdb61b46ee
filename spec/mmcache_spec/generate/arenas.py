"""Where designs are compared with each system: the small worlds, and how a proof may relate two.

The worlds of a scope differ in sizes, capacity and which inputs share a hash; those in which most
can happen are taken. The first two are small ones, where most wrong designs are found out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ..checks.equivalence import Coupling, Relation
from ..checks.explore import Explorer
from ..checks.judging import Arena
from ..checks.reach import Place
from ..checks.small_worlds import Ranges, small_worlds, variety
from ..checks.vacuity import Situations
from ..evaluate.interpreter import ActionCall, World
from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import any_of, forall
from ..model import ledger as lg
from ..model.engine_state import encodes, loads
from ..model.goals import ENGINE_GOALS
from ..model.world import HASH, REQUEST, scope

__all__ = ["COUPLINGS", "WORLDS", "Few", "arena", "came_back", "situations"]


@dataclass(frozen=True)
class Few:
    """So many worlds of a scope, with these integers for capacity and sizes."""

    hashes: int
    requests: int
    items: int
    count: int
    ranges: Ranges = field(default_factory=lambda: Ranges((1, 2), {"capacity": (2,)}))
    most_states: int = 3_000
    """Of worlds with more states than that, all are as good, and the first is taken."""


def _rich(
    hashes: int, requests: int, items: int, count: int = 1, **integers: tuple[int, ...]
) -> Few:
    """A world of which a part is seen."""
    sizes = integers.get("size", (1,))
    ranges = Ranges((1,), {"lookahead": (0,), "embeds": sizes, **integers})
    return Few(hashes, requests, items, count, ranges, most_states=300)


NO_SIZE = Few(2, 2, 1, 1, Ranges((0,), {"capacity": (0,)}))
"""Items of no size fit everywhere, even where nothing else does."""

PROGRESS = {
    "capacity": (2,),
    "offset": (0, 1),
    "prompt": (2, 3),
    "arrival": (0, 1),
    "watched": (0, 1),
    "size": (1,),
    "length": (1,),
    "encoder_budget": (1,),
    "token_budget": (1, 2),
    "lookahead": (0, 1),
}

LONG_ITEM = Ranges((1,), {"capacity": (2,), "offset": (0,), "length": (2, 3), "prompt": (4,)})
"""An item that takes several passes."""

TWO_ITEMS = Ranges(
    (2,),
    {
        "capacity": (2, 3),
        "offset": (0, 1, 2, 3),
        "prompt": (5,),
        "token_budget": (2, 3),
        "lookahead": (0, 1),
        "arrival": (0,),
    },
)
"""Two items one after the other, which may need more room than there is."""


@dataclass(frozen=True)
class Queue:
    """One world of the queue: for each request its tokens, and its items by what they are.

    An item is its hash, its first token and its length; the hashes have these sizes.
    """

    requests: tuple[tuple[int, tuple[tuple[str, int, int], ...]], ...]
    sizes: Mapping[str, int]
    capacity: int
    token_budget: int
    encoder_budget: int
    lookahead: int

    @property
    def world(self) -> World:
        names = [f"r{k + 1}" for k in range(len(self.requests))]
        items = {
            f"{name}/{k}": (name, *item)
            for name, (_, mine) in zip(names, self.requests, strict=True)
            for k, item in enumerate(mine)
        }
        return World(
            {"Hash": tuple(self.sizes), "Request": tuple(names), "Input": tuple(items)},
            {
                "capacity": self.capacity,
                "token_budget": self.token_budget,
                "encoder_budget": self.encoder_budget,
                "lookahead": self.lookahead,
                "watched": 0,
            },
            {
                "size": self.sizes,
                "hash_of": {i: h for i, (_, h, _, _) in items.items()},
                "owner": {i: r for i, (r, _, _, _) in items.items()},
                "offset": {i: o for i, (_, _, o, _) in items.items()},
                "length": {i: n for i, (_, _, _, n) in items.items()},
                "prompt": {r: n for r, (n, _) in zip(names, self.requests, strict=True)},
                "arrival": {r: k for k, r in enumerate(names)},
            },
        )


QUEUES = (
    Queue(((4, (("A", 1, 2),)), (3, (("B", 0, 1),))), {"A": 2, "B": 1}, 2, 3, 2, 1),
    Queue(((5, (("A", 0, 1), ("B", 2, 2))),), {"A": 1, "B": 2}, 2, 3, 2, 2),
    Queue(((5, (("A", 1, 1), ("B", 2, 2))),), {"A": 1, "B": 1}, 2, 4, 2, 2),
    Queue(((5, (("A", 1, 3),)),), {"A": 1}, 1, 4, 1, 1),
    Queue(((4, (("A", 0, 3),)), (2, ())), {"A": 1}, 1, 2, 1, 0),
    Queue(((4, (("A", 0, 1), ("B", 1, 2))),), {"A": 1, "B": 2}, 3, 4, 2, 0),
    Queue(((5, (("A", 1, 1), ("B", 2, 1), ("A", 3, 1))),), {"A": 1, "B": 1}, 2, 5, 1, 1),
    Queue(((5, ()), (2, (("A", 0, 2),))), {"A": 1}, 1, 3, 1, 3),
    Queue(((3, (("A", 2, 1),)), (3, (("B", 1, 1),))), {"A": 2, "B": 1}, 2, 3, 2, 2),
    Queue(((7, (("A", 0, 5), ("B", 6, 1))),), {"A": 1, "B": 1}, 1, 3, 2, 0),
)
"""In each of them several caps meet: room for one of two, a drafter that reads into the next item,
an item that the budget or a boundary cuts, an end within the lookahead."""


def drawn_queues(count: int, seed: int = 0) -> Iterator[Queue]:
    """So many queues, drawn by the seed: caps meet in more ways than anybody would write down."""
    chance = random.Random(seed)
    for _ in range(count):
        hashes = "ABC"[: chance.randint(1, 3)]
        sizes = {h: chance.choice((0, 1, 1, 1, 2)) for h in hashes}
        largest = max(sizes.values())
        several = chance.random() < 0.5
        requests = tuple(
            _drawn_request(chance, hashes, chance.randint(2, 4) if several else 7)
            for _ in range(2 if several else 1)
        )
        yield Queue(
            requests,
            sizes,
            capacity=largest + chance.randint(0, 1),
            token_budget=chance.randint(1, 5),
            encoder_budget=largest + chance.randint(0, 1),
            lookahead=chance.randint(0, 3),
        )


def _drawn_request(
    chance: random.Random, hashes: str, most: int
) -> tuple[int, tuple[tuple[str, int, int], ...]]:
    """The tokens of a request, and items that lie apart on them."""
    items: list[tuple[str, int, int]] = []
    at = chance.randint(0, 2)
    while at < most and len(items) < 3 and chance.random() < 0.8:
        length = chance.randint(1, min(5, most - at))
        items.append((chance.choice(hashes), at, length))
        at += length + chance.choice((0, 0, 1))
    last = items[-1][1] + items[-1][2] if items else 1
    return chance.randint(last, max(last, most)), tuple(items)


WORLDS: dict[str, tuple[Few, ...]] = {
    "ledger": (
        Few(2, 1, 2, 1),
        Few(2, 2, 1, 1),
        NO_SIZE,
        Few(2, 2, 2, 2),
        Few(3, 3, 1, 1, Ranges((1,), {"capacity": (3,)})),
        Few(3, 3, 1, 1, Ranges((1,), {"capacity": (2,)})),
    ),
    "engine": (
        Few(2, 1, 2, 1, Ranges((1,), {"lookahead": (0,), "capacity": (2,)})),
        Few(2, 2, 1, 1, Ranges((1,), {"lookahead": (0,), "rank": (1, 2), "capacity": (1,)})),
        Few(1, 2, 1, 1, Ranges((1,), {"lookahead": (1,), "rank": (1, 2)})),
        Few(1, 1, 2, 1, Ranges((1,), {"lookahead": (1,)})),
        Few(3, 1, 3, 1, Ranges((1,), {"lookahead": (0,), "capacity": (2,)})),
        Few(2, 2, 1, 1, Ranges((1,), {"lookahead": (1,), "rank": (1, 2), "capacity": (2,)})),
    ),
    "progress": (
        Few(2, 2, 1, 1, Ranges((1,), PROGRESS)),
        Few(1, 1, 1, 1, LONG_ITEM),
        Few(2, 1, 2, 2, TWO_ITEMS),
    ),
    "encoder_decoder": (Few(2, 1, 2, 1), Few(2, 2, 1, 2), NO_SIZE, Few(2, 2, 2, 3)),
    "processor_cache": (
        Few(2, 1, 2, 1, Ranges((1,), {"capacity": (2,)})),
        Few(2, 2, 1, 1, Ranges((1,), {"capacity": (1,)})),
        Few(3, 2, 2, 1, Ranges((1,), {"capacity": (2,)})),
        Few(2, 1, 2, 2, Ranges((1, 2), {"capacity": (2,)})),
    ),
}
"""By the name of the system. Others have the default."""

DEEP: dict[str, tuple[Few, ...]] = {
    "engine": (
        # Three requests share one hash: who inherits, where two could?
        _rich(1, 3, 1, rank=(1, 2, 3), capacity=(1,)),
        # Room is made while something is pending.
        _rich(3, 1, 3, capacity=(2,)),
        # Three are held at once, and released one by one.
        _rich(3, 1, 3, capacity=(3,)),
        # What is asked for is larger than what can be had.
        _rich(3, 1, 3, size=(1, 2), capacity=(2,)),
        # Of two that may go the one is larger.
        _rich(3, 1, 3, size=(1, 2), capacity=(3,)),
        # One hash at two positions, the other between, before or after.
        _rich(2, 1, 3, count=3, capacity=(2,)),
        _rich(2, 2, 2, rank=(1, 2), capacity=(2,)),
    ),
}
"""Richer worlds, for the few designs that nothing else has settled."""


def came_back(system: TransitionSystem) -> tuple[World, tuple[ActionCall, ...]]:
    """A hash is evicted and comes back in one pass, and then the next must make room.

    The first request leaves A, B and D, the oldest first. The second asks for C, which evicts A;
    for A, which evicts B; and for B, which evicts D and must leave alone what is on the report.
    """
    hash_of = {"r1/0": "A", "r1/1": "B", "r1/2": "D", "r2/0": "C", "r2/1": "A", "r2/2": "B"}
    place = {i: int(i[-1]) for i in hash_of}
    world = World(
        {"Hash": ("A", "B", "C", "D"), "Request": ("r1", "r2"), "Input": tuple(hash_of)},
        {"capacity": 3, "lookahead": 0},
        {
            "size": dict.fromkeys("ABCD", 1),
            "hash_of": hash_of,
            "owner": {i: i[:2] for i in hash_of},
            "position": place,
            "inputs_of": {"r1": 3, "r2": 3},
            "embeds": dict.fromkeys(hash_of, 1),
            "first_token": place,
            "num_tokens": dict.fromkeys(hash_of, 1),
            "tokens_of": {"r1": 4, "r2": 4},
            "rank": {"r1": 1, "r2": 2},
        },
    )
    first = [(name, i) for i in ("r1/0", "r1/1", "r1/2") for name in ("admit", "commit")]
    between = [("schedule", "r1"), ("dispatch", ""), ("accept", "r1")]
    passed = [("consume", i) for i in ("r1/0", "r1/1", "r1/2")]
    second = [(name, i) for i in ("r2/0", "r2/1", "r2/2") for name in ("admit", "commit")]
    numbers = {"admit": 1, "schedule": 3, "accept": 3}
    calls = []
    for name, who in (*first, *between, *passed, *second):
        given = (who, numbers.get(name, 0))
        parameters = system.action(name).parameters
        arguments = {p.name: v for p, v in zip(parameters, given, strict=False)}
        calls.append(ActionCall(name, arguments))
    return world, tuple(calls)


DEFAULT = (Few(2, 1, 2, 1), Few(2, 2, 1, 2), NO_SIZE)

MOST_STATES = 6_000
"""How many states a search looks at; where there are more, it says that it saw a part."""

MOST_DRAWN = 16
"""Queues that are drawn, for the designs that no other queue condemns, and that are not proved."""

MOST_WORLDS = 6
"""Of one scope: those in which most elements differ, among which the richest are chosen."""


ORDER: tuple[tuple[str, Relation], ...] = (
    (
        "the same order of age",
        lambda other: forall(
            HASH,
            HASH,
            lambda g, k: (lg.freeable.has(g) & lg.freeable.has(k)).implies(
                (lg.since[g] < lg.since[k]).iff(other(lg.since)[g] < other(lg.since)[k])
            ),
        ),
    ),
    (
        "the other clock is ahead",
        lambda other: forall(
            HASH, lambda k: lg.freeable.has(k).implies(other(lg.since)[k] < other(lg.clock))
        ),
    ),
)

REPORTED: tuple[tuple[str, Relation], ...] = (
    (
        "the same report",
        lambda other: forall(
            HASH, lambda k: lg.cached.has(k) | lg.freed.has(k).iff(other(lg.freed).has(k))
        ),
    ),
)

_AGE = Coupling(
    "of times, only the order of the freeable hashes counts", frozenset({"since", "clock"}), ORDER
)
_REPORT = Coupling("the report leaves out what is cached", frozenset({"freed"}), REPORTED)

ORDERED: Relation = lambda other: forall(  # noqa: E731
    HASH,
    REQUEST,
    lambda k, q: any_of(encodes.has(k, q), loads.has(k, q)).implies(
        lg.freed.has(k).iff(other(lg.freed).has(k))
    ),
)

_REPORT_OF_A_PASS = replace(
    _REPORT, relations=(*REPORTED, ("the same of what may yet be undone", ORDERED))
)

COUPLINGS: dict[str, tuple[Coupling, ...]] = {
    "ledger": (_AGE, _REPORT),
    "engine": (_AGE, _REPORT_OF_A_PASS),
}
"""By the name of the system: the ways in which two states that answer alike may differ."""


def compact(hashes: int, requests: int, items: int) -> Scope:
    """A scope in which inputs of one token follow one another, and one token follows them all."""
    wide = scope(hashes, requests, items)
    inputs = wide.universe["Input"]
    few: dict[str, Mapping[str, str | int]] = {
        "first_token": dict(wide.fixed["position"]),
        "num_tokens": dict.fromkeys(inputs, 1),
        "tokens_of": dict.fromkeys(wide.universe["Request"], items + 1),
    }
    return replace(wide, fixed={**wide.fixed, **few})


def situations(system: TransitionSystem) -> Situations:
    """Where the conditions of the system's clauses must come true, and what else must happen."""
    if system.name == "progress":
        return Situations(
            (Place(compact(1, 1, 1), LONG_ITEM), *_places(PROGRESS, (2, 2, 1), (2, 1, 2)))
        )
    if system.name == "engine":
        tokens = {"size": (1,), "lookahead": (0, 1), "capacity": (1, 2)}
        long_item = replace(compact(1, 1, 1), fixed={**compact(1, 1, 1).fixed, **THREE_TOKENS})
        places = _places(tokens, (2, 2, 1), (3, 1, 3), (2, 1, 2))
        return Situations((Place(long_item), *places), ENGINE_GOALS)
    if system.name == "processor_cache":
        ones = Ranges((1,), {"capacity": (1, 2)})
        return Situations((Place(compact(2, 1, 2), ones), Place(compact(2, 2, 1), ones)))
    return Situations(_places({"capacity": (2, 3)}, (2, 2, 1), (2, 1, 2), (3, 1, 3), (2, 2, 2)))


def _places(
    integers: Mapping[str, Sequence[int]], *sizes: tuple[int, int, int]
) -> tuple[Place, ...]:
    return tuple(Place(compact(*size), Ranges((1, 2), integers)) for size in sizes)


THREE_TOKENS = {"num_tokens": {"r1/0": 3}, "tokens_of": {"r1": 4}}


@lru_cache(maxsize=8)
def arena(system: TransitionSystem) -> Arena:
    """The arena of a system."""
    worlds: list[World] = []
    for few in WORLDS.get(system.name, DEFAULT):
        worlds += _richest(system, few)
    integers, quick = range(3), 2
    if system.name == "progress":
        worlds = [queue.world for queue in QUEUES] + worlds
        integers, quick = range(8), len(worlds)
        worlds += [queue.world for queue in drawn_queues(MOST_DRAWN)]
    deep = [w for few in DEEP.get(system.name, ()) for w in _richest(system, few)]
    couplings = COUPLINGS.get(system.name, ())
    runs = (came_back(system),) if system.name == "engine" else ()
    return Arena(
        system, tuple(worlds), couplings, quick, integers, MOST_STATES, tuple(deep), runs=runs
    )


def _richest(system: TransitionSystem, few: Few) -> list[World]:
    """The worlds in which most states are reached, up to a bound; the smallest first of those."""
    found = []
    of = compact(few.hashes, few.requests, few.items)
    worlds = sorted(small_worlds(system, of, few.ranges), key=variety, reverse=True)
    for k, world in enumerate(worlds[:MOST_WORLDS]):
        explorer = Explorer(system, world, most_states=few.most_states, most_gap=few.items)
        found.append((-min(explorer.reached, few.most_states), k, world))
        if sum(-states >= few.most_states for states, *_ in found) == few.count:
            break
    return [world for *_, world in sorted(found, key=lambda x: x[:2])[: few.count]]
