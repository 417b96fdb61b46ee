"""One line on standard error for whatever takes longer than a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_line"]

FIRST_AFTER = 1.0
"""Seconds of silence before the first line."""
ON_A_TERMINAL, IN_A_FILE = 0.5, 10.0
"""Seconds between two lines."""


@contextmanager
def progress_line(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yields a function that says what is being done; what is said last is shown, with the time.

    On a terminal the line is written over, and gone at the end.
    """
    line = _Line()
    done = threading.Event()
    if quiet:
        yield lambda text: None
        return
    thread = threading.Thread(target=line.show_until, args=(done,), daemon=True)
    thread.start()
    try:
        yield line.say
    finally:
        done.set()
        thread.join()


class _Line:
    def __init__(self) -> None:
        self._text = ""
        self._started = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def say(self, text: str) -> None:
        self._text = text

    def show_until(self, done: threading.Event) -> None:
        shown = False
        pause = FIRST_AFTER
        while not done.wait(pause):
            pause = ON_A_TERMINAL if self._terminal else IN_A_FILE
            if self._text:
                seconds = time.monotonic() - self._started
                self._write(f"{seconds:.0f} s: {self._text}")
                shown = True
        if shown and self._terminal:
            self._write("")

    def _write(self, text: str) -> None:
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text}")
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
