"""Seconds for the proof and for each counterexample. Alone on the machine, please.

python tests/tools/bench/bench_spec.py [--scopes]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from mmcache_spec.checks.bounded import shortest
from mmcache_spec.checks.proof import check_vacuity, prove
from mmcache_spec.generate.arenas import situations
from mmcache_spec.model.variants import SPECIFIED, VARIANTS
from mmcache_spec.model.world import scope, scopes_of, scopes_up_to

ROUNDS = 3


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of some rounds."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def proofs() -> None:
    print("the unbounded proof, one process (seconds, median of 3)")
    for system in SPECIFIED.systems:
        proof = seconds(lambda s=system: prove(s, scope(3, 2, 2)))
        vacuity = seconds(lambda s=system: check_vacuity(s, situations(s), scope(3, 2, 2)))
        print(f"  {system.name:16} obligations {proof:6.2f}   vacuity {vacuity:6.2f}")


def counterexamples() -> None:
    print("shortest counterexamples (seconds), ledgers at 4 hashes x 3 requests x 2 inputs,")
    print("the engine at 3 hashes x 3 requests x 1 input")
    for variant in VARIANTS.values():
        if variant.expected is None:
            continue
        system = variant.system
        line = f"  {variant.name:40}"
        for origin in ("pass", "init"):
            started = time.perf_counter()
            found = shortest(system, scopes_of(system.name), origin, 13, variant.aims_at)
            taken = time.perf_counter() - started
            length = "none" if found is None else f"{found.length:2}"
            line += f"  {origin} {length} calls {taken:6.2f}"
        print(line, flush=True)


def scopes() -> None:
    print("unfiltered_report against the scope (seconds from pass / from init)")
    system = VARIANTS["unfiltered_report"].system
    for hashes in range(2, 7):
        line = f"  {hashes} hashes"
        for requests in range(1, 5):
            within = scopes_up_to(hashes, requests, 2)
            taken = [
                seconds(lambda o=origin, w=within: shortest(system, w, o), rounds=1)
                for origin in ("pass", "init")
            ]
            line += f"   {requests} req {taken[0]:5.2f}/{taken[1]:5.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--scopes", action="store_true", help="also time against the scope")
    wanted = parser.parse_args()
    proofs()
    counterexamples()
    if wanted.scopes:
        scopes()
