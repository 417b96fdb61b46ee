"""The conformance vectors: shortest counterexamples and witnesses, with the specified answers.

What a vector expects is what `specified` answers to its calls, by the interpreter; what it kills
are the variants that answer otherwise. No implementation is asked for anything.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from mmcache_vectors.manager import (
    Call,
    GetFreedMmHashes,
    Manager,
    Parameters,
    Provenance,
    Step,
    Vector,
    content_id,
)

from ..checks.bounded import NoVerdict, Trace, shortest
from ..checks.coverage import cover
from ..checks.product import distinguish
from ..evaluate.interpreter import Call as SpecCall
from ..evaluate.interpreter import Interpreter, State, World
from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import alpha_form
from ..model.equivalents import EQUIVALENT
from ..model.observables import agreement_of
from ..model.variants import RELEASES, SPECIFIED, VARIANTS, Variant
from ..model.world import scope, scopes_up_to
from ..oracle import Replay, by_age, parameters_of, vector_call
from .scripts import SCRIPTS
from .worth import answers_otherwise, goals_of, kills, least_cover, mutants_of, reached

__all__ = [
    "MANAGERS",
    "Suite",
    "answers_otherwise",
    "generate",
    "predicted_failures",
    "survivors",
    "warm_up",
    "wrong_ledgers",
]

SEARCH = scopes_up_to(4, 3, 2)
GOAL_SEARCH = {"ledger": scope(4, 2, 3), "encoder_decoder": scope(3, 2, 2)}
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


def generate(executor: Executor) -> Suite:
    """The standard suite. Searches run in parallel; the result does not depend on how.

    The counterexamples of the variants are kept, and the witnesses that a clause is put to the test
    by. Of the others, and of the traces that tell a mutant from `specified`, as many as it takes to
    reach every goal and to kill every mutant that is not listed as equivalent.
    """
    jobs = [executor.submit(_counterexamples, v.name) for v in wrong_ledgers()]
    counterexamples = _distinct(draft for job in jobs for draft in job.result())
    jobs = [executor.submit(_witnesses, name) for name in MANAGERS]
    found = _distinct(draft for job in jobs for draft in job.result())
    found = {key: v for key, v in found.items() if _content(v) not in _contents(counterexamples)}
    candidates = {**counterexamples, **found, **_scripted()}
    for name in MANAGERS:
        candidates |= _against_survivors(specified(name), candidates, executor)
    strengths = dict(_strengths(candidates, executor))
    named = (key for key, vector in candidates.items() if vector.clauses)
    standard = least_cover(strengths, kept=sorted(named))
    smoke = least_cover({k: set(candidates[k].kills) for k in standard}, most=SMOKE)
    return Suite(
        {key: candidates[key] for key in standard},
        smoke,
        {key: sorted(strengths[key]) for key in standard},
    )


SMOKE = 20
"""The most vectors of the smallest size of the suite."""


@dataclass(frozen=True)
class Suite:
    """Vectors by id; the ids of the small size; and what each vector reaches and kills."""

    vectors: dict[str, Vector]
    smoke: list[str]
    strengths: dict[str, list[str]]


def _distinct(drafts: Iterable[_Draft]) -> dict[str, Vector]:
    """The vectors of the drafts, by id; of those with the same content, the first."""
    vectors: dict[str, Vector] = {}
    seen: set[str] = set()
    for draft in drafts:
        vector = _vector(draft)
        if _content(vector) not in seen:
            seen.add(_content(vector))
            vectors[vector.id] = vector
    return vectors


def _content(vector: Vector) -> str:
    return vector.id.rsplit("-", 1)[1]


def _contents(vectors: dict[str, Vector]) -> set[str]:
    return set(map(_content, vectors.values()))


def _strengths(vectors: dict[str, Vector], executor: Executor) -> Iterator[tuple[str, set[str]]]:
    keys = sorted(vectors)
    found = executor.map(_strength, (vectors[k] for k in keys), chunksize=4)
    yield from zip(keys, found, strict=True)


def _strength(vector: Vector) -> set[str]:
    """The names of the goals, variants and mutants that the vector is good for."""
    system = specified(_system_name(vector.manager))
    goals = {f"goal {name}" for name in reached(system, vector)}
    killed = {f"mutant {name}" for name in kills(system, vector)}
    return {f"{system.name}: {name}" for name in goals | killed} | set(vector.kills)


def _system_name(manager: Manager) -> str:
    (name,) = (name for name, m in MANAGERS.items() if m == manager)
    return name


def _against_survivors(
    system: TransitionSystem, vectors: dict[str, Vector], executor: Executor
) -> dict[str, Vector]:
    """A vector for each mutant that none of these kills, unless it is listed as equivalent."""
    mine = [v for v in vectors.values() if v.manager == MANAGERS[system.name]]
    names = [m.name for m in mutants_of(system) if m.name not in EQUIVALENT[system.name]]
    dead = set().union(*executor.map(_kills, mine, chunksize=4))
    alive = [name for name in names if name not in dead]
    traces = executor.map(_tell_apart, [system.name] * len(alive), alive)
    drafts = [
        _Draft(
            slug=f"{PREFIX[system.name]}mutant-{_slug(name)}",
            description=f"Tells {name} from what is specified.",
            goal=f"a difference: {name}",
            variant=SPECIFIED.name,
            clauses=(),
            trace=replace(trace, system=system.name),
        )
        for name, trace in zip(alive, traces, strict=True)
        if trace is not None
    ]
    known = _contents(vectors)
    return {key: v for key, v in _distinct(drafts).items() if _content(v) not in known}


def _kills(vector: Vector) -> set[str]:
    return kills(specified(_system_name(vector.manager)), vector)


def _tell_apart(
    system_name: str,
    mutant_name: str,
    scopes: Sequence[Scope] = (),
    bound: int | None = None,
) -> Trace | None:
    system = specified(system_name)
    (mutant,) = (m for m in mutants_of(system) if m.name == mutant_name)
    agreement = agreement_of(system_name)
    within = scopes or DIFFERENCE_SEARCH
    return distinguish(system, mutant.system, agreement, within, bound or DIFFERENCE_BOUND)


DIFFERENCE_SEARCH = [scope(2, 2, 2), scope(3, 2, 2)]
DIFFERENCE_BOUND = 6


@dataclass(frozen=True)
class Survivors:
    """What became of the mutants, as `system: name`."""

    killed: tuple[str, ...]
    equivalent: tuple[str, ...]
    alive: tuple[str, ...]
    scope: str
    bound: int

    def lines(self) -> Iterator[str]:
        total = len(self.killed) + len(self.equivalent) + len(self.alive)
        yield f"{total} mutants of the specification"
        yield f"  killed by the vectors  {len(self.killed)}"
        yield f"  equivalent             {len(self.equivalent)}"
        yield f"    (no difference within {self.scope}, up to {self.bound} calls)"
        yield f"  alive                  {len(self.alive)}"
        for name in self.alive:
            yield f"    {name}"


def survivors(
    vectors: Iterable[Vector], within: Scope, bound: int, executor: Executor
) -> Survivors:
    """Kill every mutant that can be killed; look for a difference in each of the others."""
    suite = list(vectors)
    killed: list[str] = []
    equivalent: list[str] = []
    alive: list[str] = []
    for name in MANAGERS:
        mine = [v for v in suite if v.manager == MANAGERS[name]]
        dead = set().union(*executor.map(_kills, mine, chunksize=4))
        names = [m.name for m in mutants_of(specified(name))]
        rest = [m for m in names if m not in dead]
        count = len(rest)
        traces = executor.map(
            _tell_apart, [name] * count, rest, [[within]] * count, [bound] * count
        )
        for mutant, trace in zip(rest, traces, strict=True):
            (equivalent if trace is None else alive).append(f"{name}: {mutant}")
        killed += [f"{name}: {m}" for m in names if m in dead]
    return Survivors(tuple(killed), tuple(equivalent), tuple(alive), within.name, bound)


_SIGNS = {
    "<": "less",
    "≤": "at-most",
    ">": "more",
    "≥": "at-least",
    "+": "plus",
    "\u2212": "minus",
}


def _slug(text: str) -> str:
    words = {
        "<": "less",
        "≤": "at-most",
        ">": "more",
        "≥": "at-least",
        "+": "plus",
        "\u2212": "minus",
    }
    for sign, word in words.items():
        text = text.replace(sign, word)
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


MANAGERS: dict[str, Manager] = {"ledger": "encoder_cache", "encoder_decoder": "encoder_decoder"}
"""The systems that a manager implements."""


def wrong_ledgers() -> list[Variant]:
    """The variants that vectors for managers can tell from `specified`."""
    return [v for v in VARIANTS.values() if v.expected is not None and v.system.name in MANAGERS]


PREFIX = {"ledger": "", "encoder_decoder": "encoder-decoder-"}


def specified(name: str) -> TransitionSystem:
    """The right system of this name."""
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
    system = specified(system_name)
    goals = goals_of(system)
    covered = cover(system, GOAL_SEARCH[system_name], goals, BOUND)
    if covered.open:
        raise NoVerdict(f"neither reached nor proved unreachable: {', '.join(covered.open)}")
    traces = covered.reached
    return [
        _Draft(
            slug=PREFIX[system_name] + _slug(goal.name),
            description=f"{goal.action}: {goal.name}.",
            goal=goal.name,
            variant=SPECIFIED.name,
            clauses=goal.about,
            trace=trace,
        )
        for goal in goals
        if (trace := traces.get(goal.name)) is not None
    ]


def _vector(draft: _Draft) -> Vector:
    parameters, places = parameters_of(draft.trace.world)
    calls = [vector_call(step.call, places) for step in draft.trace.steps]
    return _answered(
        draft.slug,
        draft.description,
        draft.goal,
        draft.variant,
        draft.clauses,
        specified(draft.trace.system),
        parameters,
        [*calls, *_CLOSING],
    )


def _scripted() -> dict[str, Vector]:
    """The vectors whose calls are given, not found."""
    vectors = (
        _answered(
            PREFIX[_system_name(script.manager)] + _slug(script.goal),
            f"{script.goal[0].upper()}{script.goal[1:]}.",
            script.goal,
            SPECIFIED.name,
            script.clauses,
            specified(_system_name(script.manager)),
            script.parameters,
            [*script.calls, *_CLOSING],
        )
        for script in SCRIPTS
    )
    return {vector.id: vector for vector in vectors}


def _answered(
    slug: str,
    description: str,
    goal: str,
    variant: str,
    clauses: tuple[str, ...],
    system: TransitionSystem,
    parameters: Parameters,
    calls: Sequence[Call],
) -> Vector:
    """The vector of these calls: what `specified` answers, and which variants answer otherwise."""
    replay = Replay(system, parameters)
    steps = []
    for call in calls:
        answer = replay.answer(call)
        if answer is None:
            raise ValueError(f"{slug}: the specified guards refuse {call}")
        steps.append(Step(call, answer))
    manager = MANAGERS[system.name]
    return Vector(
        format="mmcache/vector",
        format_version=1,
        id=content_id(slug, manager, parameters, tuple(steps)),
        description=description,
        manager=manager,
        goal=goal,
        variant=variant,
        clauses=clauses,
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
    aged = by_age(state)
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
