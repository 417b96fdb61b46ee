"""The proof holds, it means something, and it fails where the model is broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import z3
from cvc5 import Kind

from mmcache_spec.checks.bounded import Counterexample, shortest, unrolled, witnesses
from mmcache_spec.checks.induction import (
    Obligation,
    decide,
    is_proved,
    obligations,
    queries,
    query_terms,
)
from mmcache_spec.checks.proof import Proof, check_vacuity, prove
from mmcache_spec.checks.smtlib import cvc5_says, scripts
from mmcache_spec.checks.unrolling import Start
from mmcache_spec.checks.vacuity import false_lemmas, lemmas_of
from mmcache_spec.evaluate import unbounded
from mmcache_spec.evaluate.cvc5_terms import Cvc5Terms, cvc5_decides
from mmcache_spec.evaluate.interpreter import Interpreter
from mmcache_spec.generate.arenas import situations
from mmcache_spec.kernel import schemas
from mmcache_spec.kernel.goals import Goal
from mmcache_spec.kernel.schemas import Members, Schema, Weight
from mmcache_spec.kernel.system import Action, TransitionSystem
from mmcache_spec.kernel.terms import Term, total
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.engine import engine
from mmcache_spec.model.goals import ENCODER_DECODER_GOALS, ENGINE_GOALS, LEDGER_GOALS
from mmcache_spec.model.ledger import cached, freed, ledger
from mmcache_spec.model.progress import progress
from mmcache_spec.model.variants import SPECIFIED, VARIANTS, Expected, Variant
from mmcache_spec.model.world import scope, scopes_of, scopes_up_to, size
from mmcache_spec.render.story import cti_story
from mmcache_vectors.clauses import CLAUSES

SMALL = scope(3, 2, 2)
ALL = [o for system in SPECIFIED.systems for o in obligations(system)]
WRONG = [v for v in VARIANTS.values() if v.expected is not None]
RIGHT = [v for v in VARIANTS.values() if v.expected is None and v is not SPECIFIED]


@pytest.fixture(scope="module")
def proof() -> Proof:
    parts = [prove(system, SMALL) for system in SPECIFIED.systems]
    parts += [check_vacuity(system, situations(system), SMALL) for system in SPECIFIED.systems]
    return Proof.merged(parts, 0)


def test_every_obligation_of_specified_is_proved(proof: Proof) -> None:
    assert [o.obligation.label for o in proof.outcomes if o.verdict != "proved"] == []
    assert proof.verdict == "proved"


def test_there_is_an_obligation_for_every_property_and_action(proof: Proof) -> None:
    labels = {(o.obligation.system.name, o.obligation.label) for o in proof.outcomes}
    for system in SPECIFIED.systems:
        for invariant in system.invariants:
            assert (system.name, f"{invariant.name} holds initially") in labels
            for action in system.actions:
                assert (system.name, f"{action.name} preserves {invariant.name}") in labels
        for prop in system.action_properties:
            assert (system.name, f"{prop.action} satisfies {prop.name}") in labels


def test_every_clause_is_stated_by_a_property() -> None:
    stated = {clause for system in SPECIFIED.systems for clause in system.clauses()}
    assert stated == set(CLAUSES)


def test_nothing_is_vacuous(proof: Proof) -> None:
    assert proof.unreachable == ()
    assert len(proof.witnesses) > 70


def test_every_lemma_is_true_of_small_sets() -> None:
    for system in SPECIFIED.systems:
        assert len(lemmas_of(system)) > 1
        assert false_lemmas(system, scope(3, 1, 1)) == []


def test_a_wrong_lemma_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that is false, and that nobody has proved: no set is smaller than another."""
    monkeypatch.setattr(schemas, "SCHEMAS", dict(schemas.SCHEMAS))

    @Schema
    def smaller(one: Members, two: Members, weight: Weight) -> Term:
        return total(one, weight) <= total(two, weight)

    system = ledger()
    can_allocate = system.action("can_allocate")
    lemma = smaller(cached, freed, size)
    wrong = replace(can_allocate, lemmas={"eviction_never_runs_dry": (lemma,)})
    (found,) = false_lemmas(_with_action(system, can_allocate, wrong), scope(2, 1, 1))
    assert found is lemma.formula


def test_a_wrong_start_is_refuted_with_the_initial_state() -> None:
    system = ledger()
    init = tuple(
        (v, v.becomes(term + 1)[1]) if v.name == "free_slots" else (v, term)
        for v, term in system.init
    )
    (obligation,) = (
        o
        for o in obligations(replace(system, init=init))
        if o.label == "free_slots_conserved holds initially"
    )
    outcome = decide(obligation, SMALL)
    assert outcome.verdict == "refuted"
    assert outcome.cti is not None
    assert outcome.cti.step is None
    assert any("start   cached" in line for line in cti_story(outcome))


@pytest.mark.parametrize("system", SPECIFIED.systems, ids=lambda s: s.name)
def test_the_assumptions_of_the_proofs_contradict_nothing(system: TransitionSystem) -> None:
    """Without the negated goal, what an obligation assumes has a model."""
    for action in system.actions:
        (first, *_) = (o for o in obligations(system) if o.action is action)
        (*assumed, _goal) = next(iter(queries(first)))
        solver = z3.Solver()
        solver.set("rlimit", 2_500_000 if system.name == "progress" else 25_000_000)
        solver.add(*assumed)
        answer = solver.check()
        assert answer != z3.unsat, action.name
        assert answer == z3.sat or system.name == "progress", action.name


def expected_of(variant: Variant) -> Expected:
    """The verdict that a wrong variant comes with."""
    assert variant.expected is not None
    return variant.expected


# --- broken on purpose -------------------------------------------------------------------------

HARMLESS = {
    # Redundant on purpose: what is evicted has no references, so dropping them changes nothing.
    ("ledger", "can_allocate", "references"),
    ("engine", "admit", "references"),
    # Only the order of the freeable hashes counts, and after a reset there are none.
    ("ledger", "reset", "since"),
    ("ledger", "reset", "clock"),
    ("engine", "reset", "since"),
    ("engine", "reset", "clock"),
    # Between passes these are empty already.
    ("engine", "reset", "freed"),
}

LESS: dict[str, dict[str, set[str]]] = {
    "ledger": {},
    "encoder_decoder": {},
    "engine": {},
    "progress": {},
    # Without the first, P0 never takes anything. The second is there for designs that assert.
    "processor_cache": {"begin": {"waiting", "looked_up"}},
}
"""Effects that make a system do or ask more, not be safer. Without them it is as safe."""

EFFECTS = [
    (system, action, variable.name)
    for system in SPECIFIED.systems
    for action in system.actions
    for variable, _ in action.effect
    if variable.role != "ghost"
]


@pytest.mark.parametrize(
    ("system", "action", "variable"),
    EFFECTS,
    ids=[f"{s.name}-{a.name}-{v}" for s, a, v in EFFECTS],
)
def test_a_forgotten_effect_breaks_the_proof(
    system: TransitionSystem, action: Any, variable: Any
) -> None:
    kept = tuple(line for line in action.effect if line[0].name != variable)
    forgetful = replace(action, effect=kept)
    broken = _with_action(system, action, forgetful)
    about = (o for o in obligations(broken) if _is_about(o, forgetful))
    survives = all(decide(o, SMALL).verdict == "proved" for o in about)
    harmless = (system.name, action.name, variable) in HARMLESS
    less = variable in LESS[system.name].get(action.name, set())
    assert survives == (harmless or less)


@pytest.mark.parametrize(
    ("name", "goals", "within"),
    [
        ("ledger", LEDGER_GOALS, scope(4, 2, 3)),
        ("encoder_decoder", ENCODER_DECODER_GOALS, scope(3, 2, 2)),
        ("engine", ENGINE_GOALS, scope(2, 2, 1)),
    ],
)
def test_every_goal_is_reached(name: str, goals: tuple[Goal, ...], within: Any) -> None:
    (system,) = (s for s in SPECIFIED.systems if s.name == name)
    reached = witnesses(system, within, goals, bound=11, least=False)
    assert [goal for goal, trace in reached.items() if trace is None] == []


def _is_about(obligation: Obligation, action: Any) -> bool:
    return obligation.action is not None and obligation.action.name == action.name


def _with_action(system: TransitionSystem, old: Action, new: Action) -> TransitionSystem:
    return replace(system, actions=tuple(new if a is old else a for a in system.actions))


def test_without_its_guard_allocate_breaks_conservation() -> None:
    system = ledger()
    allocate = system.action("allocate")
    for guard in allocate.guard:
        kept = {name: term for name, term in allocate.guard.items() if name != guard}
        careless = replace(allocate, guard=kept)
        broken = _with_action(system, allocate, careless)
        verdicts = {
            o.claim.clause: decide(o, SMALL).verdict
            for o in obligations(broken)
            if _is_about(o, careless) and o.claim.clause == "L3"
        }
        assert verdicts == {"L3": "refuted"}, guard


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.name)
def test_a_wrong_decision_breaks_the_clauses_it_is_expected_to_break(variant: Variant) -> None:
    proof = prove(variant.system, SMALL)
    assert proof.verdict == "refuted"
    assert set(proof.refuted_clauses) == set(expected_of(variant).breaks)
    assert [o.obligation.label for o in proof.undecided] == []


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.name)
@pytest.mark.parametrize("origin", ["init", "pass"])
def test_the_shortest_counterexample_is_the_expected_one(variant: Variant, origin: Start) -> None:
    expected = expected_of(variant)
    if getattr(expected, f"from_{origin}") is None:
        pytest.skip("a protocol without passes")
    if len(expected.from_init) > 9 and origin == "init":
        pytest.skip("takes a minute: `mmcache-spec variants --check` does it, in CI")
    within = {
        "engine": [scope(2, 2, 1)],
        "progress": scopes_of("progress"),
        "processor_cache": scopes_of("processor_cache"),
    }.get(variant.system.name, scopes_up_to(3, 2, 2))
    found = shortest(variant.system, within, origin, 13, variant.aims_at)
    assert isinstance(found, Counterexample)
    assert found.actions == getattr(expected, f"from_{origin}")
    if expected.target is not None:
        assert expected.target in found.clauses


@pytest.mark.parametrize("variant", RIGHT, ids=lambda v: v.name)
def test_another_right_decision_is_proved_too(variant: Variant) -> None:
    assert prove(variant.system, SMALL).verdict == "proved"


FORGOTTEN = {
    "L5": (ledger(), "free_encoder_input", "freeable"),
    "L11": (ledger(), "check_and_update_cache", "held"),
    "E3": (encoder_decoder(), "free", "outstanding"),
    "S10": (engine(), "preempt", "encodes"),
    "S12": (engine(), "commit", "pending"),
    "S16": (progress(), "schedule", "cached"),
}
"""An effect without which the clause breaks, for each clause without a variant of its own."""


def test_every_clause_is_broken_by_some_variant_or_a_forgotten_effect() -> None:
    broken = {clause for v in WRONG for clause in expected_of(v).breaks}
    broken |= {target for v in WRONG if (target := expected_of(v).target) is not None}
    assert set(CLAUSES) - broken == set(FORGOTTEN)


@pytest.mark.parametrize("clause", FORGOTTEN)
def test_a_forgotten_effect_breaks_a_clause_without_a_variant(clause: str) -> None:
    system, name, variable = FORGOTTEN[clause]
    action = system.action(name)
    kept = tuple(line for line in action.effect if line[0].name != variable)
    forgetful = replace(action, effect=kept)
    broken = _with_action(system, action, forgetful)
    about = [o for o in obligations(broken) if _is_about(o, forgetful) and o.claim.clause == clause]
    assert "refuted" in {decide(o, SMALL).verdict for o in about}


def test_specified_has_no_short_counterexample() -> None:
    for system in SPECIFIED.systems:
        assert shortest(system, [scope(2, 2, 2)], "init", bound=4) is None


def test_a_counterexample_is_what_the_interpreter_says_it_is() -> None:
    found = shortest(VARIANTS["unfiltered_report"].system, [scope(2, 1, 2)])
    assert found is not None
    interpreter = Interpreter(VARIANTS["unfiltered_report"].system, found.world)
    *before, last = interpreter.run([s.call for s in found.steps])
    assert all(not [p for p in interpreter.breaks(s) if p.clause] for s in before)
    assert [p.name for p in interpreter.breaks(last) if p.clause] == ["report_disjoint_from_cached"]
    innocent = Interpreter(ledger(), found.world)
    assert all(not innocent.breaks(s) for s in innocent.run([s.call for s in found.steps]))


@pytest.mark.parametrize(
    ("name", "origin"), [("unfiltered_report", "init"), ("unfiltered_report", "pass")]
)
def test_the_unrolling_finds_the_same_length_in_a_wider_scope(name: str, origin: Start) -> None:
    """Z3 says so of 4 hashes and 3 requests of 2 inputs each."""
    system = VARIANTS[name].system
    found = shortest(system, scopes_up_to(2, 2, 2), origin)
    wider = unrolled(system, [scope(4, 3, 2)], origin)
    assert found is not None
    assert wider is not None
    assert found.length == wider.length


def test_the_least_world_of_a_repeated_credit_is_one_request_with_one_item() -> None:
    system = VARIANTS["encoder_decoder_repeated_credit"].system
    found = shortest(system, scopes_up_to(3, 2, 2))
    assert found is not None
    world = found.world
    assert {sort: len(xs) for sort, xs in world.universe.items()} == {
        "Hash": 1,
        "Request": 1,
        "Input": 1,
    }
    assert world.constants["capacity"] == world.functions["size"]["A"] == 1


# --- a second opinion --------------------------------------------------------------------------


@pytest.mark.parametrize("obligation", ALL, ids=lambda o: f"{o.system.name}: {o.label}")
def test_cvc5_agrees_that_it_is_proved(obligation: Obligation) -> None:
    for script in scripts(obligation):
        assert cvc5_says(script, timeout_ms=20_000) == "unsat", script.name


UNDECIDED = {
    "schedule preserves work_is_never_below_zero",
    "schedule preserves work_can_be_brought_down",
    "schedule preserves what_is_cached_fits",
    "schedule preserves the_record_agrees",
    "schedule satisfies work_falls_when_a_request_that_needs_embeddings_is_asked",
    "schedule satisfies work_falls_when_nobody_needs_any_and_the_head_is_asked",
}
"""Of progress: cvc5 proves them in the translation of z3, and in its own it does not know."""


@pytest.mark.parametrize("obligation", ALL, ids=lambda o: f"{o.system.name}: {o.label}")
def test_cvc5_agrees_in_another_translation(obligation: Obligation) -> None:
    """Another solver, and another translation of the terms."""
    said = {cvc5_decides(terms, timeout_ms=20_000) for terms in query_terms(obligation)}
    unsure = obligation.system.name == "progress" and obligation.label in UNDECIDED
    assert said <= ({"unsat", "unknown"} if unsure else {"unsat"})


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.name)
def test_cvc5_does_not_prove_what_is_refuted(variant: Variant) -> None:
    for obligation in obligations(variant.system):
        if decide(obligation, SMALL).verdict == "refuted":
            said = {cvc5_decides(terms, timeout_ms=1_000) for terms in query_terms(obligation)}
            assert said - {"unsat"}, obligation.label
            said = {cvc5_says(script, timeout_ms=1_000) for script in scripts(obligation)}
            assert said - {"unsat"}, obligation.label


def _doubted(system: TransitionSystem) -> list[str]:
    """The obligations of which z3 and cvc5 do not both say that they are proved."""
    return [
        o.label
        for o in obligations(system)
        if {cvc5_decides(terms, timeout_ms=2_000) for terms in query_terms(o)} != {"unsat"}
        or not is_proved(o)
    ]


def test_an_operator_that_one_translation_has_wrong_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = encoder_decoder()
    assert _doubted(system) == []
    whole = Cvc5Terms._make

    def wrong(self: Cvc5Terms, kind: Any, *parts: Any) -> Any:
        return whole(self, Kind.SUB if kind == Kind.ADD else kind, *parts)

    with monkeypatch.context() as patch:
        patch.setattr(Cvc5Terms, "_make", wrong)
        assert _doubted(system)
    with monkeypatch.context() as patch:
        patch.setitem(unbounded._OPERATORS, "add", lambda a, b: a - b)
        assert _doubted(encoder_decoder())
