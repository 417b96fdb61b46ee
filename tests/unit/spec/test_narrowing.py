"""A quantifier that looks at few elements says what one says that looks at all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from mmcache_spec.evaluate.meaning import Elements, Meanings, Scope, World
from mmcache_spec.evaluate.narrowing import (
    All,
    Members,
    OneOf,
    Same,
    antecedents,
    conjuncts,
    narrowed,
)
from mmcache_spec.kernel.terms import (
    BOOL,
    INT,
    Binder,
    Literal,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    all_of,
    any_of,
    exists,
    forall,
    function,
    ite,
    largest,
    mapof,
    number,
    parameter,
    setof,
    state,
    unnamed,
)

BOOK, SHELF = Sort("Book"), Sort("Shelf")
lent = state("lent", SetSort.of(BOOK))
stands = state("stands", SetSort.of(BOOK, SHELF))
notes = state("notes", MapSort.of(BOOK, INT))
marked = state("marked", MapSort.of(BOOK, BOOL))
shelf_of = function("shelf_of", BOOK, SHELF)
this, that = parameter("this", BOOK), parameter("that", SHELF)

BOOKS, SHELVES = ("a", "b", "c", "d"), ("x", "y", "z")
STRANGE = "no element of the world"
KINDS = ("forall", "exists", "setof", "largest", "mapof")


def _scope(chance: random.Random) -> Scope:
    world = World(
        {"Book": BOOKS, "Shelf": SHELVES},
        {},
        {"shelf_of": {b: chance.choice(SHELVES) for b in BOOKS}},
    )
    places = [*product(BOOKS, SHELVES), (STRANGE, "x"), ("a", STRANGE)]
    before = {
        "lent": frozenset((b,) for b in (*BOOKS, STRANGE) if chance.random() < 0.5),
        "stands": frozenset(p for p in places if chance.random() < 0.4),
        "notes": {b: chance.randrange(3) for b in BOOKS},
        "marked": {b: chance.random() < 0.5 for b in BOOKS},
    }
    given = {"this": chance.choice(BOOKS), "that": chance.choice(SHELVES)}
    return Scope(world, Elements(world), before, {}, given, None)


class _Formulas:
    """Random formulas with many memberships and equations, where quantifiers may be narrowed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def formula(self, bound: Sequence[Symbol], depth: int) -> Term:
        choice = self._chance.random()
        if depth == 0 or choice < 0.3:
            return self._atom(bound)
        if choice < 0.4:
            return ~self.formula(bound, depth - 1)
        if choice < 0.8:
            one, two = (self.formula(bound, depth - 1) for _ in range(2))
            joined = all_of(one, two), any_of(one, two), one.implies(two), one == two
            return self._chance.choice(joined)
        inner = self.variables(1 + (self._chance.random() < 0.3), len(bound))
        kind = self._chance.choice(("forall", "exists"))
        return Binder(BOOL, kind, inner, self.formula((*bound, *inner), depth - 1))

    def variables(self, count: int, after: int = 0) -> tuple[Symbol, ...]:
        sorts = self._chance.choices((BOOK, SHELF), k=count)
        return tuple(Symbol(s, f"v{after + k}", "bound") for k, s in enumerate(sorts))

    def _atom(self, bound: Sequence[Symbol]) -> Term:
        books = [this, *[v for v in bound if v.sort == BOOK] * 2]
        shelves = [that, *[v for v in bound if v.sort == SHELF] * 2]
        book, other = self._chance.choices(books, k=2)
        shelf = self._chance.choice([*shelves, shelf_of(self._chance.choice(books))])
        return self._chance.choice(
            (
                lent.has(book),
                stands.has(book, shelf),
                stands.has(book, shelf),
                shelf_of(book) == shelf,
                shelf == shelf_of(book),
                shelf == self._chance.choice(shelves),
                book == other,
                notes[book] < number(2),
                marked[book],
            )
        )


def _drawn(kind: str, chance: random.Random) -> Binder:
    """A binder of this kind, whatever its body says."""
    formulas = _Formulas(chance)
    if kind in ("largest", "mapof"):
        one = Symbol(BOOK, "k", "bound")
        body = formulas.formula((one,), 0) & formulas.formula((one,), 3)
        if kind == "largest":
            return Binder(INT, kind, (one,), body, notes[one])
        return Binder(notes.sort, kind, (one,), ite(body, notes[one] + 5, notes[one]))
    variables = formulas.variables(chance.choice((1, 2, 2, 3)))
    sort = SetSort.of(*(v.sort for v in variables)) if kind == "setof" else BOOL
    body, guard = formulas.formula(variables, 3), formulas.formula(variables, 0)
    guarded = guard.implies(body) if kind == "forall" else guard & body
    return Binder(sort, kind, variables, chance.choice((body, guarded)))


def _plainly(term: Term, at: Scope, bound: dict[Symbol, Any]) -> Any:
    """Its value by the book: each quantifier looks at every element."""
    term = unnamed(term)
    if isinstance(term, Binder):
        every = [
            {**bound, **dict(zip(term.variables, values, strict=True))}
            for values in product(*(at.world.universe[v.sort.name] for v in term.variables))
        ]
        if term.name == "mapof":
            (key,) = term.variables
            return {b[key]: _plainly(term.body, at, b) for b in every}
        chosen = [b for b in every if _plainly(term.body, at, b)]
        match term.name:
            case "forall":
                return len(chosen) == len(every)
            case "exists":
                return bool(chosen)
            case "setof":
                return frozenset(tuple(b[v] for v in term.variables) for b in chosen)
            case "largest":
                assert term.value is not None
                return max((_plainly(term.value, at, b) for b in chosen), default=0)
    match term:
        case Symbol(role="bound"):
            return bound[term]
        case Symbol(role="parameter"):
            return at.arguments[term.name]
        case Symbol():
            return at.before[term.name]
        case Literal():
            return term.value
    assert isinstance(term, Op)
    args = [_plainly(a, at, bound) for a in term.args]
    match term.name:
        case "and":
            return all(args)
        case "or":
            return any(args)
        case "not":
            return not args[0]
        case "implies":
            return not args[0] or args[1]
        case "eq":
            return args[0] == args[1]
        case "lt":
            return args[0] < args[1]
        case "add":
            return args[0] + args[1]
        case "ite":
            return args[1] if args[0] else args[2]
        case "member":
            return tuple(args[1:]) in args[0]
        case "get":
            return args[0][args[1]]
        case "apply":
            return at.world.functions["shelf_of"][args[0]]
    raise AssertionError(term.name)


@pytest.mark.parametrize("kind", KINDS)
def test_it_says_the_same(kind: str) -> None:
    chance = random.Random(kind)
    fewer = 0
    for _ in range(200):
        term, at, meanings = _drawn(kind, chance), _scope(chance), Meanings()
        assert meanings.of(term)(at, {}) == _plainly(term, at, {})
        wanted = antecedents(term.body) if kind == "forall" else conjuncts(term.body)
        sources, _ = narrowed(term.variables, tuple(wanted), meanings.free)
        fewer += any(not isinstance(s, All) for s in sources)
    assert kind == "mapof" or fewer > 40, "hardly any was narrowed: the test asks too little"


def test_a_map_changed_at_some_keys_is_narrowed() -> None:
    """Of what is left as it is, nothing is asked."""
    key = Symbol(BOOK, "k", "bound")
    asked = all_of(key == this, notes[key] < number(9))
    term = Binder(notes.sort, "mapof", (key,), ite(asked, number(7), notes[key]))
    at = _scope(random.Random(1))
    given = {**at.before["notes"], STRANGE: 1}
    at = Scope(at.world, at.elements, {**at.before, "notes": given}, {}, {"this": "c"}, None)
    expected = {b: 7 if b == "c" else given[b] for b in BOOKS}
    assert Meanings().of(term)(at, {}) == expected


def test_a_map_of_truth_values_is_no_set_and_a_set_no_map() -> None:
    marks = setof(BOOK, lambda b: marked[b])
    assert _sources(marks) == ["all"]
    kept = mapof(BOOK, lambda b: ite(b == this, notes[b] < number(2), lent.has(b)))
    for term in (marks, kept):
        for seed in range(5):
            at = _scope(random.Random(seed))
            assert Meanings().of(term)(at, {}) == _plainly(term, at, {})


def test_what_the_greatest_is_taken_of_may_speak_of_what_is_bound_outside() -> None:
    def many(shelf: Term) -> Term:
        return largest(BOOK, lent.has, lambda c: ite(stands.has(c, shelf), number(2), number(1)))

    told = exists(BOOK, SHELF, lambda b, s: shelf_of(b) == ite(many(s) > 1, that, shelf_of(this)))
    for seed in range(40):
        at = _scope(random.Random(seed))
        assert Meanings().of(told)(at, {}) == _plainly(told, at, {})
    assert _sources(told) == ["all", "all"]


def _sources(term: Term) -> list[str]:
    assert isinstance(term, Binder)
    wanted = antecedents(term.body) if term.name == "forall" else conjuncts(term.body)
    found, _ = narrowed(term.variables, tuple(wanted), Meanings().free)
    told = {All: "all", Same: "same", OneOf: "one of", Members: "members"}
    return [told[type(source)] for source in found]


def test_where_it_looks() -> None:
    assert _sources(exists(BOOK, lambda b: lent.has(b) & (shelf_of(b) == that))) == ["one of"]
    assert _sources(forall(BOOK, lambda b: lent.has(b).implies(notes[b] < 2))) == ["members"]
    assert _sources(forall(BOOK, lambda b: lent.has(b) & (notes[b] < 2))) == ["all"]
    assert _sources(exists(BOOK, lambda b: lent.has(b) | (b == this))) == ["all"]
    assert _sources(exists(BOOK, lambda b: ~lent.has(b))) == ["all"]
    assert _sources(forall(BOOK, lambda b: ~lent.has(b))) == ["members"]
    assert _sources(exists(BOOK, SHELF, lambda b, s: stands.has(b, s))) == ["members"]
    both = exists(BOOK, BOOK, lambda b, c: lent.has(c) & (shelf_of(b) == shelf_of(c)))
    assert _sources(both) == ["members", "one of"]
