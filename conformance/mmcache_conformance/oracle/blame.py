"""Which clauses an answer breaks: the claims of the specification, asked about what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mmcache_spec.evaluate.interpreter import Interpreter, State, Step, World
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.oracle import input_name, spec_calls, world_of
from mmcache_vectors.manager import Call, Parameters

from ..verdicts.model import Difference

__all__ = ["blamed", "broken_clauses"]


def blamed(
    system: TransitionSystem,
    parameters: Parameters,
    calls: Sequence[Call],
    differences: Iterable[Difference],
) -> tuple[str, ...]:
    """The clauses that the last of the calls breaks: its answer and its state, as they were seen.

    Empty where the differences break no claim by themselves, only the equality with the spec.
    What is not among the differences is taken to be as specified, the record of an observer
    (the ghost variables) always.
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
    got = _in_hashes(got, interpreter.world, step.after)
    seen = replace(step, after=_seen_state(step.after, got))
    if "returns" in got:
        seen = replace(seen, result=_as_result(got["returns"]))
    return broken_clauses(interpreter, seen)


def _in_hashes(got: dict[str, Any], world: World, after: State) -> dict[str, Any]:
    """What was seen, with the spec's hash in place of an identifier that is given two sizes.

    Of its hashes that is the one that is cached; if none is, any, since it should not be there.
    """
    called = world.functions["identifier"]
    if all(h == name for h, name in called.items()):
        return got
    cached = after.get("cached", frozenset())
    hashes = {name: h for h, name in sorted(called.items(), key=lambda pair: (pair[0],) in cached)}

    def told(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(hashes.get(name, name) for name in value)
        return value

    return {
        what: {hashes.get(name, name): rs for name, rs in value.items()}
        if what == "cached"
        else told(value)
        for what, value in got.items()
    }


def broken_clauses(interpreter: Interpreter, step: Step) -> tuple[str, ...]:
    """The ids of the clauses that the step, or the state after it, breaks, in their order."""
    try:
        broken = interpreter.breaks(step)
    except (TypeError, KeyError, AttributeError):
        return ()  # an answer of another type than the call has: nothing can be said of it
    return tuple(sorted({p.clause for p in broken if p.clause is not None}, key=_clause_order))


def _clause_order(clause: str) -> tuple[str, int]:
    return clause[0], int(clause[1:])


def _as_result(value: Any) -> Any:
    return frozenset((h,) for h in value) if isinstance(value, tuple) else value


_VARIABLES = {"num_free_slots": "free_slots", "num_freeable_slots": "freeable_slots"}


def _seen_state(after: State, got: Mapping[str, Any]) -> State:
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
