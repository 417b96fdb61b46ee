"""`mmcache-spec lemmas`: the schemas of all lemmas, and their proofs in Coq."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..checks.theories import CoqFailed, NoCoq, Theories, coq_problems, drifted
from ..evaluate.text import formula
from ..kernel.schemas import statements
from ..render.coq import THEORIES, generated_files, theorems
from .common import REFUTED, UNKNOWN, USAGE

__all__ = ["lemmas_command"]


@click.command("lemmas")
@click.option("--coq", "theory", type=click.Choice(["Statements", "Check"]), help="Print a theory.")
@click.option(
    "--check",
    "folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Have Coq prove every schema, with the theories of this folder: spec/lemmas.",
)
def lemmas_command(theory: str | None, folder: Path | None) -> None:
    """The schemas of all lemmas about finite sets, or their proofs in Coq.

    Exit code: 0 proved, 1 not proved or not as generated, 2 usage, 3 unknown: there is no coqc.
    """
    if theory is not None:
        print(generated_files()[theory], end="")
    elif folder is not None:
        _check(folder)
    else:
        for statement in statements():
            click.echo(f"{statement.name}: {formula(statement.formula)}")


def _check(folder: Path) -> None:
    theories = Theories(folder, THEORIES, generated_files())
    problems = [
        f"{path} is not as generated; mend it: mmcache-spec lemmas --coq {path.stem} > {path}"
        for path in drifted(theories)
    ]
    try:
        problems += coq_problems(theories)
    except (NoCoq, CoqFailed) as error:
        click.echo(f"unknown: {error}", err=True)
        sys.exit(UNKNOWN)
    except OSError as error:
        click.echo(f"{error.filename}: {error.strerror}", err=True)
        sys.exit(USAGE)
    for problem in problems:
        click.echo(f"✗ {problem}")
    if problems:
        sys.exit(REFUTED)
    schemas, all_of_them = len(statements()), len(theorems())
    click.echo(
        f"{schemas} schemas of lemmas proved in Coq, "
        f"and {all_of_them - schemas} theorems on which they rest"
    )
