"""`mmcache-conformance matrix`: many releases, one table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..exits import ExitCode
from .options import (
    each_by_itself,
    foreign_code,
    in_process_option,
    json_option,
    make_console,
    make_folder,
    refresh_option,
    timeout_option,
    usage_errors,
    vectors_option,
    write_file,
)

if TYPE_CHECKING:
    from ..verdicts.model import TargetReport

__all__ = ["matrix"]


@click.command()
@click.option(
    "--releases",
    metavar="A..B|latest:N|A",
    help="Which vLLM releases, several with commas between them (default: all stable ones since "
    "0.10.2). Ranges include their ends.",
)
@click.option(
    "--processor-cache",
    "pairs",
    is_flag=True,
    help="Of each release the processor cache (since 0.11.0), by the pair vectors.",
)
@click.option("--also", multiple=True, metavar="TARGET", help="A row more, such as vllm:PATH.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write matrix.json, matrix.html and matrix.md to this directory.",
)
@timeout_option
@in_process_option
@refresh_option
@json_option
@vectors_option
@click.pass_context
def matrix(
    context: click.Context,
    releases: str | None,
    pairs: bool,
    also: tuple[str, ...],
    out: Path | None,
    timeout: float | None,
    in_process: bool,
    refresh: bool,
    as_json: bool,
    directory: Path | None,
) -> None:
    """Run vLLM releases against every clause.

    Only the source files that are needed are read out of each wheel, and kept. What a release
    fails is a finding, not an error: the exit code is 0 if any release was run, 2 if the command
    cannot be understood, 3 otherwise.
    """
    from datetime import UTC, datetime

    from ..errors import TargetError
    from ..matrix.report import encode_matrix, matrix_markdown, matrix_page, print_matrix
    from ..matrix.run import matrix_of, run_matrix
    from ..open import open_target
    from ..suites.load import MANAGERS, PAIRS, load_suite

    try:
        with usage_errors():
            vectors = load_suite(directory, PAIRS if pairs else MANAGERS)
            for name in also:
                open_target(name)
            scheme = "vllm-processor-cache" if pairs else "vllm"
            chosen = _releases(releases or ("0.11.0.." if pairs else None))
            names = [*(f"{scheme}:{version}" for version in chosen), *also]
    except TargetError as error:
        click.echo(str(error), err=True)
        context.exit(ExitCode.COULD_NOT)
    if out is not None:
        make_folder(out, "--out")
    with _progress(len(names)) as on_report, foreign_code():
        rows = run_matrix(
            names, vectors, on_report, timeout=timeout, in_process=in_process, refresh=refresh
        )
    found = matrix_of(rows, vectors, datetime.now(UTC).date().isoformat())

    def printed() -> None:
        if as_json:
            click.echo(encode_matrix(found), nl=False)
        else:
            print_matrix(found, vectors, make_console())
        sys.stdout.flush()

    pages: dict[str, Callable[[], bytes]] = {
        "matrix.json": lambda: encode_matrix(found),
        "matrix.html": lambda: matrix_page(found, vectors).encode(errors="replace"),
        "matrix.md": lambda: matrix_markdown(found, vectors).encode(errors="replace"),
    }
    gone: BrokenPipeError | None = None
    with each_by_itself() as attempt:
        try:
            attempt(printed)
        except BrokenPipeError as error:
            gone = error
        if out is not None:
            for name, page in pages.items():
                attempt(partial(_written, out / name, page))
    if gone is not None:
        raise gone
    ran = any(row.implementation is not None for row in rows)
    context.exit(ExitCode.OK if ran else ExitCode.COULD_NOT)


def _written(path: Path, page: Callable[[], bytes]) -> None:
    write_file(path, page())


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

        def on_report(report: TargetReport) -> None:
            bar.update(task, advance=1, description=report.target)

        yield on_report
