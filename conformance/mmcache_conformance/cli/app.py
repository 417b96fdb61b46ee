"""The command `mmcache-conformance`, and how it ends whatever happens."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, NoReturn

import click

from ..exits import ExitCode
from .adapter import adapter
from .check import check
from .differ import differ
from .exhaust import exhaust
from .expected import expected
from .guard import executes_foreign_code, guarded
from .live import live
from .matrix import matrix
from .run import run
from .schema import schema
from .smoke import smoke
from .vectors import list_vectors, show
from .workloads import workloads

__all__ = ["cli", "main"]


class _ClosedPipe(Exception):
    """Whoever read the output went away. `click` would take the error itself for a failure."""


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            found = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _ClosedPipe from None
        return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmcache-spec")
def cli() -> None:
    """Does an implementation of the multimodal encoder cache do what the specification says?"""


for _command in (
    run,
    expected,
    list_vectors,
    show,
    workloads,
    live,
    smoke,
    adapter,
    matrix,
    check,
    exhaust,
    differ,
    schema,
):
    cli.add_command(_command)


def main() -> NoReturn:
    """The entry point. Whatever goes wrong, a user sees a sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal without our signs shows a question mark, and no traceback.
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if sys.stdout is None:  # else nothing would be said, and the exit code would be a verdict
        click.echo("cannot write: standard output is closed", err=True)
        sys.exit(ExitCode.COULD_NOT)
    guard = executes_foreign_code(sys.argv[1:])
    sys.exit(guarded(_run) if guard else _run())


def _run() -> int:
    """The exit code."""
    try:
        return int(cli.main(prog_name="mmcache-conformance", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        # Whoever does not read would keep us at the end, too.
        _let_go_of_output()
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except (_ClosedPipe, BrokenPipeError):
        _let_go_of_output()
        return ExitCode.BROKEN_PIPE
    except Exception as error:
        return _told(error)
    except SystemExit as error:  # no command of ours ends so: it is of a target's code
        told = f"the target asks to end the process ({error.code}): nothing is concluded"
        click.echo(told, err=True)
        return ExitCode.COULD_NOT


def _told(error: Exception) -> int:
    """Say what went wrong, as far as anything can still be said."""
    from concurrent.futures import BrokenExecutor

    from ..errors import describe_exception

    text = f"internal error, please report it: {describe_exception(error)}"
    if isinstance(error, BrokenExecutor):
        text = "a worker process ended before its work was done: nothing is concluded"
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        text = f"cannot write: {error.strerror}"
        _let_go_of_output()
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
    return ExitCode.COULD_NOT


def _let_go_of_output() -> None:
    """What is still to be written is lost, and the interpreter must not try again at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
