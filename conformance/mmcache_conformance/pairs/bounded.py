"""A call that may never come back, made within a time."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["SECONDS", "NeverEnds", "within"]

SECONDS = 2.0
"""What one call to one side has; each takes some microseconds."""

T = TypeVar("T")


class NeverEnds(Exception):
    """The call did not come back in time."""


class _Stop(BaseException):
    """Ends the thread of such a call."""


def within(call: Callable[[], T], seconds: float = SECONDS) -> T:
    """What the call gives. Raises what it raises, or `NeverEnds`.

    A loop of Python is ended at its next step; what waits in C for ever is left alone, in a thread
    that does not keep the process.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="a call to a cache", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        ident = ctypes.c_ulong(thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_Stop))
        thread.join(1)
        raise NeverEnds(f"the call did not come back within {seconds:g} s")
    if failed:
        raise failed[0]
    return found[0]
