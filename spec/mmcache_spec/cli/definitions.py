"""The definitions, written out: clauses, obligations as SMT-LIB scripts, what the goals cover."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mmcache_vectors.clauses import CLAUSES

from ..checks.complete import questions
from ..checks.coverage import cover
from ..checks.induction import obligations
from ..checks.smtlib import is_script, question_script, scripts
from ..evaluate.text import formula
from ..generate.folder import write_folder
from ..model.variants import SPECIFIED, Variant
from ..render.coverage import coverage_page, goal_sets
from ..render.reference import reference_page
from .common import UNKNOWN, USAGE, VariantName, apology, out

__all__ = ["clauses_command", "coverage_command", "obligations_command"]


@click.command("obligations")
@click.option("--out", "folder", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.argument("variant", type=VariantName(), default=SPECIFIED.name)
def obligations_command(folder: Path, variant: Variant) -> None:
    """Write the obligations of VARIANT as SMT-LIB 2 scripts, and the questions of completeness.

    `unsat` means proved.
    """
    found: dict[str, bytes] = {}
    for system in variant.systems:
        for obligation in obligations(system):
            found |= {f"{s.name}.smt2": s.text.encode() for s in scripts(obligation)}
        for question in questions(system):
            script = question_script(question)
            found[f"{script.name}.smt2"] = script.text.encode()
    with apology(USAGE):
        write_folder(folder, found, is_script)
    out.print(f"{len(found)} scripts in {folder}")


@click.command("coverage")
@click.option("--markdown", is_flag=True, help="As in docs/coverage.md.")
def coverage_command(markdown: bool) -> None:
    """Which goals some calls reach, and which are proved to be out of reach.

    Exit code: 0 every goal is one or the other, 1 some are open, 2 usage, 3 unknown.
    """
    with apology(UNKNOWN):
        covered = {title: cover(s, w, g, b, least=False) for title, s, w, g, b in goal_sets()}
    if markdown:
        print(coverage_page(covered), end="")
    else:
        for title, found in covered.items():
            counts = f"{len(found.reached)} reached, {len(found.unreachable)} proved unreachable"
            out.print(f"{title}: {counts}, {len(found.open)} open")
            for name in found.open:
                out.print(f"  ? {name}")
    sys.exit(1 if any(found.open for found in covered.values()) else 0)


@click.command("clauses")
@click.option("--markdown", is_flag=True, help="The whole reference page, as in docs/clauses.md.")
def clauses_command(markdown: bool) -> None:
    """Every clause: what it says, its formula, and the public reports it would have caught."""
    if markdown:
        print(reference_page(), end="")
        return
    for clause in CLAUSES.values():
        out.print(f"{clause.id} {clause.name}")
        out.print(f"    {clause.says}")
        for system in SPECIFIED.systems:
            for prop in system.stating(clause.id):
                at = f"{prop.action}: " if hasattr(prop, "action") else ""
                out.print(f"    {system.name}: {at}{formula(prop.formula)}")
        if clause.reports:
            out.print(f"    reports: {', '.join(clause.reports)}")
