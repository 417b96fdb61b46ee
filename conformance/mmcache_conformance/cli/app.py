"""The command `mmcache-conformance`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from . import kit as kit_cli
from . import system as system_cli
from .check import check
from .exhaust import exhaust

if TYPE_CHECKING:
    from mmcache_vectors.manager import Vector

    from ..verdicts.model import TargetReport

__all__ = ["main"]

_vectors_option = click.option(
    "--vectors",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the vectors of this directory instead of those that come with the package.",
)
_select_option = click.option(
    "-k",
    "expression",
    metavar="EXPR",
    help="Only the vectors that EXPR selects: clause ids, parts of names, and, or, not, brackets.",
)


def main() -> NoReturn:
    """The entry point. Whatever goes wrong, a user sees a sentence and an exit code."""
    try:
        cli.main(prog_name="mmcache-conformance")
    except Exception as error:
        from ..errors import describe_exception

        click.echo(f"internal error, please report it: {describe_exception(error)}", err=True)
        sys.exit(3)
    sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmcache-spec")
def cli() -> None:
    """Does an implementation of the multimodal encoder cache do what the specification says?"""


@cli.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@_select_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--quiet", "-q", is_flag=True, help="One line a target.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first vector that fails.")
@kit_cli.timeout_option
@kit_cli.file_options
@_vectors_option
@click.pass_context
def run(
    context: click.Context,
    targets: tuple[str, ...],
    expression: str | None,
    as_json: bool,
    quiet: bool,
    fail_fast: bool,
    timeout: float | None,
    expected: Path | None,
    html: Path | None,
    junit: Path | None,
    markdown: Path | None,
    directory: Path | None,
) -> None:
    """Run the vectors against every TARGET.

    \b
    TARGET is one of
      reference             the reference implementation (the default)
      module:Class          any class that can be imported, also from here;
                            module:Class,module:Class adds the manager for
                            encoder-decoder models
      vllm                  the vLLM that is installed
      vllm:PATH             an encoder_cache_manager.py, a checkout or a wheel
      vllm:VERSION          a released vLLM, such as vllm:0.33.0
      cmd:COMMAND           a program that speaks the adapter protocol

    \b
    The exit code is 0 if everything passed, 1 if something failed, 2 if the
    command cannot be understood, 3 if a target could not be started or
    nothing of it could be checked.
    """
    from ..errors import TargetSpecError
    from ..targets.open import REFERENCE, open_target
    from ..verdicts.run import exit_code, run_target, summarise

    try:
        opened = [open_target(spec, timeout=timeout) for spec in targets or (REFERENCE,)]
    except TargetSpecError as error:
        raise click.UsageError(str(error)) from None
    vectors = _selected(directory, expression)
    known_failures = kit_cli.expected_of(expected, targets, directory)
    reports: list[TargetReport] = []
    for target in opened:
        # What a class prints is no part of our output.
        with contextlib.redirect_stdout(sys.stderr):
            report = run_target(target, vectors, fail_fast=fail_fast, directory=directory)
        if known_failures is not None:
            from ..verdicts.expected import apply_expected

            report = apply_expected(report, *known_failures)
        reports.append(report)
        if fail_fast and exit_code(reports) != 0:
            break
    summary = summarise(reports, vectors)
    kit_cli.write_files(summary, vectors, html=html, junit=junit, markdown=markdown)
    if as_json:
        from ..verdicts.model import encode_run

        click.echo(encode_run(summary), nl=False)
    else:
        from rich.console import Console

        from ..reports.terminal import print_run

        print_run(reports, vectors, Console(highlight=False), quiet=quiet)
    context.exit(exit_code(reports))


@cli.command(name="list")
@_select_option
@_vectors_option
def list_vectors(expression: str | None, directory: Path | None) -> None:
    """List the vectors, one a line: id, clauses, manager, number of steps."""
    vectors = _selected(directory, expression)
    rows = [(v.id, ",".join(v.clauses), v.manager, str(len(v.steps))) for v in vectors]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[3]]))


@cli.command()
@click.argument("vector_id")
@_vectors_option
def show(vector_id: str, directory: Path | None) -> None:
    """Tell one vector as a story."""
    from ..reports.story import vector_story

    vectors = {vector.id: vector for vector in _selected(directory, None)}
    begins = [id for id in vectors if id.startswith(vector_id)]
    chosen = vector_id if vector_id in vectors else begins[0] if len(begins) == 1 else None
    if chosen is None:
        from difflib import get_close_matches

        near = begins[:5] or get_close_matches(vector_id, vectors, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise click.UsageError(f"no vector {vector_id!r}{hint}")
    click.echo(vector_story(vectors[chosen]), nl=False)


@cli.command()
@click.argument(
    "what",
    type=click.Choice(["vector", "run", "adapter", "expected", "matrix"]),
    default="vector",
)
def schema(what: str) -> None:
    """Print a JSON Schema.

    \b
    vector    a vector file (the default)
    run       what run --json prints
    adapter   the messages of the adapter protocol
    expected  a file of expected failures
    matrix    what matrix --json prints
    """
    import json

    if what == "vector":
        from mmcache_vectors.manager import json_schema as content
    elif what == "adapter":
        from ..targets.wire import adapter_schema as content
    elif what == "expected":
        from ..verdicts.expected import expected_failures_schema as content
    elif what == "matrix":
        from ..matrix.report import matrix_schema as content
    else:
        from ..verdicts.model import run_schema as content
    click.echo(json.dumps(content(), indent=2, sort_keys=True))


for _command in (*kit_cli.commands, check, exhaust, system_cli.system):
    cli.add_command(_command)


def _selected(directory: Path | None, expression: str | None) -> tuple[Vector, ...]:
    from mmcache_vectors.manager import VectorError

    from ..suites.load import load_suite
    from ..suites.select import SelectionError, parse_selection

    try:
        chosen = parse_selection(expression) if expression is not None else None
        vectors = load_suite(directory)
    except SelectionError as error:
        raise click.BadParameter(str(error), param_hint="-k") from None
    except VectorError as error:
        raise click.UsageError(str(error)) from None
    if chosen is not None:
        vectors = tuple(vector for vector in vectors if chosen(vector))
    if not vectors:
        raise click.UsageError(f"no vector matches {expression!r}")
    return vectors
