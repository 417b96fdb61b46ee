"""A definition is shown by its name, and is one place for a mutant, however often it is used."""

from __future__ import annotations

from mmcache_spec.evaluate.text import formula, names_in
from mmcache_spec.kernel.mutants import mutations
from mmcache_spec.kernel.rewriting import places, points
from mmcache_spec.kernel.terms import (
    INT,
    SetSort,
    Sort,
    Term,
    all_of,
    defined,
    exists,
    forall,
    function,
    named,
    state,
)

ITEM = Sort("Item")
cost = function("cost", ITEM, INT)
chosen = state("chosen", SetSort.of(ITEM))
limit = state("limit", INT)


def cheap(x: Term) -> Term:
    return defined("cheap", lambda i: cost(i) < limit, x)


TWICE = all_of(exists(ITEM, lambda j: chosen.has(j) & cheap(j)), forall(ITEM, lambda k: cheap(k)))
ONCE = exists(ITEM, lambda j: chosen.has(j) & cheap(j))


def test_a_definition_is_shown_by_its_name_and_said_in_general() -> None:
    assert formula(TWICE) == "(∃ j: Item. j ∈ chosen ∧ cheap(j)) ∧ (∀ k: Item. cheap(k))"
    assert {name: formula(term) for name, term in names_in(TWICE).items()} == {
        "cheap(i)": "cost(i) < limit"
    }


def test_a_mutant_of_it_changes_every_use_with_the_variable_of_each() -> None:
    (changed,) = (term for what, term in mutations(TWICE) if what == "< is ≤")
    assert (
        formula(changed)
        == "(∃ j: Item. j ∈ chosen ∧ cost(j) ≤ limit) ∧ (∀ k: Item. cost(k) ≤ limit)"
    )


def test_what_is_used_once_is_as_many_places_as_ever() -> None:
    shown = [formula(inner) for inner, _ in points(ONCE)]
    assert shown == [formula(inner) for inner, _ in places(ONCE)]


def test_a_definition_within_a_definition_is_one_place_too() -> None:
    bound = named("bound", limit + 1)
    both = all_of(limit < bound, named("far", limit < bound), named("far", limit < bound))
    changed = [formula(term) for what, term in mutations(both) if what == "+ is −"]
    assert changed == ["limit < limit − 1 ∧ limit < limit − 1 ∧ limit < limit − 1"]
