"""Seconds for the proof and for each counterexample. Alone on the machine, please.

python -m tests.tools.bench spec
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from mmcache_spec.checks.bounded import shortest
from mmcache_spec.checks.proof import check_vacuity, prove
from mmcache_spec.checks.unrolling import Start
from mmcache_spec.generate.arenas import situations
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.variants import SPECIFIED, VARIANTS, Variant
from mmcache_spec.model.world import scope, scopes_of, scopes_up_to

ORIGINS: tuple[Start, Start] = ("pass", "init")


def seconds(rounds: int, work: Callable[..., object], *arguments: object) -> float:
    """The median of some rounds."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        work(*arguments)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def proofs(systems: Sequence[TransitionSystem], rounds: int) -> None:
    print(f"the unbounded proof, one process (seconds, median of {rounds})")
    for system in systems:
        proof = seconds(rounds, prove, system, scope(3, 2, 2))
        vacuity = seconds(rounds, check_vacuity, system, situations(system), scope(3, 2, 2))
        print(f"  {system.name:16} obligations {proof:6.2f}   vacuity {vacuity:6.2f}", flush=True)


def counterexamples(variants: Sequence[Variant]) -> None:
    print("shortest counterexamples (seconds), ledgers at 4 hashes x 3 requests x 2 inputs,")
    print("the engine at 2 hashes x 2 requests x 1 input")
    for variant in variants:
        system = variant.system
        line = f"  {variant.name:40}"
        for origin in ORIGINS:
            started = time.perf_counter()
            found = shortest(system, scopes_of(system.name), origin, 13, variant.aims_at)
            taken = time.perf_counter() - started
            length = "none" if found is None else f"{found.length:2}"
            line += f"  {origin} {length} calls {taken:6.2f}"
        print(line, flush=True)


def scopes(most_hashes: int, most_requests: int) -> None:
    print("unfiltered_report against the scope (seconds from pass / from init)")
    system = VARIANTS["unfiltered_report"].system
    for hashes in range(2, most_hashes + 1):
        line = f"  {hashes} hashes"
        for requests in range(1, most_requests + 1):
            within = scopes_up_to(hashes, requests, 2)
            passes, init = (seconds(1, shortest, system, within, origin) for origin in ORIGINS)
            line += f"   {requests} req {passes:5.2f}/{init:5.2f}"
        print(line, flush=True)


def main(quick: bool = False) -> None:
    if quick:
        small = [s for s in SPECIFIED.systems if s.name == "encoder_decoder"]
        proofs(small, rounds=1)
        counterexamples([VARIANTS["encoder_decoder_repeated_credit"]])
        return
    proofs(SPECIFIED.systems, rounds=3)
    counterexamples([v for v in VARIANTS.values() if v.expected is not None])
    scopes(6, 4)
