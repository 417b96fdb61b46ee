"""The reference beside the interpreter: what is compared before anybody is believed or accused.

What the reference *would* answer has been read off its attributes (`follow`); here the call is
made, and where it is asked for, made on the specification's interpreter as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mmcache.errors import LedgerError
from mmcache_spec.evaluate.interpreter import Interpreter, Step
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.oracle import by_age, spec_calls
from mmcache_vectors.manager import Call

from ..oracle.blame import broken_clauses
from ..oracle.systems import specified
from .explain import Wrong, hashes_of, names
from .follow import Follower, RightAnswer, call_of
from .format import Asked, LogEvent, LookedUp, Reported
from .project import Projection, projection, state_of

__all__ = ["ModelDisagrees", "answered_wrongly", "can_be_audited", "perform", "perform_audited"]

_LARGEST_AUDIT = 200
"""Hashes and inputs: an event that touches more would keep the interpreter busy for seconds."""


class ModelDisagrees(AssertionError):
    """The reference is not the specification: a defect of this project, never of the log."""


def can_be_audited(follower: Follower, event: LogEvent) -> bool:
    """Whether it is a call, and touches little enough for the interpreter."""
    if call_of(event) is None:
        return False
    return projection(follower, event).extent <= _LARGEST_AUDIT


def perform(follower: Follower, event: LogEvent, answer: RightAnswer) -> None:
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


def perform_audited(follower: Follower, event: LogEvent, answer: RightAnswer) -> None:
    """Perform the event on the reference and on the interpreter.

    Raises:
        ModelDisagrees: They answer differently, or are in different states after it.
    """
    call = call_of(event)
    assert call is not None, "only calls are audited"
    _, step, within = _interpreted(follower, event, call)
    perform(follower, event, answer)
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


def answered_wrongly(
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
