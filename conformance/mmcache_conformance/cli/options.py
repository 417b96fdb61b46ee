"""What several commands have: their options, each once, and their ways to read and to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from ..suites.select import Selection

__all__ = [
    "cluster_option",
    "complete_vector",
    "configuration_option",
    "json_option",
    "make_console",
    "no_vector_matches",
    "print_document",
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

    names = (f.name for n in ("vectors", "engine_vectors") for f in _folder(files, n))
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
timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="What a command has for one vector (default: 10).",
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


def make_console() -> Console:
    """Standard output, as rich writes it; a reader that went away is the caller's affair."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output(highlight=False)


def print_document(document: object) -> None:
    """One JSON document on standard output, in its canonical form."""
    from mmcache_vectors.document import canonical

    click.echo(canonical(document), nl=False)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that the user named, or say why not."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
