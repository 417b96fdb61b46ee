"""Whether a changed design is the original in other words: proved, for any number of elements.

The two are given the same calls. A *coupling* says how their states are related: all variables are
equal but for a few, the *apart* ones, of which it says something weaker. It is proved to hold
initially and after every call, given the invariants of the original; and so is that the answers are
the same. What an observer records rests on nothing else. The plainest coupling has nothing apart:
then it is enough that one step of what was changed comes to the same, wherever the invariants and
guards hold.

A line that is written anew need not be compared as a whole: where the two first differ deep inside,
it is asked whether they come to the same *there*, whatever the variables bound around it are; then
one level further out, where more is known, and so on (`checks.in_place`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..kernel.lemmas import Lemma, for_every, monotone, non_negative
from ..kernel.rewriting import rewritten
from ..kernel.system import Action, ActionProperty, Invariant, Property, TransitionSystem
from ..kernel.terms import (
    Function,
    Op,
    Symbol,
    Term,
    alpha_form,
    replaced,
    same_value,
    subterms,
)
from .asking import OF_A_DESIGN
from .in_place import same_in_place
from .induction import Obligation, is_proved

__all__ = ["EQUAL", "Coupling", "Relation", "same_steps"]

Relation = Callable[[Callable[[Term], Term]], Term]
"""Given how to see a term in the other system, what is true of the two states."""


@dataclass(frozen=True)
class Coupling:
    """Everything is equal, but for the variables apart; of those, what `relations` say.

    `says` is the reason in words: why nobody can tell.
    """

    says: str
    apart: frozenset[str] = frozenset()
    relations: tuple[tuple[str, Relation], ...] = ()


EQUAL = Coupling("it takes the same steps")
"""Nothing is apart."""


def same_steps(
    system: TransitionSystem, design: TransitionSystem, coupling: Coupling = EQUAL
) -> str | None:
    """In words, why the two answer alike for ever; None where it is not proved."""
    kept = all(is_proved(o, OF_A_DESIGN) for o in _obligations(system, design, coupling))
    return coupling.says if kept else None


def _obligations(
    system: TransitionSystem, design: TransitionSystem, coupling: Coupling
) -> Iterator[Obligation]:
    """What must be proved; what the two have in common needs no proof and is left out."""
    twins = _Twins(coupling.apart)
    both = twins.both(system, design)
    relations = tuple(Invariant(n, relation(twins.of)) for n, relation in coupling.relations)
    both = replace(both, invariants=(*system.invariants, *relations))
    starts = dict(zip((v.name for v, _ in system.init), system.init, strict=True))
    for variable, other in design.init:
        mine = starts[variable.name][1]
        if variable.name in coupling.apart or variable.role == "ghost":
            continue
        if other is not mine:
            same = Invariant(f"{variable.name} begins alike", same_value(mine, other))
            yield Obligation(both, same, None, "initiation")
    for relation in relations:
        yield Obligation(both, relation, None, "initiation")
    for mine_action, theirs in zip(system.actions, design.actions, strict=True):
        yield from _of_action(system, both, mine_action, theirs, twins, relations)


def _of_action(
    system: TransitionSystem,
    both: TransitionSystem,
    mine: Action,
    theirs: Action,
    twins: _Twins,
    relations: Sequence[Invariant],
) -> Iterator[Obligation]:
    name = mine.name
    pairs = [
        (v.name, _value(mine, v), twins.of(_value(theirs, v)))
        for v in both.variables
        if v.role != "ghost" and v.name in mine.modifies | theirs.modifies
        if v.name not in twins.apart
    ]
    if mine.returns is not None and theirs.returns is not None:
        pairs.append(("answer", mine.returns, twins.of(theirs.returns)))
    for guard, other in zip(mine.guard.items(), theirs.guard.values(), strict=True):
        pairs.append((guard[0], guard[1], twins.of(other)))
    for what, one, two in pairs:
        if alpha_form(one)[0] != alpha_form(two)[0]:
            if not twins.apart and same_in_place(system, mine, one, two):
                continue
            claim = ActionProperty(f"{what} alike", name, same_value(one, two))
            lemmas = tuple(_totals(one, two, twins))
            yield _obligation(both, claim, "action", lemmas)
    if mine.modifies | theirs.modifies:
        for relation in relations:
            yield _obligation(both, relation, "consecution", (), name)


def _obligation(
    both: TransitionSystem,
    claim: Property,
    kind: str,
    lemmas: tuple[Lemma, ...],
    name: str | None = None,
) -> Obligation:
    action = both.action(claim.action if isinstance(claim, ActionProperty) else str(name))
    spoken_of = (*(i.formula for i in both.invariants), *action.updates.values(), claim.formula)
    armed = replace(action, lemmas={claim.name: (*lemmas, *_no_debts(spoken_of))})
    return Obligation(both, claim, armed, "action" if kind == "action" else "consecution")


def _no_debts(terms: Iterable[Term]) -> Iterator[Lemma]:
    """No sum of which the terms speak is negative."""
    seen: set[object] = set()
    for t in (t for term in terms for t in subterms(term)):
        if not (isinstance(t, Op) and t.name == "total" and t.function):
            continue
        form, free = alpha_form(t)
        if form in seen or len(free) > 1:
            continue
        seen.add(form)
        members, weight = t.args[0], t.function
        if not free:
            yield non_negative(members, weight)
            continue

        def of(
            k: Term, members: Term = members, x: Symbol = free[0], weight: Function = weight
        ) -> Lemma:
            return non_negative(_at(members, x, k), weight)

        yield for_every(free[0].sort, of)


def _value(action: Action, variable: Symbol) -> Term:
    return action.updates.get(variable.name, variable)


class _Twins:
    """The variables apart, as the other system has them."""

    def __init__(self, apart: frozenset[str]) -> None:
        self.apart = apart

    def of(self, term: Term) -> Term:
        """The term, about the state of the other system."""
        return replaced(term, self._twin) if self.apart else term

    def _twin(self, symbol: Symbol) -> Term | None:
        if symbol.name in self.apart and symbol.role in ("state", "next"):
            return self.symbol(symbol)
        return None

    def back(self, term: Term) -> Term:
        """The term, about the state of the original."""

        def original(s: Symbol) -> Term | None:
            kept = s.name.removeprefix("other ")
            return None if kept == s.name else replace(s, name=kept)

        return replaced(term, original)

    def symbol(self, variable: Symbol) -> Symbol:
        return replace(variable, name=f"other {variable.name}")

    def both(self, system: TransitionSystem, design: TransitionSystem) -> TransitionSystem:
        """The original, and beside it the twins of what is apart, as the design changes them."""
        actions = []
        for mine, theirs in zip(system.actions, design.actions, strict=True):
            lines = tuple(
                (self.symbol(v), self.of(t)) for v, t in theirs.effect if v.name in self.apart
            )
            actions.append(replace(mine, effect=(*mine.effect, *lines), lemmas={}))
        apart = [v for v in system.variables if v.name in self.apart]
        starts = [(self.symbol(v), t) for v, t in design.init if v.name in self.apart]
        return replace(
            system,
            variables=(*system.variables, *map(self.symbol, apart)),
            init=(*system.init, *starts),
            actions=tuple(actions),
            action_properties=(),
        )


def _totals(one: Term, two: Term, twins: _Twins) -> Iterator[Lemma]:
    """Sets with the same elements have the same total: said of each pair that corresponds."""
    mine = [t for t in subterms(one) if isinstance(t, Op) and t.name == "total"]
    theirs = [t for t in subterms(two) if isinstance(t, Op) and t.name == "total"]
    for a in mine:
        for b in theirs:
            if a.function is not b.function or alpha_form(a)[0] == alpha_form(b)[0]:
                continue
            if alpha_form(twins.back(b))[0] == alpha_form(a)[0]:
                yield from _each_way(a, b)


def _each_way(a: Op, b: Op) -> Iterator[Lemma]:
    weight, one, two = a.function, a.args[0], b.args[0]
    assert isinstance(weight, Function)
    free = alpha_form(one)[1], alpha_form(two)[1]
    if len(free[0]) != len(free[1]) or len(free[0]) > 1:
        return
    if not free[0]:
        yield monotone(one, two, weight)
        yield monotone(two, one, weight)
        return
    (x,), (y,) = free

    def there(k: Term) -> tuple[Term, Term]:
        return _at(one, x, k), _at(two, y, k)

    yield for_every(x.sort, lambda k: monotone(there(k)[0], there(k)[1], weight))
    yield for_every(x.sort, lambda k: monotone(there(k)[1], there(k)[0], weight))


def _at(term: Term, symbol: Symbol, value: Term) -> Term:
    return rewritten(term, lambda t: value if t is symbol else None)
