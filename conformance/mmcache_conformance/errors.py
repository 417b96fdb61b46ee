"""What can go wrong before a verdict, and how an exception is put into one line."""

from __future__ import annotations

import traceback

__all__ = [
    "AdapterError",
    "TargetError",
    "TargetNameError",
    "UnknownTargetError",
    "describe_exception",
]


class TargetNameError(ValueError):
    """The text that names a target cannot be understood."""


class UnknownTargetError(TargetNameError):
    """It has none of the forms that a name has."""


class TargetError(Exception):
    """The target cannot be started; the text says why, and what would help."""


class AdapterError(Exception):
    """An adapter did not answer as the protocol demands; the text says what it did instead."""


def describe_exception(error: BaseException) -> str:
    """One line: the type, the message, and where it was raised."""
    try:
        # Half a surrogate can be in a text, but in no file.
        text = " ".join(str(error).encode(errors="replace").decode().split())
    except Exception:
        text = "(its message cannot be read)"
    what = type(error).__qualname__ + (f": {text}" if text else "")
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    if not frames or frames[-1].filename.startswith("<frozen"):
        return what
    file = frames[-1].filename.replace("\\", "/").rpartition("/")[2]
    return f"{what} ({file}, line {frames[-1].lineno})"
