"""Trace validation: is a recorded log a behaviour of the specification?

The log is read once, event by event. A fast model (`log_model`) follows it; a sample of the events,
and every event on which the two disagree, is also run on the specification's interpreter, within
the part of the state that the event can touch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from mmcache_spec.evaluate.interpreter import Call as SpecCall
from mmcache_spec.evaluate.interpreter import Interpreter, Step
from mmcache_spec.oracle import input_name

from ..oracle.blame import broken_clauses
from ..oracle.systems import specified
from .follow import Answer, Model, OutOfWorld, Projection, Refusal, model_for
from .format import (
    Allocated,
    Asked,
    Created,
    Ended,
    Event,
    Freed,
    FreedInput,
    LogError,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
    read_events,
)

__all__ = ["Checked", "Illegal", "ModelDisagrees", "check_log"]

AUDIT_EVERY = 1000
"""One event in so many is also run on the interpreter."""

_LARGEST_AUDIT = 200
_HISTORY = 12


class ModelDisagrees(AssertionError):
    """The fast model is not the specification: a defect of this package."""


class Illegal(msgspec.Struct, frozen=True, kw_only=True):
    """The first event that the specification does not allow."""

    line: int
    event: dict[str, Any]
    clauses: tuple[str, ...]
    reason: str
    expected: str
    got: str
    ledger: tuple[str, ...]
    """The state before the event, for people."""
    history: dict[str, tuple[str, ...]]
    """For each hash that the event is about: the last events that concerned it."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a log."""

    source: str
    events: int
    managers: int
    unfinished: tuple[str, ...]
    """Managers without an `end`: the log may go on."""
    audited: int
    """Events that the interpreter ran as well."""
    illegal: Illegal | None


Lines = Callable[[], Iterable[bytes]]
"""Opens the log anew, so that the history of an illegal event can be looked up."""


def check_log(
    lines: Lines, source: str, *, again: bool = True, audit_every: int = AUDIT_EVERY
) -> Checked:
    """Read the log. Raises `LogError` if it is malformed, up to the first illegal event.

    `again` says whether the lines can be read a second time, which is done only for the history.
    """
    followed: dict[str, _Followed] = {}
    audited, number, events = 0, 0, 0
    until_audit = 1
    for number, event in read_events(lines(), source):
        events += 1
        manager = followed.get(event.manager)
        if manager is None:
            manager = followed[event.manager] = _begin(event, source, number)
            continue
        if event.seq != manager.next_seq:
            raise LogError(f"{source}: line {number}: {_out_of_order(event, manager.next_seq)}")
        manager.next_seq += 1
        if manager.ended:
            raise LogError(
                f"{source}: line {number}: manager {event.manager!r} ended before this event"
            )
        until_audit -= 1
        if until_audit:
            wrong = manager.take(event)
        else:
            until_audit = audit_every
            audit = manager.model.projection(event).extent <= _LARGEST_AUDIT
            wrong = manager.take(event, audit)
            audited += audit
        if wrong is not None:
            look_back = lines if again else None
            illegal = _explain(wrong, number, event, manager.model, look_back, source)
            return _checked(source, events, followed, audited, illegal)
    return _checked(source, events, followed, audited, None)


def _checked(
    source: str,
    events: int,
    followed: dict[str, _Followed],
    audited: int,
    illegal: Illegal | None,
) -> Checked:
    return Checked(
        source=source,
        events=events,
        managers=len(followed),
        unfinished=tuple(name for name, m in followed.items() if not m.ended),
        audited=audited,
        illegal=illegal,
    )


def _begin(event: Event, source: str, number: int) -> _Followed:
    if not isinstance(event, Created) or event.seq != 0:
        raise LogError(
            f"{source}: line {number}: manager {event.manager!r} is not known; its first event is "
            '"new" with seq 0, so the beginning of the log is missing, or the log is reordered'
        )
    return _Followed(event)


def _out_of_order(event: Event, wanted: int) -> str:
    if event.seq > wanted:
        gap = event.seq - wanted
        what = f"{gap} event{'s are' if gap > 1 else ' is'} missing before it"
    else:
        what = "it comes twice"
    return (
        f"manager {event.manager!r}: seq {event.seq} where {wanted} comes next; {what}, or the log "
        "is reordered, or two writers share the name"
    )


class _Wrong(msgspec.Struct, frozen=True):
    reason: str
    hashes: tuple[str, ...]
    clauses: tuple[str, ...] = ()
    expected: str = ""
    got: str = ""


class _Followed:
    """One manager of the log: its model, and its worker if that is in the log too."""

    def __init__(self, created: Created) -> None:
        self.model = model_for(created)
        self.next_seq = 1
        self.ended = False
        self._worker = _Worker() if created.worker else None

    def take(self, event: Event, audit: bool = False) -> _Wrong | None:
        """Follow the event. If something is wrong with it, the model stays as it was before."""
        model = self.model
        try:
            answer = model.answer(event)
        except OutOfWorld as error:
            return _Wrong(str(error), _hashes(event))
        if isinstance(event, (LookedUp, Asked)) and answer is event.returns:
            pass  # what most events are
        elif isinstance(answer, Refusal):
            return _excluded(answer, event)
        elif isinstance(event, (LookedUp, Asked)):
            return _answered_wrongly(model, event, answer)
        elif isinstance(event, Reported):
            if answer != set(event.returns):
                return _answered_wrongly(model, event, answer)
            if self._worker is not None:
                self._worker.order(event.returns)
        elif isinstance(event, (Created, Ended, WasReset, WorkerStepped)):
            wrong = self._other(event)
            if wrong is not None:
                return wrong
        if audit:
            _audit(model, event, answer)
        else:
            model.apply(event)
        return None

    def _other(self, event: Event) -> _Wrong | None:
        match event:
            case Created():
                return _Wrong("this manager began before", ())
            case Ended():
                self.ended = True
            case WasReset() if self._worker is not None:
                self._worker = _Worker()
            case WorkerStepped() if self._worker is None:
                return _Wrong('a worker step, but "new" did not say "worker": true', ())
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

    def step(self, event: WorkerStepped) -> _Wrong | None:
        told = self._orders.popleft() if self._orders else frozenset()
        dropped = frozenset(event.drop)
        if dropped != told:
            return _Wrong(
                "the worker did not drop what it was told to",
                tuple(sorted(told ^ dropped)),
                expected=_names(told),
                got=_names(dropped),
            )
        self._holds -= dropped
        self._holds |= set(event.encode)
        missing = tuple(sorted(set(event.gather) - self._holds))
        if missing:
            return _Wrong(
                "the worker gathers what it does not hold",
                missing,
                ("S1",),
                expected=f"it holds {_names(self._holds & set(event.gather))}",
                got=f"it gathers {_names(event.gather)}",
            )
        return None


# --- the interpreter's word --------------------------------------------------------------------


def _spec_calls(model: Model, event: Event) -> list[SpecCall]:
    at: dict[str, Any] = {}
    match event:
        case LookedUp() | Asked() | Allocated() | FreedInput():
            at["input"] = input_name(event.request, event.input_id)
        case Freed(request=request):
            at["request"] = request
    if isinstance(event, Asked):
        at["encoder_compute_budget"] = event.encoder_compute_budget
        at["num_embeds_to_schedule"] = event.num_embeds_to_schedule
    name = str(event.__struct_config__.tag)
    known = {action.name for action in specified(model.kind).actions}
    return [SpecCall(action, at) for action in (name, f"{name}_again") if action in known]


def _interpreted(model: Model, event: Event) -> tuple[Interpreter, Step, Projection]:
    """The event on the specification's interpreter, in the model's state."""
    projection = model.projection(event)
    interpreter = Interpreter(specified(model.kind), projection.world)
    steps = [interpreter.call(model.state(projection), call) for call in _spec_calls(model, event)]
    step = next((s for s in steps if not s.refused_by), steps[0])
    return interpreter, step, projection


def _result_of(answer: Answer) -> Any:
    return frozenset((h,) for h in answer) if isinstance(answer, set) else answer


def _audit(model: Model, event: Event, answer: Answer) -> None:
    """Perform the event on the model and on the interpreter. Raises `ModelDisagrees`."""
    if isinstance(event, (PassEnded, WorkerStepped, Ended, Created)):
        return
    _, step, projection = _interpreted(model, event)
    model.apply(event)
    after = model.state(projection)
    if step.refused_by or step.result != _result_of(answer) or not _alike(step.after, after):
        raise ModelDisagrees(f"{event}: {step.result} and {step.after}, not {answer} and {after}")


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equality of states; of times, only the order counts."""

    def without_times(state: Mapping[str, Any]) -> dict[str, Any]:
        kept = {k: v for k, v in state.items() if k not in {"since", "clock", "ended", "now"}}
        for time in {"since", "ended"} & state.keys():
            kept[f"order of {time}"] = sorted(
                (h for (h,) in state["freeable"]), key=state[time].get
            )
        return kept

    return without_times(one) == without_times(other)


def _answered_wrongly(model: Model, event: LookedUp | Asked | Reported, answer: Answer) -> _Wrong:
    interpreter, step, _ = _interpreted(model, event)
    if step.refused_by or step.result != _result_of(answer):
        raise ModelDisagrees(f"{event}: the interpreter says {step.result}, the model {answer}")
    got = event.returns
    seen = replace(step, result=frozenset((h,) for h in got) if isinstance(got, tuple) else got)
    # In a part of a state, sums over all of it do not come out: what the right answer "breaks"
    # there, it does not break.
    beside_the_point = set(broken_clauses(interpreter, step))
    clauses = tuple(c for c in broken_clauses(interpreter, seen) if c not in beside_the_point)
    if isinstance(answer, set) and isinstance(got, tuple):
        wrongly, left_out = sorted(set(got) - answer), sorted(answer - set(got))
        words = [f"names {_names(wrongly)}"] if wrongly else []
        words += [f"leaves out {_names(left_out)}"] if left_out else []
        reason = f"the report wrongly {' and '.join(words)}"
        return _Wrong(reason, (*wrongly, *left_out), clauses, _names(answer), _names(got))
    expected, shown = str(answer).lower(), str(got).lower()
    return _Wrong("the answer is not the specified one", _hashes(event), clauses, expected, shown)


_DUTIES = {
    "missed": "can_allocate is asked only after check_and_update_cache has missed",
    "budget_not_negative": "encoder_compute_budget is not negative",
    "pending_not_negative": "num_embeds_to_schedule is not negative",
    "room": "allocate is called only for what fits the free slots",
    "not_charged_yet": "an input is allocated once until it is released",
}


def _excluded(guard: Refusal, event: Event) -> _Wrong:
    return _Wrong(f"the caller broke a duty: {_DUTIES[guard]}", _hashes(event))


def _hashes(event: Event) -> tuple[str, ...]:
    name: str | None = getattr(event, "identifier", None)
    return () if name is None else (name,)


_SHOWN = 12


def _names(hashes: Iterable[str]) -> str:
    names = sorted(hashes)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (", ".join(names[:_SHOWN]) or "nothing") + more


# --- the explanation ---------------------------------------------------------------------------


def _explain(
    wrong: _Wrong, number: int, event: Event, model: Model, lines: Lines | None, source: str
) -> Illegal:
    history = {h: deque[str](maxlen=_HISTORY) for h in wrong.hashes[:3]}
    if lines is not None:
        _look_back(history, lines, source, event.manager, number)
    return Illegal(
        line=number,
        event={"op": event.__struct_config__.tag, **msgspec.structs.asdict(event)},
        clauses=wrong.clauses,
        reason=wrong.reason,
        expected=wrong.expected,
        got=wrong.got,
        ledger=tuple(model.summary()),
        history={h: tuple(seen) for h, seen in history.items()},
    )


def _look_back(
    history: Mapping[str, deque[str]], lines: Lines, source: str, manager: str, until: int
) -> None:
    """Read the log again, up to the illegal event, and note what concerned the hashes."""
    followed: _Followed | None = None
    status = dict.fromkeys(history, "")
    for number, event in read_events(lines(), source):
        if number >= until:
            return
        if event.manager != manager:
            continue
        if followed is None:
            assert isinstance(event, Created)
            followed = _Followed(event)
        else:
            followed.take(event)
        for mm_hash, seen in history.items():
            now = followed.model.about(mm_hash)
            mentioned = mm_hash in _hashes(event)
            if mentioned or (now != status[mm_hash] and number > 2):
                seen.append(f"line {number}: {event_text(event)}  ({now})")
            status[mm_hash] = now


def event_text(event: Event) -> str:
    """The event as people write a call."""
    fields = msgspec.structs.asdict(event)
    returns = fields.pop("returns", None)
    shown = [f"{k}={v}" for k, v in fields.items() if k not in {"manager", "seq"}]
    call = f"{event.__struct_config__.tag}({', '.join(shown)})"
    if returns is None:
        return call
    answer = _names(returns) if isinstance(returns, tuple) else str(returns).lower()
    return f"{call} -> {answer}"
