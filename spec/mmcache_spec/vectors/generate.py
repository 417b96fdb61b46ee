"""The conformance vectors: shortest counterexamples and witnesses, with the specified answers.

What a vector expects is what `specified` answers to its calls, by the interpreter; what it kills
are the variants that answer otherwise. No implementation is asked for anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass

from ..checks.bounded import Trace, shortest, witnesses
from ..interpreter import Call as SpecCall
from ..interpreter import Interpreter, State, World
from ..kernel.system import TransitionSystem
from ..kernel.terms import alpha_form
from ..model.goals import ENCODER_DECODER_GOALS, LEDGER_GOALS
from ..model.variants import RELEASES, SPECIFIED, VARIANTS, Variant
from ..model.world import scope, scopes_up_to
from .format import (
    GetFreedMmHashes,
    Manager,
    Parameters,
    Provenance,
    Step,
    Vector,
    content_id,
)
from .replay import Replay, parameters_of, vector_call

__all__ = ["answers_otherwise", "generate", "predicted_failures", "warm_up", "wrong_ledgers"]

SEARCH = scopes_up_to(4, 3, 2)
GOAL_SEARCH = scope(3, 2, 2)
BOUND = 8


_CLOSING = (GetFreedMmHashes(), GetFreedMmHashes())
"""Every vector ends with two reports: what is owed to the worker, and that it is owed no longer.

So an implementation that shows none of its state still answers for what happened before.
"""


@dataclass(frozen=True)
class _Draft:
    """A trace on its way to be a vector."""

    slug: str
    description: str
    goal: str
    variant: str
    clauses: tuple[str, ...]
    trace: Trace


def generate(executor: Executor) -> list[Vector]:
    """All vectors, sorted by id. Searches run in parallel; the result does not depend on how."""
    drafts: list[_Draft] = []
    jobs = [executor.submit(_counterexamples, v.name) for v in wrong_ledgers()]
    jobs += [executor.submit(_witnesses, name) for name in MANAGERS]
    for job in jobs:
        drafts += job.result()
    vectors: dict[str, Vector] = {}
    contents: set[str] = set()
    for draft in drafts:
        vector = _vector(draft)
        content = vector.id.rsplit("-", 1)[1]
        if content not in contents:
            contents.add(content)
            vectors[vector.id] = vector
    return [vectors[key] for key in sorted(vectors)]


MANAGERS: dict[str, Manager] = {"ledger": "encoder_cache", "encoder_decoder": "encoder_decoder"}
"""The systems that a manager implements."""


def wrong_ledgers() -> list[Variant]:
    """The variants that vectors for managers can tell from `specified`."""
    return [v for v in VARIANTS.values() if v.expected is not None and v.system.name in MANAGERS]


def _specified(name: str) -> TransitionSystem:
    (system,) = (s for s in SPECIFIED.systems if s.name == name)
    return system


def _counterexamples(name: str) -> list[_Draft]:
    variant = VARIANTS[name]
    drafts = []
    found = shortest(variant.system, SEARCH, "init", BOUND)
    if found is not None:
        where = "from the empty cache"
        drafts.append(_draft(variant, "", where, found.clauses, found))
    found = shortest(variant.system, SEARCH, "pass", BOUND)
    if found is not None and (warmed := warm_up(found)) is not None:
        where = "from a warm cache, in one pass"
        drafts.append(_draft(variant, "-warm", where, found.clauses, warmed))
    return drafts


def _draft(
    variant: Variant, suffix: str, where: str, clauses: tuple[str, ...], trace: Trace
) -> _Draft:
    return _Draft(
        slug=f"{variant.name.replace('_', '-')}{suffix}",
        description=f"An engine fails here if {variant.says}.",
        goal=f"shortest counterexample of {variant.name} {where}",
        variant=variant.name,
        clauses=clauses,
        trace=trace,
    )


def _witnesses(system_name: str) -> list[_Draft]:
    system = _specified(system_name)
    goals = LEDGER_GOALS if system_name == "ledger" else ENCODER_DECODER_GOALS
    prefix = "" if system_name == "ledger" else "encoder-decoder-"
    traces = witnesses(system, GOAL_SEARCH, goals, BOUND)
    return [
        _Draft(
            slug=prefix + re.sub(r"[^a-z0-9]+", "-", goal.name),
            description=f"{goal.action}: {goal.name}.",
            goal=goal.name,
            variant=SPECIFIED.name,
            clauses=goal.about,
            trace=trace,
        )
        for goal in goals
        if (trace := traces[goal.name]) is not None
    ]


def _vector(draft: _Draft) -> Vector:
    system = _specified(draft.trace.system)
    parameters, places = parameters_of(draft.trace.world)
    calls = [vector_call(step.call, places) for step in draft.trace.steps]
    calls += _CLOSING
    replay = Replay(system, parameters)
    steps = []
    for call in calls:
        answer = replay.answer(call)
        if answer is None:
            raise ValueError(f"{draft.slug}: the specified guards refuse {call}")
        steps.append(Step(call, answer))
    manager = MANAGERS[system.name]
    return Vector(
        format="mmcache/vector",
        format_version=1,
        id=content_id(draft.slug, manager, parameters, tuple(steps)),
        description=draft.description,
        manager=manager,
        goal=draft.goal,
        variant=draft.variant,
        clauses=draft.clauses,
        kills=tuple(
            v.name
            for v in wrong_ledgers()
            if v.system.name == system.name and answers_otherwise(v.system, parameters, steps)
        ),
        requires=("allocate_again",) if "allocate_again" in replay.used else (),
        provenance=Provenance(spec_digest=digest(system), solver="z3", seed=0),
        parameters=parameters,
        steps=tuple(steps),
    )


def answers_otherwise(
    system: TransitionSystem, parameters: Parameters, steps: Iterable[Step]
) -> bool:
    """Whether the system, asked the same, answers, shows or refuses something else."""
    replay = Replay(system, parameters)
    return any(replay.answer(step.call) != step.expect for step in steps)


def predicted_failures(release: str, vectors: Iterable[Vector]) -> list[str]:
    """The ids of the vectors that the described release must fail, in order."""
    described = RELEASES[release]
    systems = {
        "encoder_cache": described.ledger,
        "encoder_decoder": described.encoder_decoder,
    }
    return [
        v.id
        for v in vectors
        if not v.requires and answers_otherwise(systems[v.manager], v.parameters, v.steps)
    ]


def digest(system: TransitionSystem) -> str:
    """A digest of the definitions: actions, claims, axioms and initial state."""
    parts: list[object] = [(a.name, alpha_form(a.formula)[0]) for a in system.axioms]
    parts += [(v.name, alpha_form(term)[0]) for v, term in system.init]
    for action in system.actions:
        parts.append(action.name)
        parts += [(n, alpha_form(g)[0]) for n, g in action.guard.items()]
        parts += [(v.name, alpha_form(term)[0]) for v, term in action.effect]
        parts.append(None if action.returns is None else alpha_form(action.returns)[0])
    parts += [(p.name, p.clause, alpha_form(p.formula)[0]) for p in system.properties]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


# --- warm starts -------------------------------------------------------------------------------


def warm_up(trace: Trace) -> Trace | None:
    """The trace from the empty cache: allocate everything, release it in order of age, report.

    None where the calls of the API cannot build the state in which the trace starts.
    """
    if trace.system != "ledger":
        return None
    state, world = trace.start, trace.world
    hash_of = world.functions["hash_of"]
    aged = sorted((h for (h,) in state["freeable"]), key=state["since"].__getitem__)
    warm = {f"warm/{k}": h for k, h in enumerate(aged)}
    held = [i for (i,) in sorted(state["held"])]
    calls = [SpecCall("allocate", {"input": i}) for i in warm]
    seen: set[str] = set()
    for i in held:
        action = "check_and_update_cache" if hash_of[i] in seen else "allocate"
        seen.add(hash_of[i])
        calls.append(SpecCall(action, {"input": i}))
    calls += [SpecCall("free_encoder_input", {"input": i}) for i in warm]
    if warm or held:
        calls.append(SpecCall("get_freed_mm_hashes"))
    extended = _with_request(world, "warm", warm) if warm else world
    interpreter = Interpreter(_specified("ledger"), extended)
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
