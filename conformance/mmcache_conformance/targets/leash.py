"""Nothing that a target has started outlives the harness, however the harness ends.

Each child gets a mark in its environment, which everything inherits that it starts, in whatever
session. A *watcher*, a small process beside the harness, sees the end of a pipe when the harness is
gone, be it by SIGKILL, and then kills whatever has the mark, and what is below a child without it.
This is for Linux, which shows the environment of a process; elsewhere a child and its group are
killed while the harness lives.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys

from . import watcher
from .watcher import Born, end

__all__ = ["MARK", "descendants", "end", "marked_environment", "sweep", "watch"]

MARK = "MMCACHE_HARNESS"
"""The variable; what is in it are the marks of the harnesses above one another."""


class _Watch:
    """The mark of this process, and the watcher that it keeps."""

    def __init__(self) -> None:
        self.owner = 0
        self.mark = ""
        self._pipe = -1

    def begin(self) -> None:
        """Once in a process; after a fork, the child has its own."""
        if self.owner == os.getpid():
            return
        self.owner, self.mark = os.getpid(), f"{os.getpid()}-{secrets.token_hex(8)}"
        if sys.platform != "linux":
            return
        reads, self._pipe = os.pipe()
        try:
            os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-S", watcher.__file__, self.mark],
                {},
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, reads, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
            )
        except (OSError, NotImplementedError):
            pass  # without a watcher, children are still ended with the target
        finally:
            os.close(reads)

    def tell(self, pid: int) -> None:
        """Let the watcher know of a child."""
        seen = watcher.seen(pid)
        if self.owner == os.getpid() and self._pipe >= 0 and seen is not None:
            with contextlib.suppress(OSError):  # there is no watcher
                os.write(self._pipe, b"%d %s\n" % (pid, seen[1]))


_watch = _Watch()


def marked_environment() -> tuple[str, dict[str, str]]:
    """A mark for one child, and an environment that has it and that of this process."""
    _watch.begin()
    own = f"{_watch.mark}-{secrets.token_hex(4)}"
    above = os.environ.get(MARK, "")
    return own, {**os.environ, MARK: f"{above} {own}".strip()}


def watch(pid: int) -> None:
    """Let nothing that this child starts outlive the harness, even with another environment."""
    _watch.tell(pid)


def descendants(pid: int) -> set[Born]:
    """The processes below this one, whatever their environment.

    One whose parent has ended is below nobody: it is found by its mark, if it has kept that.
    """
    if sys.platform != "linux" or (seen := watcher.seen(pid)) is None:
        return set()
    root = pid, seen[1]
    return watcher.below({root}) - {root}


def sweep(mark: str) -> None:
    """Kill everything that has the mark in the environment that it was started with."""
    if sys.platform == "linux":
        watcher.sweep(mark.encode())
