"""What the lemmas take for granted: that sets are finite, and weights not negative.

The schemas of `kernel.lemmas` are proved of finite sets and non-negative weights. Here it is shown
of a system that its sets are finite for ever, that every total and every lemma of its proofs is
about finite ones, and that the axioms make every weight non-negative. The axioms are asked through
the solver, as a proof is: what it does not show is not taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import z3

from ..evaluate.unbounded import Unbounded
from ..kernel.finiteness import holds_sets, is_finite, not_shown_finite
from ..kernel.schemas import Lemma
from ..kernel.system import TransitionSystem
from ..kernel.terms import INT, Function, Op, Symbol, Term, alpha_form, forall, subterms
from . import complete
from .induction import lemmas_given, obligations

__all__ = [
    "Unfounded",
    "few_for_each_value",
    "given_lemmas",
    "infinite_states",
    "is_never_negative",
    "unfounded",
]


MOST_WORK = 3_000_000
"""The questions are about axioms alone; each takes a few milliseconds."""


NOT_FINITE = "is not shown to be finite"
NEGATIVE = "may be negative, for all that the axioms say"


@dataclass(frozen=True)
class Unfounded:
    """Something that is taken for granted and not shown.

    Attributes:
        where: The system, and the action, invariant or lemma in it.
        says: What is not shown of `about`; it reads after it.
        about: A set, or the value of a weight.
    """

    where: str
    says: str
    about: Term


def unfounded(system: TransitionSystem) -> list[Unfounded]:
    """What the proofs of the system take for granted of sets and weights, and is not shown."""
    few = few_for_each_value(system)
    found = [*infinite_states(system, few), *_totals(system, few), *_lemmas(system, few)]
    weights = {f: None for term, _ in _formulas(system) for f in _weights(term)}
    weights |= {f: None for lemma in given_lemmas(system) for f in lemma.weights}
    for weight in weights:
        if not is_never_negative(system, weight):
            x = Symbol(weight.domain, "x", "bound")
            found.append(Unfounded(system.name, NEGATIVE, weight(x)))
    return found


def infinite_states(system: TransitionSystem, few: Collection[Function]) -> Iterator[Unfounded]:
    """The sets of the state are finite at first, and every action leaves them finite."""
    effects = [("the initial state", system.init), *((a.name, a.effect) for a in system.actions)]
    for name, effect in effects:
        for variable, value in effect:
            if holds_sets(variable) and not is_finite(value, few):
                where = f"{system.name}: {variable.name} after {name}"
                yield Unfounded(where, NOT_FINITE, value)
    for action in system.actions:
        answer = action.returns
        if answer is not None and holds_sets(answer) and not is_finite(answer, few):
            where = f"{system.name}: the answer of {action.name}"
            yield Unfounded(where, NOT_FINITE, answer)


def _totals(system: TransitionSystem, few: Collection[Function]) -> Iterator[Unfounded]:
    for term, where in _formulas(system):
        for members in not_shown_finite(term, few):
            yield Unfounded(
                f"{system.name}: a total, or a largest, in {where}", NOT_FINITE, members
            )


def _lemmas(system: TransitionSystem, few: Collection[Function]) -> Iterator[Unfounded]:
    for lemma in given_lemmas(system):
        for members in lemma.finite:
            if not is_finite(members, few):
                where = f"{system.name}: a lemma {lemma.schema.name}"
                yield Unfounded(where, NOT_FINITE, members)


def _formulas(system: TransitionSystem) -> Iterator[tuple[Term, str]]:
    """Everything that is written in the system, and where."""
    yield from ((axiom.formula, axiom.name) for axiom in system.axioms)
    yield from ((value, "the initial state") for _, value in system.init)
    yield from ((claim.formula, claim.name) for claim in system.properties)
    for action in system.actions:
        terms = [*action.guard.values(), *(value for _, value in action.effect)]
        terms += [] if action.returns is None else [action.returns]
        yield from ((term, action.name) for term in terms)


def _weights(term: Term) -> Iterator[Function]:
    for part in subterms(term):
        if isinstance(part, Op) and part.name == "total" and part.function is not None:
            yield part.function


def given_lemmas(system: TransitionSystem) -> list[Lemma]:
    """The lemmas of all proofs of the system, of induction and of completeness, each once."""
    used = [lemma for o in obligations(system) for lemma in lemmas_given(o)]
    used += [lemma for q in complete.questions(system) for lemma in complete.lemmas(q)]
    return list({alpha_form(lemma.formula)[0]: lemma for lemma in used}.values())


# --- what the axioms say -----------------------------------------------------------------------


def is_never_negative(system: TransitionSystem, weight: Function) -> bool:
    """Whether the axioms make every value of the function 0 or more."""
    return _follows(system, forall(weight.domain, lambda x: weight(x) >= 0))


def few_for_each_value(system: TransitionSystem) -> list[Function]:
    """The functions that take each value for finitely many arguments only, by the axioms.

    So it is if the arguments with one value stand at different positions below a number: the inputs
    of a request, at positions of the request.
    """
    numbers = [f for f in system.functions if f.range == INT]
    return [
        f
        for f in system.functions
        if f.range != INT
        and any(
            _numbers_the_arguments(system, f, position, number)
            for position in numbers
            for number in numbers
            if (position.domain, number.domain) == (f.domain, f.range)
        )
    ]


def _numbers_the_arguments(
    system: TransitionSystem, f: Function, position: Function, number: Function
) -> bool:
    """The premises of `finite_fibre` in spec/lemmas/Finiteness.v."""
    within = forall(f.domain, lambda i: (position(i) >= 0) & (position(i) < number(f(i))))
    apart = forall(
        f.domain,
        f.domain,
        lambda i, j: ((f(i) == f(j)) & (position(i) == position(j))).implies(i == j),
    )
    return _follows(system, within) and _follows(system, apart)


def _follows(system: TransitionSystem, formula: Term) -> bool:
    """Whether the axioms prove the formula; `unknown` is a no."""
    solver = z3.Solver()
    solver.set("rlimit", MOST_WORK)
    terms = [*(axiom.formula for axiom in system.axioms), ~formula]
    solver.add(*Unbounded().assertions(terms))
    return bool(solver.check() == z3.unsat)
