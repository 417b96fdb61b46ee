"""The kernel refuses declarations that mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mmcache_spec.evaluate.text import formula
from mmcache_spec.kernel.system import Action, ActionProperty, TransitionSystem
from mmcache_spec.kernel.terms import (
    INT,
    MapSort,
    SetSort,
    Sort,
    Term,
    all_of,
    alpha_form,
    empty,
    exists,
    forall,
    function,
    number,
    parameter,
    setof,
    state,
)
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import free_slots, ledger
from mmcache_spec.model.world import capacity

COLOUR = Sort("Colour")
seen = state("seen", SetSort.of(COLOUR))
count = state("count", INT)
c = parameter("c", COLOUR)


def system(**changes: Any) -> TransitionSystem:
    declared = {
        "name": "toy",
        "variables": (seen, count),
        "constants": (),
        "functions": (),
        "axioms": (),
        "init": (seen.becomes(empty(COLOUR)), count.becomes(number(0))),
        "actions": (Action("see", (c,), effect=(seen.becomes(seen.insert(c)),)),),
        "invariants": (),
        "action_properties": (),
        "pass_start": all_of(),
    }
    return TransitionSystem(**{**declared, **changes})


def test_modifies_is_what_the_effect_updates() -> None:
    assert system().action("see").modifies == {"seen"}


def test_an_action_updates_a_variable_once() -> None:
    with pytest.raises(ValueError, match="updated twice"):
        Action("see", (c,), effect=(count.becomes(count + 1), count.becomes(count + 2)))


def test_an_action_updates_declared_variables_only() -> None:
    other = state("other", INT)
    with pytest.raises(ValueError, match=r"modifies \['other'\]"):
        system(actions=(Action("see", effect=(other.becomes(number(1)),)),))


def test_the_initial_condition_is_complete() -> None:
    with pytest.raises(ValueError, match="every variable"):
        system(init=(count.becomes(number(0)),))


def test_a_property_speaks_of_an_action_that_exists() -> None:
    with pytest.raises(KeyError, match="no action 'look'"):
        system(action_properties=(ActionProperty("p", "look", all_of()),))


def test_a_variable_takes_values_of_its_sort() -> None:
    with pytest.raises(TypeError, match="seen is a Set"):
        seen.becomes(number(1))


def test_a_function_takes_arguments_of_its_domain() -> None:
    with pytest.raises(TypeError, match="takes a Colour, not a Int"):
        function("weight", COLOUR, INT)(number(1))


def test_a_term_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="no truth value"):
        assert count == 1


def test_only_a_state_variable_has_a_next_value() -> None:
    with pytest.raises(TypeError, match="c is a parameter"):
        _ = c.next


def test_only_a_map_is_looked_up() -> None:
    table = state("table", MapSort.of(COLOUR, INT))
    assert table[c].sort == INT
    with pytest.raises(TypeError, match="is not a map"):
        _ = seen[c]


def test_alpha_form_ignores_the_names_of_bound_variables_and_nothing_else() -> None:
    one = forall(COLOUR, lambda x: seen.has(x))
    two = forall(COLOUR, lambda y: seen.has(y))
    three = forall(COLOUR, lambda y: ~seen.has(y))
    assert alpha_form(one) == alpha_form(two)
    assert alpha_form(one) != alpha_form(three)


def test_formulas_read_like_formulas() -> None:
    claim = forall(COLOUR, lambda x: seen.next.has(x).implies(seen.has(x) | (x == c)))
    assert formula(claim) == "∀ x: Colour. x ∈ seen′ ⇒ x ∈ seen ∨ x = c"
    assert formula(count - (count - 1)) == "count − (count − 1)"
    assert formula(seen.minus(empty(COLOUR)).is_empty()) == "seen ∖ ∅ = ∅"


def test_no_two_symbols_share_a_name() -> None:
    with pytest.raises(ValueError, match=r"\['count'\] named twice"):
        system(actions=(Action("see", (parameter("count", COLOUR),)),))
    with pytest.raises(ValueError, match=r"\['see'\] named twice"):
        system(actions=(Action("see"), Action("see")))


def test_an_effect_speaks_of_the_state_before() -> None:
    with pytest.raises(ValueError, match="speaks of count after the action"):
        Action("see", effect=(count.becomes(count.next + 1),))


def test_a_design_that_asks_more_of_its_caller_than_the_protocol_is_refused() -> None:
    """Narrower guards would let anything be proved, of fewer calls."""
    with pytest.raises(ValueError, match=r"ledger.free: the guard idle is no duty"):
        changed(ledger(), "free", lambda a: replace(a, guard={"idle": free_slots >= 1}))
    with pytest.raises(ValueError, match=r"encoder_decoder.allocate: the guard small is no duty"):
        changed(
            encoder_decoder(),
            "allocate",
            lambda a: replace(a, guard={**a.guard, "small": capacity <= 3}),
        )


def test_a_design_may_ask_less() -> None:
    less = changed(ledger(), "allocate", lambda a: replace(a, guard={"absent": a.guard["absent"]}))
    assert set(less.action("allocate").guard) == {"absent"}


def changed(
    system: TransitionSystem, name: str, change: Callable[[Action], Action]
) -> TransitionSystem:
    actions = tuple(change(a) if a.name == name else a for a in system.actions)
    return replace(system, actions=actions)


def test_a_variable_never_stands_for_two_things() -> None:
    """A set made by a function that always says `j`, of another thing that is called `j` too."""
    inputs, requests = Sort("Input"), Sort("Request")
    owner = function("owner", inputs, requests)

    def alike(i: Term) -> Term:
        return setof(inputs, lambda j: owner(j) == owner(i))

    shown = formula(forall(inputs, lambda j: alike(j).has(j)))
    assert shown == "∀ j: Input. j ∈ { k | owner(k) = owner(j) }"
    assert formula(exists(inputs, lambda i: alike(i).has(i))).endswith(
        "{ j | owner(j) = owner(i) }"
    )
