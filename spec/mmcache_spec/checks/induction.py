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
from .bounded import unrolled, wrong_start

__all__ = [
    "CTI",
    "OF_A_DESIGN",
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
    "queries",
    "query_terms",
    "unsatisfiable",
]

Verdict = Literal["proved", "refuted", "unknown"]
Kind = Literal["initiation", "consecution", "action"]


@dataclass(frozen=True)
class Attempt:
    """One way to ask z3. Any that answers `unsat` is as good as another.

    `work` is the most that the solver may do, counted by itself (`rlimit`) and not by a clock: a
    busy machine takes longer and answers the same. Here a million is about 0.8 s.
    """

    work: int
    mbqi: bool = True
    seed: int = 0


AT_FIRST = (Attempt(800_000), Attempt(800_000, mbqi=False))
"""Before a counterexample is looked for. Of the specified systems the hardest query needs 610,000,
the hardest but three 270,000, and nearly every one less than a tenth.

Two strategies for quantifiers, since each fails where the other is quick: with `mbqi` z3 also tries
instances out of a candidate model, without it only those that a term of the query suggests.
"""

AT_LAST = (
    *(Attempt(2_500_000, mbqi, seed) for seed in (0, 1, 3, 5) for mbqi in (True, False)),
    Attempt(25_000_000),
)
"""When none was found.

Which instances z3 tries, and in which order, depends on the seed, so a query that one seed does not
finish another may. The numbers mean nothing: any seed that answers `unsat` has proved it, and no
other answer is used. Of the specified systems no query comes here; where a new one does, look for a
missing lemma first.
"""

WITH_LITTLE_WORK = (Attempt(150_000), Attempt(150_000, mbqi=False))
"""For questions that are asked of everything, and where a `no` costs little."""

OF_A_DESIGN = (Attempt(400_000), Attempt(400_000, mbqi=False))
"""For designs that are made by the thousand, and mostly are not as they should be."""

WITH_MORE_WORK = (*OF_A_DESIGN, Attempt(3_000_000, mbqi=False), Attempt(3_000_000))
"""For the few obligations of such a design that its change touches."""


@dataclass(frozen=True)
class Obligation:
    """One thing to prove. `action` is None for initiation."""

    system: TransitionSystem
    claim: Property
    action: Action | None
    kind: Kind

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


def decide(obligation: Obligation, scope: Scope) -> Outcome:
    """Prove the obligation, or find a CTI within the scope, or admit that neither is known."""
    started = time.perf_counter()
    verdict: Verdict = "unknown"
    cti = None
    if is_proved(obligation):
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
    if obligation.kind != "action" or obligation.action is None:
        return False
    named = obligation.action.premises.get(obligation.claim.name)
    return named is not None and not {i.name for i in obligation.system.invariants} & set(named)


@lru_cache(maxsize=4)
def _without_invariants(system: TransitionSystem) -> TransitionSystem:
    return system.claiming((), system.action_properties)


def is_proved(obligation: Obligation, attempts: Sequence[Attempt] = AT_FIRST) -> bool:
    """Whether the solver proves it at once; `False` says nothing."""
    return _proved(obligation, attempts)


def unsatisfiable(query: list[z3.BoolRef], *, patiently: bool = False) -> bool:
    """Whether some attempt shows it; `False` says nothing."""
    attempts = (*AT_FIRST, *AT_LAST) if patiently else AT_FIRST
    return any(_unsat(query, attempt) for attempt in attempts)


def _proved(obligation: Obligation, attempts: Sequence[Attempt]) -> bool:
    """Whether some attempt shows of every query that it is unsatisfiable."""
    return all(any(_unsat(query, a) for a in attempts) for query in queries(obligation))


def _unsat(query: list[z3.BoolRef], attempt: Attempt) -> bool:
    solver = z3.Solver()
    solver.set("mbqi", attempt.mbqi)
    solver.set("random_seed", attempt.seed)
    solver.set("rlimit", attempt.work)
    solver.add(*query)
    return bool(solver.check() == z3.unsat)


def queries(obligation: Obligation) -> Iterator[list[z3.BoolRef]]:
    """For each conjunct of the claim: assertions that are unsatisfiable exactly if it is proved."""
    for conjunct in conjuncts(formula_of(obligation)):
        yield _query(obligation, conjunct)


def formula_of(obligation: Obligation) -> Term:
    """What is to be shown, of the states before and after."""
    formula = obligation.claim.formula
    return formula if obligation.kind == "action" else after(formula)


def query_terms(obligation: Obligation) -> Iterator[list[Term]]:
    """The same as `queries`, before any translation: what is assumed, then the goal denied."""
    for conjunct in conjuncts(formula_of(obligation)):
        yield _query_terms(obligation, conjunct)


def _query(obligation: Obligation, conjunct: Term) -> list[z3.BoolRef]:
    terms = _query_terms(obligation, conjunct)
    asserted = _translation(obligation.system).assertions(terms)
    *assumed_formulas, goal = asserted[: len(terms)]
    return [*assumed_formulas, *asserted[len(terms) :], goal]


def _query_terms(obligation: Obligation, conjunct: Term) -> list[Term]:
    action = obligation.action
    assumed = _premises(obligation)
    if action is not None:
        assumed += action.guard.values()
    equations = _equations(obligation, conjunct)
    returns = None if action is None else action.returns
    if returns is not None and any(map(_speaks_of_the_answer, (conjunct, *equations))):
        assumed.append(result(returns.sort) == returns)
    assumed += [*equations, *facts(obligation, conjunct)]
    return [framed(obligation, term) for term in (*assumed, ~conjunct)]


def _premises(obligation: Obligation) -> list[Term]:
    """What is true of the world and of the state before, as far as the proof is given it."""
    system, action = obligation.system, obligation.action
    if action is None:
        return [axiom.formula for axiom in system.axioms]
    known: tuple[Axiom | Invariant, ...] = (*system.axioms, *system.invariants)
    named = action.premises.get(obligation.claim.name)
    return [fact.formula for fact in known if named is None or fact.name in named]


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
        claimed = [i.formula for i in obligation.system.invariants]
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
