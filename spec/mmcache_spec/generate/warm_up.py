"""A trace from within a pass, made one from the empty cache."""

from __future__ import annotations

from ..checks.bounded import Trace
from ..evaluate.interpreter import ActionCall, Interpreter, State, World
from ..oracle import by_age
from .managers import specified

__all__ = ["warm_up"]


def warm_up(trace: Trace) -> Trace | None:
    """The trace from the empty cache: allocate everything, release it in order of age, report.

    None where the calls of the API cannot build the state in which the trace starts.
    """
    if trace.system != "ledger":
        return None
    state, world = trace.start, trace.world
    hash_of = world.functions["hash_of"]
    aged = by_age(state)
    warm = {f"warm/{k}": h for k, h in enumerate(aged)}
    held = [i for (i,) in sorted(state["held"])]
    calls = [ActionCall("allocate", {"input": i}) for i in warm]
    seen: set[str] = set()
    for i in held:
        action = "check_and_update_cache" if hash_of[i] in seen else "allocate"
        seen.add(hash_of[i])
        calls.append(ActionCall(action, {"input": i}))
    calls += [ActionCall("free_encoder_input", {"input": i}) for i in warm]
    if warm or held:
        calls.append(ActionCall("get_freed_mm_hashes"))
    extended = _with_request(world, "warm", warm) if warm else world
    interpreter = Interpreter(specified("ledger"), extended)
    prefix = list(interpreter.run(calls))
    reached = prefix[-1].after if prefix else interpreter.initial()
    if any(s.refused_by for s in prefix) or not _same_ledger(reached, state):
        return None
    rest = interpreter.run([s.call for s in trace.steps], reached)
    steps = (*prefix, *rest)
    return Trace(trace.system, "init", extended, interpreter.initial(), steps)


def _with_request(world: World, name: str, items: dict[str, str]) -> World:
    functions = {key: dict(table) for key, table in world.functions.items()}
    for k, (i, h) in enumerate(items.items()):
        functions["owner"][i], functions["position"][i] = name, k
        functions["hash_of"][i] = h
    functions["inputs_of"][name] = len(items)
    universe = dict(world.universe)
    universe["Request"] = (name, *universe["Request"])
    universe["Input"] = (*items, *universe["Input"])
    return World(universe, world.constants, functions)


def _same_ledger(a: State, b: State) -> bool:
    names = ("cached", "references", "held", "freeable", "freed", "free_slots", "freeable_slots")

    def order(s: State) -> list[tuple[str]]:
        return sorted(s["freeable"], key=lambda h: s["since"][h[0]])

    return all(a[n] == b[n] for n in names) and order(a) == order(b)
