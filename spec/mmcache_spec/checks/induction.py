"""Unbounded proof by induction: one obligation for each property and action.

Initiation: the initial state satisfies the invariant. Consecution: an action that starts where all
invariants hold ends where this one holds. Action: a call that starts where all invariants hold does
what the property says. A refuted obligation comes with a counterexample to induction (CTI), found
in a small universe where sums are sums, and executed again by the interpreter.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import z3

from ..evaluate.interpreter import Step, World
from ..evaluate.unbounded import Unbounded
from ..kernel.lemmas import Lemma, measure_instances
from ..kernel.system import Action, Axiom, Invariant, Property, Scope, TransitionSystem
from ..kernel.terms import (
    INT,
    Op,
    Symbol,
    Term,
    after,
    all_of,
    replaced,
    result,
    subterms,
    symbols,
    unnamed,
)
from .asking import AT_FIRST, AT_LAST, WITH_A_HINT, WITH_LITTLE_WORK, Attempt, unsatisfiable
from .bounded import unrolled, wrong_start

__all__ = [
    "CTI",
    "Obligation",
    "Outcome",
    "Verdict",
    "conjuncts",
    "decide",
    "facts",
    "formula_of",
    "framed",
    "holds_by_definition",
    "is_proved",
    "lemmas",
    "lemmas_given",
    "obligations",
    "premises",
    "queries",
    "query_terms",
]

Verdict = Literal["proved", "refuted", "unknown"]
Kind = Literal["initiation", "consecution", "action"]


@dataclass(frozen=True)
class Obligation:
    """One thing to prove. `action` is None for initiation."""

    system: TransitionSystem
    claim: Property
    action: Action | None
    kind: Kind
    given: frozenset[str] | None = None
    """The axioms and invariants that the proof may rest on, by name; None for all of them."""

    @property
    def label(self) -> str:
        if self.action is None:
            return f"{self.claim.name} holds initially"
        verb = "preserves" if self.kind == "consecution" else "satisfies"
        return f"{self.action.name} {verb} {self.claim.name}"


@dataclass(frozen=True)
class CTI:
    """A step from a state that satisfies every invariant to a violation of the property.

    For initiation there is no step: `step` is None, and the initial state itself is the violation.
    """

    system: TransitionSystem
    world: World
    step: Step | None


@dataclass(frozen=True)
class Outcome:
    """What became of an obligation, with the seconds that it took."""

    obligation: Obligation
    verdict: Verdict
    seconds: float
    cti: CTI | None = None
    by_definition: bool = False
    """Proved with no invariant at all: the definition of the call says so by itself."""


def obligations(system: TransitionSystem) -> Iterator[Obligation]:
    for invariant in system.invariants:
        yield Obligation(system, invariant, None, "initiation")
    for action in system.actions:
        for invariant in system.invariants:
            yield Obligation(system, invariant, action, "consecution")
    for prop in system.action_properties:
        yield Obligation(system, prop, system.action(prop.action), "action")


def decide(obligation: Obligation, scope: Scope, enough: frozenset[str] | None = None) -> Outcome:
    """Prove the obligation, or find a CTI within the scope, or admit that neither is known.

    Args:
        obligation: What is to be proved.
        scope: Where a CTI is looked for.
        enough: The axioms and invariants that are said to be enough. The solver is given these
            first, and all where it does not find the proof.
    """
    started = time.perf_counter()
    verdict: Verdict = "unknown"
    cti = None
    hinted = enough is not None and _proved(replace(obligation, given=enough), WITH_A_HINT)
    if hinted or is_proved(obligation):
        verdict = "proved"
    elif cti := _find_cti(obligation, scope):
        verdict = "refuted"
    elif _proved(obligation, AT_LAST):
        verdict = "proved"
    alone = verdict == "proved" and (
        _rests_on_no_invariant(obligation) or holds_by_definition(obligation)
    )
    return Outcome(obligation, verdict, time.perf_counter() - started, cti, alone)


def holds_by_definition(obligation: Obligation) -> bool:
    """Whether the claim of a call, or of the initial state, needs no invariant.

    It is true of what the definition says by itself: such a proof tells nothing of the rest. An
    invariant rests at least on itself. `False` says that it was not proved with little work.
    """
    if obligation.kind != "action":
        return obligation.kind == "initiation"
    bare = replace(obligation, system=_without_invariants(obligation.system))
    return _proved(bare, WITH_LITTLE_WORK)


def _rests_on_no_invariant(obligation: Obligation) -> bool:
    """Whether the proof is given no invariant: its premises, where it has any, name none."""
    return obligation.kind == "action" and not any(
        _is_given(obligation, i.name) for i in obligation.system.invariants
    )


def _is_given(obligation: Obligation, name: str) -> bool:
    """Whether the proof may rest on this axiom or invariant: see `Action.premises`."""
    action, given = obligation.action, obligation.given
    named = None if action is None else action.premises.get(obligation.claim.name)
    return (named is None or name in named) and (given is None or name in given)


@lru_cache(maxsize=4)
def _without_invariants(system: TransitionSystem) -> TransitionSystem:
    return system.claiming((), system.action_properties)


def is_proved(obligation: Obligation, attempts: Sequence[Attempt] = AT_FIRST) -> bool:
    """Whether the solver proves it at once; `False` says nothing."""
    return _proved(obligation, attempts)


def _proved(obligation: Obligation, attempts: Sequence[Attempt]) -> bool:
    """Whether some attempt shows of every query that it is unsatisfiable."""
    return all(unsatisfiable(query, attempts) for query in queries(obligation))


def queries(obligation: Obligation) -> Iterator[list[z3.BoolRef]]:
    """For each conjunct of the claim: assertions that are unsatisfiable exactly if it is proved."""
    for conjunct in conjuncts(formula_of(obligation)):
        yield _query(obligation, conjunct)


def formula_of(obligation: Obligation) -> Term:
    """What is to be shown, of the states before and after."""
    formula = obligation.claim.formula
    return formula if obligation.kind == "action" else after(formula)


def query_terms(obligation: Obligation) -> Iterator[list[Term]]:
    """The same as `queries`, before any translation: what is assumed, then the goal denied.

    The premises come first, in their order.
    """
    for conjunct in conjuncts(formula_of(obligation)):
        yield _query_terms(obligation, conjunct)


def _query(obligation: Obligation, conjunct: Term) -> list[z3.BoolRef]:
    terms = _query_terms(obligation, conjunct)
    asserted = _translation(obligation.system).assertions(terms)
    *assumed_formulas, goal = asserted[: len(terms)]
    return [*assumed_formulas, *asserted[len(terms) :], goal]


def _query_terms(obligation: Obligation, conjunct: Term) -> list[Term]:
    action = obligation.action
    assumed = [fact.formula for fact in premises(obligation)]
    if action is not None:
        assumed += action.guard.values()
    equations = _equations(obligation, conjunct)
    returns = None if action is None else action.returns
    if returns is not None and any(map(_speaks_of_the_answer, (conjunct, *equations))):
        assumed.append(result(returns.sort) == returns)
    assumed += [*equations, *facts(obligation, conjunct)]
    return [framed(obligation, term) for term in (*assumed, ~conjunct)]


def premises(obligation: Obligation) -> list[Axiom | Invariant]:
    """What is true of the world and of the state before, as far as the proof is given it."""
    system = obligation.system
    known: tuple[Axiom | Invariant, ...] = system.axioms
    if obligation.action is not None:
        known = (*known, *system.invariants)
    return [fact for fact in known if _is_given(obligation, fact.name)]


def _speaks_of_the_answer(term: Term) -> bool:
    return any(s.role == "result" for s in symbols(term))


@lru_cache(maxsize=4)
def _translation(system: TransitionSystem) -> Unbounded:
    """One for a system, so that its invariants are translated once."""
    return Unbounded()


def _frame(obligation: Obligation) -> dict[str, Symbol]:
    """The variables that the action leaves as they are, by name."""
    if obligation.action is None:
        return {}
    modified = obligation.action.modifies
    return {v.name: v for v in obligation.system.variables if v.name not in modified}


def framed(obligation: Obligation, term: Term) -> Term:
    """The term, with the value before in place of the value after, of what the action keeps."""
    kept = _frame(obligation)
    return replaced(term, lambda s: kept.get(s.name) if s.role == "next" else None)


def _equations(obligation: Obligation, conjunct: Term) -> list[Term]:
    """The next values of those variables of which the conjunct speaks."""
    action = obligation.action
    effect = obligation.system.init if action is None else action.effect
    used = {s.name for s in symbols(conjunct) if s.role == "next"}
    return [variable.next == value for variable, value in effect if variable.name in used]


def lemmas(obligation: Obligation) -> Iterator[Term]:
    """Every fact about finite sets that some query of the obligation is given."""
    for conjunct in conjuncts(formula_of(obligation)):
        yield from facts(obligation, conjunct)


def lemmas_given(obligation: Obligation) -> Iterator[Lemma]:
    """The same as lemmas: those of an invariant speak of the state before, not after."""
    for conjunct in conjuncts(formula_of(obligation)):
        yield from _instances(obligation, conjunct)
        yield from _of_the_claim(obligation)


def facts(obligation: Obligation, conjunct: Term) -> list[Term]:
    """The facts about finite sets that the query for this conjunct is given."""
    found = [lemma.formula for lemma in _instances(obligation, conjunct)]
    return found + [after(lemma.formula) for lemma in _of_the_claim(obligation)]


def _instances(obligation: Obligation, conjunct: Term) -> list[Lemma]:
    """The instances of the schemas at what the query speaks of, and those given for the action."""
    found: list[Lemma] = []
    if _speaks_of_amounts(obligation):
        given = obligation.given
        claimed = [
            i.formula for i in obligation.system.invariants if given is None or i.name in given
        ]
        found += measure_instances([conjunct, *_equations(obligation, conjunct), *claimed])
    if obligation.action is not None:
        found += obligation.action.lemmas.get(obligation.claim.name, ())
    return found


def _of_the_claim(obligation: Obligation) -> tuple[Lemma, ...]:
    claim = obligation.claim
    return claim.lemmas if isinstance(claim, Invariant) else ()


def conjuncts(term: Term) -> Iterator[Term]:
    """The parts of a conjunction, each of which is a query of its own."""
    term = unnamed(term)
    if isinstance(term, Op) and term.name == "and":
        for part in term.args:
            yield from conjuncts(part)
    else:
        yield term


def _speaks_of_amounts(obligation: Obligation) -> bool:
    """Whether the claim is about sums, or about a variable that some invariant equates with one.

    Only then are facts about sums of use; elsewhere each is one more formula to instantiate. It was
    tried to give them to every query: the engine took 1.6 times as long, and one query
    (`preempt` preserves `what_came_back_is_new`) was not proved at the first attempt. It is not a
    matter of soundness: the facts are true.
    """
    amounts = _amounts(obligation.system)
    return any(
        (isinstance(t, Op) and t.name == "total") or (isinstance(t, Symbol) and t.name in amounts)
        for t in subterms(obligation.claim.formula)
    )


@lru_cache(maxsize=8)
def _amounts(system: TransitionSystem) -> frozenset[str]:
    """The numbers of the state of which an invariant speaks beside a sum."""
    summed = [
        i.formula
        for i in system.invariants
        if any(isinstance(t, Op) and t.name == "total" for t in subterms(i.formula))
    ]
    return frozenset(
        t.name
        for formula in summed
        for t in subterms(formula)
        if isinstance(t, Symbol) and t.role == "state" and t.sort == INT
    )


def _find_cti(obligation: Obligation, scope: Scope) -> CTI | None:
    system, prop = obligation.system, obligation.claim
    action = obligation.action
    if action is None:
        return _wrong_start(obligation, scope)
    anywhere = replace(
        system,
        actions=(action,),
        action_properties=tuple(p for p in system.action_properties if p.action == action.name),
        pass_start=all_of(),
    )
    found = unrolled(anywhere, [scope], "pass", bound=1, properties=(prop,))
    return None if found is None else CTI(system, found.world, found.steps[0])


def _wrong_start(obligation: Obligation, scope: Scope) -> CTI | None:
    """A world in whose initial state the invariant is false."""
    assert isinstance(obligation.claim, Invariant)
    world = wrong_start(obligation.system, scope, obligation.claim)
    return None if world is None else CTI(obligation.system, world, None)
