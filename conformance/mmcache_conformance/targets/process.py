"""A child process that answers one line for each line that it gets."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from ..errors import AdapterError
from .leash import descendants, end, marked_environment, sweep, watch

__all__ = ["LineListener", "Log", "Process", "Timeout", "shown_line"]

STOP_TIMEOUT = 5.0
"""Seconds that the child has to end when it was told to."""

_LONGEST_LINE = 16 << 20
_PIPE = 1 << 20
"""Bytes that a pipe is asked to hold, so that many requests are on their way at a time."""
_LOG_KEPT = 8 << 10
_SHOWN = 200
_QUIET = 0.1
"""Seconds after which nothing more will come of something that is written at once."""

LineListener = Callable[[str, bytes], None]
"""Gets every line: `>` or `<`, and the bytes."""


class Timeout(AdapterError):
    """No reply came in time."""


def shown_line(line: bytes) -> str:
    """The beginning of a line, as text that a terminal can show."""
    text = ascii(line[:_SHOWN].decode(errors="replace"))
    return text + ("…" if len(line) > _SHOWN else "")


class Log:
    """The end of a stream of text."""

    def __init__(self) -> None:
        self._kept = b""

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-_LOG_KEPT:]

    def clear(self) -> None:
        self._kept = b""

    def text(self) -> str:
        return self._kept.decode(errors="replace").strip()


def _widen(pipe: int) -> None:
    """Let the pipe hold more, where the system lets us."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


class Process:
    """A child with its three pipes, served by one loop, so that no side can block the other."""

    def __init__(self, words: Sequence[str], trace: LineListener | None) -> None:
        """Raises `OSError` or `ValueError` if the program cannot be run."""
        self._mark, environment = marked_environment()
        self._child = subprocess.Popen(
            list(words),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        watch(self._child.pid)
        pipes = (self._child.stdin, self._child.stdout, self._child.stderr)
        self._pipes = [pipe for pipe in pipes if pipe is not None]
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes)
        for file in (self._in, self._out, self._err):
            os.set_blocking(file, False)
        _widen(self._in)
        _widen(self._out)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        # A long line comes in small pieces; bytes would be copied whole for each of them.
        self._buffer = bytearray()
        self._open = True
        """Whether the child may still write to its standard output."""
        self._trace = trace
        self.log = Log()

    def exchange(self, request: bytes, timeout: float) -> bytes:
        """Write one line, read one line. Raises `AdapterError`."""
        deadline = time.monotonic() + timeout
        self._look(0)
        if self._buffer:
            raise AdapterError(f"output that was not asked for: {shown_line(bytes(self._buffer))}")
        if self._trace is not None:
            self._trace(">", request)
        self._write(request + b"\n", deadline, timeout)
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST_LINE:
                raise AdapterError(f"a line of more than {_LONGEST_LINE} bytes")
            self._look(self._left(deadline, timeout))
            if not self._open and b"\n" not in self._buffer:
                rest = f" after {shown_line(bytes(self._buffer))}" if self._buffer else ""
                raise AdapterError(f"the adapter {self._ended()}{rest}")
        line, _, surplus = bytes(self._buffer).partition(b"\n")
        self._buffer.clear()
        if self._trace is not None:
            self._trace("<", line)
        if surplus:
            raise AdapterError(f"surplus output after the reply: {shown_line(surplus)}")
        return line

    def post(self, requests: Sequence[bytes], timeout: float) -> None:
        """Write lines without waiting for their replies, which `collect` reads. As `exchange`."""
        self._look(0)
        if self._buffer:
            raise AdapterError(f"output that was not asked for: {shown_line(bytes(self._buffer))}")
        if self._trace is not None:
            for request in requests:
                self._trace(">", request)
        lines = b"\n".join(requests) + b"\n"
        self._write(lines, time.monotonic() + timeout, timeout, renew=True)

    def collect(self, count: int, timeout: float) -> tuple[list[bytes], AdapterError | None]:
        """The next lines, as many as these, each within the time.

        If there are fewer, also why: the line after those that came is the one that went wrong.
        """
        lines: list[bytes] = []
        wrong: AdapterError | None = None
        deadline = time.monotonic() + timeout
        while len(lines) < count:
            if b"\n" in self._buffer:
                *whole, self._buffer = self._buffer.split(b"\n")
                deadline = time.monotonic() + timeout
                lines += map(bytes, whole)
                continue
            try:
                if len(self._buffer) > _LONGEST_LINE:
                    raise AdapterError(f"a line of more than {_LONGEST_LINE} bytes")
                if not self._open:
                    raise AdapterError(f"the adapter {self._ended()}")
                self._look(self._left(deadline, timeout))
            except AdapterError as error:
                wrong = error
                break
        if self._trace is not None:
            for line in lines:
                self._trace("<", line)
        surplus = b"\n".join([*lines[count:], self._buffer])
        if wrong is None and surplus:
            wrong = AdapterError(f"surplus output after the reply: {shown_line(surplus)}")
        if wrong is None:
            self._buffer.clear()
        return lines[:count], wrong

    def asked(self, number: signal.Signals, seconds: float) -> str:
        """What the child writes to standard error at a signal, as far as it comes in a while."""
        self.log.clear()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child.pid, number)
        until = time.monotonic() + seconds
        told = ""
        while self._open and (left := until - time.monotonic()) > 0:
            self._look(min(left, _QUIET) if told else left)
            if told == self.log.text():
                break  # it comes in small pieces: this was the last
            told = self.log.text()
        return told

    def finish(self, request: bytes) -> bytes:
        """Ask to stop, wait, and kill what is left. What was said without being asked."""
        deadline = time.monotonic() + STOP_TIMEOUT
        try:
            self._write(request + b"\n", deadline, STOP_TIMEOUT)
            os.set_blocking(self._in, True)
            self._pipes[0].close()
            while self._open and len(self._buffer) < _LONGEST_LINE:
                self._look(self._left(deadline, STOP_TIMEOUT))
        except AdapterError:
            pass
        surplus = bytes(self._buffer)
        self.kill(patience=max(0.0, deadline - time.monotonic()))
        return surplus

    def kill(self, patience: float = 0.0) -> None:
        """Read the rest of standard error, then end the child and all that it started."""
        if patience:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(patience)
        # Some have cleared their environment, and so the mark: while their parents are there, they
        # are found by these.
        family = descendants(self._child.pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        end(family)
        sweep(self._mark)
        with contextlib.suppress(OSError):
            while data := os.read(self._err, 1 << 16):
                self.log.add(data)
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()

    def _left(self, deadline: float, timeout: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Timeout(f"no reply within {timeout:g} s")
        return left

    def _write(self, data: bytes, deadline: float, timeout: float, *, renew: bool = False) -> None:
        """`renew`: the time begins again whenever the child has read or written something."""
        while True:
            try:
                data = data[os.write(self._in, data) :]
                if renew:
                    deadline = time.monotonic() + timeout
            except BlockingIOError:
                pass
            except OSError:
                until = time.monotonic() + 0.5
                while self._open and time.monotonic() < until:
                    self._look(0.1)
                raise AdapterError(f"the adapter {self._ended()}") from None
            if not data:
                return
            self._poll.register(self._in, select.POLLOUT)
            read = len(self._buffer)
            try:
                self._look(self._left(deadline, timeout))
                if renew and len(self._buffer) > read:
                    deadline = time.monotonic() + timeout
            finally:
                self._poll.unregister(self._in)

    def _look(self, seconds: float) -> None:
        """Wait for something to happen, and take what the child has written."""
        for file, _ in self._poll.poll(seconds * 1000):
            if file == self._in:
                continue
            try:
                data = os.read(file, 1 << 16)
            except BlockingIOError:
                continue
            if not data:
                self._poll.unregister(file)
                self._open = self._open and file != self._out
            elif file == self._err:
                self.log.add(data)
            else:
                self._buffer += data

    def _ended(self) -> str:
        try:
            code = self._child.wait(1)
        except subprocess.TimeoutExpired:
            return "closed its standard output"
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by {signal.Signals(-code).name}"
        return f"exited with code {code}"
