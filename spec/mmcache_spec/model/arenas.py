"""Where designs are compared with each system: the small worlds, and how a proof may relate two.

The worlds of a scope differ in sizes, capacity and which inputs share a hash; those in which most
can happen are taken. The first two are small ones, where most wrong designs are found out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from ..checks.equivalence import Coupling, Relation
from ..checks.explore import Explorer
from ..checks.judging import Arena
from ..checks.small_worlds import Ranges, small_worlds
from ..checks.vacuity import Situations
from ..evaluate.interpreter import World
from ..kernel.system import TransitionSystem
from ..kernel.terms import forall
from . import ledger as lg
from .goals import ENGINE_GOALS
from .world import HASH, scope

__all__ = ["COUPLINGS", "WORLDS", "Few", "arena", "situations"]


@dataclass(frozen=True)
class Few:
    """So many worlds of a scope, with these integers for capacity and sizes."""

    hashes: int
    requests: int
    items: int
    count: int
    ranges: Ranges = field(default_factory=lambda: Ranges((1, 2), {"capacity": (2,)}))
    most_states: int = 3_000
    """Of worlds with more states than that, all are as good."""


NO_SIZE = Few(2, 2, 1, 1, Ranges((0,), {"capacity": (0,)}))
"""Items of no size fit everywhere, even where nothing else does."""

WORLDS: dict[str, tuple[Few, ...]] = {
    "ledger": (
        Few(2, 1, 2, 1),
        Few(2, 2, 1, 1),
        NO_SIZE,
        Few(2, 2, 2, 2),
        Few(3, 3, 1, 1, Ranges((1,), {"capacity": (3,)})),
        Few(3, 3, 1, 1, Ranges((1,), {"capacity": (2,)})),
    ),
    "encoder_decoder": (Few(2, 1, 2, 1), Few(2, 2, 1, 2), NO_SIZE, Few(2, 2, 2, 3)),
}
"""By the name of the system. Others have the default."""

DEFAULT = (Few(2, 1, 2, 1), Few(2, 2, 1, 2), NO_SIZE)


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

COUPLINGS: dict[str, tuple[Coupling, ...]] = {
    "ledger": (_AGE, _REPORT),
    "engine": (_AGE, _REPORT),
}
"""By the name of the system: the ways in which two states that answer alike may differ."""


def situations(system: TransitionSystem) -> Situations:
    """Where the conditions of the system's clauses must come true, and what else must happen."""
    scopes = tuple(scope(*size) for size in ((2, 2, 1), (2, 1, 2), (3, 1, 3), (2, 2, 2)))
    ranges = Ranges((1, 2), {"capacity": (2, 3)})
    return Situations(scopes, ranges, ENGINE_GOALS if system.name == "engine" else ())


@lru_cache(maxsize=8)
def arena(system: TransitionSystem) -> Arena:
    """The arena of a system."""
    worlds: list[World] = []
    for few in WORLDS.get(system.name, DEFAULT):
        worlds += _richest(system, few)
    return Arena(system, tuple(worlds), COUPLINGS.get(system.name, ()))


def _richest(system: TransitionSystem, few: Few) -> list[World]:
    """The worlds in which most states are reached, up to a bound; the smallest first of those."""
    of = scope(few.hashes, few.requests, few.items)
    found = []
    for k, world in enumerate(small_worlds(system, of, few.ranges)):
        explorer = Explorer(system, world, most_states=few.most_states, most_gap=few.items)
        found.append((-min(explorer.reached, few.most_states), k, world))
        if sum(-states >= few.most_states for states, *_ in found) == few.count:
            break
    return [world for *_, world in sorted(found, key=lambda x: x[:2])[: few.count]]
