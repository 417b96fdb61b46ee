"""S13: how many tokens a pass gives, against a search for the largest number in plain Python.

The search knows the caps as a reader would say them, tries every number of tokens, and knows
nothing of how the model comes to its answer, nor of how the clause is written.
"""

import random
from dataclasses import dataclass, replace

import pytest

from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, State, World
from mmcache_spec.model.chunk import Caps
from mmcache_spec.model.progress import ProgressDesign, progress

RIGHT = [
    Caps(),
    Caps(items="chunked"),
    Caps(alignment="none"),
    Caps(alignment="none", items="chunked"),
]
WRONG = [
    Caps(wishes="stand"),
    Caps(alignment="after_room", items="chunked"),
    Caps(alignment="none", wishes="stand"),
]


@dataclass(frozen=True)
class Case:
    """One request that is asked, where others may need some of the room."""

    world: World
    state: State
    call: ActionCall

    def says(self, name: str, of: str = "") -> int:
        value = self.world.functions[name][of] if of else self.world.constants[name]
        assert isinstance(value, int)
        return value

    def argument(self, name: str) -> int:
        value = self.call.arguments[name]
        assert isinstance(value, int)
        return value

    @property
    def start(self) -> int:
        if ("r1",) in self.state["running"]:
            computed = self.state["computed"]["r1"]
            assert isinstance(computed, int)
            return computed
        return self.argument("hit")


def largest(case: Case, caps: Caps) -> int:
    """The largest number of tokens that meets the caps: each number is tried."""
    start, prompt = case.start, case.says("prompt", "r1")
    every = range(1, prompt - start + 1)
    wished = [n for n in every if within_limits(case, start + n) and wished_for(case, caps, n)]
    if wished:
        return max(wished)
    whole = case.argument("budget") == case.says("token_budget")
    whole = whole and case.argument("compute") == case.says("encoder_budget")
    limits = [n for n in every if within_limits(case, start + n)]
    return max(limits, default=0) if whole else 0


def items(case: Case) -> list[tuple[int, int, str]]:
    """Of the request that is asked: first token, the token after the last, hash; in order."""
    functions = case.world.functions
    mine = (i for i, r in functions["owner"].items() if r == "r1")
    found = []
    for i in mine:
        first = case.says("offset", i)
        found.append((first, first + case.says("length", i), str(functions["hash_of"][i])))
    return sorted(i for i in found if i[1] > case.start)


def first_without_room(case: Case) -> float:
    """Where the first item begins that does not fit; beyond all tokens if there is none."""
    hash_of = case.world.functions["hash_of"]
    needed = {str(hash_of[i]) for (i,) in case.state["held"]}
    cached = {h for (h,) in case.state["cached"]}
    new: set[str] = set()
    for first, _, h in items(case):
        needed.add(h)
        new |= {h} - cached
        room = sum(case.says("size", k) for k in needed)
        work = sum(case.says("size", k) for k in new)
        if room > case.says("capacity") or work > case.argument("compute"):
            return first
    return float("inf")


def within_limits(case: Case, end: int) -> bool:
    return (
        end <= case.says("prompt", "r1")
        and end - case.start <= case.argument("budget")
        and end <= first_without_room(case)
    )


def wished_for(case: Case, caps: Caps, n: int) -> bool:
    end, prompt, lookahead = case.start + n, case.says("prompt", "r1"), case.says("lookahead")
    if end < prompt < end + lookahead:
        return False
    boundary = min(prompt, case.start + case.argument("budget"))
    if caps.alignment != "none":
        boundary = case.argument("stop")
        if end > boundary:
            return False
    if caps.items == "chunked":
        return True
    begun = [i for i in items(case) if i[0] >= case.start]
    would_be_cut = [f for f, after, _ in begun if after > boundary]
    return all(end + lookahead <= f for f in would_be_cut if f <= first_without_room(case))


def a_case(chance: random.Random, caps: Caps) -> Case:
    """A world, a state that the invariants allow, and a call that the guards allow."""
    prompt = chance.randint(1, 9)
    inputs: dict[str, tuple[int, int]] = {}
    at = chance.randint(0, 3)
    while at < prompt and len(inputs) < 3:
        length = chance.randint(1, min(4, prompt - at))
        inputs[f"r1/{len(inputs)}"] = at, length
        at += length + chance.choice((0, 0, 1, 3))
    inputs["r2/0"] = 0, 2
    hashes = ("A", "B", "C")
    sizes = {h: chance.randint(0, 2) for h in hashes}
    hash_of = {i: chance.choice(hashes) for i in inputs}
    other = chance.random() < 0.5
    held = {("r2/0",)} if other else set()
    start = chance.randint(0, prompt - 1)
    running = chance.random() < 0.5
    if running:
        held |= {(i,) for i, (o, n) in inputs.items() if i != "r2/0" and o < start < o + n}
    cached = {(hash_of[i],) for (i,) in held} | {(h,) for h in hashes if chance.random() < 0.3}
    capacity = max(sum(sizes[h] for (h,) in cached), chance.randint(1, 5), *sizes.values())
    token_budget, encoder_budget = chance.randint(1, 8), chance.randint(max(sizes.values()), 4)
    world = World(
        {"Hash": list(hashes), "Request": ["r1", "r2"], "Input": list(inputs)},
        {
            "capacity": capacity,
            "token_budget": token_budget,
            "encoder_budget": encoder_budget,
            "lookahead": chance.randint(0, 4),
            "watched": 1,
        },
        {
            "size": sizes,
            "hash_of": hash_of,
            "owner": {i: i[:2] for i in inputs},
            "offset": {i: o for i, (o, _) in inputs.items()},
            "length": {i: n for i, (_, n) in inputs.items()},
            "prompt": {"r1": prompt, "r2": 4},
            "arrival": {"r1": 0, "r2": 1},
        },
    )
    counted = {"r1": start if running else 0, "r2": 1 if other else 0}
    runs = {("r1",)} if running else set()
    runs |= {("r2",)} if other else set()
    state = {
        "arrived": {("r1",), ("r2",)},
        "running": runs,
        "finished": set(),
        "computed": dict(counted),
        "held": held,
        "cached": cached,
        "queued": {("r1",), ("r2",)},
        "counted": dict(counted),
        "admitted": set(runs),
        "needed": set(held),
        "stored": set(cached),
    }
    whole = chance.random() < 0.6
    budget = token_budget if whole else chance.randint(1, token_budget)
    compute = encoder_budget if whole else chance.randint(0, encoder_budget)
    given: dict[str, str | int] = {"request": "r1", "hit": start, "budget": budget}
    given["compute"] = compute
    if caps.alignment != "none":
        farthest = min(prompt, start + budget)
        given["stop"] = chance.randint(min(start + 1, farthest), farthest)
    return Case(world, state, ActionCall("schedule", given))


@pytest.mark.parametrize("cases", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("caps", RIGHT, ids=str)
def test_a_pass_gives_the_largest_number_of_tokens_that_meets_the_caps(
    caps: Caps, cases: int
) -> None:
    chance = random.Random(7)
    system = progress(ProgressDesign(caps))
    (clause,) = system.stating("S13")
    seen: set[tuple[bool, bool]] = set()
    for _ in range(cases):
        case = a_case(chance, caps)
        interpreter = Interpreter(system, case.world)
        assert all(interpreter.holds(i, case.state) for i in system.invariants if i.clause)
        step = interpreter.call(case.state, case.call)
        assert step.refused_by == ()
        most = largest(case, caps)
        assert step.result == most, case
        for other in (most - 1, most, most + 1, chance.randint(-1, 9)):
            told = replace(step, result=other)
            assert interpreter.value(clause.formula, told) == (other == most), (case, other)
        seen.add((most > 0, most < case.says("prompt", "r1") - case.start))
    assert seen == {(True, True), (True, False), (False, True)}


@pytest.mark.parametrize("cases", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("caps", WRONG, ids=str)
def test_a_scheduler_that_gives_fewer_breaks_the_clause(caps: Caps, cases: int) -> None:
    """Wishes that stand, and an alignment that comes too late; the search says what is right."""
    right = replace(caps, wishes="give_way")
    right = right if caps.alignment == "none" else replace(right, alignment="before_room")
    chance = random.Random(3)
    system = progress(ProgressDesign(caps))
    (clause,) = system.stating("S13")
    fewer = 0
    for _ in range(cases):
        case = a_case(chance, caps)
        interpreter = Interpreter(system, case.world)
        step = interpreter.call(case.state, case.call)
        assert step.refused_by == ()
        gives_the_most = step.result == largest(case, right)
        assert interpreter.value(clause.formula, step) == gives_the_most, case
        fewer += not gives_the_most
    assert fewer > 0
