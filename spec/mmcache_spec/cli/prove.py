"""`mmcache-spec prove`: every clause of a design, for any number of hashes and requests."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.table import Table

from mmcache_vectors.clauses import CLAUSES

from ..campaign import workers
from ..checks.complete import QuestionOutcome
from ..checks.induction import Outcome
from ..checks.proof import Proof, solver_version
from ..evaluate.text import formula
from ..generate.hints import write_hints
from ..generate.record import add_to_record
from ..model.variants import SPECIFIED, Variant
from ..render.completeness import answer_story
from ..render.story import cti_story
from . import jobs
from .common import (
    PROVED,
    REFUTED,
    UNKNOWN,
    USAGE,
    VariantName,
    apology,
    not_shown,
    out,
    print_lines,
)
from .progress import progress_line

__all__ = ["prove_command"]


@click.command("prove")
@click.argument("variant", type=VariantName(), default=SPECIFIED.name)
@click.option("--json", "as_data", is_flag=True, help="Print every obligation as JSON.")
@click.option("--verbose", "-v", is_flag=True, help="Print every obligation.")
@click.option(
    "--record", is_flag=True, help="Note what is proved, for `refute`; and how, for the next time."
)
def prove_command(variant: Variant, as_data: bool, verbose: bool, record: bool) -> None:
    """Prove every clause of VARIANT, for any number of hashes and requests.

    Exit code: 0 proved, 1 refuted, 2 usage, 3 unknown.
    """
    with apology(UNKNOWN), progress_line(quiet=as_data) as say, workers() as executor:
        proof = jobs.proof_of(variant, executor, say)
        hints = None
        if record and proof.verdict == "proved" and variant is SPECIFIED:
            hints = jobs.hints_of(proof, executor, say)
    if record and proof.verdict == "proved":
        with apology(USAGE):
            add_to_record(variant.systems)
            if hints is not None:
                write_hints(hints)
    if as_data:
        print(json.dumps(_proof_data(variant, proof), indent=2))
    else:
        _print_proof(variant, proof, verbose)
    sys.exit({"proved": PROVED, "refuted": REFUTED}.get(proof.verdict, UNKNOWN))


def _proof_data(variant: Variant, proof: Proof) -> dict[str, Any]:
    return {
        "variant": variant.name,
        "verdict": proof.verdict,
        "solver": {"name": "z3", "version": solver_version()},
        "seconds": round(proof.seconds, 3),
        "obligations": [
            {
                "system": o.obligation.system.name,
                "property": o.obligation.claim.name,
                "clause": o.obligation.claim.clause,
                "action": o.obligation.action.name if o.obligation.action else None,
                "kind": o.obligation.kind,
                "verdict": o.verdict,
                "by_definition": o.by_definition,
                "seconds": round(o.seconds, 4),
            }
            for o in proof.outcomes
        ],
        "determined": [
            {
                "system": a.question.system.name,
                "action": a.question.action.name if a.question.action else None,
                "what": a.question.what,
                "verdict": a.verdict,
                "seconds": round(a.seconds, 4),
            }
            for a in proof.decided
        ],
        "vacuity": {
            "reachable": [name for name, trace in proof.witnesses.items() if trace is not None],
            "unreachable": list(proof.unreachable),
            "false_lemmas": [formula(lemma) for lemma in proof.false_lemmas],
            "unfounded": [not_shown(thing) for thing in proof.unfounded],
        },
    }


def _print_proof(variant: Variant, proof: Proof, verbose: bool) -> None:
    out.print(f"{variant.name}: {variant.says}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("  clause", no_wrap=True)
    for head in ("verdict", "by"):
        table.add_column(head)
    table.add_column("proofs", justify="right")
    # As wide as "123.45 s" always: what a page shows of a run is compared with other runs.
    table.add_column("time", justify="right", min_width=8)
    for clause, outcomes in _by_clause(proof).items():
        verdicts = {o.verdict for o in outcomes}
        worst = next(v for v in ("refuted", "unknown", "proved") if v in verdicts)
        sign = {"proved": "✓", "refuted": "✗", "unknown": "?"}[worst]
        what = f"{clause} {CLAUSES[clause].name}" if clause else "strengthening invariants"
        seconds = sum(o.seconds for o in outcomes)
        grounds = _grounds(outcomes) if worst == "proved" else ""
        table.add_row(f"{sign} {what}", worst, grounds, f"{len(outcomes)}", f"{seconds:.2f} s")
    for name, mine in _by_system(proof).items():
        worst = "proved" if all(a.verdict == "proved" for a in mine) else "unknown"
        sign, what = "✓" if worst == "proved" else "?", f"completeness of the {name}"
        seconds = sum(a.seconds for a in mine)
        table.add_row(f"{sign} {what}", worst, "", f"{len(mine)}", f"{seconds:.2f} s")
    out.print(table)
    if verbose:
        for o in proof.outcomes:
            out.print(f"  {o.verdict:8} {o.seconds:6.3f} s  {o.obligation.label}")
    for outcome in proof.outcomes:
        if outcome.cti is not None:
            out.print()
            for line in cti_story(outcome):
                out.print(line)
        elif outcome.verdict == "unknown":
            out.print(f"? {outcome.obligation.label}: neither proved nor refuted")
    for answer in proof.undetermined:
        print_lines(answer_story(answer))
    for name in proof.unreachable:
        out.print(f"? vacuous: no reachable state in which {name}")
    for lemma in proof.false_lemmas:
        out.print(f"? wrong lemma about finite sets: {formula(lemma)}")
    for thing in proof.unfounded:
        out.print(f"? taken for granted: {not_shown(thing)}")
    out.print()
    out.print(_summary(proof))


def _by_system(proof: Proof) -> dict[str, list[QuestionOutcome]]:
    found: dict[str, list[QuestionOutcome]] = {}
    for answer in proof.decided:
        found.setdefault(answer.question.system.name.replace("_", "-"), []).append(answer)
    return found


def _by_clause(proof: Proof) -> dict[str | None, list[Outcome]]:
    found: dict[str | None, list[Outcome]] = {clause: [] for clause in CLAUSES}
    found[None] = []
    for outcome in proof.outcomes:
        found[outcome.obligation.claim.clause].append(outcome)
    return {clause: outcomes for clause, outcomes in found.items() if outcomes}


def _grounds(outcomes: list[Outcome]) -> str:
    """What the proofs rest on: the definition of the call alone, or the invariants."""
    alone = {o.by_definition for o in outcomes if o.obligation.kind != "initiation"}
    return {frozenset({True}): "definition", frozenset({False}): "induction"}.get(
        frozenset(alone), "both"
    )


def _obligations(count: int) -> str:
    return "1 obligation" if count == 1 else f"{count} obligations"


def _summary(proof: Proof) -> str:
    count = len(proof.outcomes)
    reached = len(proof.witnesses) - len(proof.unreachable)
    checks = f"{reached} of {len(proof.witnesses)} vacuity checks reached"
    if proof.decided:
        known = len(proof.decided) - len(proof.undetermined)
        checks = f"{known} of {len(proof.decided)} answers and states determined, {checks}"
    time = f"{proof.seconds:.1f} s, z3 {solver_version()}"
    match proof.verdict:
        case "proved":
            return (
                f"PROVED for any number of hashes and requests: {count} obligations, "
                f"{checks} ({time})"
            )
        case "refuted":
            wrong = sum(o.verdict == "refuted" for o in proof.outcomes)
            return f"REFUTED: {wrong} of {count} obligations have a counterexample ({time})"
    return f"UNKNOWN: nothing is claimed ({checks}; {time})"
