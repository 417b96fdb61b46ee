"""The proofs of a variant, spread over processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace

from ..checks.bounded import NoVerdict, Trace
from ..checks.hints import Hints
from ..checks.proof import Proof, Share, check_vacuity, prove, prove_complete
from ..checks.vacuity import goals_of
from ..generate.arenas import situations
from ..generate.hints import find_hints, hints_for
from ..kernel.goals import vacuity_goals
from ..model.variants import SPECIFIED, VARIANTS, Variant
from .common import SMALL

__all__ = ["completeness_of", "hints_of", "proof_of", "vacuity_of"]

SHARES = {"engine": 4}
"""Into how many parts the obligations of a model are split; one, if not named."""


def proof_of(
    variant: Variant, executor: Executor, say: Callable[[str], None] = lambda text: None
) -> Proof:
    """All obligations and vacuity checks, on all cores."""
    started = time.perf_counter()
    jobs = []
    for k, system in enumerate(variant.systems):
        of = SHARES.get(system.name, 1)
        jobs += [executor.submit(_prove_share, variant.name, k, Share(n, of)) for n in range(of)]
        jobs.append(executor.submit(vacuity_of, variant.name, k))
        if variant.expected is None and system.freedoms:
            jobs.append(executor.submit(completeness_of, variant.name, k))
    parts = _results(jobs, say)
    return Proof.merged(parts, time.perf_counter() - started)


def hints_of(
    proof: Proof, executor: Executor, say: Callable[[str], None] = lambda text: None
) -> dict[str, Hints]:
    """With what the specified systems are proved quickly: see `checks.hints`. Takes minutes."""
    jobs = {}
    for k, system in enumerate(SPECIFIED.systems):
        prefix = f"{system.name}: "
        witnesses = {
            name.removeprefix(prefix): trace
            for name, trace in proof.witnesses.items()
            if name.startswith(prefix)
        }
        jobs[system.name] = executor.submit(_find_hints, k, witnesses)
    found = {}
    for name, job in jobs.items():
        say(f"what the proofs of {name} need")
        found[name] = job.result()
    return found


def _find_hints(system: int, witnesses: dict[str, Trace | None]) -> Hints:
    return find_hints(SPECIFIED.systems[system], witnesses)


def _results(jobs: Sequence[Future[Proof]], say: Callable[[str], None]) -> list[Proof]:
    parts = []
    for number, job in enumerate(jobs, 1):
        say(f"part {number} of {len(jobs)}")
        parts.append(job.result())
    return parts


def _prove_share(name: str, system: int, share: Share) -> Proof:
    of = VARIANTS[name].systems[system]
    return prove(of, SMALL, share, hints_for(of.name))


def vacuity_of(name: str, system: int, *, conditions: bool = True) -> Proof:
    """What must be reachable, but for the conditions that the variant says never come true.

    Without `conditions`, of clauses and named situations only those are looked for that the
    variant says never come true; a wrong design may well never come to the others.
    """
    variant = VARIANTS[name]
    of = variant.systems[system]
    within = situations(of)
    unwanted = set[str]()
    if not conditions:
        wanted = {goal.name for goal in vacuity_goals(of)}
        wanted |= {condition.removeprefix(f"{of.name}: ") for condition in variant.never}
        unwanted = {goal.name for goal in goals_of(of, within)} - wanted
    found = check_vacuity(of, within, SMALL, hints_for(of.name), unwanted)
    for condition in variant.never.keys() & found.witnesses.keys():
        if found.witnesses[condition] is not None:
            raise NoVerdict(f"{name} says that this never comes true, and it does: {condition}")
    kept = {c: trace for c, trace in found.witnesses.items() if c not in variant.never}
    return replace(found, witnesses=kept)


def completeness_of(name: str, system: int) -> Proof:
    of = VARIANTS[name].systems[system]
    return prove_complete(of, SMALL, hints=hints_for(of.name))
