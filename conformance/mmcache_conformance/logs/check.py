"""Trace validation: is a recorded log a behaviour of the specification?

The log is read once, event by event. The reference follows it (`follow`); a sample of the events,
and every event on which the two disagree, is also run on the specification's interpreter, within
the part of the state that the event can touch (`project`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import msgspec

from mmcache import EncoderCacheManager
from mmcache.errors import LedgerError
from mmcache_spec.evaluate.interpreter import Interpreter, Step
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.oracle import by_age, spec_calls
from mmcache_vectors.manager import Call, Manager

from ..oracle.blame import broken_clauses
from ..oracle.systems import specified
from .decisions import decisions_in, decisions_of_pass
from .explain import Illegal, Wrong, duty_broken, explain, hashes_of, names
from .follow import REFERENCES, Follower, OutOfWorld, Refusal, RightAnswer, call_of
from .format import (
    NEEDED_CALLS,
    Allocated,
    Asked,
    Created,
    CutOff,
    Ended,
    Header,
    LogError,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
    read_events,
    read_log,
)
from .project import Projection, projection, state_of
from .verdict import Checked
from .worker import Order, Orders, Worker

__all__ = ["AUDIT_EVERY", "ModelDisagrees", "check_log"]

AUDIT_EVERY = 1000
"""One call in so many is also run on the interpreter."""

_CONFIRMED = 1000
"""So many events before an illegal one are run on the interpreter before it is called illegal."""

_LARGEST_AUDIT = 200
"""Hashes and inputs: an event that touches more would keep the interpreter busy for seconds."""


_REPORTS_OF_A_PASS = 8
"""A scheduler reads one report a pass; after so many without a pass, the log has no passes."""


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
    number = 1
    events = calls = audited = 0
    until_audit = 1
    illegal: Illegal | None = None
    header, numbered = read_log(lines(), source)
    seen: set[str] = set()
    cut: int | None = None
    while True:
        try:
            number, event = next(numbered)
        except StopIteration:
            break
        except CutOff:
            cut = number + 1
            break
        events += 1
        manager = followed.get(event.manager)
        if manager is None:
            manager = followed[event.manager] = _begin(event, source, number, references)
            _expect_complete(event, header, source, number)
            continue
        _expect_in_order(manager, event, source, number)
        until_audit -= 1
        audit = until_audit <= 0 and manager.can_be_audited(event)
        wrong = manager.take(event, audit)
        calls += not isinstance(event, (Created, PassEnded, Ended))
        seen.add(event.__struct_config__.tag)  # type: ignore[arg-type]
        if wrong is not None:
            look_back = lines if can_reread else None
            if look_back is not None:
                _confirm(look_back(), source, event, references)
            illegal = explain(wrong, number, event, manager.follower, look_back, source)
            if look_back is not None and wrong.clauses:
                if isinstance(event, PassEnded):
                    named = decisions_of_pass(look_back(), source, event, wrong.unmade)
                else:
                    named = decisions_in(look_back(), source, event)
                illegal = msgspec.structs.replace(illegal, decisions=named)
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
        not_judged=tuple(_not_judged(followed.values())),
        doubt=_doubt(seen, header),
        cut=cut,
    )


def _expect_complete(created: LogEvent, header: Header, source: str, number: int) -> None:
    """Raises `LogError` if the log says that a call is not recorded which all else rests on."""
    assert isinstance(created, Created)
    records = header.records if created.records is None else created.records
    lacking = [] if records is None else [c for c in NEEDED_CALLS if c not in records]
    if lacking:
        raise LogError(
            f"{source}: line {number}: of manager {created.manager!r} "
            f"{', '.join(f'`{c}`' for c in lacking)} was not recorded, so that nothing follows "
            "from the rest; record it again"
        )


_ANSWERED = {"check_and_update_cache", "can_allocate", "get_freed_mm_hashes", "worker_step"}


def _doubt(seen: Set[str], header: Header) -> str | None:
    """Why a log in which nothing is illegal cannot be called allowed all the same."""
    if not seen & (set(NEEDED_CALLS) | {"reset", "worker_step"}):
        return None  # no call at all: that is said by itself
    if not seen & _ANSWERED:
        return "none of its calls has an answer that could be wrong"
    if header.records is not None:
        return None
    lacking = [c for c in ("allocate", "get_freed_mm_hashes") if c not in seen]
    lacking += [] if seen & {"check_and_update_cache", "can_allocate"} else ["can_allocate"]
    if not lacking:
        return None
    words = " and ".join(f"`{c}`" for c in lacking)
    return f"there is no {words} in it, and its first line does not say which calls it records"


def _not_judged(followed: Iterable[_Followed]) -> list[str]:
    """What the log does not show, each thing once."""
    return list(dict.fromkeys(said for manager in followed for said in manager.not_judged()))


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
        self._shares = created.kind == "encoder_cache"
        capacity = created.cache_size
        self._worker = Worker(capacity, shares=self._shares) if created.worker else None
        self._orders = Orders(capacity) if self._shares else None
        self._allocated: set[str] = set()
        """What became cached since the last report."""
        self._reported: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
        """What was reported, and what had become cached, in the pass that is not over."""
        self._unfinished = 0
        """The reports of that pass."""

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
            self._reports(event)
        elif isinstance(event, (Created, Ended, WasReset, WorkerStepped, PassEnded)):
            wrong = self._other(event)
            if wrong is not None:
                return wrong
        if isinstance(event, Allocated) and event.identifier not in follower.manager.cached:
            self._allocated.add(event.identifier)
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
            case WasReset():
                self._allocated, self._reported = set(), (frozenset(), frozenset())
                for side in (self._worker, self._orders):
                    if side is not None:
                        side.reset()
            case PassEnded():
                return self._pass(event)
            case WorkerStepped() if self._worker is None:
                return Wrong('a worker step, but "new" did not say "worker": true', ())
            case WorkerStepped() if self._worker is not None:
                return self._worker.step(event)
        return None

    def _reports(self, event: Reported) -> None:
        """A report is made: what the ledger has cached now is what the step that obeys it makes."""
        now = frozenset(event.returns), frozenset(self._allocated)
        self._allocated = set()
        before = self._reported
        self._reported = before[0] | now[0], before[1] | now[1]
        self._unfinished += 1
        if self._unfinished > _REPORTS_OF_A_PASS:  # nobody says where its passes end
            self._orders, self._reported = None, (frozenset(), frozenset())
        if self._worker is not None:
            self._worker.order(self._order(now))

    def _order(self, decided: tuple[frozenset[str], frozenset[str]]) -> Order:
        manager, size_of = self.follower.manager, self.follower.size_of
        cached = {h: size_of(h) or 0 for h in manager.cached} if self._shares else {}
        return Order(decided[0], cached, decided[1])

    def _pass(self, event: PassEnded) -> Wrong | None:
        decided, self._reported = self._reported, (frozenset(), frozenset())
        self._unfinished = 0
        if self._worker is not None and event.encode is not None:
            self._worker.told_to_encode(event.encode)
        if self._orders is None:
            return None
        return self._orders.take(event, self._order(decided))

    def not_judged(self) -> Iterator[str]:
        """What of this manager's engine the log does not show."""
        if not self._shares:
            yield "S1 to S12: of encoder-decoder models only the ledger is judged"
            return
        stepped = self._worker is not None and self._worker.steps > 0
        if not stepped:
            yield "S1: no step of a worker is in the log"
        if not stepped and (self._orders is None or not self._orders.judged):
            yield "S2, S3, S4: no pass says what it orders to encode, and no worker what it does"
        if self._orders is not None and self._orders.loads_unknown:
            yield "S2, in part: what a connector loads is not in the log"


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
