"""`mmcache-conformance expected`: a first file of expected failures."""

from __future__ import annotations

from pathlib import Path

import click

from ..exits import ExitCode
from .options import (
    configuration_option,
    echo,
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
    from ..open import format_for, open_targets
    from ..oracle.decisions import explained
    from ..suites.load import load_suite
    from ..verdicts.draft import draft
    from ..verdicts.run import could_not, run_target
    from ..verdicts.together import together

    with usage_errors():
        opened = [
            (one, load_suite(directory, format_for(one)))
            for one in open_targets(
                target, timeout=timeout, configuration=configuration, in_process=in_process
            )
        ]
    reports = []
    for one, suite in opened:
        with foreign_code():
            report = explained(run_target(one, suite, directory=directory), suite)
        if could_not(report):
            found = report.implementation
            why = report.reason
            if found is not None and why is None:
                why = "; ".join(found.undriven.values()) or "nothing was checked"
            echo(f"{target} could not be started: {why}", err=True)
            context.exit(ExitCode.COULD_NOT)
        reports.append(report)
    echo(draft(together(reports), link), nl=False)
