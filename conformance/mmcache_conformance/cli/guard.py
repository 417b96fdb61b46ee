"""A command that executes foreign code in its own process: an end that it did not choose is told.

`os._exit(0)` in a target would end the harness with 0, which means that everything passed. So such
a command runs in a child of this process, which hands on only the exit code that the child says.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

from ..exits import ExitCode

__all__ = ["executes_foreign_code", "guarded"]

_CONFIGURATION = "MMCACHE_VLLM_CONFIG"
"""The environment variable of the option `--vllm-config`."""


def executes_foreign_code(arguments: Sequence[str]) -> bool:
    """Whether a command line may run code of a target in the process of the command."""
    return hasattr(os, "fork") and any(
        word in {"exhaust", "--in-process"}
        or word.startswith(("vllm-scheduler", "vllm-live", "--vllm-config"))
        for word in (*arguments, *(["--vllm-config"] if os.environ.get(_CONFIGURATION) else []))
    )


def guarded(run: Callable[[], int]) -> int:
    """The exit code of `run`, which is called in a child.

    Ctrl-C is handed on to the child, which is killed if this process is.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        _serve(run, writes)
    os.close(writes)
    # In a group of its own, the child gets an interrupt once: from here.
    for watched in (signal.SIGINT, signal.SIGTERM):
        signal.signal(watched, lambda received, _: _hand_on(child, received))
    _, status = os.waitpid(child, 0)
    os.set_blocking(reads, False)
    said = b""
    with contextlib.suppress(BlockingIOError):
        said = os.read(reads, 1)
    if said:
        return said[0]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            return 128 + number
        how = f"was killed by {signal.Signals(number).name}"
    else:
        how = f"ended with code {os.WEXITSTATUS(status)}"
    sys.stderr.write(f"the target, whose code ran in this process, {how}: nothing is concluded\n")
    return ExitCode.COULD_NOT


def _serve(run: Callable[[], int], writes: int) -> None:
    from mmcache_spec.campaign import end_with_parent

    end_with_parent()
    os.setpgid(0, 0)
    code = run()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os.write(writes, bytes([code]))
    # Threads and exit handlers that a target has left behind have no say any more.
    os._exit(code)


def _hand_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)
