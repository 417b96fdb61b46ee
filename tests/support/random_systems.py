"""Random small transition systems over hashes and requests, from a seed.

Every operator of the term language occurs in some of them. They mean nothing: that is the point.
"""

from __future__ import annotations

import random

from mmcache_spec.kernel.system import (
    Action,
    ActionProperty,
    Axiom,
    Invariant,
    Scope,
    TransitionSystem,
)
from mmcache_spec.kernel.terms import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    Binder,
    MapSort,
    SetSort,
    Sort,
    Symbol,
    Term,
    all_of,
    any_of,
    constant,
    empty,
    exists,
    forall,
    function,
    ite,
    number,
    parameter,
    result,
    setof,
    state,
    total,
)

__all__ = [
    "HASH",
    "PLACES",
    "REQUEST",
    "RandomTerms",
    "home",
    "random_system",
    "small_scope",
]

HASH, REQUEST = Sort("Hash"), Sort("Request")
size = function("size", HASH, INT)
home = function("home", REQUEST, HASH)
capacity = constant("capacity", INT)

chosen = state("chosen", SetSort.of(HASH))
linked = state("linked", SetSort.of(HASH, REQUEST))
stamp = state("stamp", MapSort.of(HASH, INT))
level = state("level", INT)
flag = state("flag", BOOL)
PLACES = (chosen, linked, stamp, level, flag)


class RandomTerms:
    """Terms of a sort, of a depth, over the variables and what is bound around."""

    def __init__(self, chance: random.Random, symbols: tuple[Symbol, ...]) -> None:
        self._chance = chance
        self._symbols = symbols

    def term(self, sort: Sort, depth: int, bound: tuple[Symbol, ...] = ()) -> Term:
        if isinstance(sort, SetSort):
            return self._set(sort, depth, bound)
        if isinstance(sort, MapSort):
            return self._map(sort, depth, bound)
        if sort == BOOL:
            return self._bool(depth, bound)
        if sort == INT:
            return self._int(depth, bound)
        return self._element(sort, bound)

    def _pick(self, sort: Sort, bound: tuple[Symbol, ...]) -> Symbol | None:
        fitting = [s for s in (*self._symbols, *bound) if s.sort == sort]
        return self._chance.choice(fitting) if fitting else None

    def _known(self, sort: Sort, bound: tuple[Symbol, ...], otherwise: Term) -> Term:
        found = self._pick(sort, bound)
        return otherwise if found is None else found

    def _element(self, sort: Sort, bound: tuple[Symbol, ...]) -> Term:
        if sort == HASH and self._chance.random() < 0.3:
            request = self._pick(REQUEST, bound)
            if request is not None:
                return home(request)
        found = self._pick(sort, bound)
        assert found is not None, f"no {sort} in reach"
        return found

    def _reachable(self, sort: Sort, bound: tuple[Symbol, ...]) -> bool:
        return self._pick(sort, bound) is not None

    def _bool(self, depth: int, bound: tuple[Symbol, ...]) -> Term:
        if depth == 0:
            return self._known(BOOL, bound, self._chance.choice((TRUE, FALSE)))

        def sub(sort: Sort) -> Term:
            return self.term(sort, depth - 1, bound)

        choice = self._chance.randrange(12)
        if choice == 0:
            return all_of(sub(BOOL), sub(BOOL))
        if choice == 1:
            return any_of(sub(BOOL), sub(BOOL))
        if choice == 2:
            return sub(BOOL).implies(sub(BOOL))
        if choice == 3:
            return ~sub(BOOL)
        if choice == 4:
            return sub(BOOL).iff(sub(BOOL))
        if choice == 5:
            return self._chance.choice((sub(INT) < sub(INT), sub(INT) <= sub(INT)))
        if choice == 6:
            return sub(INT) == sub(INT)
        if choice in (7, 8):
            sort = self._chance.choice((HASH, REQUEST))
            quantified = self._chance.choice((forall, exists))
            return quantified(sort, lambda x: self._bool(depth - 1, (*bound, x)))
        if choice == 9:
            one, two = sub(SetSort.of(HASH)), sub(SetSort.of(HASH))
            return self._chance.choice((one.subset_of(two), one.same_elements(two), one.is_empty()))
        if choice == 10 and self._reachable(HASH, bound):
            if self._chance.random() < 0.5 or not self._reachable(REQUEST, bound):
                return sub(SetSort.of(HASH)).has(self._element(HASH, bound))
            pair = self._element(HASH, bound), self._element(REQUEST, bound)
            return sub(SetSort.of(HASH, REQUEST)).has(*pair)
        if self._reachable(HASH, bound):
            return self._element(HASH, bound) == self._element(HASH, bound)
        return ite(sub(BOOL), sub(BOOL), sub(BOOL))

    def _int(self, depth: int, bound: tuple[Symbol, ...]) -> Term:
        if depth == 0:
            return self._known(INT, bound, number(self._chance.randrange(3)))

        def sub(sort: Sort) -> Term:
            return self.term(sort, depth - 1, bound)

        choice = self._chance.randrange(8)
        if choice == 0:
            return sub(INT) + sub(INT)
        if choice == 1:
            return sub(INT) - sub(INT)
        if choice == 2:
            return ite(sub(BOOL), sub(INT), sub(INT))
        if choice == 3:
            return total(sub(SetSort.of(HASH)), size)
        if choice == 4 and self._reachable(HASH, bound):
            return size(self._element(HASH, bound))
        if choice == 5 and self._reachable(HASH, bound):
            return sub(MapSort.of(HASH, INT))[self._element(HASH, bound)]
        if choice == 6:
            x = Symbol(HASH, "m", "bound")
            inner = (*bound, x)
            body, value = self._bool(depth - 1, inner), self._int(depth - 1, inner)
            return Binder(INT, "largest", (x,), body, value)
        return number(self._chance.randrange(3))

    def _set(self, sort: SetSort, depth: int, bound: tuple[Symbol, ...]) -> Term:
        if depth == 0:
            return self._known(sort, bound, empty(*sort.elements))

        def sub() -> Term:
            return self._set(sort, depth - 1, bound)

        choice = self._chance.randrange(6)
        if choice == 0:
            return sub().union(sub())
        if choice == 1:
            return sub().minus(sub())
        if choice == 2:
            return ite(self._bool(depth - 1, bound), sub(), sub())
        if choice in (3, 4) and all(self._reachable(e, bound) for e in sort.elements):
            element = [self._element(e, bound) for e in sort.elements]
            return sub().insert(*element) if choice == 3 else sub().remove(*element)
        if sort.elements == (HASH,):
            return setof(HASH, lambda x: self._bool(depth - 1, (*bound, x)))
        return setof(HASH, REQUEST, lambda x, y: self._bool(depth - 1, (*bound, x, y)))

    def _map(self, sort: MapSort, depth: int, bound: tuple[Symbol, ...]) -> Term:
        if depth == 0:
            found = self._pick(sort, bound)
            assert found is not None
            return found
        choice = self._chance.randrange(3)
        if choice == 0 and self._reachable(HASH, bound):
            table = self._map(sort, depth - 1, bound)
            return table.put(self._element(HASH, bound), self._int(depth - 1, bound))
        if choice == 1:
            yes, no = self._map(sort, depth - 1, bound), self._map(sort, depth - 1, bound)
            return ite(self._bool(depth - 1, bound), yes, no)
        x = Symbol(HASH, "k", "bound")
        return Binder(sort, "mapof", (x,), self._int(depth - 1, (*bound, x)))


def random_system(seed: int, depth: int = 2, *, answering: bool = False) -> TransitionSystem:
    """Three actions, one with an integer; an invariant and a property of each action to break.

    If `answering`, what an action does may depend on what it answers.
    """
    chance = random.Random(seed)
    h, r, n = parameter("h", HASH), parameter("r", REQUEST), parameter("n", INT)
    actions, claims = [], []
    for name, given in (("one", (h,)), ("two", (r,)), ("three", (h, n))):
        terms = RandomTerms(chance, (*PLACES, capacity, *given))
        elements = (p for p in given if p.sort != INT)
        answer = (result(BOOL),) if answering else ()
        unbounded = RandomTerms(chance, (*PLACES, capacity, *elements, *answer))
        touched = chance.sample(PLACES, 2)
        guard = {"may": terms.term(BOOL, depth) | (level <= capacity)}
        if len(given) == 2:
            guard["small"] = all_of(n >= 0, n <= capacity + 1)
        action = Action(
            name,
            given,
            guard=guard,
            effect=tuple(v.becomes(unbounded.term(v.sort, depth)) for v in touched),
            returns=terms.term(BOOL, depth),
        )
        actions.append(action)
        after = RandomTerms(chance, (*PLACES, *(v.next for v in PLACES), *given, result(BOOL)))
        rare = all_of(after.term(BOOL, depth), after.term(BOOL, depth), after.term(BOOL, depth))
        claims.append(ActionProperty(f"claim of {name}", name, ~rare, "L1"))
    init = (
        chosen.becomes(empty(HASH)),
        linked.becomes(empty(HASH, REQUEST)),
        stamp.becomes(Binder(stamp.sort, "mapof", (Symbol(HASH, "k", "bound"),), number(0))),
        level.becomes(capacity if chance.random() < 0.5 else number(0)),
        flag.becomes(FALSE),
    )
    state_terms = RandomTerms(chance, PLACES)
    rare = all_of(*(state_terms.term(BOOL, depth) for _ in range(3)))
    return TransitionSystem(
        name=f"random {seed}",
        variables=PLACES,
        constants=(capacity,),
        functions=(size, home),
        axioms=(
            Axiom("capacity_is_not_negative", capacity >= 0),
            Axiom("sizes_are_not_negative", forall(HASH, lambda x: size(x) >= 0)),
        ),
        init=init,
        actions=tuple(actions),
        invariants=(Invariant("seldom broken", ~rare, "L1"),),
        action_properties=tuple(claims),
        pass_start=TRUE,
    )


def small_scope(hashes: int, requests: int) -> Scope:
    """Everything about sizes, capacity and homes is left open."""
    return Scope(
        f"{hashes} hashes, {requests} requests",
        {
            "Hash": tuple("ABC"[:hashes]),
            "Request": tuple(f"r{k + 1}" for k in range(requests)),
        },
        at_least={"capacity": 1, "size": 1},
        interchangeable=("Hash", "Request"),
    )
