"""A program beside the harness: when the harness is gone, it ends what the harness has left.

It is started by its path and imports nothing of ours; the harness ends its children by the same
functions. Its argument is the mark of the harness. On its standard input it is told of each child,
by a line with the number of the process and the time at which it was started; the end of the input
is the end of the harness.

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


def seen(pid: int) -> tuple[int, bytes] | None:
    """The parent of a process, and when it was started; None if there is none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[1]), fields[19]
    return None


def below(roots: set[Born]) -> set[Born]:
    """Those of the processes that are still there, and what they have started."""
    there: dict[Born, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (found := seen(int(name))) is not None:
            there[int(name), found[1]] = found[0]
    family = roots & there.keys()
    parents = {pid for pid, _ in family}
    while more := {born for born, parent in there.items() if parent in parents} - family:
        family |= more
        parents = {pid for pid, _ in more}
    return family


def end(processes: set[Born]) -> None:
    """Kill those of the processes that are still the same ones."""
    for pid, started in processes:
        found = seen(pid)
        if found is not None and found[1] == started:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def sweep(mark: bytes) -> None:
    """Kill everything else that has the mark in the environment that it was started with."""
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark in file.read():
                os.kill(int(name), signal.SIGKILL)


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
        end(known)
        sweep(mark)


if __name__ == "__main__":
    main(sys.argv[1].encode())
