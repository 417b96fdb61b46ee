"""`mmcache-spec complete`: the clauses leave one answer to every call."""

from __future__ import annotations

import sys

import click

from ..campaign import workers
from ..model.variants import SPECIFIED
from ..render.completeness import answer_story, complete_summary
from . import jobs
from .common import PROVED, REFUTED, UNKNOWN, apology, out, print_lines

__all__ = ["complete_command"]


@click.command("complete")
@click.option("--verbose", "-v", is_flag=True, help="Print every question.")
def complete_command(verbose: bool) -> None:
    """Prove that the clauses leave one answer, and one state to be seen, to every call.

    Any two designs that satisfy them then answer the same for ever. Where two answers are left,
    both are printed: that is the clause that is missing.

    Exit code: 0 complete, 1 not, 2 usage, 3 unknown.
    """
    systems = {k: s for k, s in enumerate(SPECIFIED.systems) if s.freedoms}
    with apology(UNKNOWN), workers() as executor:
        futures = [executor.submit(jobs.completeness_of, SPECIFIED.name, k) for k in systems]
        proofs = [future.result() for future in futures]
    for system, proof in zip(systems.values(), proofs, strict=True):
        if verbose:
            for a in proof.decided:
                out.print(f"  {a.verdict:8} {a.seconds:6.3f} s  {system.name}: {a.question.label}")
        for answer in proof.undetermined:
            print_lines(answer_story(answer))
        print_lines(complete_summary(system, proof.decided))
    verdicts = {a.verdict for proof in proofs for a in proof.decided}
    sys.exit(REFUTED if "refuted" in verdicts else UNKNOWN if "unknown" in verdicts else PROVED)
