"""A trace told to people: call, arguments, answer, the ledger before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mmcache_vectors.clauses import CLAUSES

from ..checks.bounded import Counterexample, Trace
from ..checks.induction import CTI, Outcome
from ..evaluate.interpreter import ActionCall, Interpreter, Step, World
from .words import Words, words_of

__all__ = ["as_json", "call_text", "cti_story", "story"]

NAMES = {"allocate_again": "allocate"}
INDENT = " " * 5


def story(trace: Trace) -> Iterator[str]:
    """The trace, line by line."""
    words = words_of(trace.system)
    yield words.world_text(trace.world)
    yield ""
    if trace.origin == "pass":
        yield "  The pass starts with"
    else:
        yield "  Start"
    yield INDENT + words.state_text(trace.start)
    for number, step in enumerate(trace.steps, 1):
        yield f"{number:3}  {call_text(words, step.call, trace.world)}{_answer(step)}"
        yield INDENT + words.state_text(step.after)
    if isinstance(trace, Counterexample):
        for clause in trace.clauses:
            yield f"  ✗  {clause} {CLAUSES[clause].name}"
            yield INDENT + CLAUSES[clause].says
        yield from _consequence(trace)


def cti_story(outcome: Outcome) -> Iterator[str]:
    """A counterexample to induction: one step out of a state that all invariants allow."""
    claim, cti = outcome.obligation.claim, outcome.cti
    assert isinstance(cti, CTI)
    words = words_of(cti.system.name)
    clause = f"{claim.clause} " if claim.clause else ""
    yield f"✗ {outcome.obligation.label}"
    if cti.step is None:
        start = Interpreter(cti.system, cti.world).initial()
        yield f"  The initial state breaks {clause}{claim.name}."
        yield "  " + words.world_text(cti.world)
        yield f"{INDENT}start   {words.state_text(start)}"
        return
    yield f"  Every invariant allows the state before; the state after breaks {clause}{claim.name}."
    yield "  " + words.world_text(cti.world)
    yield f"{INDENT}before  {words.state_text(cti.step.before)}"
    yield f"{INDENT}call    {call_text(words, cti.step.call, cti.world)}{_answer(cti.step)}"
    yield f"{INDENT}after   {words.state_text(cti.step.after)}"


def call_text(words: Words, call: ActionCall, world: World) -> str:
    """The call as Python writes it, with the item's hash for the reader."""
    given = dict(call.arguments)
    arguments = []
    if "input" in given:
        i = given.pop("input")
        request = world.functions["owner"][i]
        arguments += [request, str(words.inputs_of(request, world).index(i))]
    arguments += [given.pop("request")] if "request" in given else []
    arguments += [f"{_short(name)}={value}" for name, value in given.items()]
    text = f"{NAMES.get(call.action, call.action)}({', '.join(arguments)})"
    if "input" in call.arguments:
        text += f"  [{world.functions['hash_of'][call.arguments['input']]}]"
    return text


def _short(name: str) -> str:
    short = {"encoder_compute_budget": "budget", "num_embeds_to_schedule": "pending"}
    return short.get(name, name)


def _answer(step: Step) -> str:
    if step.result is None:
        return ""
    if isinstance(step.result, frozenset):
        return f" → [{', '.join(sorted(h for (h,) in step.result))}]"
    return f" → {step.result}"


def _consequence(trace: Counterexample) -> Iterator[str]:
    last = trace.steps[-1]
    if "L1" in trace.clauses and trace.system == "ledger":
        live = sorted(h for (h,) in last.result if (h,) in last.before["cached"])
        yield (
            f"{INDENT}The worker is told to drop {', '.join(live)}, which the ledger counts as "
            "cached: the next request that hits it finds no tensor."
        )
    if "S1" in trace.clauses:
        hash_of = trace.world.functions["hash_of"]
        wanted = {hash_of[i] for (i,) in last.before["promised"]}
        ordered = {k for k, _ in last.before["encodes"] | last.before["loads"]}
        never_there = wanted - ordered - {k for (k,) in last.before["worker"]}
        missed = never_there or wanted - {k for (k,) in last.after["worker"]}
        yield f"{INDENT}RuntimeError: Encoder cache miss for {', '.join(sorted(missed))}."


def as_json(trace: Trace) -> dict[str, Any]:
    """The trace as data: sets sorted, elements by name."""
    found = {
        "origin": trace.origin,
        "length": trace.length,
        "actions": list(trace.actions),
        "world": {
            "universe": {k: list(v) for k, v in trace.world.universe.items()},
            "constants": dict(trace.world.constants),
            "functions": {k: dict(v) for k, v in trace.world.functions.items()},
        },
        "start": _state(trace.start),
        "steps": [
            {
                "action": step.call.action,
                "arguments": dict(step.call.arguments),
                "returns": _plain(step.result),
                "after": _state(step.after),
            }
            for step in trace.steps
        ],
    }
    if isinstance(trace, Counterexample):
        found["breaks"] = [{"clause": p.clause, "property": p.name} for p in trace.broken]
    return found


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in state.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(x[0] if len(x) == 1 else list(x) for x in value)
    return dict(value) if isinstance(value, Mapping) else value
