"""The conformance vectors: shortest counterexamples and witnesses, with the specified answers.

What a vector expects is what `specified` answers to its calls, by the interpreter; what it kills
are the variants that answer otherwise. No implementation is asked for anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from mmcache_vectors.manager import Vector

from .counterexamples import counterexamples
from .deep import deep_vectors
from .defends import defends
from .draft import content, contents, distinct
from .long import long_vectors
from .managers import MANAGERS, specified, system_name, wrong_ledgers
from .mutants import against_survivors
from .wheel import wheels
from .witnesses import scripted, witnesses
from .worth import kills, least_cover, reached

__all__ = ["Suite", "generate"]


SMOKE = 20
"""The most vectors of the smallest size of the suite."""


@dataclass(frozen=True)
class Suite:
    """Vectors by id; the ids of the small size; what each vector reaches and kills; its clauses."""

    vectors: dict[str, Vector]
    smoke: list[str]
    strengths: dict[str, list[str]]
    defends: dict[str, list[str]]
    deep: list[str]
    """Those of the vectors that are walks in large worlds."""
    long: list[str]
    """Those that have hundreds of calls."""


def generate(executor: Executor) -> Suite:
    """The standard suite. Searches run in parallel; the result does not depend on how.

    The counterexamples of the variants are kept, and the witnesses that a clause is put to the test
    by. Of the others, and of the traces that tell a mutant from `specified`, as many as it takes to
    reach every goal and to kill every mutant that is not listed as equivalent. To these come the
    deep ones, which are about pairs of situations, and the long ones, which are about amounts.
    """
    jobs = [executor.submit(counterexamples, v.name) for v in wrong_ledgers()]
    failing = distinct(draft for job in jobs for draft in job.result())
    jobs = [executor.submit(witnesses, name) for name in MANAGERS]
    found = distinct(draft for job in jobs for draft in job.result())
    found = {key: v for key, v in found.items() if content(v) not in contents(failing)}
    candidates = {**failing, **found, **scripted()}
    for name in MANAGERS:
        candidates |= against_survivors(specified(name), candidates, executor)
    strengths = dict(strengths_of(candidates, executor))
    named = (key for key, vector in candidates.items() if vector.clauses)
    standard = least_cover(strengths, kept=sorted(named))
    deep = deep_vectors(executor)
    long = long_vectors(executor) | wheels()
    vectors = {key: candidates[key] for key in standard} | deep | long
    walks = {key: set(vector.kills) for key, vector in (deep | long).items()}
    killed = strengths | walks
    smoke = least_cover({k: set(candidates[k].kills) for k in standard}, most=SMOKE)
    return Suite(
        vectors,
        smoke,
        {key: sorted(killed[key]) for key in vectors},
        dict(_defended(vectors, killed, executor)),
        sorted(deep),
        sorted(long),
    )


def _defended(
    vectors: dict[str, Vector], strengths: dict[str, set[str]], executor: Executor
) -> Iterator[tuple[str, list[str]]]:
    keys = sorted(vectors)
    work = [vectors[k] for k in keys], [sorted(strengths[k]) for k in keys]
    for key, clauses in zip(keys, executor.map(defends, *work, chunksize=4), strict=True):
        yield key, list(clauses)


def strengths_of(vectors: dict[str, Vector], executor: Executor) -> Iterator[tuple[str, set[str]]]:
    keys = sorted(vectors)
    found = executor.map(strength_of, (vectors[k] for k in keys), chunksize=4)
    yield from zip(keys, found, strict=True)


def strength_of(vector: Vector) -> set[str]:
    """The names of the goals, variants and mutants that the vector is good for."""
    system = specified(system_name(vector.manager))
    goals = {f"goal {name}" for name in reached(system, vector)}
    killed = {f"mutant {name}" for name in kills(system, vector)}
    return {f"{system.name}: {name}" for name in goals | killed} | set(vector.kills)
