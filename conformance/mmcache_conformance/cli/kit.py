"""The commands about adapters, and the files that `run` reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mmcache_vectors.manager import Vector

    from ..verdicts.expected import ExpectedFailures
    from ..verdicts.model import RunReport

__all__ = ["commands", "expected_of", "file_options", "timeout_option", "write_file", "write_files"]

_file = click.Path(dir_okay=False, path_type=Path)
timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="What a command has for one vector (default: 10).",
)


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--expected`, and the reports that go to files."""
    for option in (
        click.option("--markdown", type=_file, help="Write the summary of a CI job."),
        click.option("--junit", type=_file, help="Write JUnit XML."),
        click.option("--html", type=_file, help="Write one HTML page."),
        click.option(
            "--expected",
            type=_file,
            help="The failures that are expected of the one target (TOML or JSON).",
        ),
    ):
        command = option(command)
    return command


def expected_of(
    path: Path | None, targets: Sequence[str], directory: Path | None
) -> tuple[ExpectedFailures, tuple[Vector, ...]] | None:
    """The file of expected failures, and the whole suite that it is about."""
    if path is None:
        return None
    from ..suites.load import load_suite
    from ..verdicts.expected import ExpectedFailuresError, load_expected

    if len(targets) > 1:
        raise click.UsageError("--expected is about one target; run the others by themselves")
    suite = load_suite(directory)
    try:
        return load_expected(path, suite), suite
    except ExpectedFailuresError as error:
        raise click.UsageError(str(error)) from None


def write_files(
    run: RunReport,
    vectors: Sequence[Vector],
    *,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
) -> None:
    """The reports that were asked for."""
    if html is not None:
        from ..reports.html import run_page

        write_file(html, run_page(run, vectors).encode(errors="replace"))
    if junit is not None:
        from ..reports.junit import junit_xml

        write_file(junit, junit_xml(run, vectors))
    if markdown is not None:
        from ..reports.markdown import run_markdown

        write_file(markdown, run_markdown(run, vectors).encode(errors="replace"))


def write_file(path: Path, content: bytes) -> None:
    """Write a file that the user named. Raises `click.UsageError` where that cannot be done."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None


# --- smoke -------------------------------------------------------------------------------------


@click.command()
@click.argument("target")
@timeout_option
@click.option("--wire", is_flag=True, help="Show every line that goes to and fro.")
@click.pass_context
def smoke(context: click.Context, target: str, timeout: float | None, wire: bool) -> None:
    """Is the adapter of TARGET fit to be believed?

    Three vectors for each manager that anything must pass, and one with a wrong expectation that
    must be reported as failing. The exit code is 0 if all of that is so, 1 if not, 2 if the
    command cannot be understood, 3 if the target could not be started.
    """
    from ..errors import TargetNameError
    from ..targets.open import open_target
    from ..verdicts.smoke import smoke as run_smoke

    def show(way: str, line: bytes) -> None:
        click.echo(f"{way} {line.decode(errors='replace')}", err=True)

    try:
        opened = open_target(target, timeout=timeout, trace=show if wire else None)
    except TargetNameError as error:
        raise click.UsageError(str(error)) from None
    report, checks = run_smoke(opened)
    if report.implementation is None:
        click.echo(f"{target} could not be started: {report.reason}")
        context.exit(3)
    found = report.implementation
    click.echo(f"{found.name} {found.version or '(no version)'}, {found.language}")
    for manager, names in found.capabilities.items():
        click.echo(f"  {manager}: {', '.join(names) or 'no capabilities'}")
    for check in checks:
        verdict = check.verdict
        click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {verdict.manager}: {check.says}")
        if not check.ok:
            click.echo(
                f"      it was reported as: {verdict.outcome} {verdict.reason or ''}".rstrip()
            )
            for line in (verdict.stderr or "").splitlines():
                click.echo(f"      | {line}")
    if not checks:
        click.echo("FAIL  it has no manager, so nothing was checked")
    good = bool(checks) and all(check.ok for check in checks)
    click.echo("fit to be believed" if good else "not fit to be believed")
    context.exit(0 if good else 1)


# --- adapter -----------------------------------------------------------------------------------


@click.command()
@click.argument("language", type=click.Choice(["cpp"]))
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def adapter(language: str, directory: Path) -> None:
    """Copy an adapter that ships, and its example, to DIRECTORY. No file is overwritten."""
    from importlib.resources import files

    sources = files("mmcache_conformance") / "adapters" / language
    found = sorted(sources.iterdir(), key=lambda file: file.name)
    taken = [file.name for file in found if (directory / file.name).exists()]
    if taken:
        raise click.UsageError(f"{directory} has {', '.join(taken)} already")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"{directory}: {error.strerror}") from None
    for file in found:
        write_file(directory / file.name, file.read_bytes())
        click.echo(str(directory / file.name))


commands: tuple[click.Command, ...] = (smoke, adapter)
