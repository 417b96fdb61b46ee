"""What several commands have: their options, each once, and their ways to read and to write."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import printable
from ..exits import ExitCode

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    from ..suites.select import Selection

__all__ = [
    "NotWritten",
    "Seconds",
    "check_files",
    "cluster_option",
    "complete_vector",
    "configuration_option",
    "each_by_itself",
    "echo",
    "foreign_code",
    "in_process_option",
    "json_option",
    "make_console",
    "make_folder",
    "no_vector_matches",
    "print_document",
    "refresh_option",
    "report_options",
    "select_option",
    "selection",
    "timeout_option",
    "usage_errors",
    "vectors_option",
    "write_file",
]

_file = click.Path(dir_okay=False, path_type=Path)

vectors_option = click.option(
    "--vectors",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the vectors of this directory instead of those that come with the package.",
)


def complete_vector(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[str]:
    """The ids of the package's vectors that begin so, for the completion of a shell."""
    from importlib.resources import files

    names = (
        f.name for n in ("vectors", "engine_vectors", "pair_vectors") for f in _folder(files, n)
    )
    ids = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(id for id in ids if id.startswith(incomplete))


def _folder(files: Callable[[str], Any], name: str) -> Iterator[Any]:
    yield from (files("mmcache_vectors") / name).iterdir()


select_option = click.option(
    "-k",
    "expression",
    metavar="EXPR",
    shell_complete=complete_vector,
    help="Only the vectors that EXPR selects: clause ids, parts of names, and, or, not, brackets.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
cluster_option = click.option(
    "--cluster", metavar="ADDRESS", help="Do the work on this Dask cluster instead of here."
)


class Seconds(click.FloatRange):
    """A time: more than nothing, within a week, and a number."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=7 * 24 * 3600)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        # A comparison with no number is false, so that it would pass for within every bound.
        if str(value).strip().lower().lstrip("+-") == "nan":
            self.fail(f"{value} is not a number of seconds", param, ctx)
        return super().convert(value, param, ctx)


timeout_option = click.option(
    "--timeout",
    type=Seconds(),
    metavar="SECONDS",
    help="What a command, or the process of a class, has for one vector (default: 10).",
)
refresh_option = click.option(
    "--refresh", is_flag=True, help="Read releases of vLLM anew, and not from the cache."
)
in_process_option = click.option(
    "--in-process",
    is_flag=True,
    help="Run a Python class in this process: faster, without a time limit, and at its mercy.",
)


configuration_option = click.option(
    "--vllm-config",
    "configuration",
    metavar="module:NAME",
    envvar="MMCACHE_VLLM_CONFIG",
    help="What a Python class gets as its vllm_config: an object, or a function that makes it.",
)


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
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


@contextmanager
def usage_errors() -> Iterator[None]:
    """What is wrong with a name, an expression or a file that the user gave ends with code 2."""
    from mmcache_vectors.document import DocumentError

    from ..errors import TargetNameError
    from ..suites.select import SelectionError
    from ..verdicts.demanded import UnknownCapability

    try:
        yield
    except SelectionError as error:
        raise click.BadParameter(str(error), param_hint="-k") from None
    except UnknownCapability as error:
        raise click.BadParameter(str(error), param_hint="--require") from None
    except (DocumentError, TargetNameError) as error:
        raise click.UsageError(str(error)) from None


def selection(expression: str | None) -> Selection:
    """What `-k` selects; everything without it. Raises `SelectionError`."""
    from ..suites.select import parse_selection

    return parse_selection(expression) if expression is not None else lambda vector: True


def no_vector_matches(expression: str | None, noun: str = "vector") -> click.UsageError:
    """What to say of an expression that selects nothing."""
    return click.UsageError(f"no {noun} matches {expression!r}")


@contextmanager
def foreign_code() -> Iterator[None]:
    """Whatever is printed below, by whatever means, goes to standard error.

    Standard output belongs to the report: a class in this process may write to it from C, too.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # it is closed: nobody reads it
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        with suppress(OSError):
            os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def make_console() -> Console:
    """Standard output, as rich writes it; a reader that went away is the caller's affair."""
    from rich.console import Console
    from rich.segment import Segment

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            # What a target says must not steer the terminal.
            for part in super().render(renderable, options):
                yield part if part.control else Segment(printable(part.text), part.style)

    console = Output(highlight=False)
    console.width = max(console.width, _NARROWEST)
    return console


_NARROWEST = 40
"""Columns. In fewer, nothing of a table would be left."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines, of which nothing steers the terminal."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err, nl=nl)


def print_document(document: object) -> None:
    """One JSON document on standard output, in its canonical form."""
    from mmcache_vectors.document import canonical

    click.echo(canonical(document), nl=False)


class NotWritten(click.ClickException):
    """A file could not be written after all. The work is done, and its result was printed."""

    exit_code = ExitCode.COULD_NOT


def write_file(path: Path, content: bytes) -> None:
    """Write a file that the user named: the whole of it, or what was there before.

    Raises:
        NotWritten: It could not be written; nothing else is lost by it.
    """
    from mmcache_vectors.document import write_atomically

    try:
        write_atomically(path, content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise NotWritten(f"{path} is not written: {reason}") from None


def check_files(paths: Mapping[str, Path | None]) -> None:
    """Refuse, before the work, what could not be written after it; by option, a path or none.

    Raises:
        click.UsageError: A path that cannot be written, or two options with one path.
    """
    taken: dict[Path, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        try:
            real = path.resolve()
            folder, there, writable = real.parent, real.exists(), os.access(real, os.W_OK)
            usable = folder.is_dir() and (there or os.access(folder, os.W_OK | os.X_OK))
        except (OSError, ValueError, RuntimeError) as error:
            raise click.BadParameter(f"{path}: {error}", param_hint=option) from None
        other = taken.setdefault(real, option)
        if other != option and (not there or real.is_file()):
            raise click.UsageError(f"{other} and {option} name one file: {path}")
        if not folder.is_dir():
            raise click.BadParameter(f"there is no directory {path.parent}", param_hint=option)
        if not usable or (there and not writable):
            raise click.BadParameter(f"{path} cannot be written", param_hint=option)


def make_folder(path: Path, option: str) -> None:
    """The folder, made if need be, into which files can be written.

    Raises:
        click.BadParameter: There is none to be had.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        usable = os.access(path, os.W_OK | os.X_OK)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.BadParameter(f"{path}: {reason}", param_hint=option) from None
    if not usable:
        raise click.BadParameter(f"{path} cannot be written", param_hint=option)


@contextmanager
def each_by_itself() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Yields what does a piece of work; what cannot be written does not keep the next from it.

    Raises:
        NotWritten: Something was not written; what was told of every such thing is said.
    """
    failed: list[str] = []

    def attempt(work: Callable[[], None]) -> None:
        try:
            work()
        except NotWritten as error:
            failed.append(error.message)
        except BrokenPipeError:
            raise
        except OSError as error:
            failed.append(f"cannot write: {error.strerror}")

    yield attempt
    if failed:
        raise NotWritten("\n".join(failed))
