"""A design that satisfies every clause is told, and only where the clauses leave no choice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcache_spec.checks.broken import first_breach
from mmcache_spec.checks.explore import Explorer
from mmcache_spec.checks.findings import Found
from mmcache_spec.checks.satisfaction import satisfies_the_clauses, touched
from mmcache_spec.checks.small_worlds import Ranges, small_worlds
from mmcache_spec.generate.arenas import compact
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.kernel.wrong_designs import wrong_designs
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import ledger

SLOTS, LEDGER = encoder_decoder(), ledger()


def _design(system: TransitionSystem, kind: str, name: str) -> TransitionSystem:
    return next(d.system for d in wrong_designs(system, [kind]) if d.name == name)


EQUIVALENT = _design(SLOTS, "single", "free: outstanding, condition 1 of 2 is gone")
WRONG = _design(SLOTS, "answer", "get_freed_mm_hashes: answer, always empty")


def test_another_wording_satisfies_the_clauses_and_a_wrong_answer_does_not() -> None:
    assert satisfies_the_clauses(SLOTS, EQUIVALENT)
    assert not satisfies_the_clauses(SLOTS, WRONG)


def test_where_a_clause_is_missing_nothing_is_said() -> None:
    """What is left of the clauses is satisfied, and that is worth nothing: they leave a choice."""
    silent = replace(
        SLOTS,
        invariants=tuple(i for i in SLOTS.invariants if i.clause != "E2"),
        action_properties=tuple(p for p in SLOTS.action_properties if p.clause != "E2"),
    )
    design = _design(silent, "answer", "get_freed_mm_hashes: answer, always empty")
    assert not satisfies_the_clauses(silent, design)


def test_asked_again_is_what_the_change_can_touch() -> None:
    asked = list(touched(SLOTS, EQUIVALENT))
    assert {o.action.name for o in asked if o.action is not None} == {"free"}
    assert list(touched(SLOTS, SLOTS)) == []


def test_a_design_with_another_guard_is_not_compared() -> None:
    (free,) = (a for a in SLOTS.actions if a.name == "can_allocate")
    loose = replace(free, guard={})
    design = replace(SLOTS, actions=tuple(loose if a is free else a for a in SLOTS.actions))
    with pytest.raises(ValueError, match="another guard"):
        list(touched(SLOTS, design))


def test_a_walk_finds_a_wrong_design_and_is_drawn_by_its_seed() -> None:
    world = next(iter(small_worlds(LEDGER, compact(2, 1, 2), Ranges((1,), {"capacity": (2,)}))))
    design = _design(LEDGER, "emptied", "free_encoder_input: does nothing")
    walks = [Explorer(LEDGER, world, most_states=300, seed=seed) for seed in (1, 1, 2)]
    for walk in walks:
        assert isinstance(first_breach(walk, design), Found)
        assert not isinstance(first_breach(walk, ledger()), Found)
    one, again, other = (walk.graph.states for walk in walks)
    assert one == again != other
