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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

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
)
from .induction import Verdict, unsatisfiable
from .two_answers import ALLOWED, ANSWER, COPIES, Copy, Difference, Question, difference

__all__ = ["Answer", "decide", "lemmas", "query", "questions"]


@dataclass(frozen=True)
class Answer:
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


def decide(question: Question, scope: Scope) -> Answer:
    """Prove that there is one answer, or find two within the scope, or admit that neither is so."""
    started = time.perf_counter()
    verdict: Verdict = "unknown"
    found = None
    if unsatisfiable(query(question)):
        verdict = "proved"
    elif found := difference(question, scope):
        verdict = "refuted"
    elif unsatisfiable(query(question), patiently=True):
        verdict = "proved"
    return Answer(question, verdict, time.perf_counter() - started, found)


# --- any number of elements --------------------------------------------------------------------


@dataclass(frozen=True)
class _View:
    """How the two copies see the symbols of one system: what they share, and what each has."""

    system: TransitionSystem
    action: Action | None
    known_after: frozenset[str]
    """The observables of which it is known already that they are the same after the call."""
    answers_known: bool

    @property
    def _before(self) -> frozenset[str]:
        return self.system.observed if self.action is not None else frozenset()

    @property
    def _after(self) -> frozenset[str]:
        seen = self.system.observables
        plain = (seen[name] for name in self.known_after)
        return frozenset(t.name for t in plain if isinstance(t, Symbol))

    def symbol(self, copy: Copy, symbol: Symbol) -> Symbol | None:
        """The symbol for this copy of a design, where it is not shared."""
        if symbol.role == "next" and symbol.name in self._kept_record:
            return replace(symbol, role="ghost")
        own = {
            "state": symbol.name not in self._before,
            "next": symbol.name not in self._after,
            "result": not self.answers_known,
        }
        return replace(symbol, name=f"{symbol.name}#{copy}") if own.get(symbol.role) else None

    @property
    def _kept_record(self) -> frozenset[str]:
        """The lines of the record that this call leaves as they are."""
        if self.action is None:
            return frozenset()
        name = self.action.name
        return frozenset(m.variable.name for m in self.system.monitors if name not in m.updates)

    def term(self, copy: Copy, term: Term) -> Term:
        return replaced(term, lambda s: self.symbol(copy, s))

    def lemma(self, copy: Copy, lemma: Lemma) -> Lemma:
        return lemma.renamed(lambda s: self.symbol(copy, s))


def query(question: Question) -> list[z3.BoolRef]:
    """Assertions that are unsatisfiable exactly if the question has one answer."""
    view = _view(question)
    claimed = _claims(question)
    assumed = [axiom.formula for axiom in question.system.axioms]
    assumed += [view.term(copy, claim) for copy in COPIES for claim in claimed]
    assumed += _agreements(question, view)
    goal = _agreement(question.what, question, view)
    assumed += [lemma.formula for lemma in lemmas(question)]
    return _translation(question.system).assertions([*assumed, ~goal])


def lemmas(question: Question) -> Iterator[Lemma]:
    """Facts about finite sets: of each copy, and that equal sets have equal totals."""
    view, claimed = _view(question), _claims(question)
    for copy in COPIES:
        yield from measure_instances(view.term(copy, claim) for claim in claimed)
        if question.action is not None:
            for lemma in question.system.uniqueness.get(question.action.name, ()):
                yield view.lemma(copy, lemma)
    for term in (t for claim in claimed for t in _totals(claim)):
        one, two = (view.term(copy, term.args[0]) for copy in COPIES)
        if one is not two and term.function is not None:
            yield monotone(one, two, term.function)
            yield monotone(two, one, term.function)


def _totals(term: Term) -> Iterator[Op]:
    """The sums of a formula; those of bound elements, as the model has it, in `uniqueness`."""
    for t in subterms(term):
        if isinstance(t, Op) and t.name == "total" and not _is_open(t):
            yield t


def _is_open(term: Term) -> bool:
    return bool(alpha_form(term)[1])


@lru_cache(maxsize=4)
def _translation(system: TransitionSystem) -> Unbounded:
    return Unbounded()


def _view(question: Question) -> _View:
    seen = list(question.system.observables)
    before = seen[: seen.index(question.what)] if question.what in seen else ()
    return _View(
        question.system,
        question.action,
        frozenset(before),
        answers_known=question.what in seen,
    )


def _claims(question: Question) -> list[Term]:
    """All that is known of one design: its clauses, and the record that is kept of it."""
    system, action = question.system, question.action
    clauses = [i.formula for i in system.invariants if i.clause is not None]
    if action is None:
        first = [m.variable.next == m.init for m in system.monitors]
        return [*map(after, clauses), *first]
    own = [p.formula for p in system.action_properties if p.action == action.name and p.clause]
    record = [
        m.variable.next == m.updates[action.name]
        for m in system.monitors
        if action.name in m.updates
    ]
    if question.what == ALLOWED:
        return clauses
    return [*clauses, *action.guard.values(), *own, *map(after, clauses), *record]


def _agreements(question: Question, view: _View) -> list[Term]:
    """What was seen before is the same of both, and what is known of it after the call."""
    found = []
    for name, term in question.system.observables.items():
        if question.action is not None and not isinstance(term, Symbol):
            found.append(same_value(*(view.term(copy, term) for copy in COPIES)))
        if name in view.known_after and not isinstance(term, Symbol):
            found.append(same_value(*(view.term(copy, after(term)) for copy in COPIES)))
    return found


def _agreement(what: str, question: Question, view: _View) -> Term:
    action = question.action
    if what == ALLOWED:
        assert action is not None
        term = action.enabled
    elif what == ANSWER:
        assert action is not None and action.returns is not None
        term = result(action.returns.sort)
    else:
        term = after(question.system.observables[what])
    return same_value(*(view.term(copy, term) for copy in COPIES))


def _hidden_in(term: Term, system: TransitionSystem) -> bool:
    symbols = (t for t in subterms(term) if isinstance(t, Symbol))
    return any(s.role == "state" and s.name not in system.observed for s in symbols)
