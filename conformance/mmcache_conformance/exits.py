"""The exit codes of every command."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """What a command found, or why it found nothing."""

    OK = 0
    """Everything that applies passed, or failed as expected."""
    FAILED = 1
    """Something is not as it should be."""
    USAGE = 2
    """The command, or a file that it names, cannot be understood."""
    COULD_NOT = 3
    """A target could not be started, nothing was checked, or the command itself broke."""
    INTERRUPTED = 130
    """The user pressed Ctrl-C; as a shell has it (128 and the number of the signal)."""
    BROKEN_PIPE = 141
    """Whoever read the output went away; as a shell has it."""
