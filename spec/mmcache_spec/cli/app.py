"""The command `mmcache-spec`: prove, refute, and regenerate."""

from __future__ import annotations

import os
import signal
import sys

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
    """The command. A reader that goes away, or a full disk, is no verdict."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    watch_for_interrupt()
    try:
        cli()
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        err.print(f"cannot write: {error.strerror}")
        sys.exit(UNKNOWN)
