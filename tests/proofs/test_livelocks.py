"""Each livelock has its shortest lasso, and no design without one is refuted."""

from functools import cache

import pytest

from mmcache_spec.checks.bounded import shortest
from mmcache_spec.checks.induction import decide, obligations
from mmcache_spec.checks.lasso import Lasso, find_lasso
from mmcache_spec.evaluate.interpreter import Interpreter
from mmcache_spec.model.chunk import Caps
from mmcache_spec.model.livelocks import LIVELOCKS, WITHOUT_LIVELOCK
from mmcache_spec.model.progress import ProgressDesign, progress
from mmcache_spec.model.progress_clauses import WALK
from mmcache_spec.model.variant import Variant
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.model.world import scope, scopes_of
from mmcache_spec.render.lasso import lasso_data, lasso_story

RIGHT_DESIGNS = [
    Caps(alignment="none"),
    Caps(items="chunked"),
    Caps(alignment="after_room", items="chunked"),
]


def _lasso(variant: Variant) -> Lasso:
    return _lasso_of(variant.name)


@cache
def _lasso_of(name: str) -> Lasso:
    variant = VARIANTS[name]
    found = shortest(variant.system, scopes_of("progress"), "init", 5, variant.aims_at)
    assert found is not None
    lasso = find_lasso(variant.system, WALK, found.world)
    assert lasso is not None
    return lasso


@pytest.mark.parametrize("variant", LIVELOCKS, ids=lambda v: v.name)
def test_the_shortest_lasso_is_the_expected_one(variant: Variant) -> None:
    lasso = _lasso(variant)
    assert variant.expected is not None
    assert lasso.actions == variant.expected.lasso
    told = list(lasso_story(lasso))
    assert sum(line.startswith("  ↻") for line in told) == len(lasso.loop)
    assert [step["action"] for step in lasso_data(lasso)["loop"]] == list(lasso.actions[1])


@pytest.mark.parametrize("variant", LIVELOCKS, ids=lambda v: v.name)
def test_the_loop_can_be_gone_around_as_often_as_you_like(variant: Variant) -> None:
    lasso = _lasso(variant)
    interpreter = Interpreter(variant.system, lasso.world)
    calls = [s.call for s in (*lasso.stem, *lasso.loop, *lasso.loop, *lasso.loop)]
    steps = list(interpreter.run(calls))
    assert all(step.refused_by == () for step in steps)
    own = [v.name for v in variant.system.variables if v.role != "ghost"]
    around = steps[len(lasso.stem) - 1 :: len(lasso.loop)]
    assert len({repr([sorted(s.after[n]) for n in own]) for s in around}) == 1
    assert any(s.after["arrived"] - s.after["finished"] for s in around)


@pytest.mark.parametrize("variant", WITHOUT_LIVELOCK, ids=lambda v: v.name)
def test_under_its_conditions_no_cap_need_give_way(variant: Variant) -> None:
    verdicts = {decide(o, scope(2, 2, 2)).verdict for o in obligations(variant.system)}
    assert verdicts == {"proved"}


@pytest.mark.parametrize("caps", RIGHT_DESIGNS, ids=str)
def test_wishes_that_give_way_are_proved_whichever_they_are(caps: Caps) -> None:
    """S7 and all else; but a boundary that is cut to after the room may give too few tokens."""
    system = progress(ProgressDesign(caps))
    outcomes = [decide(o, scope(2, 2, 2)) for o in obligations(system)]
    gives_fewer = caps.alignment == "after_room"
    others = {o.verdict for o in outcomes if o.obligation.claim.clause != "S13" or not gives_fewer}
    assert others == {"proved"}
    if gives_fewer:
        s13 = {o.verdict for o in outcomes if o.obligation.claim.clause == "S13"}
        assert s13 != {"proved"}
