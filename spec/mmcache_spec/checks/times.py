"""Times: integers of a state that are only ever compared with one another.

When a hash became freeable is such a time. A ledger that runs for ever counts for ever, and its
states have no end; but only the order of the times matters, and how far apart they are as long as
that is little. With the times brought near again after every call, what is reachable is finite.

That a variable is a time is read off the definition. The claim that a state stands for all those
that differ by larger gaps is exact for a system that compares a time with nothing but times. A
wrong design may do worse: so a violation that is found on such states counts only when the calls
that lead to it have been executed as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..evaluate.compiled import Packed
from ..kernel.system import TransitionSystem
from ..kernel.terms import INT, Binder, MapSort, Op, Symbol, Term, subterms, unnamed

__all__ = ["Times", "times_of"]


@dataclass(frozen=True)
class Times:
    """The names of the variables that are times, in groups that are compared with one another."""

    groups: tuple[frozenset[str], ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset[str]().union(*self.groups)

    def near(self, variables: tuple[Symbol, ...], most: int) -> Callable[[Packed], Packed]:
        """The function that gives a state its normal form: no gap between times exceeds `most`."""
        places = [
            [(k, isinstance(v.sort, MapSort)) for k, v in enumerate(variables) if v.name in group]
            for group in self.groups
        ]

        def normal(state: Packed) -> Packed:
            changed = list(state)
            for group in places:
                values: set[int] = set()
                for k, is_map in group:
                    values.update(state[k]) if is_map else values.add(state[k])
                moved, last, now = {}, None, 0
                for value in sorted(values):
                    now += 0 if last is None else min(value - last, most)
                    moved[value], last = now, value
                for k, is_map in group:
                    old = state[k]
                    changed[k] = tuple(moved[x] for x in old) if is_map else moved[old]
            return tuple(changed)

        return normal if places else lambda state: state


def times_of(system: TransitionSystem) -> Times:
    """The times of a system: integers in groups that have a map, and meet no amount."""
    integers = {
        v.name: v
        for v in system.variables
        if v.sort == INT or (isinstance(v.sort, MapSort) and v.sort.value == INT)
    }
    groups = {name: {name} for name in integers}
    amounts: set[str] = set()
    for first, second in _met(system):
        here = [name for name in (first, second) if name in groups]
        if len(here) < 2:
            amounts.update(here)
            continue
        joined = groups[first] | groups[second]
        for name in joined:
            groups[name] = joined
    found = {frozenset(g) for g in groups.values() if not g & amounts}
    timed = [g for g in found if any(isinstance(integers[n].sort, MapSort) for n in g)]
    return Times(tuple(sorted(timed, key=sorted)))


def _met(system: TransitionSystem) -> Iterator[tuple[str, str]]:
    """Which integers meet: by comparison or assignment. The name of what is no variable is ""."""
    for action in system.actions:
        for variable, value in action.effect:
            yield from ((variable.name, name) for name in _kinds(value) if name)
            yield from _compared(value)
        for term in (*action.guard.values(), *([] if action.returns is None else [action.returns])):
            yield from _compared(term)
    for claim in system.properties:
        if claim.clause is not None:
            yield from _compared(claim.formula)


def _compared(term: Term) -> Iterator[tuple[str, str]]:
    for t in subterms(term):
        if isinstance(t, Op) and t.name in ("eq", "lt", "le") and t.args[0].sort == INT:
            one, two = (_kinds(a) or {""} for a in t.args)
            yield from ((a, b) for a in one for b in two)
        elif isinstance(t, Binder) and t.name == "largest" and t.value is not None:
            yield from ((a, a) for a in _kinds(t.value))
        elif isinstance(t, Op) and t.name == "total":
            yield from ((a, "") for a in _kinds(t) if a)


def _kinds(term: Term) -> set[str]:
    """The variables that an integer, or a map to integers, may be a value of; less any offset."""
    term = unnamed(term)
    match term:
        case Symbol(role="state" | "ghost" | "next", name=name):
            return {name}
        case Symbol():
            return {""}
        case Op(name="get", args=(table, _)):
            return _kinds(table)
        case Op(name="put", args=(table, _, value)):
            return _kinds(table) | _kinds(value)
        case Op(name="add" | "sub", args=(one, two)):
            return _kinds(one) | _kinds(two)
        case Op(name="ite", args=(_, one, two)):
            return _kinds(one) | _kinds(two)
        case Op(name="apply" | "total"):
            return set()
        case Binder(name="mapof", body=body):
            return _kinds(body)
    return set()
