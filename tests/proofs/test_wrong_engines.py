"""Engines that are wrong in ways that a reader would call wrong: each is refuted by a clause.

Not by a strengthening invariant, and not by an expected value: by calls from the empty cache of
which the last breaks one of the clauses named here. What is wrong is an effect, an answer, a
variable and its bookkeeping alike, or the worker. No design can edit the record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mmcache_spec.checks.findings import along
from mmcache_spec.checks.judging import Arena, judge
from mmcache_spec.checks.small_worlds import Ranges, small_worlds
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter
from mmcache_spec.generate.arenas import arena, came_back, compact
from mmcache_spec.kernel.system import Action, Monitor, TransitionSystem
from mmcache_spec.kernel.terms import (
    FALSE,
    TRUE,
    SetSort,
    Symbol,
    Term,
    all_of,
    empty,
    exists,
    number,
    parameter,
    result,
    setof,
    total,
)
from mmcache_spec.kernel.wrong_designs import wrong_designs
from mmcache_spec.model import ledger as lg
from mmcache_spec.model.engine import engine
from mmcache_spec.model.engine_state import encoded, encodes, loaded, loads, pending, worker
from mmcache_spec.model.world import HASH, INPUT, REQUEST, hash_of, owner, position, size

Line = tuple[Symbol, Term]
told = result(SetSort.of(HASH))

i, r = parameter("input", INPUT), parameter("request", REQUEST)
h = hash_of(i)
RIGHT = engine()


def own(action: str) -> tuple[Line, ...]:
    """What the design itself does: the effect without the record."""
    return tuple(line for line in RIGHT.action(action).effect if line[0].role != "ghost")


def but(action: str, *lines: Line) -> tuple[Line, ...]:
    """The effect of the action, with these lines in the place of its own."""
    written = {v.name for v, _ in lines}
    return (*(line for line in own(action) if line[0].name not in written), *lines)


def less(action: str, *variables: Symbol) -> tuple[Line, ...]:
    gone = {v.name for v in variables}
    assert gone <= {v.name for v, _ in own(action)}
    return tuple(line for line in own(action) if line[0].name not in gone)


def wrong(**effects: tuple[Line, ...]) -> TransitionSystem:
    """The engine with other effects of some actions."""
    return altered(**{name: _with_effect(effect) for name, effect in effects.items()})


def _with_effect(effect: tuple[Line, ...]) -> Callable[[Action], Action]:
    return lambda action: replace(action, effect=effect)


def answering(
    action: str, answer: Term, effect: tuple[Line, ...] | None = None
) -> TransitionSystem:
    lines = own(action) if effect is None else effect

    def instead(old: Action) -> Action:
        return replace(old, returns=answer, effect=lines)

    return altered(**{action: instead})


def altered(**changes: Callable[[Action], Action]) -> TransitionSystem:
    """The engine with other actions in the place of some."""
    assert changes.keys() <= {a.name for a in RIGHT.actions}
    actions = tuple(changes[a.name](a) if a.name in changes else a for a in RIGHT.actions)
    return replace(RIGHT, actions=actions)


def with_worker(**updates: Term) -> TransitionSystem:
    """An engine whose worker does something else; what it is told is right."""

    def instead(monitor: Monitor) -> Monitor:
        if monitor.variable.name != worker.name:
            return monitor
        return replace(monitor, updates={**monitor.updates, **updates})

    return replace(RIGHT, monitors=tuple(map(instead, RIGHT.monitors)))


def after(action: str, variable: Symbol) -> Term:
    return {v.name: t for v, t in own(action)}.get(variable.name, variable)


def everybody(k: Term, who: Callable[[Term], Term]) -> Term:
    return setof(HASH, REQUEST, lambda g, q: (g == k) & who(q))


OWN_ORDERS = setof(HASH, REQUEST, lambda k, q: encodes.has(k, q) & (q == r))
UNHELD = (lg.references, lg.held)
RELEASE = (lg.references, lg.held, lg.freeable, lg.freeable_slots)
LOST = setof(HASH, lambda k: encodes.has(k, r) | loads.has(k, r))


def _step(dropped: Term) -> Term:
    """A worker that drops this, and then encodes and loads what it is told."""
    return worker.minus(dropped).union(encoded).union(loaded)


def _evicting(action: str) -> tuple[Line, ...]:
    """As specified, and whatever is freeable goes as well."""
    victims = after(action, lg.freeable)
    return but(
        action,
        lg.cached.becomes(after(action, lg.cached).minus(victims)),
        lg.freeable.becomes(empty(HASH)),
        lg.freed.becomes(after(action, lg.freed).union(victims)),
        lg.free_slots.becomes(after(action, lg.free_slots) + total(victims, size)),
    )


def _handing_over(to: Callable[[Term, Term], Term]) -> tuple[Line, ...]:
    """A preemption after which the orders are in other names."""

    def carried(relation: Symbol) -> Term:
        return setof(
            HASH,
            REQUEST,
            lambda k, q: ~(q == r) & (relation.has(k, q) | (relation.has(k, r) & to(k, q))),
        )

    return but("preempt", encodes.becomes(carried(encodes)), loads.becomes(carried(loads)))


def _releasing_neighbours(action: str) -> tuple[Line, ...]:
    """The references of everybody else go with those of the request."""
    return but(
        action,
        lg.references.becomes(empty(HASH, REQUEST)),
        lg.held.becomes(empty(INPUT)),
        lg.freeable.becomes(lg.cached),
    )


def _only_first_positions(kept: Symbol) -> Term:
    """An abort that forgets all inputs of the request but the first."""
    if kept.name == lg.held.name:
        return setof(
            INPUT, lambda j: lg.held.has(j) & ~((owner(j) == r) & (position(j) == number(0)))
        )
    first = setof(
        HASH,
        lambda k: exists(
            INPUT, lambda j: all_of(owner(j) == r, position(j) == number(0), hash_of(j) == k)
        ),
    )
    return setof(HASH, REQUEST, lambda k, q: lg.references.has(k, q) & ~(first.has(k) & (q == r)))


NEIGHBOURS = encodes.union(everybody(h, lambda q: ~(q == owner(i))))

WRONG: dict[str, tuple[TransitionSystem, str]] = {
    # Orders and reports.
    "the report is sent twice": (wrong(dispatch=less("dispatch", lg.freed)), "L2 L1"),
    "the report is never sent": (answering("dispatch", empty(HASH)), "L2"),
    "the report waits until it is forgotten": (
        answering("dispatch", empty(HASH), less("dispatch", lg.freed)),
        "L2",
    ),
    "the report names what came back": (answering("dispatch", lg.freed), "L1"),
    "the report names everything": (answering("dispatch", lg.cached.union(lg.freed)), "L1 L2"),
    "the orders are sent again": (wrong(dispatch=less("dispatch", encodes)), "S10 S11"),
    "the loads are sent again": (wrong(dispatch=less("dispatch", loads)), "S10 S11"),
    "an item is encoded for the neighbours": (
        wrong(commit=but("commit", encodes.becomes(NEIGHBOURS))),
        "S10 S11",
    ),
    "an item is encoded for everybody": (
        wrong(commit=but("commit", encodes.becomes(encodes.union(everybody(h, lambda q: TRUE))))),
        "S10 S11",
    ),
    "nothing is ever encoded": (wrong(commit=less("commit", encodes)), "S2 S11"),
    "what a connector has is encoded": (
        wrong(
            commit_load=but(
                "commit_load", loads.becomes(loads), encodes.becomes(encodes.insert(h, owner(i)))
            )
        ),
        "S11",
    ),
    "what is encoded is loaded as well": (
        wrong(commit=but("commit", loads.becomes(loads.insert(h, owner(i))))),
        "S10 S11",
    ),
    "a request that is scheduled takes the orders of the others with it": (
        wrong(schedule=(encodes.becomes(OWN_ORDERS),)),
        "S2 S11",
    ),
    # Promises and charges.
    "a prefix hit is charged": (wrong(prefix_hit=(pending.becomes(pending.put(r, 1)),)), "S12"),
    "what is promised counts twice": (
        wrong(
            admit=but(
                "admit",
                pending.becomes(pending.put(owner(i), after("admit", pending)[owner(i)] + size(h))),
            )
        ),
        "S12",
    ),
    "what is refused is promised": (
        wrong(
            admit=but("admit", pending.becomes(pending.put(owner(i), pending[owner(i)] + size(h))))
        ),
        "S12",
    ),
    "what is charged stays promised": (wrong(commit=less("commit", pending)), "S12"),
    "a deferral keeps its promises": (wrong(defer=()), "S12"),
    "a refusal keeps its promises": (wrong(skip_waiting=less("skip_waiting", pending)), "S12"),
    "an item is charged twice": (
        wrong(commit=but("commit", lg.free_slots.becomes(lg.free_slots - size(h) - size(h)))),
        "L3",
    ),
    "a load costs nothing": (wrong(commit_load=less("commit_load", lg.free_slots)), "L3"),
    "admission does not count what is pending": (
        answering("admit", size(h) <= lg.freeable_slots),
        "L7",
    ),
    # Hits and evictions.
    "a hit takes no reference": (wrong(look_up=()), "L8 L12"),
    "a hit takes a reference for everybody": (
        wrong(
            look_up=but(
                "look_up",
                lg.references.becomes(
                    lg.references.union(
                        setof(HASH, REQUEST, lambda k, q: (k == h) & lg.cached.has(h))
                    )
                ),
            )
        ),
        "L13",
    ),
    "a miss is called a hit": (answering("look_up", ~lg.cached.has(h)), "L11 L14"),
    "admission evicts all that it can": (wrong(admit=_evicting("admit")), "L6"),
    "scheduling evicts": (wrong(schedule=_evicting("schedule")), "L16 L6 S2"),
    "what is evicted is not reported": (wrong(admit=less("admit", lg.freed)), "L2"),
    "what is evicted stays at the worker for good, and in the ledger": (
        wrong(admit=less("admit", lg.freed, lg.cached)),
        "L3 L5 L6",
    ),
    # References that end too late, too early, or elsewhere.
    "a preemption keeps its references": (wrong(preempt=less("preempt", *RELEASE)), "L12 L13"),
    "a preemption keeps its references, and says that it holds nothing": (
        wrong(preempt=less("preempt", lg.references, lg.freeable, lg.freeable_slots)),
        "L13",
    ),
    "a preemption takes the references of all": (
        wrong(preempt=_releasing_neighbours("preempt")),
        "L4 L8 L12",
    ),
    "a preemption undoes what others share": (
        wrong(
            preempt=but(
                "preempt",
                lg.cached.becomes(lg.cached.minus(LOST)),
                lg.freeable.becomes(after("preempt", lg.freeable).minus(LOST)),
            )
        ),
        "L3 L16",
    ),
    "a preemption undoes nothing": (
        wrong(
            preempt=but(
                "preempt",
                lg.cached.becomes(lg.cached),
                lg.freeable.becomes(after("finish", lg.freeable)),
                lg.free_slots.becomes(lg.free_slots),
            )
        ),
        "S2 L16",
    ),
    "a preemption keeps its orders": (wrong(preempt=less("preempt", encodes)), "S10 S11"),
    "a preemption hands its orders to nobody": (
        wrong(preempt=_handing_over(lambda k, q: FALSE)),
        "S2 S11",
    ),
    "a preemption hands its orders to every holder": (
        wrong(preempt=_handing_over(lambda k, q: lg.references.has(k, q))),
        "S10 S11",
    ),
    "a preemption hands its orders to strangers": (
        wrong(preempt=_handing_over(lambda k, q: ~lg.references.has(k, q))),
        "S2 S10 S11",
    ),
    "an abort forgets what is not first": (
        wrong(
            finish=but(
                "finish",
                lg.held.becomes(_only_first_positions(lg.held)),
                lg.references.becomes(_only_first_positions(lg.references)),
            )
        ),
        "L4 L5 L12 L13",
    ),
    "an abort forgets its references": (wrong(finish=less("finish", *RELEASE)), "L12 L13 S5"),
    "an abort takes the references of all": (
        wrong(finish=_releasing_neighbours("finish")),
        "L4 L8 L12",
    ),
    "a deferral gives references back": (
        wrong(defer=(*own("defer"), *less("finish"))),
        "L8 L12",
    ),
    "what is accepted is released": (wrong(accept=own("finish")), "L8 L12"),
    "what is rejected is released": (wrong(reject=own("finish")), "L8 L12"),
    "one input is passed, and all are released": (
        wrong(
            consume=but(
                "consume",
                lg.held.becomes(setof(INPUT, lambda j: lg.held.has(j) & ~(owner(j) == owner(i)))),
            )
        ),
        "L12",
    ),
    "the reference ends with the first position": (
        wrong(
            consume=but(
                "consume",
                lg.references.becomes(lg.references.remove(h, owner(i))),
                lg.held.becomes(
                    setof(
                        INPUT,
                        lambda j: lg.held.has(j) & ~((owner(j) == owner(i)) & (hash_of(j) == h)),
                    )
                ),
            )
        ),
        "L5 L8 L12",
    ),
    "nothing that is passed is released": (wrong(consume=()), "L12"),
    # Resets.
    "a reset clears only the worker": (wrong(reset=()), "L10 S3"),
    "a reset keeps references, in the books too": (wrong(reset=less("reset", *UNHELD)), "L10 L12"),
    "a reset forgets what it has room for": (wrong(reset=less("reset", lg.free_slots)), "L3 L10"),
    # A variable and its record alike.
    "an allocation is in nobody's name": (wrong(commit=less("commit", *UNHELD)), "L8 L12"),
    "an allocation is in the neighbours' name": (
        wrong(
            commit=but(
                "commit",
                lg.references.becomes(
                    lg.references.union(everybody(h, lambda q: ~(q == owner(i))))
                ),
                encodes.becomes(NEIGHBOURS),
            )
        ),
        "L8 L13 S10 S11",
    ),
    "an eviction gives no room and tells nobody": (
        wrong(admit=less("admit", lg.free_slots, lg.freed)),
        "L2 L3",
    ),
    "a release is in no book": (wrong(consume=less("consume", *RELEASE)), "L12 L13"),
}

WORKERS = {
    "it drops nothing": (with_worker(dispatch=_step(empty(HASH))), "S3 S4"),
    "it drops all that it holds": (with_worker(dispatch=_step(worker)), "S2 S3"),
    "it encodes nothing": (with_worker(dispatch=worker.minus(told)), "S2 S3"),
    "it keeps all at a reset": (with_worker(reset=worker), "S3"),
}

TWO_PASSES = (
    ActionCall("admit", {"input": "r1/0", "encoder_compute_budget": 1}),
    ActionCall("commit", {"input": "r1/0"}),
    ActionCall("schedule", {"request": "r1", "num_new_tokens": 1}),
    ActionCall("dispatch", {}),
    ActionCall("accept", {"request": "r1", "num_computed_tokens": 1}),
    ActionCall("consume", {"input": "r1/0"}),
    ActionCall("admit", {"input": "r1/1", "encoder_compute_budget": 1}),
    ActionCall("commit", {"input": "r1/1"}),
    ActionCall("schedule", {"request": "r1", "num_new_tokens": 1}),
    ActionCall("dispatch", {}),
    ActionCall("accept", {"request": "r1", "num_computed_tokens": 2}),
    ActionCall("reset", {}),
)
"""One input after the other, and then new weights. With room for one, the first is evicted."""


@pytest.fixture(scope="module")
def worlds() -> Arena:
    return arena(RIGHT)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_engine_is_condemned_by_a_clause_that_says_so(name: str, worlds: Arena) -> None:
    design, expected = WRONG[name]
    judgement = judge(worlds, design)
    assert judgement.fate == "condemned", judgement.reason
    assert set(judgement.clauses) & set(expected.split()), judgement.clauses
    assert judgement.found is not None
    interpreter = Interpreter(design, judgement.found.world)
    *_, last = interpreter.run(judgement.found.calls)
    assert set(judgement.clauses) <= {p.clause for p in interpreter.breaks(last)}


def test_the_right_engine_is_not_condemned(worlds: Arena) -> None:
    same = wrong(commit=own("commit"), finish=own("finish"))
    assert judge(worlds, same).fate == "equivalent, proved"


def _broken(design: TransitionSystem) -> set[str]:
    """The clauses that some step of the two passes breaks, with room for one and for two."""
    found = set[str]()
    for room in (1, 2):
        ranges = Ranges((1,), {"lookahead": (0,), "capacity": (room,)})
        every = small_worlds(RIGHT, compact(2, 1, 2), ranges)
        world = next(w for w in every if len(set(w.functions["hash_of"].values())) == 2)
        interpreter = Interpreter(design, world)
        for step in interpreter.run(TWO_PASSES):
            assert step.refused_by == ()
            found |= {p.clause for p in interpreter.breaks(step) if p.clause is not None}
    return found


@pytest.mark.parametrize("name", WORKERS)
def test_a_wrong_worker_is_noticed_by_a_clause(name: str) -> None:
    design, expected = WORKERS[name]
    assert _broken(design) & set(expected.split())


def test_the_right_worker_breaks_nothing() -> None:
    assert _broken(RIGHT) == set()


def test_an_engine_with_another_record_is_not_judged(worlds: Arena) -> None:
    """The worker is in the record: another one is another world, not another design."""
    design, _ = WORKERS["it encodes nothing"]
    with pytest.raises(ValueError, match="another record"):
        judge(worlds, design)


def test_a_run_condemns_where_no_search_comes() -> None:
    """Room is made for a third item, and what came back in the same pass loses its reference."""
    system = engine()
    world, calls = came_back(system)
    name = "admit: references, freeable is freed"
    wrong = next(d.system for d in wrong_designs(system, ["swapped"]) if d.name == name)
    found = along(wrong, world, calls)
    assert found is not None
    assert found.clauses == ("L5", "L8", "S10")
    assert found.calls == calls[:-1]
    assert along(system, world, calls) is None
    assert [step.refused_by for step in Interpreter(system, world).run(calls)] == [()] * len(calls)
