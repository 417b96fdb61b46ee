"""Trace validation: is a recorded log a behaviour of the specification?

The log is read once, event by event. The reference follows it (`follow`); a sample of the events,
and every event on which the two disagree, is also run on the specification's interpreter, within
the part of the state that the event can touch (`project`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mmcache import EncoderCacheManager
from mmcache.errors import LedgerError
from mmcache_spec.evaluate.interpreter import Interpreter, Step
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.oracle import by_age, spec_calls
from mmcache_vectors.manager import Call, Manager

from ..oracle.blame import broken_clauses
from ..oracle.systems import specified
from .explain import Illegal, Wrong, duty_broken, explain, hashes_of, names
from .follow import REFERENCES, Follower, OutOfWorld, Refusal, RightAnswer, call_of
from .format import (
    Asked,
    Created,
    Ended,
    LogError,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
    read_events,
)
from .project import Projection, projection, state_of
from .verdict import Checked

__all__ = ["AUDIT_EVERY", "ModelDisagrees", "check_log"]

AUDIT_EVERY = 1000
"""One call in so many is also run on the interpreter."""

_CONFIRMED = 1000
"""So many events before an illegal one are run on the interpreter before it is called illegal."""

_LARGEST_AUDIT = 200
"""Hashes and inputs: an event that touches more would keep the interpreter busy for seconds."""


class ModelDisagrees(AssertionError):
    """The reference is not the specification: a defect of this project, never of the log."""


Lines = Callable[[], Iterable[bytes]]
"""Opens the log anew."""

References = Mapping[Manager, type[EncoderCacheManager]]


def check_log(
    lines: Lines,
    source: str,
    *,
    can_reread: bool = True,
    audit_every: int = AUDIT_EVERY,
    references: References = REFERENCES,
) -> Checked:
    """Read the log, up to the first illegal event.

    Args:
        lines: Opens the log.
        source: Its name, for messages.
        can_reread: Whether the lines can be read again, which is done only for an illegal event:
            to make sure of it, and for its history.
        audit_every: One call in so many is also run on the interpreter.
        references: The classes that follow the log.

    Raises:
        LogError: The log is malformed.
        ModelDisagrees: The reference does otherwise than the interpreter.
    """
    followed: dict[str, _Followed] = {}
    number = events = calls = audited = 0
    until_audit = 1
    illegal: Illegal | None = None
    for number, event in read_events(lines(), source):
        events += 1
        manager = followed.get(event.manager)
        if manager is None:
            manager = followed[event.manager] = _begin(event, source, number, references)
            continue
        _expect_in_order(manager, event, source, number)
        until_audit -= 1
        audit = until_audit <= 0 and manager.can_be_audited(event)
        wrong = manager.take(event, audit)
        calls += not isinstance(event, (Created, PassEnded, Ended))
        if wrong is not None:
            look_back = lines if can_reread else None
            if look_back is not None:
                _confirm(look_back(), source, event, references)
            illegal = explain(wrong, number, event, manager.follower, look_back, source)
            break
        if audit:
            until_audit = audit_every
            audited += 1
    return Checked(
        source=source,
        events=events,
        calls=calls,
        managers=len(followed),
        unfinished=tuple(name for name, m in followed.items() if not m.ended),
        audited=audited,
        illegal=illegal,
    )


def _begin(event: LogEvent, source: str, number: int, references: References) -> _Followed:
    if not isinstance(event, Created) or event.seq != 0:
        raise LogError(
            f"{source}: line {number}: manager {event.manager!r} is not known; its first event is "
            '"new" with seq 0, so the beginning of the log is missing, or the log is reordered'
        )
    return _Followed(event, references)


def _expect_in_order(manager: _Followed, event: LogEvent, source: str, number: int) -> None:
    where, wanted = f"{source}: line {number}: manager {event.manager!r}", manager.next_seq
    if event.seq != wanted:
        gap = event.seq - wanted
        what = f"{gap} event{'s are' if gap > 1 else ' is'} missing before it"
        raise LogError(
            f"{where}: seq {event.seq} where {wanted} comes next; "
            f"{what if gap > 0 else 'it comes twice'}, or the log is reordered, or two writers "
            "share the name"
        )
    manager.next_seq += 1
    if manager.ended:
        raise LogError(f"{where} ended before this event")


def _confirm(
    lines: Iterable[bytes], source: str, accused: LogEvent, references: References
) -> None:
    """Follow the manager again, its last calls on the interpreter too, before the log is accused.

    A reference that went astray a little before would otherwise call a right log illegal.

    Raises:
        ModelDisagrees: So it was.
    """
    followed: _Followed | None = None
    for _, event in read_events(lines, source):
        if event.manager != accused.manager:
            continue
        if followed is None:
            assert isinstance(event, Created), "the first reading has seen to that"
            followed = _Followed(event, references)
        elif event.seq == accused.seq:
            return
        else:
            near = accused.seq - event.seq <= _CONFIRMED
            followed.take(event, near and followed.can_be_audited(event))


class _Followed:
    """One manager of the log: its follower, and its worker if that is in the log too."""

    def __init__(self, created: Created, references: References) -> None:
        self.follower = Follower(created, references)
        self.next_seq = 1
        self.ended = False
        self._worker = _Worker() if created.worker else None

    def can_be_audited(self, event: LogEvent) -> bool:
        """Whether it is a call, and touches little enough for the interpreter."""
        if call_of(event) is None:
            return False
        return projection(self.follower, event).extent <= _LARGEST_AUDIT

    def take(self, event: LogEvent, audit: bool = False) -> Wrong | None:
        """Follow the event. If something is wrong with it, the follower stays as it was before."""
        follower = self.follower
        try:
            answer = follower.answer(event)
        except OutOfWorld as error:
            return Wrong(str(error), hashes_of(event))
        if isinstance(event, (LookedUp, Asked)) and answer is event.returns:
            pass  # what most events are
        elif isinstance(answer, Refusal):
            return duty_broken(answer, event)
        elif isinstance(event, (LookedUp, Asked)):
            return _answered_wrongly(follower, event, answer)
        elif isinstance(event, Reported):
            if answer != set(event.returns):
                return _answered_wrongly(follower, event, answer)
            if self._worker is not None:
                self._worker.order(event.returns)
        elif isinstance(event, (Created, Ended, WasReset, WorkerStepped)):
            wrong = self._other(event)
            if wrong is not None:
                return wrong
        if audit:
            _audit(follower, event, answer)
        else:
            _perform(follower, event, answer)
        return None

    def _other(self, event: LogEvent) -> Wrong | None:
        match event:
            case Created():
                return Wrong("this manager began before", ())
            case Ended():
                self.ended = True
            case WasReset() if self._worker is not None:
                self._worker = _Worker()
            case WorkerStepped() if self._worker is None:
                return Wrong('a worker step, but "new" did not say "worker": true', ())
            case WorkerStepped() if self._worker is not None:
                return self._worker.step(event)
        return None


class _Worker:
    """What a worker holds, by its own account."""

    def __init__(self) -> None:
        self._holds: set[str] = set()
        self._orders: deque[frozenset[str]] = deque()
        """The reports that no step has obeyed yet."""

    def order(self, report: Iterable[str]) -> None:
        self._orders.append(frozenset(report))

    def step(self, event: WorkerStepped) -> Wrong | None:
        told = self._orders.popleft() if self._orders else frozenset()
        dropped = frozenset(event.drop)
        if dropped != told:
            return Wrong(
                "the worker did not drop what it was told to",
                tuple(sorted(told ^ dropped)),
                expected=names(told),
                got=names(dropped),
            )
        self._holds -= dropped
        self._holds |= set(event.encode)
        missing = tuple(sorted(set(event.gather) - self._holds))
        if missing:
            return Wrong(
                "the worker gathers what it does not hold",
                missing,
                ("S1",),
                expected=f"it holds {names(self._holds & set(event.gather))}",
                got=f"it gathers {names(event.gather)}",
            )
        return None


# --- the reference, and the interpreter's word -------------------------------------------------


def _perform(follower: Follower, event: LogEvent, answer: RightAnswer) -> None:
    """Let the reference make the call, which must answer what its attributes said it would."""
    try:
        returned = follower.apply(event)
    except LedgerError as error:
        raise ModelDisagrees(f"{event}: the reference refuses it: {error}") from None
    if returned != answer:
        raise ModelDisagrees(f"{event}: the reference returns {returned}, not {answer}")


def _interpreted(
    follower: Follower, event: LogEvent, call: Call
) -> tuple[Interpreter, Step, Projection]:
    """The event on the specification's interpreter, in the reference's state."""
    system, within = specified(follower.kind), projection(follower, event)
    interpreter = Interpreter(system, within.world)
    state = state_of(follower, within)
    steps = [interpreter.call(state, candidate) for candidate in spec_calls(system, call)]
    return interpreter, next((s for s in steps if not s.refused_by), steps[0]), within


def _audit(follower: Follower, event: LogEvent, answer: RightAnswer) -> None:
    """Perform the event on the reference and on the interpreter.

    Raises:
        ModelDisagrees: They answer differently, or are in different states after it.
    """
    call = call_of(event)
    assert call is not None, "only calls are audited"
    _, step, within = _interpreted(follower, event, call)
    _perform(follower, event, answer)
    after = state_of(follower, within)
    if step.refused_by:
        raise ModelDisagrees(f"{event}: the interpreter refuses it: {', '.join(step.refused_by)}")
    if step.result != _as_result(answer):
        raise ModelDisagrees(f"{event}: the interpreter says {step.result}, not {answer}")
    system = specified(follower.kind)
    here, there = (_without_times(system, state) for state in (after, step.after))
    if here != there:
        differing = [n for n in here if here[n] != there[n]]
        told = "; ".join(f"{n} is {there[n]}, not {here[n]}" for n in differing)
        raise ModelDisagrees(f"{event}: after it, by the interpreter, {told}")


def _without_times(system: TransitionSystem, state: Mapping[str, Any]) -> dict[str, Any]:
    """What the design itself keeps; of times, only their order counts."""
    own = [v.name for v in system.variables if v.role != "ghost"]
    kept = {name: state[name] for name in own if name not in {"since", "clock"}}
    return {**kept, "order": by_age(state)} if "since" in own else kept


def _as_result(answer: object) -> Any:
    is_report = isinstance(answer, (set, tuple))
    return frozenset((h,) for h in answer) if is_report else answer  # type: ignore[attr-defined]


def _answered_wrongly(
    follower: Follower, event: LookedUp | Asked | Reported, answer: RightAnswer
) -> Wrong:
    """What is wrong with an answer; the interpreter is asked before anybody is accused.

    Raises:
        ModelDisagrees: The interpreter does not say what the reference says.
    """
    call = call_of(event)
    assert call is not None
    interpreter, step, _ = _interpreted(follower, event, call)
    if step.refused_by or step.result != _as_result(answer):
        raise ModelDisagrees(f"{event}: the interpreter says {step.result}, not {answer}")
    seen = replace(step, result=_as_result(event.returns))
    # In a part of a state, sums over all of it do not come out: what the right answer "breaks"
    # there, it does not break.
    beside_the_point = set(broken_clauses(interpreter, step))
    clauses = tuple(c for c in broken_clauses(interpreter, seen) if c not in beside_the_point)
    if isinstance(answer, set) and isinstance(event, Reported):
        got = set(event.returns)
        wrongly, left_out = sorted(got - answer), sorted(answer - got)
        words = [f"names {names(wrongly)}"] if wrongly else []
        words += [f"leaves out {names(left_out)}"] if left_out else []
        reason = f"the report wrongly {' and '.join(words)}"
        return Wrong(reason, (*wrongly, *left_out), clauses, names(answer), names(event.returns))
    expected, shown = str(answer).lower(), str(event.returns).lower()
    reason = "the answer is not the specified one"
    return Wrong(reason, hashes_of(event), clauses, expected, shown)
