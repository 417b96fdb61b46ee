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
import signal
import sys
from pathlib import Path

__all__ = ["MARK", "descendants", "end", "marked_environment", "sweep", "watch"]

MARK = "MMCACHE_HARNESS"
"""The variable; what is in it are the marks of the harnesses above one another."""

_WATCHER = Path(__file__).with_name("watcher.py")


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
                [sys.executable, "-I", "-S", str(_WATCHER), self.mark],
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
        seen = _seen(pid)
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


def descendants(pid: int) -> list[tuple[int, bytes]]:
    """The processes below this one, whatever their environment, each with when it was started.

    One whose parent has ended is below nobody: it is found by its mark, if it has kept that.
    """
    if sys.platform != "linux":
        return []
    below: dict[int, list[tuple[int, bytes]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := _seen(int(name))) is not None:
            below.setdefault(seen[0], []).append((int(name), seen[1]))
    found: list[tuple[int, bytes]] = []
    waiting = [pid]
    while waiting:
        mine = below.pop(waiting.pop(), [])
        found += mine
        waiting += [child for child, _ in mine]
    return found


def end(processes: list[tuple[int, bytes]]) -> None:
    """Kill those of the processes that are still the same ones."""
    for pid, started in processes:
        seen = _seen(pid)
        if seen is not None and seen[1] == started:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _seen(pid: int) -> tuple[int, bytes] | None:
    """The parent of a process, and when it was started; None if there is none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[1]), fields[19]
    return None


def sweep(mark: str) -> None:
    """Kill everything that has the mark in the environment that it was started with."""
    if sys.platform != "linux":
        return
    wanted = mark.encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if wanted in file.read():
                os.kill(int(name), signal.SIGKILL)
