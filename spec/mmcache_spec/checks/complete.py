"""Completeness: whatever satisfies the clauses gives the same answers, for ever.

Two designs are taken of which nothing is known but that they satisfy the clauses. Up to now they
have been asked the same and have answered the same, so the observer has one record of them, and
sees the same of both. Now they are asked the same again. What they answer, and what is then seen
of them, is the same: one question for each call and each thing that can be seen. No effect and no
answer of any action is assumed, and no invariant that is not a clause.

Where a question is open there are two answers, and the clauses allow both: that pair is what is
missing from the clauses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import z3

from ..evaluate.unbounded import Unbounded
from ..kernel.lemmas import Lemma, measure_instances, monotone
from ..kernel.system import Action, Scope, TransitionSystem
from ..kernel.terms import (
    Op,
    Symbol,
    Term,
    after,
    alpha_form,
    replaced,
    result,
    same_value,
    subterms,
    symbols,
)
from .asking import PATIENTLY, WITH_A_HINT, unsatisfiable
from .induction import Verdict
from .two_answers import ALLOWED, ANSWER, COPIES, Copy, Difference, Question, difference

__all__ = [
    "QuestionOutcome",
    "claims",
    "decide",
    "equal_totals",
    "lemmas",
    "premises",
    "query",
    "query_terms",
    "questions",
    "totals",
]


@dataclass(frozen=True)
class QuestionOutcome:
    """Whether an answer is determined; if not, two designs that differ in it, where found."""

    question: Question
    verdict: Verdict
    seconds: float
    difference: Difference | None = None


def questions(system: TransitionSystem) -> Iterator[Question]:
    """What completeness comes to; nothing, of a system that does not claim it."""
    if not system.freedoms:
        return
    for what in system.observables:
        yield Question(system, None, what)
    for action in system.actions:
        if _hidden_in(action.enabled, system):
            yield Question(system, action, ALLOWED)
        if action.returns is not None:
            yield Question(system, action, ANSWER)
        for what in system.observables:
            yield Question(system, action, what)


def decide(
    question: Question, scope: Scope, enough: frozenset[str] | None = None
) -> QuestionOutcome:
    """Prove that there is one answer, or find two within the scope, or admit that neither is so.

    The premises that are said to be enough are tried first, and all where they are not.
    """
    started = time.perf_counter()
    verdict: Verdict = "unknown"
    found = None
    hinted = enough is not None and unsatisfiable(query(question, enough), WITH_A_HINT)
    said = hinted or (question.what == ANSWER and unsatisfiable(answer_query(question)))
    if said or unsatisfiable(query(question)):
        verdict = "proved"
    elif found := difference(question, scope):
        verdict = "refuted"
    elif unsatisfiable(query(question), PATIENTLY):
        verdict = "proved"
    return QuestionOutcome(question, verdict, time.perf_counter() - started, found)


# --- any number of elements --------------------------------------------------------------------


def query(question: Question, given: frozenset[str] | None = None) -> list[z3.BoolRef]:
    """Assertions that are unsatisfiable exactly if there is one answer. The goal comes last.

    Without the premises that are not given, by name, it is the harder to show.
    """
    return _asserted(question.system, query_terms(question, given))


def query_terms(question: Question, given: frozenset[str] | None = None) -> list[Term]:
    """The same before any translation. The premises come first, in their order."""
    goal = _agreement(question, question.what)
    facts = [lemma.formula for lemma in _facts(question, given)]
    assumed = [t for name, t in premises(question) if given is None or name in given]
    return [*assumed, *_known(question), *facts, ~goal]


def premises(question: Question) -> tuple[tuple[str, Term], ...]:
    """What is known of the world, and of each of the two designs, by name."""
    return _call(question).assumed


def answer_query(question: Question) -> list[z3.BoolRef]:
    """The same, of an answer, with nothing but the clauses that speak of it and of no later state.

    Many an answer is determined by these, and fewer formulas make a proof faster, never easier.
    """
    system, action = question.system, question.action
    assert action is not None
    said = [p.formula for p in system.action_properties if p.action == action.name and p.clause]
    said = [term for term in said if not any(s.role == "next" for s in symbols(term))]
    known = [axiom.formula for axiom in system.axioms] + _known(question)
    for copy in COPIES:
        known += [_copied(copy, system, action, t) for t in (*action.guard.values(), *said)]
    return _asserted(system, [*known, ~_agreement(question, ANSWER)])


def _asserted(system: TransitionSystem, terms: list[Term]) -> list[z3.BoolRef]:
    """The terms with the definitions of what occurs in them, and the last of them last."""
    asserted = _translation(system).assertions(terms)
    *assumed, contrary = asserted[: len(terms)]
    return [*assumed, *asserted[len(terms) :], contrary]


def lemmas(question: Question) -> tuple[Lemma, ...]:
    """Facts about finite sets: of each copy, and that equal sets have equal totals."""
    return _facts(question, None)


def _facts(question: Question, given: frozenset[str] | None) -> tuple[Lemma, ...]:
    """Those that speak of the premises that are given, and those that are given by hand."""
    call = _call(question)
    if given is None:
        return call.facts
    return (*call.by_hand, *_of_totals([[c for c in m if c[0] in given] for m in call.copies]))


@dataclass(frozen=True)
class _Call:
    """One call of two designs, whatever is asked about it."""

    assumed: tuple[tuple[str, Term], ...]
    copies: tuple[list[tuple[str, Term]], ...]
    by_hand: tuple[Lemma, ...]

    @cached_property
    def facts(self) -> tuple[Lemma, ...]:
        return (*self.by_hand, *_of_totals(self.copies))


def _call(question: Question) -> _Call:
    name = None if question.action is None else question.action.name
    return _prepared(question.system, name, question.what == ALLOWED)


@lru_cache(maxsize=64)
def _prepared(system: TransitionSystem, name: str | None, only_before: bool) -> _Call:
    action = None if name is None else system.action(name)
    claimed = _named_claims(system, action, only_before=only_before)
    copies = tuple(
        [(said, _copied(c, system, action, claim)) for said, claim in claimed] for c in COPIES
    )
    axioms = ((axiom.name, axiom.formula) for axiom in system.axioms)
    by_hand = (
        lemma.renamed(partial(_symbol, copy, system, action))
        for lemma in system.uniqueness.get(name or "", ())
        for copy in COPIES
    )
    return _Call((*axioms, *copies[0], *copies[1]), copies, tuple(by_hand))


def _of_totals(copies: Sequence[Sequence[tuple[str, Term]]]) -> Iterator[Lemma]:
    """What the schemas say of the totals in the claims: of each copy, and of the two together."""
    both = [[claim for _, claim in claims] for claims in copies]
    for claims in both:
        yield from measure_instances(claims)
    for one, two in zip(*(map(totals, claims) for claims in both), strict=True):
        for a, b in zip(one, two, strict=True):
            if a is not b:
                yield from equal_totals(a, b)


def claims(
    system: TransitionSystem, action: Action | None, *, only_before: bool = False
) -> list[Term]:
    """All that is known of one design: its clauses, and the record that is kept of it."""
    return [claim for _, claim in _named_claims(system, action, only_before=only_before)]


def _named_claims(
    system: TransitionSystem, action: Action | None, *, only_before: bool
) -> list[tuple[str, Term]]:
    clauses = [(i.name, i.formula) for i in system.invariants if i.clause is not None]
    later = [(f"{name} after", after(formula)) for name, formula in clauses]
    if action is None:
        first = (
            (f"the record of {m.variable.name}", m.variable.next == m.init) for m in system.monitors
        )
        return [*later, *first]
    if only_before:
        return clauses
    properties = (p for p in system.action_properties if p.action == action.name and p.clause)
    own = ((p.name, p.formula) for p in properties)
    guards = ((f"the guard {name}", guard) for name, guard in action.guard.items())
    record = (
        (
            f"the record of {m.variable.name}",
            m.variable.next == m.updates.get(action.name, m.variable),
        )
        for m in system.monitors
    )
    return [*clauses, *guards, *own, *later, *record]


def _copied(copy: Copy, system: TransitionSystem, action: Action | None, term: Term) -> Term:
    return replaced(term, partial(_symbol, copy, system, action))


def _symbol(
    copy: Copy, system: TransitionSystem, action: Action | None, symbol: Symbol
) -> Symbol | None:
    """The symbol for one of the two designs; None where they share it.

    They share the world, the call, the record up to now, and what was seen up to now.
    """
    shared = symbol.role == "state" and action is not None and symbol.name in system.observed
    if shared or symbol.role not in ("state", "next", "result"):
        return None
    return replace(symbol, name=f"{symbol.name}#{copy}")


def _known(question: Question) -> list[Term]:
    """What the two have in common already: what was seen before, and what was asked before."""
    seen = list(question.system.observables)
    known = []
    if question.action is not None:
        hidden = [n for n in seen if not isinstance(question.system.observables[n], Symbol)]
        known += [_same(question, question.system.observables[name]) for name in hidden]
    if question.what in seen:
        before = seen[: seen.index(question.what)]
        known += [_agreement(question, name) for name in before]
        if question.action is not None and question.action.returns is not None:
            known.append(_agreement(question, ANSWER))
    return known


def _agreement(question: Question, what: str) -> Term:
    """The two agree on this."""
    action = question.action
    if what == ALLOWED:
        assert action is not None
        return _same(question, action.enabled)
    if what == ANSWER:
        assert action is not None
        assert action.returns is not None
        return _same(question, result(action.returns.sort))
    return _same(question, after(question.system.observables[what]))


def _same(question: Question, term: Term) -> Term:
    one, two = (_copied(c, question.system, question.action, term) for c in COPIES)
    return same_value(one, two)


def totals(term: Term) -> list[Op]:
    """The sums in a formula, but for those over a bound variable."""
    sums = (t for t in subterms(term) if isinstance(t, Op) and t.name == "total")
    return [t for t in sums if not alpha_form(t)[1]]


def equal_totals(one: Term, two: Term) -> Iterator[Lemma]:
    """Sets that hold each other have the same total."""
    assert isinstance(one, Op)
    assert isinstance(two, Op)
    assert one.function is not None
    yield monotone(one.args[0], two.args[0], one.function)
    yield monotone(two.args[0], one.args[0], one.function)


@lru_cache(maxsize=4)
def _translation(system: TransitionSystem) -> Unbounded:
    return Unbounded()


def _hidden_in(term: Term, system: TransitionSystem) -> bool:
    symbols = (t for t in subterms(term) if isinstance(t, Symbol))
    return any(s.role == "state" and s.name not in system.observed for s in symbols)
