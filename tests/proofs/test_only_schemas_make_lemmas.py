"""A lemma is a schema's statement with arguments in its places: nothing else is taken for one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from mmcache_spec.checks.induction import is_proved, lemmas_given, obligations
from mmcache_spec.kernel import schemas
from mmcache_spec.kernel.lemmas import (
    Lemma,
    for_every,
    has_earliest,
    has_first,
    has_least,
    insertion,
    monotone,
    non_negative,
)
from mmcache_spec.kernel.schemas import Element, Members, Predicate, Schema, Weight
from mmcache_spec.kernel.system import Action, Axiom, Invariant
from mmcache_spec.kernel.terms import (
    FALSE,
    INT,
    TRUE,
    Function,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    exists,
    forall,
    setof,
    state,
    subterms,
    total,
)
from mmcache_spec.model.variants import SPECIFIED, VARIANTS

HASH, REQUEST = Sort("Hash"), Sort("Request")
cached, freed = state("cached", SetSort.of(HASH)), state("freed", SetSort.of(HASH))
references = state("references", SetSort.of(HASH, REQUEST))
since = state("since", MapSort.of(HASH, INT))
size = Function("size", HASH, INT)
age = Function("age", HASH, INT)
weight_of_request = Function("weight_of_request", REQUEST, INT)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, so that what a test adds is gone after it."""
    monkeypatch.setattr(schemas, "SCHEMAS", dict(schemas.SCHEMAS))


# --- nothing of another origin -----------------------------------------------------------------


def test_no_formula_makes_a_lemma() -> None:
    with pytest.raises((TypeError, AttributeError)):
        Lemma(FALSE, ())  # type: ignore[arg-type]  # wrong on purpose


def test_a_lemma_cannot_be_given_another_formula() -> None:
    lemma = non_negative(cached, size)
    for change in ({"formula": FALSE}, {"finite": ()}, {"weights": ()}):
        with pytest.raises((TypeError, ValueError)):
            replace(lemma, **change)


def test_a_copy_of_a_lemma_says_the_same() -> None:
    lemma = non_negative(cached, size)
    assert copy.copy(lemma).formula is lemma.formula
    unpickled = pickle.loads(pickle.dumps(lemma))
    assert unpickled.schema is lemma.schema


def test_a_lemma_under_other_names_is_the_same_of_other_sets() -> None:
    other = state("other cached", SetSort.of(HASH))
    lemma = monotone(_until(Symbol(HASH, "k", "parameter")), freed, size)
    renamed = lemma.renamed(lambda s: other if s is cached else None)
    assert renamed.schema is lemma.schema
    assert renamed.weights == lemma.weights
    for before, after in zip(lemma.finite, renamed.finite, strict=True):
        assert (other in set(subterms(after))) == (cached in set(subterms(before)))
        assert cached not in set(subterms(after))
    assert cached not in set(subterms(renamed.formula))


def test_a_lemma_is_not_renamed_into_another_sort_or_under_a_quantifier() -> None:
    lemma = has_first(HASH, lambda x: cached.has(x), age)
    assert isinstance(lemma.formula, Op)
    bound = [s for s in subterms(lemma.formula) if isinstance(s, Symbol) and s.role == "bound"]
    with pytest.raises(TypeError, match="is a Set"):
        lemma.renamed(lambda s: since if s is cached else None)
    with pytest.raises(TypeError, match="one of them is bound"):
        lemma.renamed(lambda s: bound[0] if s is bound[-1] else None)
    quantified = Symbol(SetSort.of(HASH), "any", "bound")
    with pytest.raises(TypeError, match="one of them is bound"):
        lemma.renamed(lambda s: quantified if s is cached else None)


def test_no_class_poses_as_a_lemma() -> None:
    with pytest.raises(TypeError, match="not by a subclass"):
        type("Mine", (Lemma,), {})


def _in_an_action(thing: object) -> object:
    return Action("a", lemmas={"x": (thing,)})  # type: ignore[dict-item]  # wrong on purpose


def _in_an_invariant(thing: object) -> object:
    return Invariant("x", TRUE, lemmas=(thing,))  # type: ignore[arg-type]  # wrong on purpose


def _for_uniqueness(thing: object) -> object:
    return replace(SPECIFIED.systems[0], uniqueness={"a": (thing,)})  # type: ignore[dict-item]  # wrong on purpose


def _as_a_fact(thing: object) -> object:
    return has_least(cached, since, lambda x: thing)  # type: ignore[arg-type,return-value]  # wrong on purpose


def _for_every(thing: object) -> object:
    return for_every(HASH, lambda k: thing)  # type: ignore[arg-type,return-value]  # wrong on purpose


@pytest.mark.parametrize(
    "use", [_in_an_action, _in_an_invariant, _for_uniqueness, _as_a_fact, _for_every]
)
@pytest.mark.parametrize("thing", [Axiom("x", FALSE), Invariant("x", FALSE), FALSE, None])
def test_what_has_a_formula_is_not_yet_a_lemma(
    use: Callable[[object], object], thing: object
) -> None:
    with pytest.raises(TypeError, match="is no lemma"):
        use(thing)


def test_a_schema_that_is_not_registered_makes_no_lemma(registry: None) -> None:
    @Schema
    def anything_goes(members: Members) -> Term:
        return FALSE

    del schemas.SCHEMAS["anything_goes"]
    with pytest.raises(TypeError, match=r"made by a schema of kernel\.lemmas"):
        anything_goes(cached)


def test_a_registered_name_is_taken(registry: None) -> None:
    def union_bound(one: Members, two: Members, weight: Weight) -> Term:
        return FALSE

    with pytest.raises(TypeError, match="there is a schema union_bound already"):
        Schema(union_bound)


# --- the formula is the statement --------------------------------------------------------------


def test_a_schema_says_the_same_of_everything(registry: None) -> None:
    """One that looks at what it is given could be right of a symbol, and wrong of `freed`."""

    @Schema
    def two_faced(members: Members, weight: Weight) -> Term:
        honest = getattr(members, "name", "") != "freed"
        return total(members, weight) >= 0 if honest else total(members, weight) < 0

    assert two_faced(cached, size).formula is not None
    with pytest.raises(TypeError, match="something else than of any"):
        two_faced(freed, size)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a, x, w: total(a.insert(x), w) <= total(a, w) + w(x),
        lambda a, x, w: total(a.remove(x), w) == total(a, w) + w(x),
        lambda a, x, w: total(a.insert(x), w) == w(x) + total(a, w),
        lambda a, x, w: total(a.insert(x), age) == total(a, w) + w(x),
        lambda a, x, w: total(freed.insert(x), w) == total(a, w) + w(x),
        lambda a, x, w: total(a.insert(x), w) == total(a, w) + 1,
        lambda a, x, w: forall(HASH, lambda y: total(a.insert(y), w) == total(a, w) + w(x)),
        lambda a, x, w: TRUE,
    ],
)
def test_every_difference_from_the_statement_is_seen(
    registry: None, wrong: Callable[[Term, Term, Function], Term]
) -> None:
    @Schema
    def grows(members: Members, x: Element, weight: Weight) -> Term:
        if x is not h:
            return total(members.insert(x), weight) == total(members, weight) + weight(x)
        return wrong(members, x, weight)

    h = Symbol(HASH, "h", "parameter")
    assert grows(cached, Symbol(HASH, "h", "parameter"), size).formula is not None
    with pytest.raises(TypeError, match="something else than of any"):
        grows(cached, h, size)


def test_which_variable_is_bound_where_matters(registry: None) -> None:
    @Schema
    def reflexive(sort: schemas.Elements, where: Predicate, key: schemas.KeyFunction) -> Term:
        if sort == HASH:
            return forall(HASH, HASH, lambda x, y: where(x).implies(key(x) <= key(y)))
        return forall(sort, sort, lambda x, y: where(x).implies(key(x) <= key(x)))

    with pytest.raises(TypeError, match="something else than of any"):
        reflexive(HASH, lambda x: cached.has(x), size)


def test_a_predicate_says_the_same_each_time() -> None:
    asked: list[Term] = []

    def only_at_first(x: Term) -> Term:
        asked.append(x)
        return cached.has(x) if len(asked) == 1 else FALSE

    with pytest.raises(TypeError, match="where is not the same each time"):
        has_first(HASH, only_at_first, size)


def test_a_predicate_keeps_to_its_own_variable() -> None:
    """It remembers the first element, and speaks of it when asked about the second."""
    seen: list[Term] = []

    def where(x: Term) -> Term:
        seen.append(x)
        return cached.has(seen[0])

    with pytest.raises(TypeError, match="not the same each time"):
        has_first(HASH, where, size)


def test_a_variable_that_got_away_proves_nothing() -> None:
    """`for_every` hands its variable to a function, which may keep it for another lemma."""
    kept: list[Term] = []

    def keep(k: Term) -> Lemma:
        kept.append(k)
        return non_negative(cached, size)

    for_every(HASH, keep)
    stray = monotone(setof(HASH, lambda x: x == kept[0]), cached, size)
    ledger = SPECIFIED.systems[0]
    call = ledger.action("can_allocate")
    claim = next(iter(call.lemmas))
    strayed = replace(call, lemmas={claim: (stray,)})
    actions = tuple(strayed if a is call else a for a in ledger.actions)
    system = replace(ledger, actions=actions)
    obligation = next(
        o
        for o in obligations(system)
        if o.claim.name == claim and o.action is not None and o.action.name == call.name
    )
    with pytest.raises(KeyError):
        is_proved(obligation)


# --- the arguments are what the statement is about ---------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: non_negative(references, size), "of the elements of which sort"),
        (lambda: non_negative(cached, weight_of_request), "weight is to be a function"),
        (lambda: insertion(cached, Symbol(REQUEST, "r", "parameter"), size), "x is to be"),
        (lambda: monotone(cached, since, size), "whole is to be a finite set"),
        (lambda: has_least(cached, cached), "key is to be a map"),
        (lambda: has_first(HASH, lambda x: size(x), size), "is no formula"),
        (lambda: for_every(HASH, HASH, HASH, HASH, _never_asked), "up to 3 variables"),
    ],
)
def test_arguments_of_another_kind_are_refused(make: Callable[[], Lemma], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        make()


def _never_asked(*elements: Term) -> Lemma:
    raise AssertionError("refused before")


def test_an_argument_without_a_kind_is_refused(registry: None) -> None:
    @Schema
    def vague(members: Term) -> Term:
        return TRUE

    with pytest.raises(TypeError, match="say of what kind members is"):
        vague(cached)


def test_a_lemma_lists_what_must_be_finite_and_what_not_negative() -> None:
    def older(k: Term) -> Term:
        return setof(HASH, lambda x: cached.has(x) & (since[x] < since[k]))

    told = has_least(cached, since, lambda k: monotone(older(k), freed, size))
    assert [t.sort for t in told.finite] == [SetSort.of(HASH)] * 3
    assert any(t is cached for t in told.finite)
    assert any(t is freed for t in told.finite)
    assert told.weights == (size,)
    first = has_first(HASH, lambda x: cached.has(x), age)
    (where,) = first.finite
    assert where.sort == SetSort.of(HASH)
    assert first.weights == ()
    earliest = has_earliest(HASH, lambda x: ~cached.has(x), age)
    assert (earliest.finite, earliest.weights) == ((), (age,))


# --- and this is what the proofs are given -----------------------------------------------------


def test_the_proofs_are_given_lemmas_of_registered_schemas_alone() -> None:
    used = {
        lemma.schema.name
        for variant in (SPECIFIED, *VARIANTS.values())
        for system in variant.systems[:1]
        for o in obligations(system)
        for lemma in lemmas_given(o)
    }
    assert used <= set(schemas.SCHEMAS)
    assert {"insertion", "monotone", "has_least"} <= used


def test_a_lemma_may_be_about_what_an_outer_one_binds() -> None:
    """As the lemmas of eviction are: nothing of the checks above is in the way."""
    lemma = for_every(HASH, HASH, lambda k, g: monotone(_until(k), _until(g), size))
    assert lemma.schema.name == "for_every"
    inner = has_first(HASH, lambda x: exists(REQUEST, lambda r: references.has(x, r)), size)
    assert isinstance(inner.formula, Op)


def _until(k: Term) -> Term:
    return setof(HASH, lambda x: cached.has(x) & (since[x] < since[k]))
