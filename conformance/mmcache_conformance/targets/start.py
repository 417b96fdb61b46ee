"""How long a process may take to load and to say who it is, and where it was if it did not."""

from __future__ import annotations

import faulthandler
import math
import os
import re
import signal
import sys
import sysconfig

from ..errors import TargetNameError
from .process import Process

__all__ = ["START_LIMIT", "start_seconds", "tells_where", "where_it_is"]

START_LIMIT = "MMCACHE_START_TIMEOUT"
"""The environment variable that says how many seconds there are."""

_SECONDS = 30.0
"""An engine may have to load much: vLLM with torch takes about half of this."""

_MOST_SECONDS = 86_400.0

_ASKS = getattr(signal, "SIGUSR1", signal.SIGABRT)  # not everywhere
_PATIENCE = 1.0
"""Seconds for a process to say where it is."""

_FRAME = re.compile(r'^ *File "(?P<file>[^"<][^"]*)", line (?P<line>\d+) in (?P<name>.+)$', re.M)


def start_seconds() -> float:
    """Seconds to load, and to answer `start`.

    Raises:
        TargetNameError: The environment variable says no number of seconds.
    """
    said = os.environ.get(START_LIMIT, "").strip()
    if not said:
        return _SECONDS
    try:
        seconds = float(said)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _MOST_SECONDS:
        raise TargetNameError(
            f"{START_LIMIT}={said}: not a number of seconds above 0 and up to {_MOST_SECONDS:g}"
        )
    return seconds


def tells_where() -> None:
    """In a process that may hang: let it write to standard error where it is, when it is asked."""
    if hasattr(faulthandler, "register"):
        faulthandler.register(_ASKS, file=sys.__stderr__ or sys.stderr, all_threads=False)


def where_it_is(process: Process) -> str | None:
    """The place at which a process is that `tells_where`, in code that is not Python's own.

    None if it does not say. The process may be at its end then.
    """
    frames = list(_FRAME.finditer(process.asked(_ASKS, _PATIENCE)))
    own = (frame for frame in frames if not _is_of_python(frame["file"]))
    frame = next(own, next(iter(frames), None))
    if frame is None:
        return None
    return f"{frame['file']}, line {frame['line']} in {frame['name']}"


def _is_of_python(file: str) -> bool:
    """Whether it is a file of Python's own library: what is installed lies in a folder there."""
    library = sysconfig.get_path("stdlib")
    return file.startswith(library) and "site-packages" not in file
