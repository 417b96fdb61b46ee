"""`mmcache-conformance expected`: a first file of expected failures."""

from __future__ import annotations

from pathlib import Path

import click

from ..exits import ExitCode
from .options import (
    configuration_option,
    foreign_code,
    in_process_option,
    timeout_option,
    usage_errors,
    vectors_option,
)

__all__ = ["expected"]


@click.command()
@click.argument("target")
@click.option(
    "--link",
    default="https://example.org/replace-this",
    show_default=True,
    help="Where a failure is dealt with that no public report is known of.",
)
@timeout_option
@in_process_option
@configuration_option
@vectors_option
@click.pass_context
def expected(
    context: click.Context,
    target: str,
    link: str,
    timeout: float | None,
    in_process: bool,
    configuration: str | None,
    directory: Path | None,
) -> None:
    """Print a first file of expected failures of TARGET, in TOML.

    One entry for each clause that a known wrong decision of TARGET breaks, with its public report,
    and one for each vector whose failure is left. With the file, `run --expected` passes; it is for
    you to say in each entry what is true of your engine.

    \b
    The exit code is 0 if the file covers everything, also where it is
    empty, 2 if the command cannot be understood, 3 if TARGET could not be
    started or driven.
    """
    from ..open import format_for, open_target
    from ..oracle.decisions import explained
    from ..suites.load import load_suite
    from ..verdicts.draft import draft
    from ..verdicts.run import could_not, run_target

    with usage_errors():
        opened = open_target(
            target, timeout=timeout, configuration=configuration, in_process=in_process
        )
        suite = load_suite(directory, format_for(opened))
    with foreign_code():
        report = explained(run_target(opened, suite, directory=directory), suite)
    if could_not(report):
        found = report.implementation
        why = report.reason
        if found is not None and why is None:
            why = "; ".join(found.undriven.values()) or "nothing was checked"
        click.echo(f"{target} could not be started: {why}", err=True)
        context.exit(ExitCode.COULD_NOT)
    click.echo(draft(report, link), nl=False)
