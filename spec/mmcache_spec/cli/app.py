"""The command `mmcache-spec`: prove, refute, and regenerate."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from concurrent.futures import BrokenExecutor
from typing import NoReturn

import click

from .common import UNKNOWN, err
from .complete import complete_command
from .definitions import clauses_command, coverage_command, obligations_command
from .designs import cores_command, mutants_command
from .interrupt import watch_for_interrupt
from .lemmas import lemmas_command
from .prove import prove_command
from .refute import refute_command
from .variants import variants_command
from .vectors import counterexamples_command

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmcache-spec")
def cli() -> None:
    """The specification of the multimodal encoder cache: what must hold, and why it does."""


for command in (
    prove_command,
    complete_command,
    refute_command,
    variants_command,
    obligations_command,
    counterexamples_command,
    coverage_command,
    mutants_command,
    clauses_command,
    cores_command,
    lemmas_command,
):
    cli.add_command(command)


def main() -> None:
    """The command. A reader that goes away, a full disk, or a defect of ours is no verdict."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal without our signs shows a question mark, and no traceback.
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if sys.stdout is None:  # else nothing would be said, and the exit code would be a verdict
        _tell("cannot write: standard output is closed")
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    watch_for_interrupt()
    try:
        cli()
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = f"{error.filename}: " if error.filename else "cannot write: "
        _tell(f"{where}{error.strerror or error}")
    except BrokenExecutor:
        _tell("a worker process ended before its work was done: nothing is concluded")
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__, limit=-1)[-1]
        file = os.path.basename(frame.filename)
        what = " ".join(f"{type(error).__name__}: {error}".split())
        _tell(f"internal error, please report it: {what} ({file}, line {frame.lineno})")


def _tell(why: str) -> NoReturn:
    """Nothing is concluded, and why, as far as it can still be said."""
    with contextlib.suppress(OSError, ValueError):
        err.print(why)
    sys.exit(UNKNOWN)
