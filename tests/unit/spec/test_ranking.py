"""A claim of progress by ranking: what it rests on is proved, and each part of it can fail."""

from dataclasses import replace

import pytest

from mmcache_spec.checks.induction import decide, obligations
from mmcache_spec.kernel.ranking import Helpful, Measure, Ranking
from mmcache_spec.kernel.system import Action, Monitor, Scope, TransitionSystem
from mmcache_spec.kernel.terms import (
    FALSE,
    INT,
    MapSort,
    Sort,
    Term,
    any_of,
    exists,
    forall,
    ite,
    mapof,
    number,
    parameter,
    result,
    state,
)

FIELD = Sort("Field")
grain = state("grain", MapSort.of(FIELD, INT))
"""What stands, as the farmer has it."""
seen = state("seen", MapSort.of(FIELD, INT), ghost=True)
"""What stands, as the neighbour has counted it."""
f = parameter("field", FIELD)
most = parameter("most", INT)
n = result(INT)

ONE = Action(
    "reap",
    (f, most),
    guard={"some": number(1) <= most},
    effect=(grain.becomes(grain.put(f, grain[f] - n)),),
    returns=ite(grain[f] <= 0, 0, 1),
)
WORK = Ranking(
    "harvest",
    "S7",
    exists(FIELD, lambda x: seen[x] > 0),
    (Measure("what stands", FIELD, lambda x: seen[x]),),
    (Helpful("somebody_reaps", "reap", seen[f] > 0, {"most": number(1)}),),
    {"storm": 0},
)
HERE = Scope("two fields", {"Field": ("f1", "f2")})


def farm(reap: Action = ONE, ranking: Ranking = WORK, *others: Action) -> TransitionSystem:
    actions = (reap, *others)
    system = TransitionSystem(
        name="farm",
        variables=(grain,),
        constants=(),
        functions=(),
        axioms=(),
        init=(grain.becomes(mapof(FIELD, lambda x: number(3))),),
        actions=actions,
        invariants=ranking.invariants(actions),
        action_properties=tuple(ranking.action_properties(actions)),
        pass_start=~FALSE,
        monitors=(
            Monitor(seen, mapof(FIELD, lambda x: number(3)), {"reap": seen.put(f, seen[f] - n)}),
        ),
    )
    agree = replace(
        system.invariants[0],
        name="both_agree",
        clause=None,
        formula=forall(FIELD, lambda x: seen[x] == grain[x]),
    )
    return replace(system, invariants=(*system.invariants, agree))


def refuted(system: TransitionSystem) -> set[str]:
    outcomes = [decide(o, HERE) for o in obligations(system)]
    assert "unknown" not in {o.verdict for o in outcomes}
    return {o.obligation.claim.name for o in outcomes if o.verdict == "refuted"}


def _reaping(answer: Term | int) -> Action:
    taken = number(answer) if isinstance(answer, int) else answer
    return replace(ONE, returns=taken)


def test_the_claims_of_a_ranking() -> None:
    assert [p.name for p in farm().properties if p.clause == "S7"] == [
        "harvest_is_never_below_zero",
        "harvest_can_be_brought_down",
        "harvest_falls_when_somebody_reaps",
        "harvest_never_rises",
    ]
    assert refuted(farm()) == set()


@pytest.mark.parametrize(
    ("reap", "broken"),
    [
        (_reaping(0), {"harvest_falls_when_somebody_reaps"}),
        (_reaping(2), {"harvest_is_never_below_zero"}),
        (_reaping(number(-1)), {"harvest_never_rises"}),
        (replace(ONE, effect=()), {"both_agree"}),
        (replace(ONE, guard={"none": any_of()}), {"harvest_can_be_brought_down"}),
    ],
    ids=["nothing is reaped", "more than there is", "sown", "not written down", "never allowed"],
)
def test_each_claim_can_fail(reap: Action, broken: set[str]) -> None:
    assert refuted(farm(reap)) == broken


def test_an_action_that_nobody_called_unfair_may_not_bring_work() -> None:
    grow = Action("grow", (f,), effect=(grain.becomes(grain.put(f, grain[f] + 1)),))
    monitors = replace(farm().monitors[0], updates={**farm().monitors[0].updates})

    def with_(name: str) -> TransitionSystem:
        system = farm(ONE, WORK, replace(grow, name=name))
        record = replace(monitors, updates={**monitors.updates, name: seen.put(f, seen[f] + 1)})
        return replace(system, monitors=(record,))

    assert refuted(with_("grow")) == {"harvest_never_rises"}
    assert refuted(with_("storm")) == set()


def test_the_first_measures_count_most() -> None:
    """A step may raise a later measure where an earlier one falls, and not where it stays."""
    first = Measure("fields that stand", FIELD, lambda x: seen[x] > 0)
    both = replace(WORK, measures=(first, *WORK.measures))
    burn = Action("burn", (f,), effect=(grain.becomes(mapof(FIELD, lambda x: number(0))),))
    monitor = Monitor(
        seen,
        farm().monitors[0].init,
        {**farm().monitors[0].updates, "burn": mapof(FIELD, lambda x: number(0))},
    )
    system = replace(farm(ONE, both, burn), monitors=(monitor,))
    assert refuted(system) == set()


def test_helpful_and_unfair_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="helpful and unfair"):
        replace(WORK, unfair={"reap": 0})


def test_a_premise_that_is_misspelt_is_refused() -> None:
    reap = replace(ONE, premises={"harvest_never_rises": ("both_agre",)})
    with pytest.raises(ValueError, match=r"rests on \['both_agre'\], unknown"):
        farm(reap)
