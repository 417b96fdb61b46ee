"""Which clauses an answer breaks: the claims of the specification, asked about what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mmcache_spec.evaluate.interpreter import Call as SpecCall
from mmcache_spec.evaluate.interpreter import Interpreter, State, Step
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.oracle import input_name, world_of
from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    Free,
    GetFreedMmHashes,
    Observed,
    Parameters,
    Reset,
)

from ..targets.protocol import call_name
from ..verdicts.model import Difference

__all__ = ["blamed", "broken_clauses", "observed_differences", "spec_calls"]


def spec_calls(system: TransitionSystem, call: Call) -> list[SpecCall]:
    """The actions that the call may be: the guards of at most one of them allow it."""
    known = {action.name for action in system.actions}
    name = call_name(call)
    return [SpecCall(a, _arguments(call)) for a in (name, f"{name}_again") if a in known]


def blamed(
    system: TransitionSystem,
    parameters: Parameters,
    calls: Sequence[Call],
    differences: Iterable[Difference],
) -> tuple[str, ...]:
    """The clauses that the last of the calls breaks, as its answer differs from the specified one.

    Empty where the difference breaks no claim by itself, only the equality with the spec.
    """
    interpreter = Interpreter(system, world_of(parameters))
    state: State = interpreter.initial()
    step: Step | None = None
    for call in calls:
        for candidate in spec_calls(system, call):
            step = interpreter.call(state, candidate)
            if not step.refused_by:
                break
        assert step is not None
        state = step.after
    if step is None:
        return ()
    got = {d.what: d.got for d in differences}
    if "error" in got:
        return ()
    if "returns" in got:
        seen = replace(step, result=_as_result(got["returns"]))
    else:
        seen = replace(step, after=_seen_state(interpreter, step.after, got))
    return broken_clauses(interpreter, seen)


def broken_clauses(interpreter: Interpreter, step: Step) -> tuple[str, ...]:
    try:
        broken = interpreter.breaks(step)
    except (TypeError, KeyError, AttributeError):
        return ()  # an answer of another type than the call has: nothing can be said of it
    return tuple(sorted({p.clause for p in broken if p.clause is not None}, key=_clause_order))


def _clause_order(clause: str) -> tuple[str, int]:
    return clause[0], int(clause[1:])


def _arguments(call: Call) -> dict[str, Any]:
    match call:
        case GetFreedMmHashes() | Reset():
            return {}
        case Free(request=request):
            return {"request": request}
        case CanAllocate():
            return {
                "input": input_name(call.request, call.input_id),
                "encoder_compute_budget": call.encoder_compute_budget,
                "num_embeds_to_schedule": call.num_embeds_to_schedule,
            }
    return {"input": input_name(call.request, call.input_id)}


def _as_result(value: Any) -> Any:
    return frozenset((h,) for h in value) if isinstance(value, tuple) else value


_VARIABLES = {"num_free_slots": "free_slots", "num_freeable_slots": "freeable_slots"}


def _seen_state(interpreter: Interpreter, after: State, got: Mapping[str, Any]) -> State:
    """The specified state, with what was seen instead where something else was seen."""
    state = dict(after)
    for name, variable in _VARIABLES.items():
        if name in got:
            state[variable] = got[name]
    if "cached" in got:
        state["cached"] = frozenset((h,) for h in got["cached"])
        state["references"] = frozenset((h, r) for h, rs in got["cached"].items() for r in rs)
    if "freeable" in got:
        state["freeable"] = frozenset((h,) for h in got["freeable"])
        ranks = {h: rank for rank, h in enumerate(got["freeable"])}
        state["since"] = {**after["since"], **ranks}
        state["clock"] = len(ranks)
    if "held" in got:
        pairs = ((r, k) for r, ks in got["held"].items() for k in ks)
        state["held"] = frozenset((input_name(r, k),) for r, k in pairs)
    return state


def observed_differences(expected: Observed, shown: Observed) -> tuple[Difference, ...]:
    """What both show, and show differently."""
    pairs = ((n, getattr(expected, n), getattr(shown, n)) for n in Observed.__struct_fields__)
    return tuple(
        Difference(name, wanted, got)
        for name, wanted, got in pairs
        if wanted is not None and got is not None and wanted != got
    )
