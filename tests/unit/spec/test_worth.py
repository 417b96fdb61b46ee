"""The standard suite reaches every goal and kills every mutant that can be killed."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_spec.checks.coverage import cover
from mmcache_spec.checks.product import distinguish
from mmcache_spec.generate.managers import MANAGERS
from mmcache_spec.generate.worth import goals_of, kills, least_cover, mutants_of, reached
from mmcache_spec.kernel.goals import Goal, pair_goals
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model import ledger as lg
from mmcache_spec.model.equivalents import EQUIVALENT
from mmcache_spec.model.goals import LEDGER_COMBINATIONS
from mmcache_spec.model.observables import agreement_of
from mmcache_spec.model.variants import SPECIFIED, VARIANTS
from mmcache_spec.model.world import scope
from mmcache_vectors.manager import Vector

VECTORS = load_suite()
SHORT = [v for v in VECTORS if len(v.steps) < 100]
"""Without the long ones, which are made for faults of implementations and add nothing here."""
SYSTEMS = [s for s in SPECIFIED.systems if s.name in MANAGERS]
MANIFEST = json.loads((files("mmcache_vectors") / "manifest.json").read_text())


def vectors_for(system: TransitionSystem) -> list[Vector]:
    return [v for v in SHORT if v.manager == MANAGERS[system.name]]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
@pytest.mark.slow
def test_every_mutant_is_killed_or_listed_as_equivalent(system: TransitionSystem) -> None:
    names = {m.name for m in mutants_of(system)}
    killed = set().union(*(kills(system, v) for v in vectors_for(system)))
    assert EQUIVALENT[system.name] <= names
    assert names - killed == EQUIVALENT[system.name]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_every_goal_is_reached_or_proved_unreachable(system: TransitionSystem) -> None:
    goals = {goal.name for goal in goals_of(system)}
    covered = set().union(*(reached(system, v) for v in vectors_for(system)))
    rest = [goal for goal in goals_of(system) if goal.name in goals - covered]
    found = cover(system, scope(2, 2, 2), rest, 5, least=False)
    assert set(found.unreachable) == goals - covered


@pytest.mark.slow
def test_what_is_reachable_is_not_proved_unreachable() -> None:
    system = lg.ledger()
    found = cover(system, scope(2, 2, 2), LEDGER_COMBINATIONS, 7, least=False)
    assert len(found.reached) == 6
    assert len(found.unreachable) == 10
    assert found.open == ()


def test_an_open_goal_is_reported_as_open() -> None:
    far = Goal("a full cache", "reset", lg.free_slots == 0)
    found = cover(lg.ledger(), scope(1, 1, 1), [far], 1, least=False)
    assert found.open == ("a full cache",)


def test_pairs_are_of_all_actions() -> None:
    system = lg.ledger()
    assert len(list(pair_goals(system))) == len(system.actions) ** 2


def test_a_difference_is_found_and_none_is_found_in_itself() -> None:
    wrong = VARIANTS["refusal_evicts"].system
    agreement = agreement_of("ledger")
    found = distinguish(lg.ledger(), wrong, agreement, [scope(2, 1, 2)], 3)
    assert found is not None
    assert [s.call.action for s in found.steps][-1] == "can_allocate"
    assert distinguish(lg.ledger(), lg.ledger(), agreement, [scope(2, 1, 2)], 3) is None


def test_the_cover_is_least_and_keeps_what_it_is_told() -> None:
    covers = {"a": {"1", "2"}, "b": {"2", "3"}, "c": {"1", "2", "3"}, "d": {"4"}}
    assert least_cover(covers) == ["c", "d"]
    assert least_cover(covers, kept=["a"]) == ["a", "b", "d"]
    assert least_cover(covers, most=1) == ["c"]


def test_the_manifest_is_of_these_vectors() -> None:
    assert MANIFEST["sizes"]["standard"] == sorted(v.id for v in VECTORS)
    assert len(MANIFEST["sizes"]["smoke"]) <= 20
    smoke = set(MANIFEST["sizes"]["smoke"])
    killed = {name for v in VECTORS if v.id in smoke for name in v.kills}
    assert killed == {name for v in VECTORS for name in v.kills}
