"""Each model is told in its own words, and one that brings none in those of its variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmcache_spec.evaluate.interpreter import ActionCall, World
from mmcache_spec.model.variants import SPECIFIED
from mmcache_spec.render.cores import ON_PAGE
from mmcache_spec.render.story import call_text
from mmcache_spec.render.words import words_of

MODELS = [system.name for system in SPECIFIED.systems]
CORES = Path(__file__).parents[3] / "docs" / "cores.md"


def world(order: str) -> World:
    """Two inputs of one request, of which the second comes first."""
    functions: dict[str, dict[str, object]] = {
        "owner": {"i1": "r1", "i2": "r1"},
        "hash_of": {"i1": "A", "i2": "B"},
        "size": {"A": 1, "B": 2},
        "length": {"i1": 1, "i2": 1},
        "prompt": {"r1": 3},
        order: {"i1": 2, "i2": 0},
    }
    budgets = {"token_budget": 4, "encoder_budget": 5, "lookahead": 0}
    universe = {"Hash": ("A", "B"), "Request": ("r1",), "Input": ("i1", "i2")}
    return World(universe, {"capacity": 3, **budgets}, functions)


@pytest.mark.parametrize("model", MODELS)
def test_a_model_brings_its_words(model: str) -> None:
    assert words_of(model) is not words_of("nobody's")


def test_a_model_without_words_is_told_by_its_variables() -> None:
    words = words_of("nobody's")
    state = {"free_slots": 3, "cached": frozenset({("B",), ("A",)}), "since": {"A": 1}, "x": {}}
    assert words.state_text(state) == "free slots 3   cached A, B   since A 1   x –"
    told = words.world_text(World({}, {"capacity": 3}, {"size": {"A": 1, "B": 2}}))
    assert told == "  World: capacity 3; size: A 1, B 2"


@pytest.mark.parametrize(("model", "order"), [("ledger", "position"), ("progress", "offset")])
def test_inputs_are_numbered_as_the_model_orders_them(model: str, order: str) -> None:
    call = ActionCall("free_encoder_input", {"input": "i1"})
    assert call_text(words_of(model), call, world(order)) == "free_encoder_input(r1, 1)  [A]"


def test_a_request_is_told_in_what_the_model_knows_of() -> None:
    told = words_of("ledger").world_text(world("position"))
    assert told == "  World: capacity 3; sizes A = 1, B = 2; requests r1 = [B, A]"
    told = words_of("progress").world_text(world("offset"))
    assert told.endswith("; r1 = 3 tokens: B on 0-0, A on 2-2")


def test_the_page_of_cores_has_the_models_that_are_said_to_be_on_it() -> None:
    titles = [line[3:] for line in CORES.read_text().splitlines() if line.startswith("## ")]
    assert [title for title in titles if title in MODELS] == list(ON_PAGE)
