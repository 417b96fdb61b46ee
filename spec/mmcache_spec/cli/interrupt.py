"""Ctrl-C is no verdict: exit code 130, one line, and no process left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading

__all__ = ["INTERRUPTED", "watch_for_interrupt"]

INTERRUPTED = 130


def watch_for_interrupt() -> None:
    """From now on an interrupt ends this process and its workers at once.

    A thread waits for the signal, since a solver may run for minutes before Python's own handler
    gets its turn. Workers inherit that the signal is blocked, so they are ended by this process.
    Where signals cannot be waited for, the handler itself does the same when its turn comes.
    """
    if not hasattr(signal, "pthread_sigmask"):
        signal.signal(signal.SIGINT, lambda *_: _stop())
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    threading.Thread(target=_wait, name="interrupt", daemon=True).start()


def _wait() -> None:
    signal.sigwait({signal.SIGINT})
    _stop()


def _stop() -> None:
    for worker in multiprocessing.active_children():
        worker.terminate()
    os.write(sys.stderr.fileno(), b"\ninterrupted: nothing is concluded\n")
    os._exit(INTERRUPTED)
