"""A clause under a condition that never comes true says nothing, and `prove` says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcache_spec.checks.cores import Core, Need, cores, unneeded
from mmcache_spec.checks.induction import holds_by_definition, obligations
from mmcache_spec.checks.proof import check_vacuity
from mmcache_spec.checks.reach import Place, reach
from mmcache_spec.checks.small_worlds import Ranges
from mmcache_spec.checks.vacuity import Situations
from mmcache_spec.generate.arenas import compact, situations
from mmcache_spec.kernel.goals import ANY, Goal, antecedent_goals
from mmcache_spec.kernel.system import ActionProperty, Invariant, TransitionSystem
from mmcache_spec.kernel.terms import BOOL, FALSE, all_of, exists, forall, result
from mmcache_spec.model import encoder_decoder as ed
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.unneeded import reason_for
from mmcache_spec.model.world import HASH, INPUT, owner

SYSTEM = encoder_decoder()
HERE = (Place(compact(2, 1, 2), Ranges((1,), {"capacity": (2,)})),)


def _claiming(*claims: Invariant | ActionProperty) -> TransitionSystem:
    return replace(
        SYSTEM,
        invariants=tuple(c for c in claims if isinstance(c, Invariant)),
        action_properties=tuple(c for c in claims if isinstance(c, ActionProperty)),
    )


def _missed(system: TransitionSystem) -> list[str]:
    found = reach(system, tuple(antecedent_goals(system)), HERE)
    return [name for name, trace in found.items() if trace is None]


def test_every_condition_of_the_encoder_decoder_clauses_comes_true() -> None:
    proof = check_vacuity(SYSTEM, situations(SYSTEM), compact(2, 1, 2))
    assert proof.unreachable == ()
    assert sum("condition" in name for name in proof.witnesses) >= 10


@pytest.mark.parametrize(
    ("formula", "conditions"),
    [
        (FALSE.implies(FALSE), 1),
        (forall(HASH, lambda h: FALSE.implies(ed.allocated.has(h))), 1),
        (all_of(forall(INPUT, lambda i: (~(owner(i) == owner(i))).implies(FALSE))), 1),
        (forall(HASH, lambda h: ~(FALSE & ed.allocated.has(h))), 2),
        (~exists(HASH, lambda h: FALSE & ed.allocated.has(h)), 2),
        (FALSE.iff(FALSE), 2),
    ],
)
def test_a_condition_that_never_comes_true_is_missed(formula: object, conditions: int) -> None:
    """However it is wrapped up: the clause is true, and says nothing."""
    claim = Invariant("hollow", formula, "E1")  # type: ignore[arg-type]
    system = _claiming(claim)
    assert len(list(antecedent_goals(system))) == conditions
    assert len(_missed(system)) >= 1


def test_an_alternative_that_always_holds_makes_the_other_hollow() -> None:
    always = forall(INPUT, lambda i: ~ed.outstanding.has(i) | ed.outstanding.has(i))
    hollow = ActionProperty("hollow", "allocate", always | ed.unchanged(), "E1")
    fine = ActionProperty("fine", "can_allocate", result(BOOL) | ed.unchanged(), "E1")
    missed = _missed(_claiming(hollow, fine))
    assert [name for name in missed if name.startswith("E1 hollow at allocate")]
    assert not [name for name in missed if "fine at can_allocate: condition 1 " in name]


def test_what_has_no_clause_has_no_conditions() -> None:
    assert list(antecedent_goals(_claiming(Invariant("strong", FALSE.implies(FALSE))))) == []


def test_prove_does_not_call_a_hollow_clause_proved() -> None:
    """A ledger that never charges: its clause about charged inputs is true, and noticed."""
    (old,) = (a for a in SYSTEM.actions if a.name == "allocate")
    kept = tuple(x for x in old.effect if x[0].name != "outstanding")
    idle = replace(old, effect=kept)
    claim = Invariant(
        "charged_is_positive",
        forall(INPUT, lambda i: ed.outstanding.has(i).implies(ed.embeds(i) >= 0)),
        "E1",
    )
    system = replace(
        SYSTEM,
        actions=tuple(idle if a is old else a for a in SYSTEM.actions),
        invariants=(claim,),
        action_properties=(),
    )
    proof = check_vacuity(system, Situations(HERE), compact(1, 1, 1))
    assert "encoder_decoder: E1 charged_is_positive: condition 1 holds" in proof.unreachable
    assert proof.verdict == "unknown"


def test_a_goal_is_reached_by_calls_that_the_interpreter_confirms() -> None:
    both = exists(
        INPUT, INPUT, lambda i, j: ed.outstanding.has(i) & ed.outstanding.has(j) & ~(i == j)
    )
    (trace,) = reach(SYSTEM, (Goal("two are charged", ANY, both),), HERE).values()
    assert trace is not None
    assert trace.actions == ("allocate", "allocate")


# --- what a proof rests on -----------------------------------------------------------------------


def test_what_holds_by_definition_is_told_apart() -> None:
    alone = {
        o.claim.name
        for o in obligations(SYSTEM)
        if o.kind == "action" and o.claim.clause and holds_by_definition(o)
    }
    assert {"admission_is_exact", "hit_is_exact", "reset_is_initial"} <= alone
    assert "notice_after_the_step" not in alone
    (consecution, *_) = (o for o in obligations(SYSTEM) if o.kind == "consecution")
    assert not holds_by_definition(consecution)


def test_a_core_leaves_nothing_out_and_nothing_in() -> None:
    wanted = [o for o in obligations(SYSTEM) if o.claim.name == "notice_after_the_step"]
    (core,) = cores(SYSTEM, wanted)
    assert core.needs == (
        Need("answer", "get_freed_mm_hashes", "answer"),
        Need("invariant", "", "to_free_is_what_the_last_pass_allocated"),
    )
    assert next(iter(cores(encoder_decoder(), wanted))) == core


def test_what_is_not_proved_has_no_core() -> None:
    wrong = ActionProperty("never", "can_allocate", ~result(BOOL), "L7")
    system = _claiming(wrong)
    (core,) = cores(system)
    assert core == Core("never", "L7", "can_allocate", None)


def test_a_line_that_no_clause_needs_is_found() -> None:
    """Without the clauses about it, a line of the definition is a gap."""
    mute = replace(
        SYSTEM,
        invariants=tuple(i for i in SYSTEM.invariants if i.clause != "E3"),
        action_properties=tuple(p for p in SYSTEM.action_properties if p.clause == "E2"),
    )
    mute = replace(mute, invariants=tuple(i for i in mute.invariants if i.clause != "E1"))
    gaps = unneeded(mute, list(cores(mute)))
    assert Need("line", "free", "outstanding") in gaps
    assert Need("line", "get_freed_mm_hashes", "to_free") not in gaps


@pytest.mark.slow
def test_every_part_of_the_encoder_decoder_is_needed_or_has_a_reason() -> None:
    rest = unneeded(SYSTEM, list(cores(SYSTEM)))
    assert [n for n in rest if reason_for("encoder_decoder", n.kind, n.where, n.name) is None] == []
