"""Designs that are wrong in ways that no switch has: each is refuted by a clause.

Effects removed, applied to another request or another hash, taken from another call, and faults
that a design makes in its state and in its bookkeeping alike. Not one of them can edit the record.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcache_spec.checks.bounded import shortest
from mmcache_spec.checks.proof import prove
from mmcache_spec.kernel.system import Action, TransitionSystem
from mmcache_spec.kernel.terms import (
    Symbol,
    Term,
    all_of,
    empty,
    exists,
    forall,
    ite,
    mapof,
    number,
    parameter,
    replaced,
    setof,
    total,
)
from mmcache_spec.model import encoder_decoder as ed
from mmcache_spec.model import ledger as lg
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import ledger
from mmcache_spec.model.world import HASH, INPUT, REQUEST, hash_of, owner, scope, size

Line = tuple[Symbol, Term]

i, r = parameter("input", INPUT), parameter("request", REQUEST)
h = hash_of(i)
RIGHT, RIGHT_ED = ledger(), encoder_decoder()


def changed(system: TransitionSystem, **effects: tuple[Line, ...] | Action) -> TransitionSystem:
    """The system with other effects, or other actions in the place of some."""

    def instead(action: Action) -> Action:
        other = effects.get(action.name)
        if other is None:
            return action
        return other if isinstance(other, Action) else replace(action, effect=other)

    assert effects.keys() <= {a.name for a in system.actions}
    return replace(system, actions=tuple(map(instead, system.actions)))


def but(system: TransitionSystem, action: str, *lines: Line) -> tuple[Line, ...]:
    """The effect of the action, with these lines in the place of its own."""
    written = {v.name for v, _ in lines}
    kept = (line for line in system.action(action).effect if line[0].name not in written)
    return (*kept, *lines)


def less(system: TransitionSystem, action: str, *variables: Symbol) -> tuple[Line, ...]:
    gone = {v.name for v in variables}
    return tuple(line for line in system.action(action).effect if line[0].name not in gone)


def at_another(system: TransitionSystem, action: str, **instead: Term) -> tuple[Line, ...]:
    """The effect of the action, of another argument."""

    def other(symbol: Symbol) -> Term | None:
        return instead.get(symbol.name) if symbol.role == "parameter" else None

    return tuple((v, replaced(t, other)) for v, t in system.action(action).effect)


def _also_evicts(action: str) -> tuple[Line, ...]:
    """As specified, and everything that is freeable goes."""
    updates = RIGHT.action(action).updates
    cached = updates.get("cached", lg.cached)
    freeable = updates.get("freeable", lg.freeable)
    slots = updates.get("free_slots", lg.free_slots)
    return but(
        RIGHT,
        action,
        lg.cached.becomes(cached.minus(freeable)),
        lg.freeable.becomes(empty(HASH)),
        lg.freed.becomes(lg.freed.union(freeable)),
        lg.free_slots.becomes(slots + total(freeable, size)),
    )


def _first_occurrence_with_its_bookkeeping() -> tuple[Line, ...]:
    """vllm#54284, and `held` forgets the other positions likewise."""
    mine = lg.held.has(i) & lg.references.has(h, owner(i))
    others = exists(REQUEST, lambda q: lg.references.has(h, q) & ~(q == owner(i)))
    orphaned = mine & ~others
    forgotten = setof(
        INPUT, lambda j: lg.held.has(j) & ~((owner(j) == owner(i)) & (hash_of(j) == h))
    )
    return but(
        RIGHT,
        "free_encoder_input",
        lg.references.becomes(ite(mine, lg.references.remove(h, owner(i)), lg.references)),
        lg.held.becomes(forgotten),
        lg.freeable.becomes(ite(orphaned, lg.freeable.insert(h), lg.freeable)),
        lg.since.becomes(ite(orphaned, lg.since.put(h, lg.clock), lg.since)),
        lg.freeable_slots.becomes(lg.freeable_slots + ite(orphaned, size(h), 0)),
    )


def _everybody_loses() -> tuple[Line, ...]:
    """`free` of one request releases all of them."""
    orphans = lg.cached.minus(lg.freeable)
    return (
        lg.references.becomes(empty(HASH, REQUEST)),
        lg.held.becomes(empty(INPUT)),
        lg.freeable.becomes(lg.cached),
        lg.since.becomes(
            mapof(HASH, lambda k: ite(orphans.has(k), lg.clock, lg.since[k])),
        ),
        lg.clock.becomes(lg.clock + 1),
        lg.freeable_slots.becomes(lg.free_slots + total(lg.cached, size)),
    )


NOBODY = forall(REQUEST, lambda q: ~lg.references.has(h, q))
SOMEBODY = exists(REQUEST, lambda q: lg.references.has(h, q))

WRONG_LEDGERS: dict[str, TransitionSystem] = {
    "nothing is ever released": changed(RIGHT, free=(), free_encoder_input=()),
    "a position is never released": changed(RIGHT, free_encoder_input=()),
    "a request is never released": changed(RIGHT, free=()),
    "released in the bookkeeping alone": changed(RIGHT, free=(RIGHT.action("free").effect[1],)),
    "allocate takes no reference": changed(
        RIGHT,
        allocate=but(
            RIGHT,
            "allocate",
            lg.references.becomes(lg.references),
            lg.held.becomes(lg.held),
            lg.freeable.becomes(lg.freeable.insert(h)),
            lg.since.becomes(lg.since.put(h, lg.clock)),
            lg.clock.becomes(lg.clock + 1),
            lg.freeable_slots.becomes(lg.freeable_slots),
        ),
    ),
    "allocate notes no position": changed(RIGHT, allocate=less(RIGHT, "allocate", lg.held)),
    "allocate does nothing": changed(RIGHT, allocate=()),
    "allocate is free of charge": changed(
        RIGHT, allocate=less(RIGHT, "allocate", lg.free_slots, lg.freeable_slots)
    ),
    "a second allocation takes no reference": changed(RIGHT, allocate_again=()),
    "first of several positions, and held forgets the others": changed(
        RIGHT, free_encoder_input=_first_occurrence_with_its_bookkeeping()
    ),
    "a hit takes no reference": changed(
        RIGHT, check_and_update_cache=less(RIGHT, "check_and_update_cache", lg.references)
    ),
    "a hit takes neither reference nor position": changed(RIGHT, check_and_update_cache=()),
    "a hit does not revive": changed(
        RIGHT,
        check_and_update_cache=less(
            RIGHT, "check_and_update_cache", lg.freeable, lg.freeable_slots
        ),
    ),
    "only what nobody references is hit": changed(
        RIGHT,
        check_and_update_cache=replace(
            RIGHT.action("check_and_update_cache"),
            returns=lg.cached.has(h) & NOBODY,
        ),
    ),
    "only what somebody references is hit": changed(
        RIGHT,
        check_and_update_cache=replace(
            RIGHT.action("check_and_update_cache"),
            returns=lg.cached.has(h) & SOMEBODY,
        ),
    ),
    "allocate evicts as well": changed(RIGHT, allocate=_also_evicts("allocate")),
    "free evicts as well": changed(RIGHT, free=_also_evicts("free")),
    "a hit evicts as well": changed(
        RIGHT, check_and_update_cache=_also_evicts("check_and_update_cache")
    ),
    "the report evicts as well": changed(
        RIGHT, get_freed_mm_hashes=_also_evicts("get_freed_mm_hashes")
    ),
    "eviction tells nobody": changed(RIGHT, can_allocate=less(RIGHT, "can_allocate", lg.freed)),
    "free releases everybody": changed(RIGHT, free=_everybody_loses()),
    "free and nothing becomes freeable": changed(
        RIGHT, free=less(RIGHT, "free", lg.freeable, lg.freeable_slots, lg.since)
    ),
    "a position is released as if its request were": changed(
        RIGHT, free_encoder_input=at_another(RIGHT, "free", request=owner(i))
    ),
    "the time of release is not noted": changed(
        RIGHT, free_encoder_input=less(RIGHT, "free_encoder_input", lg.since)
    ),
    "the last released is the oldest": changed(
        RIGHT,
        free_encoder_input=but(
            RIGHT,
            "free_encoder_input",
            lg.since.becomes(lg.since.put(h, number(0) - lg.clock)),
        ),
    ),
    "a request's hashes all come at once": changed(
        RIGHT,
        free=but(
            RIGHT,
            "free",
            lg.since.becomes(
                mapof(HASH, lambda k: ite(lg.references.has(k, r), lg.clock, lg.since[k]))
            ),
        ),
    ),
    "a hit makes it younger among the freeable": changed(
        RIGHT,
        check_and_update_cache=(
            *RIGHT.action("check_and_update_cache").effect[:2],
            lg.since.becomes(ite(lg.freeable.has(h), lg.since.put(h, lg.clock), lg.since)),
            lg.clock.becomes(lg.clock + 1),
        ),
    ),
    "the report names what is still cached": changed(
        RIGHT,
        get_freed_mm_hashes=replace(
            RIGHT.action("get_freed_mm_hashes"), returns=lg.freed.union(lg.freeable)
        ),
    ),
    "the report names what came back only": changed(
        RIGHT,
        get_freed_mm_hashes=replace(
            RIGHT.action("get_freed_mm_hashes"), returns=lg.freed.minus(lg.freed.minus(lg.cached))
        ),
    ),
    "everything is admitted": changed(
        RIGHT,
        can_allocate=replace(RIGHT.action("can_allocate"), returns=all_of()),
    ),
    **{
        f"reset keeps {v.name}": changed(RIGHT, reset=less(RIGHT, "reset", v))
        for v in (
            lg.cached,
            lg.references,
            lg.held,
            lg.freeable,
            lg.freed,
            lg.free_slots,
            lg.freeable_slots,
        )
    },
    "reset does nothing": changed(RIGHT, reset=()),
}

WRONG_ENCODER_DECODERS: dict[str, TransitionSystem] = {
    "nothing is ever released": changed(RIGHT_ED, free=(), free_encoder_input=()),
    "a position is never released": changed(RIGHT_ED, free_encoder_input=()),
    "a request is never released": changed(RIGHT_ED, free=()),
    "released and not credited": changed(
        RIGHT_ED,
        free=less(RIGHT_ED, "free", ed.free_slots),
        free_encoder_input=less(RIGHT_ED, "free_encoder_input", ed.free_slots),
    ),
    "allocate charges nothing": changed(
        RIGHT_ED, allocate=less(RIGHT_ED, "allocate", ed.free_slots)
    ),
    "allocate does nothing": changed(RIGHT_ED, allocate=()),
    "allocated and never charged": changed(
        RIGHT_ED, allocate=less(RIGHT_ED, "allocate", ed.free_slots, ed.outstanding)
    ),
    "a position is released as if its request were": changed(
        RIGHT_ED, free_encoder_input=at_another(RIGHT_ED, "free", request=owner(i))
    ),
    "free credits everybody": changed(
        RIGHT_ED,
        free=(
            ed.outstanding.becomes(empty(INPUT)),
            ed.free_slots.becomes(ed.free_slots + total(ed.outstanding, ed.embeds)),
        ),
    ),
    "nothing is ever reported": changed(
        RIGHT_ED,
        get_freed_mm_hashes=replace(RIGHT_ED.action("get_freed_mm_hashes"), returns=empty(HASH)),
    ),
    "the report is not moved on": changed(RIGHT_ED, get_freed_mm_hashes=()),
    "allocate tells nobody": changed(RIGHT_ED, allocate=less(RIGHT_ED, "allocate", ed.allocated)),
    "a release is reported at once": changed(
        RIGHT_ED,
        free_encoder_input=but(
            RIGHT_ED, "free_encoder_input", ed.to_free.becomes(ed.to_free.insert(h))
        ),
    ),
    **{
        f"reset keeps {v.name}": changed(RIGHT_ED, reset=less(RIGHT_ED, "reset", v))
        for v in (ed.outstanding, ed.free_slots, ed.allocated, ed.to_free)
    },
}

ALL = [("ledger", *x) for x in WRONG_LEDGERS.items()]
ALL += [("encoder_decoder", *x) for x in WRONG_ENCODER_DECODERS.items()]


@pytest.mark.parametrize(("of", "name", "system"), ALL, ids=[f"{of}: {n}" for of, n, _ in ALL])
def test_it_breaks_a_clause_from_the_empty_cache(
    of: str, name: str, system: TransitionSystem
) -> None:
    found = shortest(system, [scope(1, 1, 1), scope(2, 2, 1), scope(2, 2, 2)], "init", bound=7)
    assert found is not None, name
    assert found.clauses


BY_CLAUSE = {
    "nothing is ever released": {"L12", "L13"},
    "allocate takes no reference": {"L8", "L12"},
    "first of several positions, and held forgets the others": {"L8", "L12"},
}


@pytest.mark.parametrize("name", BY_CLAUSE)
def test_the_audited_designs_are_refuted_by_the_clauses_meant_for_them(name: str) -> None:
    proof = prove(WRONG_LEDGERS[name], scope(2, 2, 2))
    assert proof.verdict == "refuted"
    assert BY_CLAUSE[name] <= set(proof.refuted_clauses)


def test_so_is_the_encoder_decoder_that_never_releases() -> None:
    proof = prove(WRONG_ENCODER_DECODERS["nothing is ever released"], scope(2, 2, 2))
    assert {"E1", "E3"} <= set(proof.refuted_clauses)
