"""`mmcache-conformance smoke`: can the verdicts on an adapter be trusted?"""

from __future__ import annotations

import click

from ..exits import ExitCode
from .options import (
    configuration_option,
    foreign_code,
    in_process_option,
    json_option,
    print_document,
    timeout_option,
    usage_errors,
)

__all__ = ["smoke"]


@click.command()
@click.argument("target")
@timeout_option
@in_process_option
@configuration_option
@json_option
@click.option("--wire", is_flag=True, help="Show every line that goes to and fro.")
@click.pass_context
def smoke(
    context: click.Context,
    target: str,
    timeout: float | None,
    in_process: bool,
    configuration: str | None,
    as_json: bool,
    wire: bool,
) -> None:
    """Can the verdicts on TARGET, a manager, be trusted?

    Three vectors for each manager that anything must pass, and one with a wrong expectation that
    must be reported as failing. The exit code is 0 if all of that is so, 1 if not, 2 if the
    command cannot be understood, 3 if the target could not be started.
    """
    from ..reports.decisions import uncompared_lines
    from ..targets.open import open_manager
    from ..verdicts.smoke import smoke as run_smoke
    from ..verdicts.smoke import smoked

    def show(way: str, line: bytes) -> None:
        click.echo(f"{way} {line.decode(errors='replace')}", err=True)

    with usage_errors():
        trace = show if wire else None
        opened = open_manager(
            target,
            timeout=timeout,
            trace=trace,
            configuration=configuration,
            in_process=in_process,
        )
    with foreign_code():
        report, checks = run_smoke(opened)
    told = smoked(report, checks)
    if as_json:
        print_document(told)
        context.exit(told.exit_code)
    if report.implementation is None:
        click.echo(f"{target} could not be started: {report.reason}")
        context.exit(ExitCode.COULD_NOT)
    found = report.implementation
    click.echo(f"{found.name} {found.version or '(no version)'}, {found.language}")
    for manager, names in found.capabilities.items():
        click.echo(f"  {manager}: {', '.join(names) or 'no capabilities'}")
    for check in checks:
        verdict = check.verdict
        click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {verdict.kind}: {check.says}")
        if not check.ok:
            click.echo(
                f"      it was reported as: {verdict.outcome} {verdict.reason or ''}".rstrip()
            )
            for line in (verdict.stderr or "").splitlines():
                click.echo(f"      | {line}")
    if not checks:
        click.echo("FAIL  it has no manager, so nothing was checked")
    for kind, why in found.undriven.items():
        click.echo(f"{kind}: {why}")
    for line in uncompared_lines(found):
        click.echo(line)
    good = told.exit_code == ExitCode.OK
    click.echo("its verdicts can be trusted" if good else "its verdicts cannot be trusted")
    context.exit(told.exit_code)
