"""A program in any language as a target: `cmd:'./driver --flag'`, over the adapter protocol.

One process serves all vectors, one round trip each. Whatever the program does, a vector gets a
verdict: a crash, silence, or a line that is not the reply is an error on that vector, the process
is replaced, and the run goes on.
"""

from __future__ import annotations

import select
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec

from mmcache_vectors.manager import Manager, Observed

from ..errors import AdapterError, TargetError, TargetNameError
from ..implementation import Implementation, Kind
from .api import driven
from .process import LineListener, Process, Timeout, shown_line
from .protocol import OBSERVABLES, Answer, Case
from .reply import reply_to
from .start import START_LIMIT, start_seconds
from .wire import (
    BESIDE_FEATURE,
    PROTOCOL_VERSION,
    SNAPSHOTS_FEATURE,
    WATCHED_FEATURE,
    Ran,
    Run,
    Start,
    Started,
    Stop,
)

__all__ = ["DEFAULT_TIMEOUT", "CommandTarget", "Posted", "posted"]

DEFAULT_TIMEOUT = 10.0
"""Seconds that an adapter has for one vector."""

_MOST_IN_VAIN = 3
"""After so many timeouts, or starts that failed, in a row, nothing more is tried."""


@dataclass(frozen=True)
class Posted:
    """A case on its way to an adapter: the JSON of a `Case`, and what its answers must fit."""

    encoded: bytes
    manager: Manager
    calls: int
    more: bytes = b""
    """Further members of the request, each with a comma before it."""


_Reply = TypeVar("_Reply")


def posted(
    case: Case,
    *,
    restore: int | None = None,
    snapshot: int | None = None,
    drop: Iterable[int] = (),
) -> Posted:
    """The case on its way; the rest is for an adapter that keeps snapshots."""
    more = {"restore": restore, "snapshot": snapshot, "drop": list(drop) or None}
    said = [
        b',"%b":%b' % (k.encode(), msgspec.json.encode(v)) for k, v in more.items() if v is not None
    ]
    return Posted(_ENCODER.encode(case), case.manager, len(case.calls), b"".join(said))


class _RawAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An `Answer` whose state is not read yet."""

    returns: bool | tuple[str, ...] | str | None = None
    observed: msgspec.Raw = msgspec.Raw(b"{}")
    error: str | None = None


class _RawRan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `Ran` whose states are not read yet: of many replies most states were seen before."""

    seq: int
    answers: tuple[_RawAnswer, ...]
    state: str | None = None


_MOST_STATES = 20_000
"""States of which what they say is kept."""


class CommandTarget:
    """A process that speaks the adapter protocol. `timeout` is in seconds, for one vector."""

    def __init__(
        self,
        name: str,
        command: str | list[str],
        *,
        timeout: float = DEFAULT_TIMEOUT,
        trace: LineListener | None = None,
    ) -> None:
        """The command is as for a shell, or its words.

        Raises `TargetNameError` if it is empty or its quotes do not match.
        """
        try:
            self._words = command if isinstance(command, list) else shlex.split(command)
        except ValueError as error:
            raise TargetNameError(f"{name!r}: {error}") from None
        if not self._words:
            raise TargetNameError(f"{name!r} names no command: cmd:'./driver --flag'")
        self.name = name
        self._timeout = timeout
        self._trace = trace
        self._process: Process | None = None
        self._implementation: Implementation | None = None
        self._observed: dict[Kind, tuple[tuple[str, bool], ...]] = {}
        self._early: Implementation | TargetError | None = None
        """What came of a start that `declares` made."""
        self._seq = 0
        self._features: tuple[str, ...] = ()
        self._states: dict[Manager, dict[bytes, Observed]] = {}
        """What the states said that were read before, by their JSON."""
        self._posted: tuple[list[Posted], int] = ([], 0)
        self._patience = _Patience()
        self.told_states: list[str | None] = []
        """For each case of the last `collect`: what the program said of the manager's state."""
        self.log = ""
        """The end of what the program wrote to standard error during the last case."""

    def start(self) -> Implementation:
        if not hasattr(select, "poll"):
            raise TargetError("cmd: needs a system with poll(), such as Linux or macOS")
        early, self._early = self._early, None
        if isinstance(early, TargetError):
            raise early
        self._implementation = early or self._launch()
        for manager, offered in self._implementation.capabilities.items():
            self._observed[manager] = tuple((name, name in offered) for name in OBSERVABLES)
        return driven(self._implementation)

    def declares(self, kind: Kind) -> bool:
        """Whether the program says that it is one.

        It is started for that; `start` goes on from there, and raises what went wrong here.
        """
        if self._early is None:
            try:
                if not hasattr(select, "poll"):
                    return False
                self._early = self._launch()
            except TargetError as error:
                self._early = error
        return not isinstance(self._early, TargetError) and kind in self._early.capabilities

    def ask(
        self, message: Callable[[int], msgspec.Struct], read: Callable[[bytes, int], _Reply]
    ) -> _Reply:
        """What is read of the line that replies to a request, which is made of its number.

        Raises `AdapterError`, also what `read` raises; the process is then gone.
        """
        with self._replied(message) as line:
            return read(line, self._seq)

    def run(self, case: Case) -> tuple[Answer, ...]:
        """Raises `AdapterError` for whatever is not an answer; the process is then gone."""
        case = self._as_asked(case)
        with self._replied(partial(Run, case=case)) as line:
            return self._answers(case.manager, len(case.calls), line, watched=case.watched)

    def _as_asked(self, case: Case) -> Case:
        """The case, without what the program does not understand."""
        if WATCHED_FEATURE in self._features or case.watched is None:
            return case
        return msgspec.structs.replace(case, watched=None)

    @property
    def runs_together(self) -> bool:
        return BESIDE_FEATURE in self._features

    def run_together(self, cases: Sequence[Case]) -> tuple[tuple[Answer, ...], ...]:
        """As `run`, with all the cases at a time."""
        case, *beside = map(self._as_asked, cases)
        with self._replied(partial(Run, case=case, beside=tuple(beside))) as line:
            reply = self._ran(line, self._seq)
            self._check(case.manager, len(case.calls), reply.answers, case.watched)
            count = len(reply.beside)
            if count != len(beside):
                raise AdapterError(f"answers of {count} managers beside it, not of {len(beside)}")
            for other, answers in zip(beside, reply.beside, strict=True):
                self._check(other.manager, len(other.calls), answers, other.watched)
            return reply.answers, *reply.beside

    @property
    def keeps_snapshots(self) -> bool:
        """Whether a `Posted` case may restore a snapshot, keep one, and drop some."""
        return SNAPSHOTS_FEATURE in self._features

    @contextmanager
    def _replied(self, message: Callable[[int], msgspec.Struct]) -> Iterator[bytes]:
        """The reply to a request. If it is none, or cannot be read, the process is gone."""
        process = self._running()
        self._seq += 1
        self.told_states = []
        process.log.clear()
        try:
            request = _ENCODER.encode(message(self._seq))
            yield process.exchange(request, self._timeout)
        except AdapterError as error:
            self._patience.after(error, "vectors")
            self._drop()
            raise
        except BaseException:
            self._drop()
            raise
        self._patience.after(None, "vectors")
        self.log = process.log.text() if process.log else ""

    def post(self, cases: Sequence[Posted]) -> None:
        """Send many cases before any reply is read: `collect` has the answers.

        Raises `AdapterError` if the program does not run; the process is then gone.
        """
        process = self._running()
        process.log.clear()
        lines = []
        for case in cases:
            self._seq += 1
            lines.append(_POSTED % (self._seq, case.encoded, case.more))
        self._posted = list(cases), self._seq - len(cases)
        try:
            process.post(lines, self._timeout)
        except AdapterError:
            pass  # what came back before it broke down is still there to be read
        except BaseException:
            self._drop()
            raise

    def collect(self) -> tuple[list[tuple[Answer, ...]], AdapterError | None]:
        """The answers to what was posted, as many as came, and why there are no more of them.

        After an error the process is gone; the next case is for a new one.
        """
        cases, first = self._posted
        process = self._process
        assert process is not None
        try:
            lines, wrong = process.collect(len(cases), self._timeout)
        except BaseException:
            self._drop()
            raise
        answers = []
        self.told_states = []
        for number, (case, line) in enumerate(zip(cases, lines, strict=False), start=first + 1):
            try:
                answers.append(self._quick_answers(case, line, number))
            except AdapterError as error:
                wrong = error
                break
        self._patience.after(wrong, "cases")
        if wrong is not None:
            self._drop()
        return answers, wrong

    @property
    def ended(self) -> str | None:
        """Why no case is played any more; None while they are."""
        return self._patience.ended

    def restart(self) -> None:
        """The next case is answered by a new process, which has seen nothing before."""
        self._drop()

    def stop(self) -> None:
        """Raises `AdapterError` if the program had said more than it was asked."""
        process, self._process = self._process, None
        if process is not None:
            surplus = process.finish(_ENCODER.encode(Stop()))
            if surplus:
                raise AdapterError(f"surplus output after the reply: {shown_line(surplus)}")

    def _running(self) -> Process:
        """The process; a new one if the last was dropped."""
        if self._patience.ended is not None:
            self.log = ""
            raise AdapterError(self._patience.ended)
        if self._process is None:
            try:
                again = self._launch()
            except TargetError as error:
                reason = f"the adapter does not start again: {error}"
                self._patience.in_vain(reason)
                raise AdapterError(reason) from None
            if again != self._implementation:
                self._drop()
                raise AdapterError(
                    self._patience.end("started again, the adapter says it is something else")
                )
        assert self._process is not None
        return self._process

    def _launch(self) -> Implementation:
        self._seq = 0
        try:
            self._process = Process(self._words, self._trace)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise TargetError(f"{self._words[0]} cannot be run: {reason}") from None
        try:
            return self._introduced(self._process)
        except AdapterError as error:
            self._drop()
            log = f"; its standard error ends:\n{self.log}" if self.log else ""
            raise TargetError(f"no handshake: {error}{log}") from None
        except BaseException:
            self._drop()
            raise

    def _introduced(self, process: Process) -> Implementation:
        """Who it is, as it says itself. Raises `AdapterError`, or `TargetError` if it says no."""
        try:
            reply = process.exchange(_ENCODER.encode(Start()), start_seconds())
        except Timeout as error:
            raise Timeout(f"{error} ({START_LIMIT}=SECONDS gives it longer)") from None
        started = _started(reply)
        about = started.implementation
        self._features = started.features
        offered: dict[Kind, tuple[str, ...]] = dict(started.capabilities.items())
        return Implementation(about.name, about.version, about.language, offered, about.source)

    def _drop(self) -> None:
        """Kill the process and keep the end of its standard error."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self.log = process.log.text()

    def _answers(
        self,
        manager: Manager,
        calls: int,
        line: bytes,
        seq: int | None = None,
        watched: Collection[int] | None = None,
    ) -> tuple[Answer, ...]:
        """The answers of one reply; `seq` is which request it is for, if not the last."""
        reply = self._ran(line, self._seq if seq is None else seq)
        self._check(manager, calls, reply.answers, watched)
        self.told_states.append(reply.state)
        return reply.answers

    def _ran(self, line: bytes, asked: int) -> Ran:
        """The reply to this request."""
        return reply_to(asked, line, _RAN)

    def _check(
        self,
        manager: Manager,
        calls: int,
        answers: tuple[Answer, ...],
        watched: Collection[int] | None = None,
    ) -> None:
        """As many answers as calls, and in each that is watched the state that was promised."""
        failed = next((k for k, a in enumerate(answers) if a.error is not None), None)
        if failed is not None and failed != len(answers) - 1:
            raise AdapterError(f"answers after call {failed + 1}, which failed")
        if len(answers) > calls or (failed is None and len(answers) < calls):
            raise AdapterError(f"{len(answers)} answers to {calls} calls")
        observed = self._observed[manager]
        for k, answer in enumerate(answers):
            if answer.error is None and (watched is None or k in watched):
                _check_observed(k, answer, observed)

    def _quick_answers(self, case: Posted, line: bytes, seq: int) -> tuple[Answer, ...]:
        """As `_answers`, of one of many replies."""
        try:
            raw = _RAW_RAN.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._answers(case.manager, case.calls, line, seq)
        if raw.seq != seq or len(raw.answers) != case.calls:
            return self._answers(case.manager, case.calls, line, seq)
        known = self._states.setdefault(case.manager, {})
        answers: list[Answer] = []
        for answer in raw.answers:
            state = bytes(answer.observed)
            seen = known.get(state)
            if answer.error is not None:
                return self._answers(case.manager, case.calls, line, seq)
            if seen is None:
                try:
                    seen = _OBSERVED.decode(state)
                    _check_observed(len(answers), Answer(None, seen), self._observed[case.manager])
                except (msgspec.DecodeError, UnicodeDecodeError, AdapterError):
                    return self._answers(case.manager, case.calls, line, seq)
                if len(known) > _MOST_STATES:
                    known.clear()
                known[state] = seen
            answers.append(Answer(answer.returns, seen))
        self.told_states.append(raw.state)
        return tuple(answers)


class _Patience:
    """When to stop trying: `ended` then says why."""

    def __init__(self) -> None:
        self._in_vain = 0
        self.ended: str | None = None

    def after(self, wrong: AdapterError | None, what: str) -> None:
        """An exchange about some vectors or cases: only a timeout is in vain, a wrong reply not."""
        if isinstance(wrong, Timeout):
            self.in_vain(f"{_MOST_IN_VAIN} {what} in a row got no reply")
        else:
            self.rewarded()

    def rewarded(self) -> None:
        """The program said something: failed attempts before it do not count any more."""
        self._in_vain = 0

    def in_vain(self, why: str) -> None:
        """Nothing came of it once more."""
        self._in_vain += 1
        if self._in_vain >= _MOST_IN_VAIN:
            self.end(why)

    def end(self, why: str) -> str:
        self.ended = f"not tried: {why}"
        return self.ended


_LISTS = {"cached", "freeable", "held"}


def _check_observed(k: int, answer: Answer, offered: tuple[tuple[str, bool], ...]) -> None:
    """What an adapter says that it shows, it must show after every call, and nothing else."""
    seen = answer.observed
    for name, promised in offered:
        if (getattr(seen, name) is not None) is not promised:
            said = "left out, or null" if promised else "is no capability, but was given"
            hint = "; an empty one is [] or {}" if promised and name in _LISTS else ""
            raise AdapterError(f"after call {k + 1}: {name} {said}{hint}")


_POSTED = b'{"cmd":"run","seq":%d,"case":%b%b}'
_ENCODER = msgspec.json.Encoder()
_RAN = msgspec.json.Decoder(Ran, strict=True)
_RAW_RAN = msgspec.json.Decoder(_RawRan, strict=True)
_OBSERVED = msgspec.json.Decoder(Observed, strict=True)


def _started(line: bytes) -> Started:
    try:
        return msgspec.json.decode(line, type=Started, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AdapterError(
            f"not a reply to start of protocol {PROTOCOL_VERSION} ({error}): {shown_line(line)}"
        ) from None
