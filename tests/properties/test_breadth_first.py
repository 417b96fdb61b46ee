"""The search is right: compared with plain breadth-first search by the interpreter, world by world.

The systems are random and mean nothing. The plain search shares nothing with the one under test:
no forms, no renamings, no ranks, no cone of what matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any

import pytest

from mmcache_spec.checks import bounded
from mmcache_spec.checks.bounded import FEW, SMALL, Sought, elements, look_for
from mmcache_spec.checks.searching import Found, TooMuch, quickest, relevance, search
from mmcache_spec.checks.searching.kinds import Kind
from mmcache_spec.checks.searching.patterns import Pattern, patterns, renamings_of
from mmcache_spec.evaluate.compiled import Emitter
from mmcache_spec.evaluate.interpreter import Interpreter, World
from mmcache_spec.evaluate.stepping import Stepper, Symbols
from mmcache_spec.evaluate.stepping.forms import WIDTH
from mmcache_spec.evaluate.stepping.writing import StepEmitter
from mmcache_spec.kernel.system import (
    Action,
    ActionProperty,
    Invariant,
    Property,
    Scope,
    TransitionSystem,
)
from mmcache_spec.kernel.terms import (
    BOOL,
    INT,
    TRUE,
    MapSort,
    SetSort,
    constant,
    empty,
    exists,
    forall,
    function,
    ite,
    largest,
    mapof,
    number,
    parameter,
    result,
    state,
)
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.model.world import scope, scopes_up_to
from tests.support.random_systems import HASH, REQUEST, home, random_system, small_scope

BOUND = 3
SCOPES = [small_scope(1, 1), small_scope(2, 1), small_scope(1, 2), small_scope(2, 2)]
SEEDS = range(40)
EACH = [seed if seed < 5 else pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS]


def plain_length(
    system: TransitionSystem, world: World, wanted: tuple[Property, ...], bound: int = BOUND
) -> int | None:
    """The number of calls to the first violation in one world, by trying all calls."""
    interpreter = Interpreter(system, world)
    integers = range(-1, world.constants["capacity"] + 3)
    names = {p.name for p in wanted}
    calls = [c for a in system.actions for c in interpreter.calls(a, integers)]
    level = [interpreter.initial()]
    seen = {_frozen(level[0])}
    for length in range(1, bound + 1):
        following = []
        for at in level:
            for call in calls:
                step = interpreter.call(at, call)
                if step.refused_by:
                    continue
                if any(p.name in names for p in interpreter.breaks(step)):
                    return length
                if _frozen(step.after) not in seen:
                    seen.add(_frozen(step.after))
                    following.append(dict(step.after))
        level = following
    return None


def _frozen(state: Any) -> tuple[Any, ...]:
    values = (state[name] for name in sorted(state))
    return tuple(tuple(sorted(v.items())) if isinstance(v, dict) else v for v in values)


def worlds(system: TransitionSystem, scope: Scope, most: int) -> Iterator[World]:
    """Every world of the scope with numbers from 1 to `most`."""
    slots = [(f, x) for f in system.functions for x in scope.universe[f.domain.name]]
    choices = [
        range(1, most + 1) if f.range == INT else scope.universe[f.range.name] for f, _ in slots
    ]
    for capacity, *values in product(range(1, most + 1), *choices):
        assert isinstance(capacity, int)
        functions: dict[str, dict[str, Any]] = {f.name: {} for f in system.functions}
        for (f, x), value in zip(slots, values, strict=True):
            functions[f.name][x] = value
        yield World(scope.universe, {"capacity": capacity}, functions)


def disagreement(system: TransitionSystem, found: Found | None) -> str | None:
    """What is wrong with an answer of the search; None where the plain search agrees."""
    wanted = system.properties
    if found is not None:
        there = plain_length(system, found.world, wanted)
        if there != found.length:
            return f"in the world that was found, the shortest path has {there} calls"
    shortest = BOUND if found is None else found.length - 1
    for within in SCOPES:
        for world in worlds(system, within, 2):
            length = plain_length(system, world, wanted, shortest)
            if length is not None:
                return f"there is a path of {length} calls in {world}"
    return None


def searched(seed: int) -> Found | None:
    system = random_system(seed)
    return quickest(system, SCOPES, "init", BOUND, system.properties)


@pytest.mark.parametrize("answering", [False, True], ids=["plain", "answering"])
@pytest.mark.parametrize("seed", EACH)
def test_lengths_are_those_of_a_plain_search(seed: int, answering: bool) -> None:
    system = random_system(seed, answering=answering)
    try:
        found = quickest(system, SCOPES, "init", BOUND, system.properties)
    except TooMuch:
        pytest.skip("this search says that it cannot")
    assert disagreement(system, found) is None


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(SEEDS, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_the_random_systems_put_the_search_to_the_test(seeds: range) -> None:
    """Some have a violation after several calls, some none, and few are beyond the search."""
    lengths: list[int | None] = []
    for seed in seeds:
        try:
            found = searched(seed)
            lengths.append(None if found is None else found.length)
        except TooMuch:
            pass
    assert len(lengths) > len(seeds) / 2
    assert {None, 1, 2} <= set(lengths)


def _caught(seed: int) -> bool:
    """Whether the plain search contradicts what the other one says of this system.

    The seeds below are the first that tell.
    """
    return disagreement(random_system(seed), searched(seed)) is not None


def test_a_search_that_skips_an_action_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Stepper.successors

    def fewer(self: Stepper, state: Any) -> Any:
        return [s for s in whole(self, state) if self.calls[s[0]].action != "two"]

    assert not _caught(2)
    monkeypatch.setattr(Stepper, "successors", fewer)
    assert _caught(2)


def test_regions_that_are_too_wide_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if one world spoke for all: nothing that was asked is remembered."""
    assert not _caught(19)
    monkeypatch.setattr(Kind, "_closed", lambda self, asked, alike: {})
    assert _caught(19)


# --- renamings ---------------------------------------------------------------------------------

taken = state("taken", SetSort.of(HASH))


def homeless() -> TransitionSystem:
    """One hash is taken. It is claimed that what is given back is the home of some request."""
    h = parameter("h", HASH)
    take = Action("take", (h,), {"none": taken.is_empty()}, (taken.becomes(empty(HASH).insert(h)),))
    give = Action("give", (h,), {"taken": taken.has(h)}, (taken.becomes(empty(HASH)),))
    at_home = exists(REQUEST, lambda r: home(r) == h)
    return TransitionSystem(
        "homeless",
        (taken,),
        (constant("capacity", INT),),
        (home,),
        (),
        (taken.becomes(empty(HASH)),),
        (take, give),
        (),
        (ActionProperty("at home", "give", at_home, "L1"),),
        TRUE,
    )


def test_only_what_nothing_tells_apart_is_interchangeable() -> None:
    found = quickest(homeless(), [small_scope(2, 1)], "init", 5, homeless().properties)
    assert found is not None
    assert [c.action for c in found.calls] == ["take", "give"]


@pytest.mark.parametrize("system", VARIANTS["specified"].systems, ids=lambda s: s.name)
@pytest.mark.parametrize("size", [(2, 1, 2), (1, 2, 2), (2, 2, 1)])
def test_what_leaves_everything_is_always_a_renaming(
    system: TransitionSystem, size: tuple[int, int, int]
) -> None:
    """Without it no world is ever done with, and the search does not end."""
    at = scope(*size)
    for pattern in islice(patterns(system, at), 50):
        assert any(
            all(x == y for moved in renaming.values() for x, y in moved.items())
            for renaming in pattern.renamings
        )


def test_renamings_that_merge_too_much_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every renaming left every world as it is."""
    whole = patterns

    def merged(system: TransitionSystem, scope: Scope) -> Any:
        renamings = renamings_of(system, scope)
        return [Pattern(p.functions, tuple(renamings)) for p in whole(system, scope)]

    monkeypatch.setattr(search, "patterns", merged)
    assert quickest(homeless(), [small_scope(2, 1)], "init", 5, homeless().properties) is None


# --- ages --------------------------------------------------------------------------------------

clock, queued = state("clock", INT), state("queued", SetSort.of(HASH))
joined = state("joined", MapSort.of(HASH, INT))


def queue() -> TransitionSystem:
    """Elements join a queue; it is claimed that nobody leaves before one who joined later left."""
    h = parameter("h", HASH)
    join = Action(
        "join",
        (h,),
        guard={"out": ~queued.has(h)},
        effect=(
            queued.becomes(queued.insert(h)),
            joined.becomes(joined.put(h, clock)),
            clock.becomes(clock + 1),
        ),
    )
    leave = Action("leave", (h,), {"in": queued.has(h)}, (queued.becomes(queued.remove(h)),))
    youngest = forall(HASH, lambda g: queued.has(g).implies(joined[g] <= joined[h]))
    return TransitionSystem(
        "queue",
        (queued, joined, clock),
        (constant("capacity", INT),),
        (),
        (),
        (
            queued.becomes(empty(HASH)),
            joined.becomes(mapof(HASH, lambda g: number(0))),
            clock.becomes(number(0)),
        ),
        (join, leave),
        (),
        (ActionProperty("last in, first out", "leave", youngest, "L6"),),
        TRUE,
    )


def test_ages_are_compared_by_their_order() -> None:
    found = quickest(queue(), [small_scope(2, 1)], "init", 5, queue().properties)
    assert found is not None
    assert [c.action for c in found.calls] == ["join", "join", "leave"]


def test_a_queue_has_finitely_many_states_though_its_clock_runs_on() -> None:
    """With ranks for ages, all of a hundred steps are soon gone through."""
    system = queue()
    (claim,) = system.action_properties
    tame = replace(system, action_properties=(replace(claim, formula=TRUE),))
    found = quickest(tame, [small_scope(2, 1)], "init", 100, tame.properties, states=50)
    assert found is None


def test_ages_that_forget_their_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all had the same age."""
    monkeypatch.setattr(Symbols, "age", lambda self, scale, rank: 1 << (WIDTH * self.first_age))
    assert quickest(queue(), [small_scope(2, 1)], "init", 5, queue().properties) is None


# --- answers that an effect speaks of ----------------------------------------------------------

noted = state("noted", SetSort.of(HASH))


def asked() -> TransitionSystem:
    """Whoever asks for what is taken is noted down, and it is claimed that nobody is."""
    h = parameter("h", HASH)
    take = Action("take", (h,), {}, (taken.becomes(taken.insert(h)),))
    note = noted.becomes(ite(result(BOOL), noted.insert(h), noted))
    ask = Action("ask", (h,), {}, (note,), returns=taken.has(h))
    return TransitionSystem(
        "asked",
        (taken, noted),
        (constant("capacity", INT),),
        (),
        (),
        (taken.becomes(empty(HASH)), noted.becomes(empty(HASH))),
        (take, ask),
        (Invariant("nobody is noted", noted.is_empty(), "L1"),),
        (),
        TRUE,
    )


def test_what_an_answer_rests_on_matters_where_an_effect_speaks_of_it() -> None:
    """No guard and no claim speaks of what is taken, and the answer does."""
    found = quickest(asked(), [small_scope(2, 1)], "init", 5, asked().properties)
    assert found is not None
    assert [c.action for c in found.calls] == ["take", "ask"]


def test_an_answer_that_nothing_rests_on_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it mattered to nobody what a call answers."""
    monkeypatch.setattr(relevance, "_answer", lambda action, term: [])
    with pytest.raises(NameError, match="taken"):
        quickest(asked(), [small_scope(2, 1)], "init", 5, asked().properties)


# --- the largest of some sizes -----------------------------------------------------------------

weight = function("size", HASH, INT)
heaviest = state("heaviest", INT)


def weighed() -> TransitionSystem:
    """The greatest size of what is taken is noted; it is claimed that nothing taken is greater."""
    h = parameter("h", HASH)
    take = Action("take", (h,), {}, (taken.becomes(taken.insert(h)),))
    weigh = Action("weigh", (), {}, (heaviest.becomes(largest(HASH, taken.has, weight)),))
    none_greater = forall(HASH, lambda x: taken.has(x).implies(weight(x) <= heaviest.next))
    return TransitionSystem(
        "weighed",
        (taken, heaviest),
        (constant("capacity", INT),),
        (weight,),
        (),
        (taken.becomes(empty(HASH)), heaviest.becomes(number(0))),
        (take, weigh),
        (),
        (ActionProperty("none is greater", "weigh", none_greater, "L1"),),
        TRUE,
    )


def test_the_largest_of_some_sizes_is_so_by_their_order() -> None:
    """Not by the places that the sizes have in a form."""
    assert quickest(weighed(), [small_scope(3, 1)], "init", 5, weighed().properties) is None


def test_a_largest_that_is_not_the_largest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the last of them were."""
    monkeypatch.setattr(StepEmitter, "largest", Emitter.largest)
    found = quickest(weighed(), [small_scope(3, 1)], "init", 5, weighed().properties)
    assert found is not None
    assert [c.action for c in found.calls] == ["take", "take", "weigh"]


# --- beyond the search -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_budgets_of_a_pass_are_beyond_the_search_and_z3_unrolls() -> None:
    """The model of progress computes with integers that are no sizes and no ages."""
    variant, scopes = VARIANTS["whole_item_exceeds_the_budget"], [scope(2, 1, 2)]
    assert variant.expected is not None
    wanted = variant.aims_at
    assert wanted is not None
    with pytest.raises(TooMuch, match="depends on more than order and size"):
        quickest(variant.system, scopes, "init", 3, wanted)
    sought = look_for(variant.system, scopes, "init", 3, wanted)
    assert (sought.searched, sought.unrolled) == ((), tuple(scopes))
    assert sought.found is not None
    assert sought.found.actions == variant.expected.from_init


def test_of_many_scopes_z3_unrolls_the_widest_and_says_so() -> None:
    variant, scopes = VARIANTS["waiting_stalls_the_queue"], scopes_up_to(1, 1, 1)
    assert len(scopes) > FEW
    sought = look_for(variant.system, scopes, "init", 2, variant.aims_at)
    assert sought == Sought(None, (), (scopes[-1],))


def test_a_ledger_is_searched_in_all_scopes() -> None:
    variant, scopes = VARIANTS["reset_keeps_references"], scopes_up_to(1, 1, 1)
    sought = look_for(variant.system, scopes, "init", 3)
    assert (sought.searched, sought.unrolled) == (tuple(scopes), ())
    assert sought.found is not None
    assert sought.found.length == 2


def test_passes_in_large_scopes_are_left_to_z3() -> None:
    variant, scopes = VARIANTS["reset_keeps_references"], scopes_up_to(3, 2, 2)
    sought = look_for(variant.system, scopes, "pass", 3)
    assert sought.unrolled == (scopes[-1],)
    assert list(sought.searched) == [s for s in scopes if elements(s) <= SMALL]


@pytest.mark.parametrize("name", ["lookahead_not_scheduled", "reset_in_flight"])
def test_positions_of_tokens_are_searched(name: str) -> None:
    """They are numbers with limits of their own, and so few that each is tried."""
    variant, scopes = VARIANTS[name], scopes_up_to(1, 1, 1)
    assert variant.expected is not None
    sought = look_for(variant.system, scopes, "init", 8, variant.aims_at)
    assert (sought.searched, sought.unrolled) == (tuple(scopes), ())
    assert sought.found is not None
    assert sought.found.actions == variant.expected.from_init


def test_what_was_found_is_kept_where_larger_scopes_are_beyond_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the scopes that were not gone through are not spoken of."""
    variant, scopes = VARIANTS["reset_in_flight"], scopes_up_to(2, 2, 2)
    monkeypatch.setattr(bounded, "SMALL", 3)
    monkeypatch.setattr(bounded, "FEWER_STATES", 1_000)
    sought = look_for(variant.system, scopes, "init", 8, variant.aims_at)
    assert sought.found is not None
    assert sought.found.length == 7
    assert sought.unrolled == ()
    assert 0 < len(sought.searched) < len(scopes)
    most = max(map(elements, sought.searched))
    assert list(sought.searched) == [s for s in scopes if elements(s) <= most]


def test_numbers_that_nothing_bounds_are_not_below_zero_in_the_least_world() -> None:
    """The rank of a request may be any number, and the search ends."""
    variant = VARIANTS["reset_in_flight"]
    found = quickest(variant.system, scopes_up_to(1, 1, 1), "init", 8, variant.aims_at or ())
    assert found is not None
    assert found.world.functions["rank"] == {"r1": 0}
    assert found.world.constants["lookahead"] == 0
