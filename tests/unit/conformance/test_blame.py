"""Which clause a wrong answer or a wrong state is laid to: each kind of difference is heeded."""

from __future__ import annotations

import pytest

from mmcache_conformance.exhaust.search import exhaust
from mmcache_conformance.exhaust.world import SearchScope
from mmcache_conformance.oracle.blame import blamed
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.verdicts.model import Difference, Value
from mmcache_vectors.manager import (
    Allocate,
    Call,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Manager,
    Parameters,
    Request,
)
from tests.known_bad.managers import (
    ForgetsTheReference,
    FreeableTooEarly,
    Uncharged,
    WrongLedger,
)

WORLD = Parameters(3, (Request("r1", (Item("A", 1), Item("B", 2))),))
ALLOCATED = (Allocate("r1", 0),)
RELEASED = (*ALLOCATED, FreeEncoderInput("r1", 0))


def blame(
    calls: tuple[Call, ...], *seen: tuple[str, Value], kind: Manager = "encoder_cache"
) -> set[str]:
    differences = (Difference(what, None, got) for what, got in seen)
    return set(blamed(specified(kind), WORLD, calls, differences))


def test_nothing_is_laid_to_what_is_as_specified() -> None:
    assert blame(ALLOCATED) == blame(RELEASED) == blame(()) == set()


@pytest.mark.parametrize(
    ("calls", "what", "got", "clauses"),
    [
        (ALLOCATED, "num_free_slots", 3, "L3"),
        (ALLOCATED, "num_freeable_slots", 3, "L4"),
        (ALLOCATED, "cached", {}, "L3"),
        (ALLOCATED, "cached", {"A": ("r1",), "B": ("r1",)}, "L3"),
        (ALLOCATED, "cached", {"A": ()}, "L5"),
        (ALLOCATED, "cached", {"A": ()}, "L8"),
        (RELEASED, "cached", {"A": ("r1",)}, "L5"),
        (ALLOCATED, "freeable", ("A",), "L5"),
        (RELEASED, "freeable", (), "L5"),
        (RELEASED, "freeable", ("A", "B"), "L4"),
        # Of a position that is held, L8 or, by the record of an observer, L12.
        (ALLOCATED, "held", {"r1": (0, 1)}, "L8 L12"),
    ],
)
def test_a_wrong_state_names_its_clause(
    calls: tuple[Call, ...], what: str, got: Value, clauses: str
) -> None:
    assert blame(calls, (what, got)) & set(clauses.split())


def test_a_wrong_state_of_encoder_decoder_models_names_its_clause() -> None:
    assert blame(ALLOCATED, ("num_free_slots", 3), kind="encoder_decoder") == {"E1"}


def test_answer_and_state_are_both_heeded() -> None:
    calls = (*RELEASED, GetFreedMmHashes())
    assert blame(calls, ("returns", ("A",))) == {"L1", "L2"}
    assert blame(calls, ("returns", ("A",)), ("num_free_slots", 0)) >= {"L1", "L2", "L3"}


@pytest.mark.parametrize("cached", ["r1", "r2"])
def test_of_two_sizes_of_one_identifier_the_one_that_is_cached_is_meant(cached: str) -> None:
    """L1: it is reported while it is cached, whichever of the two that is; a state likewise, L3."""
    twins = Parameters(
        4, (Request("r1", (Item("A", 1),)), Request("r2", (Item("A", 2), Item("B", 1))))
    )

    def laid_to(*seen: Difference, calls: tuple[Call, ...]) -> set[str]:
        return set(blamed(specified("encoder_cache"), twins, calls, seen))

    allocated = (Allocate(cached, 0),)
    told = Difference("returns", (), ("A",))
    assert "L1" in laid_to(told, calls=(*allocated, GetFreedMmHashes()))
    gone = Difference("cached", None, {})
    right = Difference("cached", None, {"A": (cached,)})
    assert "L3" in laid_to(gone, calls=allocated)
    assert laid_to(right, calls=allocated) == set()
    free = Difference("freeable", None, ("A",))
    assert "L5" in laid_to(free, calls=allocated)


def test_clauses_are_told_in_the_order_of_their_numbers() -> None:
    """L2 before L10, which a text would have the other way round."""
    seen = (Difference("cached", None, {}), Difference("held", None, {"r1": (1,)}))
    numbers = [int(c[1:]) for c in blamed(specified("encoder_cache"), WORLD, ALLOCATED, seen)]
    assert numbers == sorted(numbers)
    assert min(numbers) < 10 < max(numbers)


def test_of_an_exception_or_an_answer_of_another_type_nothing_is_said() -> None:
    assert blame(ALLOCATED, ("error", "LookupError")) == set()
    assert blame((*ALLOCATED, GetFreedMmHashes()), ("returns", "a text")) == set()


# --- the public way: the state of a manager ----------------------------------------------------


@pytest.mark.parametrize("cls", [Uncharged, ForgetsTheReference, FreeableTooEarly])
def test_exhaust_names_the_clause_of_a_wrong_state(cls: type[WrongLedger]) -> None:
    scope = SearchScope(hashes=2, requests=1, inputs=2, capacity=3)
    found = exhaust(f"{cls.__module__}:{cls.__name__}", scope, max_states=10**4)
    assert found.disagreement is not None
    assert "returns" not in {d.what for d in found.disagreement.differences}
    assert set(cls.clauses) <= set(found.disagreement.clauses)
