"""The search for shortest counterexamples, against the unrolling that it takes the place of.

Both look in the same universe: of 2 hashes and 2 requests with 1 input each for the engine, of 3
hashes and 2 requests with 2 inputs each for the managers; the search goes through all smaller ones
too. Both must find the same length. Compare ratios, not seconds. The unrolling is stopped at a
limit: then the ratio is at least what is said. What the search leaves to Z3 (the model of progress,
and passes of the engine) is not compared.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from mmcache_spec.checks.bounded import shortest, unrolled
from mmcache_spec.checks.unrolling import Start
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.model.world import scope, scopes_of

BOUND = 13


def search(name: str, start: Start) -> int | None:
    variant = VARIANTS[name]
    found = shortest(variant.system, scopes_of(variant.system.name), start, BOUND, variant.aims_at)
    return None if found is None else found.length


def unrolling(name: str, start: Start, answer: Connection) -> None:
    variant = VARIANTS[name]
    widest = scope(2, 2, 1) if variant.system.name == "engine" else scope(3, 2, 2)
    found = unrolled(variant.system, [widest], start, BOUND, variant.aims_at)
    answer.send(None if found is None else found.length)


def stopped_unrolling(name: str, start: Start, limit: float) -> tuple[float, int | None, bool]:
    """Seconds, the length, and whether it came to an end."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=unrolling, args=(name, start, there))
    began = time.perf_counter()
    process.start()
    ended = here.poll(limit)
    taken = time.perf_counter() - began
    length = here.recv() if ended else None
    process.terminate()
    process.join()
    return taken, length, ended


QUICK: tuple[tuple[str, Start], ...] = (("encoder_decoder_repeated_credit", "init"),)


def all_searched() -> Iterator[tuple[str, Start]]:
    """The variants, and where the search starts, where it is the search that finds the path."""
    for name, variant in VARIANTS.items():
        if variant.expected is not None and variant.system.name != "progress":
            yield name, "init"
            if variant.system.name != "engine":
                yield name, "pass"


def main(quick: bool = False) -> None:
    limit = 5.0 if quick else 60.0
    print(f"{'variant':40} from   calls  search  unrolling  ratio")
    for name, start in QUICK if quick else all_searched():
        began = time.perf_counter()
        length = search(name, start)
        new = time.perf_counter() - began
        old, other, ended = stopped_unrolling(name, start, limit)
        if ended and other != length:
            raise SystemExit(f"{name} from {start}: {length} calls, but unrolled {other}")
        more = "" if ended else "> "
        print(
            f"{name:40} {start:5} {length!s:>6} {new:6.2f}s {more:>2}{old:7.2f}s "
            f"{more:>2}{old / new:5.1f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
