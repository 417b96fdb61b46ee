"""Vectors that tell a mutant from what is specified, and what becomes of all mutants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from mmcache_vectors.manager import Vector

from ..checks.bounded import Trace
from ..checks.product import distinguish
from ..kernel.system import Scope, TransitionSystem
from ..model.equivalents import EQUIVALENT
from ..model.observables import agreement_of
from ..model.variants import SPECIFIED
from ..model.world import scope
from .draft import Draft, content, contents, distinct, slug
from .managers import MANAGERS, PREFIX, specified, system_name
from .worth import kills, mutants_of

__all__ = ["Survivors", "against_survivors", "survivors"]


DIFFERENCE_SEARCH = [scope(2, 2, 2), scope(3, 2, 2)]


DIFFERENCE_BOUND = 6


def against_survivors(
    system: TransitionSystem, vectors: dict[str, Vector], executor: Executor
) -> dict[str, Vector]:
    """A vector for each mutant that none of these kills, unless it is listed as equivalent."""
    mine = [v for v in vectors.values() if v.manager == MANAGERS[system.name]]
    names = [m.name for m in mutants_of(system) if m.name not in EQUIVALENT[system.name]]
    dead = set().union(*executor.map(killed_by, mine, chunksize=4))
    alive = [name for name in names if name not in dead]
    traces = executor.map(tell_apart, [system.name] * len(alive), alive)
    drafts = [
        Draft(
            slug=f"{PREFIX[system.name]}mutant-{slug(name)}",
            description=f"Tells {name} from what is specified.",
            goal=f"a difference: {name}",
            variant=SPECIFIED.name,
            clauses=(),
            trace=replace(trace, system=system.name),
        )
        for name, trace in zip(alive, traces, strict=True)
        if trace is not None
    ]
    known = contents(vectors)
    return {key: v for key, v in distinct(drafts).items() if content(v) not in known}


def killed_by(vector: Vector) -> set[str]:
    return kills(specified(system_name(vector.manager)), vector)


def tell_apart(
    system_name: str,
    mutant_name: str,
    scopes: Sequence[Scope] = (),
    bound: int | None = None,
) -> Trace | None:
    system = specified(system_name)
    (mutant,) = (m for m in mutants_of(system) if m.name == mutant_name)
    agreement = agreement_of(system_name)
    within = scopes or DIFFERENCE_SEARCH
    return distinguish(system, mutant.system, agreement, within, bound or DIFFERENCE_BOUND)


@dataclass(frozen=True)
class Survivors:
    """Which mutants were killed, which are equivalent, which survive; as `system: name`."""

    killed: tuple[str, ...]
    equivalent: tuple[str, ...]
    alive: tuple[str, ...]
    scope: str
    bound: int

    def lines(self) -> Iterator[str]:
        total = len(self.killed) + len(self.equivalent) + len(self.alive)
        yield f"{total} mutants of the specification"
        yield f"  killed by the vectors  {len(self.killed)}"
        yield f"  equivalent             {len(self.equivalent)}"
        yield f"    (no difference within {self.scope}, up to {self.bound} calls)"
        yield f"  alive                  {len(self.alive)}"
        for name in self.alive:
            yield f"    {name}"


def survivors(
    vectors: Iterable[Vector], within: Scope, bound: int, executor: Executor
) -> Survivors:
    """Kill every mutant that can be killed; look for a difference in each of the others."""
    suite = list(vectors)
    killed: list[str] = []
    equivalent: list[str] = []
    alive: list[str] = []
    for name in MANAGERS:
        mine = [v for v in suite if v.manager == MANAGERS[name]]
        dead = set().union(*executor.map(killed_by, mine, chunksize=4))
        names = [m.name for m in mutants_of(specified(name))]
        rest = [m for m in names if m not in dead]
        count = len(rest)
        traces = executor.map(tell_apart, [name] * count, rest, [[within]] * count, [bound] * count)
        for mutant, trace in zip(rest, traces, strict=True):
            (equivalent if trace is None else alive).append(f"{name}: {mutant}")
        killed += [f"{name}: {m}" for m in names if m in dead]
    return Survivors(tuple(killed), tuple(equivalent), tuple(alive), within.name, bound)
