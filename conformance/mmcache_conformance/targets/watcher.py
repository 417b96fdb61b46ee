"""A program beside the harness: when the harness is gone, it ends what the harness has left.

It is started by its path and imports nothing of ours. Its argument is the mark of the harness. On
its standard input it is told of each child, by a line with the number of the process and the time
at which it was started; the end of the input is the end of the harness.

What has the mark in its environment is ended, and what is below a child, whatever its environment.
A child may end at once with the harness, and then nothing is below it any more: so what there is is
noted every second. This is for Linux.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

EVERY = 1000
"""Milliseconds between two looks at what is below the children."""

Born = tuple[int, bytes]
"""A process, and when it was started: its number may be given to another one later."""


def processes() -> dict[Born, int]:
    """All there are, each with its parent."""
    found: dict[Born, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                found[int(name), fields[19]] = int(fields[1])
    return found


def below(roots: set[Born]) -> set[Born]:
    """Those of the processes that are still there, and what they have started."""
    there = processes()
    found = roots & there.keys()
    parents = {pid for pid, _ in found}
    while more := {born for born, parent in there.items() if parent in parents} - found:
        found |= more
        parents = {pid for pid, _ in more}
    return found


def has_mark(pid: int, mark: bytes) -> bool:
    """Whether the mark is in the environment that the process was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read()
    except OSError:
        return False


def main(mark: bytes) -> None:
    """Wait for the end of the harness, and end the rest."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    known: set[Born] = set()
    rest = b""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while True:
        if poll.poll(EVERY if known else None):
            told = os.read(0, 4096)
            if not told:
                break
            *lines, rest = (rest + told).split(b"\n")
            known |= {(int(pid), started) for pid, started in map(bytes.split, lines)}
        else:
            known = below(known)
    for _ in range(3):
        known |= below(known)
        marked = {born for born in processes() if has_mark(born[0], mark)}
        for pid, _started in (known & processes().keys()) | marked:
            if pid != os.getpid():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1].encode())
