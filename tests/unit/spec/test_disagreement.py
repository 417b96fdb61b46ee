"""No model of the solver is believed: where the unrolling lies, the interpreter's veto is seen.

Each test makes the symbolic path wrong in one way; without the veto, a wrong counterexample, a
wrong start or a wrong witness would be shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import z3

from mmcache_spec.checks import bounded
from mmcache_spec.checks.bounded import Disagreement, shortest, unrolled, witnesses, wrong_start
from mmcache_spec.checks.unrolling import Unrolling
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, World
from mmcache_spec.kernel.goals import ANY, Goal
from mmcache_spec.kernel.terms import FALSE, Term
from mmcache_spec.model.ledger import ledger
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.model.world import scope

SMALLEST = scope(1, 1, 1)
SMALL = scope(2, 1, 2)
UNFILTERED = VARIANTS["unfiltered_report"].system
(L1,) = (p for p in UNFILTERED.properties if p.clause == "L1")

Read = tuple[World, dict[str, Any], list[ActionCall]]
Lie = Callable[[World, dict[str, Any], list[ActionCall]], Read]


@pytest.fixture
def lying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the unrolling answer otherwise: methods by name, or what it reads off a model."""

    def install(read: Lie | None = None, **methods: Callable[..., Any]) -> None:
        class Lying(Unrolling):
            def read(self, model: z3.ModelRef) -> Read:
                found = super().read(model)
                return found if read is None else read(*found)

        for name, method in methods.items():
            setattr(Lying, name, method)
        monkeypatch.setattr(bounded, "Unrolling", Lying)

    return install


def always(self: Unrolling, *asked: object) -> z3.BoolRef:
    return z3.BoolVal(True)


def everything(self: Unrolling, model: object) -> Any:
    """The elements that are used: all, so that none is taken away."""
    return self.scope.universe


def one_slot_more(world: World, start: dict[str, Any], calls: list[ActionCall]) -> Read:
    return world, {**start, "free_slots": start["free_slots"] + 1}, calls


def test_without_a_lie_nothing_is_vetoed(lying: Callable[..., None]) -> None:
    lying()
    found = unrolled(UNFILTERED, [SMALL], "pass", 3, (L1,))
    assert found is not None
    assert found.clauses == ("L1",)
    assert wrong_start(ledger(), SMALLEST, ledger().invariants[0]) is None


def test_a_wrong_start_that_is_right(lying: Callable[..., None]) -> None:
    lying(starts_outside=always)
    with pytest.raises(Disagreement, match="holds initially, says the interpreter"):
        wrong_start(ledger(), SMALLEST, ledger().invariants[0])


def test_another_initial_state(lying: Callable[..., None]) -> None:
    lying(one_slot_more, breaks=always)
    with pytest.raises(Disagreement, match="the interpreter starts in another state"):
        unrolled(ledger(), [SMALLEST], "init", 1)


def test_a_pass_that_starts_outside_of_an_invariant(lying: Callable[..., None]) -> None:
    lying(one_slot_more, breaks=always)
    with pytest.raises(Disagreement, match=r"the pass starts outside of \['.*free_slots_conserved"):
        unrolled(ledger(), [SMALLEST], "pass", 1)


def test_a_state_in_which_no_pass_begins(
    lying: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every invariant holds there, and the condition of a pass does not."""

    def never(world: World, start: dict[str, Any], calls: list[ActionCall]) -> Read:
        monkeypatch.setattr(Interpreter, "evaluate", evaluate)
        return world, start, calls

    def evaluate(self: Interpreter, term: Term, state: Any) -> Any:
        return False if term is system.pass_start else right(self, term, state)

    system, right = ledger(), Interpreter.evaluate
    lying(never, breaks=always)
    with pytest.raises(Disagreement, match=r"the pass starts outside of \[\]"):
        unrolled(system, [SMALLEST], "pass", 1)


def test_a_call_that_is_refused(lying: Callable[..., None]) -> None:
    def refused(world: World, start: dict[str, Any], calls: list[ActionCall]) -> Read:
        (one,) = world.universe["Input"]
        sizes = {"encoder_compute_budget": 1, "num_embeds_to_schedule": -1}
        return world, start, [ActionCall("can_allocate", {"input": one, **sizes})]

    lying(refused, breaks=always, used_in=everything)
    with pytest.raises(Disagreement, match=r"can_allocate is refused by \('pending_not_negative'"):
        unrolled(ledger(), [SMALLEST], "init", 1)


def test_a_path_that_breaks_nothing(lying: Callable[..., None]) -> None:
    lying(breaks=always)
    with pytest.raises(Disagreement, match=r"step 1 of 1 breaks \[\]"):
        unrolled(ledger(), [SMALLEST], "init", 1)


def test_a_path_that_was_broken_before_its_end(lying: Callable[..., None]) -> None:
    def longer(world: World, start: dict[str, Any], calls: list[ActionCall]) -> Read:
        return world, start, [*calls, ActionCall("get_freed_mm_hashes")]

    lying(longer)
    with pytest.raises(Disagreement, match=r"step 3 of 4 breaks \['report_disjoint"):
        unrolled(UNFILTERED, [SMALL], "pass", 3, (L1,))


def test_a_pass_that_only_the_search_knows(lying: Callable[..., None]) -> None:
    lying(follows=lambda self, world, calls: z3.BoolVal(False))
    with pytest.raises(Disagreement, match="Z3 finds no pass that goes as the search found"):
        shortest(UNFILTERED, [SMALL], "pass", 3, (L1,))


@pytest.mark.parametrize(
    "goal",
    [
        Goal("never, at a call", "get_freed_mm_hashes", FALSE),
        Goal("never, anywhere", ANY, FALSE),
        Goal("never, where it is refused", "reset", FALSE, refused=True),
    ],
    ids=lambda goal: goal.name,
)
def test_a_witness_of_what_is_not_reached(lying: Callable[..., None], goal: Goal) -> None:
    lying(reaches=always)
    with pytest.raises(Disagreement, match=f"the interpreter does not reach: {goal.name}"):
        witnesses(ledger(), SMALLEST, [goal], 1)


def test_every_veto_of_the_search_is_seen_here() -> None:
    """Whoever adds one adds a test of it."""
    vetoes = re.findall(r"raise Disagreement\(", Path(bounded.__file__).read_text())
    tested = re.findall(r"pytest\.raises\(Disagreement", Path(__file__).read_text())
    assert len(vetoes) == 7
    assert len(tested) >= len(vetoes)
