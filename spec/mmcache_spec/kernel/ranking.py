"""Progress by ranking: the work that is left falls with every helpful step, and never rises.

That something happens at last is no property of one state or one call. It follows from some that
are, and those are what a `Ranking` states:

* the work that is left is a tuple of measures, none of them below nothing;
* while something is unfinished, a helpful step can be made;
* a helpful step makes the tuple smaller, the first measures counting most;
* no other step makes it greater, but those that are named unfair, and they only in the later part.

Measures that are numbers, finite sets by inclusion, and finite tables by their entries can fall
only finitely often, and so can tuples of them. Where helpful steps are made again and again, and
unfair ones at last no more, or only with steps that make the earlier part fall between them,
everything is finished at last. The measures are written over the record of an observer (see
`kernel.system.Monitor`), so a design cannot make work vanish but by doing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .system import Action, ActionProperty, Invariant
from .terms import (
    BOOL,
    INT,
    Binder,
    Function,
    Sort,
    Symbol,
    Term,
    all_of,
    any_of,
    forall,
    replaced,
)

__all__ = ["Helpful", "Measure", "Ranking", "Walk"]


@dataclass(frozen=True)
class Measure:
    """One part of the work that is left: a set, or a table of numbers, over a sort.

    Args:
        name: What it counts, for people.
        sort: Of the elements.
        at: Of an element, whether it belongs to the set, or its entry in the table.
    """

    name: str
    sort: Sort
    at: Callable[[Term], Term]

    def not_negative(self) -> Term | None:
        """That no entry is below zero; None of a set, which cannot be less than empty."""
        if self._is_set:
            return None
        return forall(self.sort, lambda x: self.at(x) >= 0)

    def does_not_rise(self) -> Term:
        """That the step makes no entry greater."""
        if self._is_set:
            return forall(self.sort, lambda x: _after(self.at(x)).implies(self.at(x)))
        return forall(self.sort, lambda x: _after(self.at(x)) <= self.at(x))

    def stays(self) -> Term:
        """That the step leaves every entry as it is."""
        return forall(self.sort, lambda x: _after(self.at(x)) == self.at(x))

    @property
    def _is_set(self) -> bool:
        return self.at(Symbol(self.sort, "x", "bound")).sort == BOOL


@dataclass(frozen=True)
class Helpful:
    """Calls that must bring the work down.

    Args:
        name: Which calls these are; part of the name of the claim.
        action: What is called.
        when: Of the state and the arguments, whether the call is one of these.
        witness: For each integer among the parameters a value with which the call may be made; in
            terms of the state and the other parameters.
    """

    name: str
    action: str
    when: Term
    witness: Mapping[str, Term] = field(default_factory=dict)


@dataclass(frozen=True)
class Ranking:
    """A claim of progress, under a clause, as the properties that it rests on.

    Args:
        name: Of the work that is left; the properties are named after it.
        clause: The id of the clause that it states.
        unfinished: Of the state, whether work is left.
        measures: The work that is left; the first counts most.
        helpful: The steps that bring it down. In each unfinished state one of them can be made.
        unfair: By the name of an action, how many of the first measures it leaves alone or brings
            down; the others it may raise. That such steps do not go on for ever without progress
            of those measures is assumed. An action that is not named may raise none.
    """

    name: str
    clause: str
    unfinished: Term
    measures: tuple[Measure, ...]
    helpful: tuple[Helpful, ...]
    unfair: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for helpful in self.helpful:
            if helpful.action in self.unfair:
                raise ValueError(f"{self.name}: {helpful.action} is called helpful and unfair")

    def invariants(self, actions: Sequence[Action]) -> tuple[Invariant, Invariant]:
        """What is true of every state: nothing is below zero, and there is somebody to help."""
        bounds = (m.not_negative() for m in self.measures)
        bounded = all_of(*(b for b in bounds if b is not None))
        named = {a.name: a for a in actions}
        helped = any_of(*(_can_be_made(h, named[h.action]) for h in self.helpful))
        return (
            Invariant(f"{self.name}_is_never_below_zero", bounded, self.clause),
            Invariant(
                f"{self.name}_can_be_brought_down", self.unfinished.implies(helped), self.clause
            ),
        )

    def action_properties(self, actions: Sequence[Action]) -> Iterator[ActionProperty]:
        """What is true of every call. A helpful one changes the work, which never rises: it falls.

        Of measures that count less than one that falls, nothing is said.
        """
        changes = any_of(*(~m.stays() for m in self.measures))
        for helpful in self.helpful:
            name = f"{self.name}_falls_when_{helpful.name}"
            formula = helpful.when.implies(changes)
            yield ActionProperty(name, helpful.action, formula, self.clause)
        for action in actions:
            kept = self.unfair.get(action.name, len(self.measures))
            first = "" if kept == len(self.measures) else f"_in_its_first_{kept}_measures"
            name = f"{self.name}_never_rises{first}"
            yield ActionProperty(name, action.name, self._no_rise(kept), self.clause)

    def _no_rise(self, first: int) -> Term:
        """Of the first so many measures, none rises while those before it stay.

        An order by the first difference: a choice between measures, not a condition that has to
        come true of every call.
        """

        def this_one(k: int) -> Term:
            earlier = (~m.stays() for m in self.measures[:k])
            return any_of(*earlier, self.measures[k].does_not_rise())

        return all_of(*(this_one(k) for k in range(first)))


def _can_be_made(helpful: Helpful, action: Action) -> Term:
    """There are elements, and with the witnesses numbers, for which the call may be made."""
    elements = [p for p in action.parameters if p.sort != INT]
    bound = {p.name: Symbol(p.sort, p.name[0], "bound") for p in elements}

    def given(symbol: Symbol) -> Term | None:
        if symbol.role != "parameter":
            return None
        if symbol.name in bound:
            return bound[symbol.name]
        return replaced(helpful.witness[symbol.name], given)

    formula = replaced(all_of(helpful.when, *action.guard.values()), given)
    return Binder(BOOL, "exists", tuple(bound.values()), formula) if bound else formula


@dataclass(frozen=True)
class Walk:
    """Which endless runs are fair: a pass walks down a queue, and asks everybody who is owed it.

    In a fair loop, whoever is owed it in every state is asked with nothing of the pass used up,
    unless somebody before it in the queue got something; and the unfair actions are not repeated
    for ever unless whoever is first in the queue gets something.

    Args:
        action: The call that asks. Its answer is a number: what is given.
        who: The parameter that says who is asked.
        owed: Of the state and `who`, in variables of the design.
        whole: Of the arguments, that nothing is used up.
        place: In the queue.
        unfair: The names of the unfair actions.
        values: For some integer parameters, the values that a search need try.
    """

    action: str
    who: Symbol
    owed: Term
    whole: Term
    place: Function
    unfair: tuple[str, ...]
    values: Mapping[str, tuple[Term, ...]]


def _after(term: Term) -> Term:
    """The same of the state after the step."""
    return replaced(term, lambda s: s.next if s.role in ("state", "ghost") else None)
