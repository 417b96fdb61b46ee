"""The clauses are complete; each of them is needed or follows; a gap is shown by two answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmcache_spec.checks.asking import unsatisfiable
from mmcache_spec.checks.bounded import Disagreement
from mmcache_spec.checks.complete import decide, query, questions
from mmcache_spec.checks.proof import prove_complete
from mmcache_spec.checks.redundancy import follows, without
from mmcache_spec.checks.smtlib import cvc5_says, question_script
from mmcache_spec.checks.two_answers import (
    ALLOWED,
    ANSWER,
    Difference,
    Question,
    confirm,
    difference,
)
from mmcache_spec.kernel.system import Action, Property, TransitionSystem
from mmcache_spec.kernel.terms import BOOL, FALSE, Symbol, Term, empty, subterms
from mmcache_spec.model import ledger as lg
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import ledger
from mmcache_spec.model.redundant import REDUNDANT, place_of
from mmcache_spec.model.world import HASH, scope
from mmcache_spec.render.completeness import answer_story, complete_summary

SMALL = scope(3, 2, 2)
SYSTEMS = (ledger(), encoder_decoder())
CLAIMS = [(s, p) for s in SYSTEMS for p in s.properties if p.clause is not None]


def named(system: TransitionSystem, claim: Property) -> str:
    clause, action = place_of(claim)
    return f"{system.name}-{clause}-{claim.name}{f'-{action}' if action else ''}"


def is_needed(system: TransitionSystem, claim: Property) -> bool:
    return place_of(claim) not in REDUNDANT[system.name]


NEEDED = [(s, p) for s, p in CLAIMS if is_needed(s, p)]
FOLLOWING = [(s, p) for s, p in CLAIMS if not is_needed(s, p)]


@pytest.fixture(params=SYSTEMS, ids=lambda s: s.name)
def system(request: pytest.FixtureRequest) -> TransitionSystem:
    found: TransitionSystem = request.param
    return found


def is_complete(system: TransitionSystem) -> bool:
    proof = prove_complete(system, SMALL)
    return bool(proof.decided) and not proof.undetermined


# --- the theorem -------------------------------------------------------------------------------


def test_everything_that_can_be_seen_is_asked_for_after_every_call(
    system: TransitionSystem,
) -> None:
    asked = {(q.action.name if q.action else None, q.what) for q in questions(system)}
    calls = [None, *(a.name for a in system.actions)]
    assert {(c, what) for c in calls for what in system.observables} <= asked
    assert {(a.name, ANSWER) for a in system.actions if a.returns is not None} <= asked


def test_the_clauses_are_complete(system: TransitionSystem) -> None:
    assert is_complete(system)


def _anything(action: Action) -> Term | None:
    if action.returns is None:
        return None
    return FALSE if action.returns.sort == BOOL else empty(HASH)


def test_no_effect_and_no_answer_of_an_action_is_assumed(system: TransitionSystem) -> None:
    actions = tuple(replace(a, effect=(), returns=_anything(a)) for a in system.actions)
    assert is_complete(replace(system, actions=actions))


def test_no_invariant_is_assumed_that_is_not_a_clause(system: TransitionSystem) -> None:
    assert any(i.clause is None for i in system.invariants)
    assert is_complete(without(system, *(i for i in system.invariants if i.clause is None)))


def test_what_is_assumed_contradicts_nothing(system: TransitionSystem) -> None:
    """Without its goal, a query has models, or the solver cannot say; it is never refuted."""
    first = {q.action.name if q.action else None: q for q in questions(system)}
    assert len(first) == len(system.actions) + 1
    for question in first.values():
        assert not unsatisfiable(query(question)[:-1]), question.label


HIDDEN = {"ledger": {"since"}, "encoder_decoder": set[str]()}
"""What the clauses mention though nobody sees it: the order of age is of times."""


def test_clauses_speak_of_the_record_and_of_what_can_be_seen(system: TransitionSystem) -> None:
    claimed = [p.formula for p in system.properties if p.clause is not None]
    symbols = {t for c in claimed for t in subterms(c) if isinstance(t, Symbol)}
    record = {m.variable.name for m in system.monitors}
    told = {s.name for s in symbols if s.role in ("state", "next")}
    assert told - record - system.observed == HIDDEN[system.name]


def test_what_can_be_seen_does_not_depend_on_the_design() -> None:
    """The clauses are of the protocol: a wrong design is given the same ones."""
    wrong = ledger(lg.LedgerDesign(report="unfiltered"))
    assert [p.name for p in wrong.properties] == [p.name for p in ledger().properties]


# --- each clause -------------------------------------------------------------------------------


def gap(system: TransitionSystem, claim: Property) -> Difference | None:
    """Two answers that the other clauses allow."""
    _, action = place_of(claim)
    rest = without(system, claim)
    for question in questions(rest):
        about = question.action.name if question.action else None
        if action in (None, about) and (found := difference(question, SMALL)):
            return found
    return None


@pytest.mark.parametrize(("system", "claim"), NEEDED, ids=[named(*x) for x in NEEDED])
def test_without_this_clause_two_answers_are_left(
    system: TransitionSystem, claim: Property
) -> None:
    found = gap(system, claim)
    assert found is not None
    assert decide(found.question, SMALL).verdict == "refuted"


@pytest.mark.parametrize(("system", "claim"), FOLLOWING, ids=[named(*x) for x in FOLLOWING])
def test_a_clause_that_is_listed_as_redundant_follows(
    system: TransitionSystem, claim: Property
) -> None:
    assert follows(system, claim)
    assert gap(system, claim) is None


def test_the_redundant_clauses_are_redundant_together(system: TransitionSystem) -> None:
    following = [p for s, p in FOLLOWING if s is system]
    assert {place_of(p) for p in following} == set(REDUNDANT[system.name])
    assert is_complete(without(system, *following))


def test_a_needed_clause_does_not_follow() -> None:
    (claim,) = (p for p in ledger().properties if p.name == "held_while_needed")
    assert not follows(ledger(), claim)


# --- a gap is shown ----------------------------------------------------------------------------


def test_two_answers_are_told_to_people() -> None:
    system = ledger()
    (claim,) = (p for p in system.properties if p.name == "eviction_never_runs_dry")
    rest = without(system, claim)
    (question,) = (
        q
        for q in questions(rest)
        if q.action and (q.action.name, q.what) == ("can_allocate", "cached")
    )
    lines = list(answer_story(decide(question, scope(2, 1, 1))))
    assert lines[0] == (
        "? cached after can_allocate is not determined: every clause allows both of these"
    )
    one, two = lines[-2:]
    assert "answers True" in one
    assert "answers True" in two
    assert one.split("cached")[1] != two.split("cached")[1]


def test_a_start_that_is_not_determined_is_told_too() -> None:
    system = encoder_decoder()
    (claim,) = (p for p in system.properties if p.name == "charged_while_needed")
    question = next(questions(without(system, claim)))
    lines = list(answer_story(decide(question, scope(1, 1, 1))))
    assert lines[0].startswith("? charged at the start is not determined")
    assert len(lines) == 4


def test_an_incomplete_set_of_clauses_is_not_proved() -> None:
    system = encoder_decoder()
    (claim,) = (p for p in system.properties if p.name == "notice_after_the_step")
    proof = prove_complete(without(system, claim), scope(2, 1, 1))
    assert proof.verdict == "unknown"
    assert [a.question.label for a in proof.undetermined] == ["the answer of get_freed_mm_hashes"]
    summary = list(complete_summary(system, proof.decided))
    assert "NOT COMPLETE: 18 of 19" in summary[0]


def test_no_answers_at_all_is_not_complete() -> None:
    assert not is_complete(replace(ledger(), freedoms={}))


def test_a_guard_that_rests_on_what_nobody_sees_is_asked_for() -> None:
    system = ledger()
    allocate = system.action("allocate")
    secret = replace(allocate, guard={**allocate.guard, "secret": lg.clock > 3})
    actions = tuple(secret if a.name == "allocate" else a for a in system.actions)
    undeclared = replace(system, actions=actions, duties=None)
    asked = [q for q in questions(undeclared) if q.what == ALLOWED]
    assert [q.label for q in asked] == ["the duties of allocate"]
    assert decide(asked[0], SMALL).verdict == "refuted"


def test_the_interpreter_has_a_veto() -> None:
    """A difference that the clauses do not allow, and one that is none, are disbelieved."""
    system = ledger()
    (claim,) = (p for p in system.properties if p.name == "held_while_needed")
    found = gap(system, claim)
    assert found is not None
    confirm(found)
    believed = Question(system, found.question.action, found.question.what)
    with pytest.raises(Disagreement, match="denies"):
        confirm(replace(found, question=believed))
    with pytest.raises(Disagreement, match="sees no difference"):
        confirm(replace(found, starts=(found.starts[0],) * 2, steps=found.steps[:1] * 2))


# --- a second opinion --------------------------------------------------------------------------

QUESTIONS = [q for s in SYSTEMS for q in questions(s)]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.system.name}: {q.label}")
def test_cvc5_agrees_that_it_is_determined(question: Question) -> None:
    whole = cvc5_says(question_script(question), timeout_ms=2_000)
    assert whole != "sat"
    assert "unsat" in (whole, cvc5_says(question_script(question, core=True), timeout_ms=20_000))


def test_cvc5_does_not_prove_what_is_not_determined() -> None:
    system = encoder_decoder()
    (claim,) = (p for p in system.properties if p.name == "notice_after_the_step")
    (question,) = (
        q
        for q in questions(without(system, claim))
        if q.what == ANSWER and q.action and q.action.name == "get_freed_mm_hashes"
    )
    for core in (False, True):
        assert cvc5_says(question_script(question, core=core), timeout_ms=1_000) != "unsat"
