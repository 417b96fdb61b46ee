"""Where engine vectors come from: abstract paths of the engine's wrong variants, found by Z3.

A seed says who is admitted, preempted, looks up and misses, in which order and with which sizes.
It says nothing of blocks, which the model does not have: the conformance kit finds a workload whose
passes contain the path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ..checks.bounded import Trace, unrolled, witnesses
from ..checks.unrolling import Start
from ..evaluate.interpreter import State, World
from ..kernel.goals import Goal
from ..kernel.system import Action, TransitionSystem
from ..kernel.terms import SetSort, Symbol, Term, all_of, empty, exists, parameter, state
from ..model import engine_state as en
from ..model.variants import VARIANTS
from ..model.world import INPUT, REQUEST, hash_of, owner, scope, scopes_within
from .managers import digest

__all__ = ["Seed", "find_seeds", "seed_data"]


@dataclass(frozen=True)
class Seed:
    """One abstract path. `goal` is what it reaches, `breaks` the clauses that its end breaks."""

    name: str
    variant: str
    breaks: str
    goal: str
    trace: Trace


DIRECT: tuple[tuple[str, str, Start], ...] = (
    ("stripped-payload", "payload_stripped_under_prefix_hit", "init"),
    ("waiting-keeps-references", "waiting_keeps_references", "init"),
    ("skipped-keeps-references", "skipped_keeps_references", "init"),
    ("reallocated-then-dropped", "unfiltered_encode_gather_drop", "pass"),
    ("reallocated-not-encoded", "unfiltered_encode_if_missing_then_drop", "pass"),
    ("retain-everything", "retain_everything", "pass"),
    ("reset-only-scheduler", "reset_only_scheduler", "init"),
)
"""The shortest counterexample of the variant, from the empty cache or from a warm one."""

STRAIGHT_ON = frozenset({"look_up", "admit", "commit", "schedule", "dispatch", "finish"})
"""The actions of a pass in which everybody gets blocks; enough for a warm start."""

BOUND = 14
SCOPES = scopes_within(3, 3, 1)


def find_seeds() -> Iterator[Seed]:
    """All seeds. Deterministic: each is the least of the shortest paths."""
    yield from _phantoms()
    for name, variant_name, start in DIRECT:
        variant = VARIANTS[variant_name]
        assert variant.expected is not None
        clause = variant.expected.target or variant.expected.breaks[0]
        system = variant.system if start == "init" else _without_shortage(variant.system)
        found = unrolled(system, SCOPES, start, BOUND, variant.aims_at)
        assert found is not None
        where = "from the empty cache" if start == "init" else "from a warm cache, in one pass"
        goal = f"shortest counterexample of {variant_name} {where}"
        yield Seed(name, variant_name, clause, goal, found)


def _without_shortage(system: TransitionSystem) -> TransitionSystem:
    """Part of the system, so that its paths are paths of the whole."""
    return replace(
        system,
        actions=tuple(a for a in system.actions if a.name in STRAIGHT_ON),
        action_properties=tuple(p for p in system.action_properties if p.action in STRAIGHT_ON),
    )


# --- the forms of the phantom entry ------------------------------------------------------------

victims = state("victims", SetSort.of(REQUEST))
"""History: who has been preempted."""
victims_now = state("victims_now", SetSort.of(REQUEST))
"""History: who has been preempted in this pass."""


def _with_history(system: TransitionSystem) -> TransitionSystem:
    """The same system, which remembers whom it has preempted. Nothing else changes."""
    request = parameter("request", REQUEST)

    def remembering(action: Action) -> Action:
        lines: tuple[tuple[Symbol, Term], ...]
        if action.name == "preempt":
            lines = (
                victims.becomes(victims.insert(request)),
                victims_now.becomes(victims_now.insert(request)),
            )
        elif action.name == "dispatch":
            lines = (victims_now.becomes(empty(REQUEST)),)
        else:
            return action
        return replace(action, effect=(*action.effect, *lines))

    return replace(
        system,
        variables=(*system.variables, victims, victims_now),
        init=(
            *system.init,
            victims.becomes(empty(REQUEST)),
            victims_now.becomes(empty(REQUEST)),
        ),
        actions=tuple(remembering(a) for a in system.actions),
    )


def _misses(by_a_victim: bool, in_this_pass: bool) -> Term:
    """At `dispatch`: an input is gathered whose hash the worker will not hold."""

    def missed(j: Term) -> Term:
        h = hash_of(j)
        absent = ~en.worker.has(h) & ~exists(REQUEST, lambda q: en.encodes.has(h, q))
        victim = victims.has(owner(j))
        when = victims_now.is_empty()
        return all_of(
            en.promised.has(j),
            absent,
            ~exists(REQUEST, lambda q: en.loads.has(h, q)),
            victim if by_a_victim else ~victim,
            ~when if in_this_pass else when,
        )

    return exists(INPUT, missed)


PHANTOM_FORMS = (
    ("phantom-entry-later-pass", "the preempted request hits its own entry in a later pass", 1, 0),
    ("phantom-entry-bystander", "another request hits the entry in a later pass", 0, 0),
    ("phantom-entry-same-pass", "another request has hit the entry in the same pass", 0, 1),
)


def _phantoms() -> Iterator[Seed]:
    variant = VARIANTS["preemption_keeps_unencoded_entry"]
    system = _with_history(variant.system)
    goals = {
        name: Goal(says, "dispatch", _misses(bool(victim), bool(now)), about=("S1",))
        for name, says, victim, now in PHANTOM_FORMS
    }
    found = witnesses(system, scope(1, 2, 1), tuple(goals.values()), BOUND)
    for name, goal in goals.items():
        trace = found[goal.name]
        assert trace is not None
        yield Seed(name, variant.name, "S1", goal.name, trace)


# --- as data -----------------------------------------------------------------------------------


@cache
def _digest(variant: str) -> str:
    return digest(VARIANTS[variant].system)


def seed_data(seed: Seed) -> dict[str, Any]:
    """The seed as JSON has it; actions as (action, request, input id or -1)."""
    world = seed.trace.world
    return {
        "name": seed.name,
        "variant": seed.variant,
        "breaks": seed.breaks,
        "goal": seed.goal,
        "spec_digest": _digest(seed.variant),
        "capacity": world.constants["capacity"],
        "sizes": dict(world.functions["size"]),
        "requests": _requests(world),
        "warm": _aged(seed.trace.start),
        "actions": [_action(step.call.action, step.call.arguments) for step in seed.trace.steps],
    }


def _requests(world: World) -> dict[str, list[str]]:
    owners, hashes = world.functions["owner"], world.functions["hash_of"]
    return {
        r: [hashes[i] for i in sorted(world.universe["Input"]) if owners[i] == r]
        for r in world.universe["Request"]
    }


def _aged(start: State) -> list[str]:
    """What is cached and unreferenced when the path starts, oldest first."""
    return sorted((h for (h,) in start["freeable"]), key=start["since"].__getitem__)


def _action(name: str, arguments: Any) -> tuple[str, str, int]:
    if "input" in arguments:
        request, _, k = arguments["input"].partition("/")
        return name, request, int(k)
    return name, arguments.get("request", ""), -1


FILE = Path(__file__).with_name("engine_seeds.json")


def faults(kept: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What is wrong with seeds that were kept, one line each, in seconds and without a solver.

    All must be there, and be made from the present specification. That the search finds the same
    paths again is what only the search says (two minutes of computing).
    """
    names = [*(name for name, *_ in PHANTOM_FORMS), *(name for name, *_ in DIRECT)]
    if [seed["name"] for seed in kept] != names:
        yield f"there should be seeds named {', '.join(names)}"
    for seed in kept:
        if seed["spec_digest"] != _digest(seed["variant"]):
            yield f"{seed['name']}: made from another specification"


def main(arguments: Sequence[str]) -> int:
    """Print all seeds as JSON, write them, or check those that were kept. The exit code."""
    if "--check" in arguments:
        wrong = list(faults(json.loads(FILE.read_text())))
        print("\n".join(wrong) or "the seeds of the engine vectors are of this specification")
        return 1 if wrong else 0
    written = json.dumps([seed_data(seed) for seed in find_seeds()], indent=1, sort_keys=True)
    if "--write" in arguments:
        FILE.write_text(written + "\n")
    else:
        print(written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
