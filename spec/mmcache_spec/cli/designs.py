"""Designs on trial: wrong ones judged by the clauses alone, and what each proof needs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table

from mmcache_vectors.manager import load

from ..campaign import workers
from ..generate.mutants import survivors
from ..generate.wrong import Judged, Report, Row, campaign
from ..kernel.wrong_designs import KINDS
from ..model.variants import SPECIFIED
from ..model.world import scope
from ..render.cores import ON_PAGE, cores_page, unneeded_without_reason
from .common import UNKNOWN, apology, err, out, scope_option
from .vectors import vectors_package

__all__ = ["cores_command", "mutants_command"]


@click.command("mutants")
@click.option(
    "--bound", type=click.IntRange(1, 100), default=5, show_default=True, help="In calls."
)
@scope_option("Where calls that tell a mutant that lives are looked for.", default=(2, 2, 2))
@click.option("--cluster", metavar="ADDRESS", help="Run on this Dask cluster, not here.")
@click.option(
    "--by-clauses", is_flag=True, help="Judge every model by its clauses, not by vectors."
)
@click.option(
    "--kind", "kinds", multiple=True, help="With --by-clauses: only this kind, repeatable."
)
@click.option(
    "--most", type=click.IntRange(1, 10**6), help="With --by-clauses: of each kind, so many."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="By which they are drawn.",
)
@click.option("--json", "as_data", is_flag=True, help="With --by-clauses: every design, as JSON.")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
def mutants_command(
    bound: int,
    size: tuple[int, int, int],
    cluster: str | None,
    by_clauses: bool,
    kinds: tuple[str, ...],
    most: int | None,
    seed: int,
    as_data: bool,
    models: tuple[str, ...],
) -> None:
    """Mutate every action of the managers; say which mutants the packaged vectors kill.

    Of each mutant that they do not kill, Z3 looks for calls that tell it from the specification;
    finding none is a proof that there are none in the scope, up to the bound.

    With --by-clauses, wrong designs of many kinds, of every MODEL, are judged by the clauses alone:
    condemned where some calls break one; else proved, or searched, to be the same; else alive.

    Exit code: 0 all killed or equivalent, 1 some survive, 2 usage, 3 unknown.
    """
    if by_clauses:
        sys.exit(_judge_designs(models, kinds, most, seed, as_data, cluster))
    if models or kinds or most or as_data:
        raise click.UsageError("MODEL, --kind, --most and --json go with --by-clauses")
    vectors = [load(path) for path in sorted((vectors_package() / "vectors").glob("*.json"))]
    with apology(UNKNOWN), workers(cluster) as executor:
        report = survivors(vectors, scope(*size), bound, executor)
    for line in report.lines():
        out.print(line)
    sys.exit(1 if report.alive else 0)


def _judge_designs(
    models: Sequence[str],
    kinds: Sequence[str],
    most: int | None,
    seed: int,
    as_data: bool,
    cluster: str | None,
) -> int:
    """Judge, print the table, and give the exit code: 1 where one survives without a reason."""
    systems = list(models) or [s.name for s in SPECIFIED.systems]
    try:
        with apology(UNKNOWN), workers(cluster) as executor:
            report = campaign(systems, list(kinds) or list(KINDS), most, seed, executor)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_data:
        print(json.dumps(_data(report), indent=2, ensure_ascii=False))
    else:
        _print(report)
    return 1 if report.alive else 0


def _print(report: Report) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for title in (
        "model",
        "kind",
        "designs",
        "condemned",
        "proved",
        "searched",
        "accepted",
        "alive",
    ):
        table.add_column(title, no_wrap=True, justify="left" if title in "model kind" else "right")
    for row in report.rows:
        table.add_row(row.system, row.kind, _designs(row), *map(str, _counts(row)))
    out.print(table)
    for system in dict.fromkeys(row.system for row in report.rows):
        broken = sum((r.by_clause for r in report.rows if r.system == system), start=Counter[str]())
        words = ", ".join(f"{clause} {n}" for clause, n in broken.most_common())
        out.print(f"{system}: condemned first by {words or 'nothing'}")
    for row in report.rows:
        for judged in row.judged:
            if judged.fate == "equivalent, searched":
                reason = judged.accepted or judged.reason
                out.print(f"= {judged.system}: {judged.name}: {reason}")
    for judged in report.alive:
        out.print(f"✗ {judged.system}: {judged.name}: {judged.reason}")
        out.print(f"    after {', '.join(judged.calls) or 'no call'}")
    out.print()
    out.print(
        "condemned: some calls break a clause. proved: it answers like the original, for any "
        "number of elements. searched: no other answer in the small worlds. accepted: the "
        "reason is in model/equivalents.py. alive: no clause says what is wrong with it."
    )


def _designs(row: Row) -> str:
    drawn = len(row.judged)
    return str(drawn) if drawn == row.of else f"{drawn} of {row.of}"


def _counts(row: Row) -> list[int]:
    survivors = row.count("survives")
    return [
        row.count("condemned"),
        row.count("equivalent, proved"),
        row.count("equivalent, searched"),
        survivors - len(row.alive),
        len(row.alive),
    ]


def _data(report: Report) -> dict[str, Any]:
    return {
        "alive": len(report.alive),
        "rows": [
            {
                "model": row.system,
                "kind": row.kind,
                "of": row.of,
                "condemned_first_by": dict(row.by_clause),
                "designs": [_judged(j) for j in row.judged],
            }
            for row in report.rows
        ],
    }


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "name": judged.name,
        "fate": judged.fate,
        "clauses": list(judged.clauses),
        "calls": list(judged.calls),
        "reason": judged.accepted or judged.reason,
    }


@click.command("cores")
@click.option("--markdown", is_flag=True, help="The whole page, as in docs/cores.md.")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
def cores_command(markdown: bool, models: tuple[str, ...]) -> None:
    """What the proof of each clause needs: invariants, guards, and lines of the definition.

    Of each MODEL, or of those of docs/cores.md.

    Of each query a minimal part is kept that is still proved. Then the lines that no clause needs.

    Exit code: 0 every such line has a reason, 1 some have none, 2 usage.
    """
    known = {s.name: s for s in SPECIFIED.systems}
    if strangers := [m for m in models if m not in known]:
        raise click.UsageError(f"no model {strangers[0]!r}; there are: {', '.join(known)}")
    systems = [known[m] for m in models or ON_PAGE]
    page, missing = cores_page(systems), unneeded_without_reason(systems)
    print(page, end="")
    for need in missing:
        err.print(f"needed by no clause, and no reason given: {need}")
    sys.exit(1 if missing else 0)
