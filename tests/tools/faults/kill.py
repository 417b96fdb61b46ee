"""Which faults does `run` notice, and which `differ`?

    python -m tests.tools.faults.kill [--list LIST] [--sequences N] [--escaped] [--markdown]
        [NAME]...

Builds the C++ example once for each fault, with the programs kept in build/faults, and shows for
each the first vector that fails, in which larger world if only there, and the number of the first
sequence that differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mmcache_conformance.differ.search import Campaign, search
from mmcache_conformance.differ.units import plan_of
from mmcache_conformance.open import open_target
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.verdicts.model import CallFailure
from mmcache_conformance.verdicts.run import run_target

from .build import build_all
from .catalogue import LISTS, Fault, faults

__all__ = ["Killed", "killed_by", "main"]

SEQUENCES = 60_000
"""So many sequences `differ` plays before it gives up: about a quarter of a minute."""


@dataclass(frozen=True)
class Killed:
    """What noticed a fault, if anything did."""

    vector: str | None
    """The first vector that fails."""
    stretched: str | None
    """The larger world in which it does, if only there."""
    sequence: int | None
    """The number of the first sequence that differs."""


def killed_by(command: str, sequences: int = SEQUENCES, *, escaped: bool = False) -> Killed:
    """Run the vectors, and play so many sequences; if `escaped`, only where no vector fails."""
    target = f"cmd:{command}"
    report = run_target(open_target(target, timeout=3), load_suite(), fail_fast=True, stretch=True)
    failed = next((v for v in report.verdicts if v.outcome in {"fail", "error"}), None)
    failure = None if failed is None else failed.failure
    return Killed(
        None if failed is None else failed.id,
        failure.stretched if isinstance(failure, CallFailure) else None,
        None if escaped and failed is not None else first_sequence(target, sequences),
    )


def first_sequence(target: str, sequences: int) -> int | None:
    """The number of the first sequence that differs from the specification."""
    campaign = Campaign(target, shrinks=False, timeout=3)
    played = unit = 0
    while played < sequences:
        most = min(plan_of(unit).sequences, sequences - played)
        done = search(campaign, unit, most)
        if done.finding is not None:
            return played + done.finding.sequence
        played += most
        unit += 1
    return None


def table(rows: Sequence[tuple[Fault, Killed]]) -> Iterator[str]:
    """Markdown."""
    seen = [(f, k) for f, k in rows if f.seen]
    by_run = sum(k.vector is not None for _, k in seen)
    by_any = sum(k.vector is not None or k.sequence is not None for _, k in seen)
    yield (
        f"{len(seen)} faults that a caller can see: `run` notices {by_run} "
        f"({by_run / max(1, len(seen)):.1%}), `run` and `differ` together {by_any}."
    )
    yield ""
    yield "| fault | how it comes about | `run`: first vector | `differ`: sequence |"
    yield "|---|---|---|---|"
    for fault, killed in rows:
        vector = "" if killed.vector is None else f"`{killed.vector}`"
        world = "" if killed.stretched is None else f", stretched: {killed.stretched}"
        number = "" if killed.sequence is None else f"{killed.sequence:,}"
        why = fault.why if fault.seen else f"cannot be seen: {fault.why}"
        yield f"| `{fault.name}` | {why} | {vector}{world} | {number} |"


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m tests.tools.faults.kill")
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--sequences", type=int, default=SEQUENCES)
    options.add_argument("--escaped", action="store_true", help="differ plays what run misses")
    options.add_argument("--markdown", action="store_true")
    options.add_argument("--list", choices=LISTS, default="catalogue", help="of this file")
    asked = options.parse_args()
    known = faults(asked.list)
    chosen = tuple(f for f in known if not asked.names or f.name in asked.names)
    built = build_all((None, *known))  # all of them: which share a program is then the same
    assert killed_by(built[""], 2000) == Killed(None, None, None), "the example itself is wrong"
    rows = []
    for fault in chosen:
        killed = killed_by(built[fault.name], asked.sequences, escaped=asked.escaped)
        rows.append((fault, killed))
        print(f"{fault.name}: {killed}", file=sys.stderr, flush=True)
    missed = [f.name for f, k in rows if f.seen and k.vector is None and k.sequence is None]
    wrong = [f.name for f, k in rows if not f.seen and (k.vector, k.sequence) != (None, None)]
    if asked.markdown:
        print("\n".join(table(rows)))
    for what, names in (("nothing notices", missed), ("seen after all", wrong)):
        if names:
            print(f"{what}: {', '.join(names)}", file=sys.stderr)
    return 1 if missed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
