"""A trace told to people: call, arguments, answer, the ledger before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mmcache_vectors.clauses import CLAUSES

from ..checks.bounded import Counterexample, Trace
from ..checks.induction import CTI, Outcome
from ..evaluate.interpreter import ActionCall, Interpreter, State, Step, World
from ..oracle import by_age

__all__ = ["as_json", "call_text", "cti_story", "ledger_text", "story"]

NAMES = {"allocate_again": "allocate"}
INDENT = " " * 5


def story(trace: Trace) -> Iterator[str]:
    """The trace, line by line."""
    yield world_text(trace.world)
    yield ""
    if trace.origin == "pass":
        yield "  The pass starts with"
    else:
        yield "  Start"
    yield INDENT + ledger_text(trace.world, trace.start)
    for number, step in enumerate(trace.steps, 1):
        yield from _step(number, step, trace.world)
    if isinstance(trace, Counterexample):
        for clause in trace.clauses:
            yield f"  ✗  {clause} {CLAUSES[clause].name}"
            yield INDENT + CLAUSES[clause].says
        yield from _consequence(trace)


def cti_story(outcome: Outcome) -> Iterator[str]:
    """A counterexample to induction: one step out of a state that all invariants allow."""
    claim, cti = outcome.obligation.claim, outcome.cti
    assert isinstance(cti, CTI)
    clause = f"{claim.clause} " if claim.clause else ""
    yield f"✗ {outcome.obligation.label}"
    if cti.step is None:
        start = Interpreter(cti.system, cti.world).initial()
        yield f"  The initial state breaks {clause}{claim.name}."
        yield "  " + world_text(cti.world)
        yield f"{INDENT}start   {ledger_text(cti.world, start)}"
        return
    yield f"  Every invariant allows the state before; the state after breaks {clause}{claim.name}."
    yield "  " + world_text(cti.world)
    yield f"{INDENT}before  {ledger_text(cti.world, cti.step.before)}"
    yield f"{INDENT}call    {call_text(cti.step.call, cti.world)}{_answer(cti.step)}"
    yield f"{INDENT}after   {ledger_text(cti.world, cti.step.after)}"


def world_text(world: World) -> str:
    """Capacity, sizes and requests in one line, in embeddings; where there are tokens, in those."""
    if "prompt" in world.functions:
        return "  World: " + "; ".join(_in_tokens(world))
    size = world.functions["size"]
    sizes = ", ".join(f"{h} = {size[h]}" for h in world.universe["Hash"])
    requests = ", ".join(
        f"{r} = [{', '.join(_item(i, world) for i in _inputs_of(r, world))}]"
        for r in world.universe["Request"]
    )
    parts = [f"capacity {world.constants['capacity']}"]
    parts += [f"sizes {sizes}"] if sizes else []
    parts += [f"requests {requests}"] if requests else []
    if ahead := world.constants.get("lookahead"):
        parts.append(f"look-ahead {ahead}")
    return "  World: " + "; ".join(parts)


def _item(i: str, world: World) -> str:
    """The hash of an input, and where its tokens are, if the system knows of tokens."""
    mm_hash: str = world.functions["hash_of"][i]
    if "first_token" not in world.functions:
        return mm_hash
    first = world.functions["first_token"][i]
    return f"{mm_hash} at {first} to {first + world.functions['num_tokens'][i] - 1}"


def _in_tokens(world: World) -> Iterator[str]:
    """A world in which items lie at tokens of a prompt."""
    known = world.functions
    names = ("capacity", "token_budget", "encoder_budget", "lookahead")
    yield from (f"{name.replace('_', ' ')} {world.constants[name]}" for name in names)
    yield from (f"{h} has {known['size'][h]} embeddings" for h in world.universe["Hash"])
    for r in world.universe["Request"]:
        items = [
            f"{known['hash_of'][i]} on {known['offset'][i]}-"
            f"{known['offset'][i] + known['length'][i] - 1}"
            for i in _inputs_of(r, world)
        ]
        number = known["prompt"][r]
        tokens = "1 token" if number == 1 else f"{number} tokens"
        yield f"{r} = {tokens}{': ' if items else ''}{', '.join(items)}"


def _inputs_of(request: str, world: World) -> list[str]:
    owner = world.functions["owner"]
    position = world.functions["offset" if "offset" in world.functions else "position"]
    mine = (i for i in world.universe["Input"] if owner[i] == request)
    return sorted(mine, key=position.__getitem__)


def call_text(call: ActionCall, world: World) -> str:
    """The call as Python writes it, with the item's hash for the reader."""
    given = dict(call.arguments)
    arguments = []
    if "input" in given:
        i = given.pop("input")
        request = world.functions["owner"][i]
        arguments += [request, str(_inputs_of(request, world).index(i))]
    arguments += [given.pop("request")] if "request" in given else []
    arguments += [f"{_short(name)}={value}" for name, value in given.items()]
    text = f"{NAMES.get(call.action, call.action)}({', '.join(arguments)})"
    if "input" in call.arguments:
        text += f"  [{world.functions['hash_of'][call.arguments['input']]}]"
    return text


def _short(name: str) -> str:
    short = {"encoder_compute_budget": "budget", "num_embeds_to_schedule": "pending"}
    return short.get(name, name)


def ledger_text(world: World, state: State) -> str:
    """The ledger in one line."""
    if "outstanding" in state:
        charged = ", ".join(sorted(i for (i,) in state["outstanding"])) or "–"
        return (
            f"charged {charged}   this pass {_set(state['allocated'])}   "
            f"to report {_set(state['to_free'])}   free slots {state['free_slots']}"
        )
    if "receiver" in state:
        return "   ".join(_two_sides(state))
    if "computed" in state and "finished" in state:
        computed = ", ".join(f"{r} {n}" for r, n in sorted(state["computed"].items())) or "–"
        names = ("arrived", "running", "finished", "cached")
        parts = [f"{name} {_set(state[name])}" for name in names]
        return "   ".join([*parts, f"needed {_set(state['held'])}", f"computed {computed}"])
    return "   ".join([*_ledger_parts(state), *_engine_parts(state)])


def _two_sides(state: State) -> Iterator[str]:
    """The sender, what is on its way, and the receiver; what was used longest ago comes first."""

    def by_use(members: str, used: str) -> str:
        return ", ".join(sorted((h for (h,) in state[members]), key=lambda h: (state[used][h], h)))

    travelling = sorted((i for (i,) in state["in_flight"]), key=lambda i: (state["sent_at"][i], i))
    on_its_way = [f"{i} bare" if (i,) in state["bare"] else i for i in travelling]
    yield f"sender {by_use('sender', 'sender_used') or '–'}"
    yield f"to be taken {_set(state['waiting'])}"
    yield f"in flight {', '.join(on_its_way) or '–'}"
    yield f"receiver {by_use('receiver', 'receiver_used') or '–'}"
    if state["owed"]:
        yield f"to be told as forgotten {_set(state['owed'])}"


def _engine_parts(state: State) -> list[str]:
    """The worker, and what the pass has decided so far."""
    parts = [f"worker {_set(state['worker'])}"]
    if "running" in state:
        for name in ("tentative", "scheduled", "encodes", "loads", "promised"):
            members = [x[0] if len(x) == 1 else f"{x[0]} for {x[1]}" for x in sorted(state[name])]
            parts += [f"{name.replace('_', ' ')} {', '.join(members)}"] if members else []
        parts.append(f"running {_set(state['running'])}")
        tokens = [f"{r} {n}" for r, n in sorted(state["computed"].items()) if n]
        parts += [f"computed {', '.join(tokens)}"] if tokens else []
    return parts


def _ledger_parts(state: State) -> list[str]:
    references: dict[str, list[str]] = {}
    for h, r in sorted(state["references"]):
        references.setdefault(h, []).append(r)
    cached = [
        f"{h}({', '.join(references[h])})" if h in references else h
        for (h,) in sorted(state["cached"])
    ]
    order = by_age(state)
    return [
        f"cached {', '.join(cached) or '–'}",
        f"freeable {', '.join(order) or '–'}",
        f"evicted {_set(state['freed'])}",
        f"free slots {state['free_slots']}",
        f"freeable slots {state['freeable_slots']}",
    ]


def _set(members: frozenset[tuple[str]]) -> str:
    return ", ".join(sorted(h for (h,) in members)) or "–"


def _answer(step: Step) -> str:
    if step.result is None:
        return ""
    if isinstance(step.result, frozenset):
        return f" → [{', '.join(sorted(h for (h,) in step.result))}]"
    return f" → {step.result}"


def _step(number: int, step: Step, world: World) -> Iterator[str]:
    yield f"{number:3}  {call_text(step.call, world)}{_answer(step)}"
    yield INDENT + ledger_text(world, step.after)


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
