"""Ctrl-C, or a request to end, is no verdict: one line, and no process left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading

__all__ = ["INTERRUPTED", "TERMINATED", "watch_for_interrupt"]

INTERRUPTED = 130
TERMINATED = 143


_WATCHED = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
"""By signal, the exit code: 128 and its number, as shells have it."""


def watch_for_interrupt() -> None:
    """From now on an interrupt, or SIGTERM, ends this process and its workers at once.

    A thread waits for the signals, since a solver may run for minutes before Python's own handler
    gets its turn. Workers inherit that the signals are blocked, so they are ended by this process.
    Where signals cannot be waited for, the handler itself does the same when its turn comes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        for number in _WATCHED:
            signal.signal(number, lambda received, _: _stop(received))
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    threading.Thread(target=_wait, name="interrupt", daemon=True).start()


def _wait() -> None:
    _stop(signal.sigwait(_WATCHED))


def _stop(received: int) -> None:
    # Not `terminate`: that is a signal which the workers have inherited to be blocked.
    for worker in multiprocessing.active_children():
        worker.kill()
    code = _WATCHED[signal.Signals(received)]
    word = "interrupted" if code == INTERRUPTED else "ended from outside"
    os.write(sys.stderr.fileno(), f"\n{word}: nothing is concluded\n".encode())
    os._exit(code)
