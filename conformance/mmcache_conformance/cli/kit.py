"""The commands about adapters and releases, and the files that `run` reads and writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mmcache_vectors.manager import Vector

    from ..verdicts.expected import ExpectedFailures
    from ..verdicts.model import RunReport, TargetReport

__all__ = ["commands", "expected_of", "file_options", "timeout_option", "write_files"]

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

        _write(html, run_page(run, vectors).encode(errors="replace"))
    if junit is not None:
        from ..reports.junit import junit_xml

        _write(junit, junit_xml(run, vectors))
    if markdown is not None:
        from ..reports.markdown import run_markdown

        _write(markdown, run_markdown(run, vectors).encode(errors="replace"))


def _write(path: Path, content: bytes) -> None:
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
    from ..errors import TargetSpecError
    from ..targets.open import open_target
    from ..verdicts.smoke import smoke as run_smoke

    def show(way: str, line: bytes) -> None:
        click.echo(f"{way} {line.decode(errors='replace')}", err=True)

    try:
        opened = open_target(target, timeout=timeout, trace=show if wire else None)
    except TargetSpecError as error:
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
        _write(directory / file.name, file.read_bytes())
        click.echo(str(directory / file.name))


# --- matrix ------------------------------------------------------------------------------------


@click.command()
@click.option(
    "--releases",
    metavar="A..B|latest:N|A",
    help="Which vLLM releases, several with commas between them (default: all stable ones since "
    "0.10.2). Ranges include their ends.",
)
@click.option("--also", multiple=True, metavar="TARGET", help="A row more, such as vllm:PATH.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write matrix.json, matrix.html and matrix.md to this directory.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes (default: one a core).")
@click.option("--cluster", metavar="ADDRESS", help="Run on this Dask cluster instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--refresh", is_flag=True, help="Run again what is in the cache.")
@click.option(
    "--vectors",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the vectors of this directory instead of those that come with the package.",
)
@click.pass_context
def matrix(
    context: click.Context,
    releases: str | None,
    also: tuple[str, ...],
    out: Path | None,
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
    refresh: bool,
    directory: Path | None,
) -> None:
    """Run vLLM releases against every clause.

    Only the manager's source file is read out of each wheel. Results are kept, so that a run that
    was interrupted goes on where it was. What a release fails is a finding, not an error: the exit
    code is 0 if any release was run, 2 if the command cannot be understood, 3 otherwise.
    """
    from datetime import UTC, datetime

    from mmcache_vectors.manager import VectorError

    from ..errors import TargetError, TargetSpecError
    from ..matrix.report import encode_matrix, matrix_markdown, matrix_page, print_matrix
    from ..matrix.run import ResultCache, matrix_of, run_matrix
    from ..suites.load import load_suite
    from ..targets.open import open_target

    try:
        vectors = load_suite(directory)
        for spec in also:
            open_target(spec)
        specs = [*(f"vllm:{version}" for version in _releases(releases)), *also]
        make_executor = _executors(jobs, cluster, len(specs))
    except (VectorError, TargetSpecError) as error:
        raise click.UsageError(str(error)) from None
    except TargetError as error:
        click.echo(str(error), err=True)
        context.exit(3)
    cache = None if refresh else ResultCache(_cache_directory(), vectors)
    with _progress(len(specs)) as done:
        rows = run_matrix(specs, vectors, make_executor, cache=cache, done=done)
    found = matrix_of(rows, vectors, datetime.now(UTC).date().isoformat())
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"{out}: {error.strerror}") from None
        _write(out / "matrix.json", encode_matrix(found))
        _write(out / "matrix.html", matrix_page(found, vectors).encode(errors="replace"))
        _write(out / "matrix.md", matrix_markdown(found, vectors).encode(errors="replace"))
    if as_json:
        click.echo(encode_matrix(found), nl=False)
    else:
        from rich.console import Console

        print_matrix(found, vectors, Console(highlight=False))
    context.exit(0 if any(row.implementation is not None for row in rows) else 3)


def _cache_directory() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("mmcache-conformance", appauthor=False)


def _releases(expression: str | None) -> tuple[str, ...]:
    """The versions. Without an index, those that are in the cache, and a word about it."""
    from ..matrix.choose import DEFAULT, choose_releases
    from ..targets.vllm.wheel import IndexUnreachable, kept_releases, released_versions

    def known() -> tuple[str, ...]:
        try:
            return released_versions()
        except IndexUnreachable as error:
            kept = kept_releases()
            if not kept:
                raise
            click.echo(f"{error}; meanwhile, only the {len(kept)} in the cache", err=True)
            return kept

    return choose_releases(expression or DEFAULT, known)


def _executors(
    jobs: int | None, cluster: str | None, most: int
) -> Callable[[], AbstractContextManager[Executor]]:
    """How to get an executor: processes here, or an existing cluster."""
    if cluster is None:
        from ..matrix.run import worker_processes

        return worker_processes(max(1, min(jobs or os.cpu_count() or 1, most)))
    if jobs is not None:
        raise click.UsageError("--jobs is for processes here; a cluster has its own workers")
    from ..matrix.cluster import connect

    return connect(cluster)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[TargetReport], None]]:
    """A bar on standard error, where somebody is looking."""
    if not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)

        def done(report: TargetReport) -> None:
            bar.update(task, advance=1, description=report.target)

        yield done


commands: tuple[click.Command, ...] = (smoke, adapter, matrix)
