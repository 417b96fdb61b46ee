"""A program in any language as a target: `cmd:'./driver --flag'`, over the adapter protocol.

One process serves all vectors, one round trip each. Whatever the program does, a vector gets a
verdict: a crash, silence, or a line that is not the reply is an error on that vector, the process
is replaced, and the run goes on.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Callable

import msgspec

from mmcache_vectors.manager import Manager

from ..errors import AdapterError, TargetError, TargetSpecError
from .protocol import OBSERVABLES, Answer, Case, Implementation
from .wire import PROTOCOL_VERSION, Errored, Ran, Run, Start, Started, Stop

__all__ = ["DEFAULT_TIMEOUT", "CommandTarget", "Trace"]

DEFAULT_TIMEOUT = 10.0
"""Seconds that an adapter has for one vector."""

START_TIMEOUT = 60.0
"""Seconds to answer `start`: an engine may have to load itself."""

STOP_TIMEOUT = 5.0

_LONGEST_LINE = 16 << 20
_LOG_KEPT = 8 << 10
_SHOWN = 200
_MOST_IN_VAIN = 3
"""After so many timeouts, or starts that failed, in a row, nothing more is tried."""

Trace = Callable[[str, bytes], None]
"""Gets every line: `>` or `<`, and the bytes."""


class CommandTarget:
    """A process that speaks the adapter protocol. `timeout` is in seconds, for one vector."""

    def __init__(
        self,
        spec: str,
        command: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        trace: Trace | None = None,
    ) -> None:
        """Raises `TargetSpecError` if the command is empty or its quotes do not match."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise TargetSpecError(f"{spec!r}: {error}") from None
        if not self._words:
            raise TargetSpecError(f"{spec!r} names no command: cmd:'./driver --flag'")
        self.spec = spec
        self._timeout = timeout
        self._trace = trace
        self._process: _Process | None = None
        self._implementation: Implementation | None = None
        self._observed: dict[Manager, tuple[tuple[str, bool], ...]] = {}
        self._seq = 0
        self._in_vain = 0
        self._given_up: str | None = None
        self.log = ""
        """The end of what the program wrote to standard error during the last case."""

    def start(self) -> Implementation:
        if not hasattr(select, "poll"):
            raise TargetError("cmd: needs a system with poll(), such as Linux or macOS")
        self._implementation = self._launch()
        for manager, offered in self._implementation.capabilities.items():
            self._observed[manager] = tuple((name, name in offered) for name in OBSERVABLES)
        return self._implementation

    def run(self, case: Case) -> tuple[Answer, ...]:
        """Raises `AdapterError` for whatever is not an answer; the process is then gone."""
        process = self._running()
        self._seq += 1
        process.log.clear()
        try:
            reply = process.exchange(_ENCODER.encode(Run(self._seq, case)), self._timeout)
            answers = self._answers(case, reply)
        except AdapterError as error:
            self._in_vain = self._in_vain + 1 if isinstance(error, _Timeout) else 0
            if self._in_vain >= _MOST_IN_VAIN:
                self._given_up = f"not tried: {self._in_vain} vectors in a row got no reply"
            self._drop()
            raise
        except BaseException:
            self._drop()
            raise
        self._in_vain = 0
        self.log = process.log.text() if process.log else ""
        return answers

    def stop(self) -> None:
        """Raises `AdapterError` if the program had said more than it was asked."""
        process, self._process = self._process, None
        if process is not None:
            surplus = process.finish(_ENCODER.encode(Stop()))
            if surplus:
                raise AdapterError(f"surplus output after the reply: {_shown(surplus)}")

    def _running(self) -> _Process:
        """The process; a new one if the last was dropped."""
        if self._given_up is not None:
            self.log = ""
            raise AdapterError(self._given_up)
        if self._process is None:
            try:
                again = self._launch()
            except TargetError as error:
                self._in_vain += 1
                if self._in_vain >= _MOST_IN_VAIN:
                    self._given_up = f"not tried: the adapter does not start again: {error}"
                raise AdapterError(f"the adapter does not start again: {error}") from None
            if again != self._implementation:
                self._given_up = "not tried: started again, the adapter says it is something else"
                self._drop()
                raise AdapterError(self._given_up)
        assert self._process is not None
        return self._process

    def _launch(self) -> Implementation:
        self._seq = 0
        try:
            self._process = _Process(self._words, self._trace)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise TargetError(f"{self._words[0]} cannot be run: {reason}") from None
        try:
            line = self._process.exchange(_ENCODER.encode(Start()), START_TIMEOUT)
            started = _started(line)
        except AdapterError as error:
            self._drop()
            log = f"; its standard error ends:\n{self.log}" if self.log else ""
            raise TargetError(f"no handshake: {error}{log}") from None
        except BaseException:
            self._drop()
            raise
        about = started.implementation
        return Implementation(
            about.name, about.version, about.language, started.capabilities, about.source
        )

    def _drop(self) -> None:
        """Kill the process and keep the end of its standard error."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self.log = process.log.text()

    def _answers(self, case: Case, line: bytes) -> tuple[Answer, ...]:
        try:
            reply = _RAN.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reply_error = _errored(line)
            if reply_error is None:
                raise AdapterError(f"not a reply ({error}): {_shown(line)}") from None
            if reply_error.seq == self._seq:
                raise AdapterError(f"the adapter gave up: {reply_error.errored}") from None
            raise _wrong_sequence(reply_error.seq, self._seq) from None
        if reply.seq != self._seq:
            raise _wrong_sequence(reply.seq, self._seq)
        answers = reply.answers
        failed = next((k for k, a in enumerate(answers) if a.error is not None), None)
        if failed is not None and failed != len(answers) - 1:
            raise AdapterError(f"answers after call {failed + 1}, which failed")
        if len(answers) > len(case.calls) or (failed is None and len(answers) < len(case.calls)):
            raise AdapterError(f"{len(answers)} answers to {len(case.calls)} calls")
        observed = self._observed[case.manager]
        for k, answer in enumerate(answers):
            if answer.error is None:
                _check_observed(k, answer, observed)
        return answers


def _check_observed(k: int, answer: Answer, offered: tuple[tuple[str, bool], ...]) -> None:
    """What an adapter says that it shows, it must show after every call, and nothing else."""
    seen = answer.observed
    for name, promised in offered:
        if (getattr(seen, name) is not None) is not promised:
            said = "left out" if promised else "is no capability, but was given"
            raise AdapterError(f"after call {k + 1}: {name} {said}")


_ENCODER = msgspec.json.Encoder()
_RAN = msgspec.json.Decoder(Ran, strict=True)


class _Timeout(AdapterError):
    pass


def _wrong_sequence(got: int, asked: int) -> AdapterError:
    return AdapterError(f"a reply to request {got}, where {asked} was asked")


def _errored(line: bytes) -> Errored | None:
    try:
        return msgspec.json.decode(line, type=Errored, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _started(line: bytes) -> Started:
    try:
        return msgspec.json.decode(line, type=Started, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AdapterError(
            f"not a reply to start of protocol {PROTOCOL_VERSION} ({error}): {_shown(line)}"
        ) from None


def _shown(line: bytes) -> str:
    text = ascii(line[:_SHOWN].decode(errors="replace"))
    return text + ("…" if len(line) > _SHOWN else "")


# --- the process -------------------------------------------------------------------------------


class _Log:
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


class _Process:
    """A child with its three pipes, served by one loop, so that no side can block the other."""

    def __init__(self, words: list[str], trace: Trace | None) -> None:
        self._child = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        pipes = (self._child.stdin, self._child.stdout, self._child.stderr)
        self._pipes = [pipe for pipe in pipes if pipe is not None]
        self._in, self._out, self._err = (pipe.fileno() for pipe in self._pipes)
        for file in (self._in, self._out, self._err):
            os.set_blocking(file, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        self._buffer = b""
        self._open = True
        """Whether the child may still write to its standard output."""
        self._trace = trace
        self.log = _Log()

    def exchange(self, request: bytes, timeout: float) -> bytes:
        """Write one line, read one line. Raises `AdapterError`."""
        deadline = time.monotonic() + timeout
        self._look(0)
        if self._buffer:
            raise AdapterError(f"output that nobody asked for: {_shown(self._buffer)}")
        if self._trace is not None:
            self._trace(">", request)
        self._write(request + b"\n", deadline, timeout)
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST_LINE:
                raise AdapterError(f"a line of more than {_LONGEST_LINE} bytes")
            self._look(self._left(deadline, timeout))
            if not self._open and b"\n" not in self._buffer:
                rest = f" after {_shown(self._buffer)}" if self._buffer else ""
                raise AdapterError(f"the adapter {self._ended()}{rest}")
        line, _, surplus = self._buffer.partition(b"\n")
        self._buffer = b""
        if self._trace is not None:
            self._trace("<", line)
        if surplus:
            raise AdapterError(f"surplus output after the reply: {_shown(surplus)}")
        return line

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
        surplus = self._buffer
        self.kill(patience=max(0.0, deadline - time.monotonic()))
        return surplus

    def kill(self, patience: float = 0.0) -> None:
        """Read the rest of standard error, then end the child and all that it started."""
        if patience:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(patience)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        with contextlib.suppress(OSError):
            while data := os.read(self._err, 1 << 16):
                self.log.add(data)
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()

    def _left(self, deadline: float, timeout: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise _Timeout(f"no reply within {timeout:g} s")
        return left

    def _write(self, data: bytes, deadline: float, timeout: float) -> None:
        while True:
            try:
                data = data[os.write(self._in, data) :]
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
            try:
                self._look(self._left(deadline, timeout))
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
