"""A counterexample from within a pass is made one from the empty cache, and stays one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcache_spec.checks.bounded import Counterexample, shortest
from mmcache_spec.evaluate.interpreter import Interpreter
from mmcache_spec.generate.warm_up import warm_up
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.model.world import scope

UNFILTERED = VARIANTS["unfiltered_report"].system
(L1,) = (p for p in UNFILTERED.properties if p.clause == "L1")


@pytest.fixture(scope="module")
def found() -> Counterexample:
    """Of three calls, in a pass that begins with a hash cached and freeable (L1)."""
    counterexample = shortest(UNFILTERED, [scope(2, 1, 2)], "pass", 3, (L1,))
    assert counterexample is not None
    assert counterexample.start["cached"]
    return counterexample


def test_it_begins_with_nothing_and_ends_with_the_same_calls(found: Counterexample) -> None:
    warmed = warm_up(found)
    assert warmed is not None
    assert warmed.origin == "init"
    assert warmed.start == Interpreter(UNFILTERED, warmed.world).initial()
    assert warmed.length > found.length
    assert warmed.actions[-found.length :] == found.actions
    assert not any(step.refused_by for step in warmed.steps)


def test_the_wrong_system_still_breaks_the_clause_and_only_at_the_end(
    found: Counterexample,
) -> None:
    warmed = warm_up(found)
    assert warmed is not None
    interpreter = Interpreter(UNFILTERED, warmed.world)
    steps = list(interpreter.run([step.call for step in warmed.steps]))
    broken = [L1 in interpreter.breaks(step) for step in steps]
    assert broken == [*[False] * (len(steps) - 1), True]


def test_the_state_before_the_pass_is_the_one_it_was_found_in(found: Counterexample) -> None:
    warmed = warm_up(found)
    assert warmed is not None
    before = warmed.steps[-found.length].before
    for name in ("cached", "references", "freeable", "freed", "free_slots", "freeable_slots"):
        assert before[name] == found.start[name], name


def test_a_state_that_no_calls_build_is_given_up(found: Counterexample) -> None:
    more = {**found.start, "freed": frozenset({("B",)})}
    assert warm_up(replace(found, start=more)) is None
    assert warm_up(replace(found, system="encoder_decoder")) is None
