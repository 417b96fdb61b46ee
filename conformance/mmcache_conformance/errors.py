"""What can go wrong before a verdict, and how an exception is put into one line."""

from __future__ import annotations

import re
import traceback

__all__ = [
    "AdapterError",
    "TargetError",
    "TargetNameError",
    "UnknownTargetError",
    "describe_exception",
    "printable",
]


class TargetNameError(ValueError):
    """The text that names a target cannot be understood."""


class UnknownTargetError(TargetNameError):
    """It has none of the forms that a name has."""


class TargetError(Exception):
    """The target cannot be started; the text says why, and what would help."""


class AdapterError(Exception):
    """An adapter did not answer as the protocol demands; the text says what it did instead."""


_MOST = 20_000


def printable(text: str) -> str:
    """The text without what a terminal would obey: each such sign is shown as `\\x1b` is.

    Lines and tabs stay; of a text that is longer than a person reads, the beginning.
    """
    if len(text) > _MOST:
        text = f"{text[:_MOST]}… ({len(text) - _MOST} more)"
    return _OBEYED.sub(lambda sign: ascii(sign[0])[1:-1], text)


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of what follows."""


def describe_exception(error: BaseException) -> str:
    """One line: the type, the message, and where it was raised."""
    try:
        # Half a surrogate can be in a text, but in no file.
        text = " ".join(str(error).encode(errors="replace").decode().split())
    except Exception:
        text = "(its message cannot be read)"
    what = type(error).__qualname__ + (f": {text}" if text else "")
    what = printable(what)
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    if not frames or frames[-1].filename.startswith("<frozen"):
        return what
    file = frames[-1].filename.replace("\\", "/").rpartition("/")[2]
    return f"{what} ({file}, line {frames[-1].lineno})"
