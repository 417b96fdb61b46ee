"""The interpreter alone: every operator, and what a step breaks. Expected values are by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, Step, World
from mmcache_spec.generate.managers import specified
from mmcache_spec.kernel.goals import ANY, Goal
from mmcache_spec.kernel.system import Action, ActionProperty, Invariant, TransitionSystem
from mmcache_spec.kernel.terms import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    MapSort,
    SetSort,
    Sort,
    Term,
    after,
    all_of,
    any_of,
    constant,
    empty,
    exists,
    forall,
    function,
    ite,
    largest,
    mapof,
    number,
    parameter,
    result,
    setof,
    state,
    total,
)
from mmcache_spec.oracle import Replay

SHELF = Sort("Shelf")
taken = state("taken", SetSort.of(SHELF))
level = state("level", INT)
notes = state("notes", MapSort.of(SHELF, INT))
room = constant("room", INT)
width = function("width", SHELF, INT)
shelf, more = parameter("shelf", SHELF), parameter("more", INT)

FILL = Action(
    "fill",
    (shelf, more),
    guard={"empty": ~taken.has(shelf), "some": number(0) < more},
    effect=(
        taken.becomes(taken.insert(shelf)),
        level.becomes(level + more),
        notes.becomes(notes.put(shelf, more)),
    ),
    returns=level + more <= room,
)
CLEAR = Action("clear", effect=(taken.becomes(empty(SHELF)), level.becomes(number(0))))


def system(*properties: ActionProperty, invariants: tuple[Invariant, ...] = ()) -> TransitionSystem:
    return TransitionSystem(
        name="shelves",
        variables=(taken, level, notes),
        constants=(room,),
        functions=(width,),
        axioms=(),
        init=(
            taken.becomes(empty(SHELF)),
            level.becomes(number(0)),
            notes.becomes(mapof(SHELF, lambda s: number(0))),
        ),
        actions=(FILL, CLEAR),
        invariants=invariants,
        action_properties=properties,
        pass_start=all_of(),
    )


WORLD = World({"Shelf": ("high", "low")}, {"room": 5}, {"width": {"high": 3, "low": 20}})
START = {"taken": frozenset(), "level": 0, "notes": {"high": 0, "low": 0}}
LOW_2, LOW_9 = (ActionCall("fill", {"shelf": "low", "more": n}) for n in (2, 9))


def steps(*calls: ActionCall, of: TransitionSystem | None = None) -> list[Step]:
    return list(Interpreter(of or system(), WORLD).run(calls))


def test_a_call_answers_and_changes_what_it_says_and_nothing_else() -> None:
    (one,) = steps(LOW_2)
    assert (one.before, one.refused_by, one.result) == (START, (), True)
    assert one.after == {
        "taken": frozenset({("low",)}),
        "level": 2,
        "notes": {"high": 0, "low": 2},
    }
    _, cleared = steps(LOW_9, ActionCall("clear"))
    assert cleared.result is None
    assert cleared.after == {**START, "notes": {"high": 0, "low": 9}}
    assert steps(LOW_9)[0].result is False


def test_each_guard_that_fails_is_named_and_nothing_happens() -> None:
    *_, again = steps(LOW_2, ActionCall("fill", {"shelf": "low", "more": 0}))
    assert again.refused_by == ("empty", "some")
    assert again.result is None
    assert again.after is again.before


@pytest.mark.parametrize("record", [WORLD, LOW_2, *steps(LOW_2)], ids=["world", "call", "step"])
def test_what_was_done_cannot_be_changed_afterwards(record: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(record, fields(record)[0].name, None)


S2 = {"taken": frozenset({("low",)}), "level": 2, "notes": {"high": 0, "low": 2}}
LOW, BOTH = frozenset({("low",)}), frozenset({("high",), ("low",)})
here = setof(SHELF, lambda s: taken.has(s))


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (all_of(TRUE, TRUE), True),
        (all_of(TRUE, FALSE), False),
        (any_of(FALSE, FALSE), False),
        (any_of(FALSE, TRUE), True),
        (FALSE.implies(FALSE), True),
        (TRUE.implies(FALSE), False),
        (TRUE.implies(TRUE), True),
        (~TRUE, False),
        (ite(TRUE, 1, 2), 1),
        (ite(FALSE, 1, 2), 2),
        (level == 2, True),
        (level == 3, False),
        (level < 2, False),
        (level < 3, True),
        (level <= 2, True),
        (level <= 1, False),
        (level + 3, 5),
        (level - 3, -1),
        (room, 5),
        (largest(SHELF, lambda s: TRUE, lambda s: width(s)), 20),
        (largest(SHELF, lambda s: width(s) < 5, lambda s: width(s)), 3),
        (largest(SHELF, lambda s: FALSE, lambda s: width(s)), 0),
        (forall(SHELF, lambda s: taken.has(s)), False),
        (forall(SHELF, lambda s: width(s) <= 20), True),
        (exists(SHELF, lambda s: taken.has(s)), True),
        (exists(SHELF, lambda s: width(s) == 4), False),
        (here, LOW),
        (setof(SHELF, lambda s: ~taken.has(s)), frozenset({("high",)})),
        (setof(SHELF, SHELF, lambda s, t: taken.has(s) & ~taken.has(t)), {("low", "high")}),
        (mapof(SHELF, lambda s: width(s) + 1), {"high": 4, "low": 21}),
        (empty(SHELF), frozenset()),
        (taken.union(setof(SHELF, lambda s: TRUE)), BOTH),
        (taken.minus(setof(SHELF, lambda s: TRUE)), frozenset()),
        (setof(SHELF, lambda s: TRUE).minus(taken), frozenset({("high",)})),
        (mapof(SHELF, lambda s: notes[s] + 1), {"high": 1, "low": 3}),
        (mapof(SHELF, lambda s: ite(taken.remove(s).has(s), 1, 0)), {"high": 0, "low": 0}),
        (mapof(SHELF, lambda s: ite(taken.insert(s).has(s), 1, 0)), {"high": 1, "low": 1}),
        (mapof(SHELF, lambda s: notes.put(s, 7)[s]), {"high": 7, "low": 7}),
        (total(taken, width), 20),
        (total(setof(SHELF, lambda s: TRUE), width), 23),
        (total(empty(SHELF), width), 0),
    ],
)
def test_a_term_has_the_value_that_it_says(term: Term, value: Any) -> None:
    assert Interpreter(system(), WORLD).evaluate(term, S2) == value


RISES = ActionProperty("rises", "fill", level < after(level))
LITTLE = ActionProperty("little", "fill", result(BOOL))
AS_ASKED = ActionProperty("as asked", "fill", after(level) == level + more)
CLEARED = ActionProperty("cleared", "clear", after(level) == 0)
NEVER = ActionProperty("never", "clear", FALSE)
FITS = Invariant("fits", level <= room)


class TestWhatAStepBreaks:
    SYSTEM = system(RISES, LITTLE, AS_ASKED, CLEARED, NEVER, invariants=(FITS,))

    def broken(self, *calls: ActionCall) -> list[list[str]]:
        interpreter = Interpreter(self.SYSTEM, WORLD)
        return [[p.name for p in interpreter.breaks(s)] for s in interpreter.run(calls)]

    def test_properties_of_its_own_action_alone(self) -> None:
        assert self.broken(LOW_2) == [[]]
        assert self.broken(LOW_2, ActionCall("clear"))[1] == ["never"]

    def test_invariants_of_the_state_after_it(self) -> None:
        assert self.broken(LOW_9, ActionCall("clear")) == [["fits", "little"], ["never"]]

    def test_a_refused_step_breaks_nothing(self) -> None:
        assert self.broken(LOW_9, LOW_9) == [["fits", "little"], []]

    def test_a_term_about_a_step_knows_all_of_it(self) -> None:
        (step,) = steps(LOW_9, of=self.SYSTEM)
        interpreter = Interpreter(self.SYSTEM, WORLD)
        assert interpreter.value(after(level) - level - more, step) == 0
        assert interpreter.value(result(BOOL), step) is False


class TestGoals:
    HIGH = Goal("high", "fill", after(level) > 5)

    def test_a_goal_is_of_its_action(self) -> None:
        interpreter = Interpreter(system(), WORLD)
        little, much = steps(LOW_2)[0], steps(LOW_9)[0]
        cleared = steps(LOW_9, ActionCall("clear"))[1]
        assert [interpreter.meets(self.HIGH, s) for s in (little, much)] == [False, True]
        assert not interpreter.meets(Goal("c", "fill", TRUE), cleared)
        assert interpreter.meets(Goal("c", "clear", TRUE), cleared)
        read_from_a_file = "".join(("cl", "ear"))
        assert interpreter.meets(Goal("c", read_from_a_file, TRUE), cleared)

    def test_a_goal_of_any_action_is_of_the_state_after(self) -> None:
        interpreter = Interpreter(system(), WORLD)
        goal = Goal("full", ANY, level > 5)
        assert [interpreter.meets(goal, s) for s in steps(LOW_9, ActionCall("clear"))] == [
            True,
            False,
        ]

    def test_a_call_that_a_guard_forbids_can_be_stood_before(self) -> None:
        interpreter = Interpreter(system(), WORLD)
        goal = Goal("again", "fill", taken.has(shelf), refused=True)
        assert interpreter.condition_holds(goal, S2, LOW_2)
        assert not interpreter.condition_holds(goal, START, LOW_2)
        assert interpreter.meets_before(goal, S2)
        assert not interpreter.meets_before(goal, START)

    @pytest.mark.parametrize("off", [-1, 0, 1])
    @pytest.mark.parametrize(
        "bound",
        [
            room,
            level,
            width(shelf),
            notes[shelf],
            number(0) - width(shelf),
            width(shelf) - room,
            width(shelf) - level,
            level - width(shelf),
        ],
        ids=str,
    )
    def test_an_integer_on_each_side_of_what_it_may_be_compared_with(
        self, bound: Term, off: int
    ) -> None:
        """A number of the world or the state, or the difference of two: at, under, or over it."""
        # No number, and no difference of two, is near to another one by chance.
        world = World(WORLD.universe, {"room": 5}, {"width": {"high": 13, "low": 29}})
        far = {"taken": frozenset(), "level": 47, "notes": {"high": 101, "low": 260}}
        goal = Goal("told", "fill", more == bound + off)
        assert Interpreter(system(), world).meets_before(goal, far)

    def test_there_is_no_call_without_an_integer_that_fits(self) -> None:
        goal = Goal("told", "fill", more == 1000)
        assert not Interpreter(system(), WORLD).meets_before(goal, START)


def test_the_calls_of_an_action() -> None:
    calls = Interpreter(system(), WORLD).calls(FILL, (1, 4))
    assert [(c.arguments["shelf"], c.arguments["more"]) for c in calls] == [
        ("high", 1),
        ("high", 4),
        ("low", 1),
        ("low", 4),
    ]


def test_without_the_record_it_answers_the_same() -> None:
    """On a long walk of the suite: what an observer notes has no influence."""
    walks = [v for v in load_suite() if v.manager == "encoder_cache" and len(v.steps) < 200]
    vector = max(walks, key=lambda v: len(v.steps))
    noted = Replay(specified("ledger"), vector.parameters)
    quick = Replay(specified("ledger"), vector.parameters, record=False)
    ghosts = {v.name for v in noted.system.variables if v.role == "ghost"}
    for step in vector.steps:
        assert noted.answer(step.call) == quick.answer(step.call)
    assert all(noted.state[n] == quick.state[n] for n in noted.state if n not in ghosts)
    assert any(noted.state[n] != quick.state[n] for n in ghosts)


def test_a_named_term_is_evaluated_once_in_a_scope_and_anew_in_the_next() -> None:
    """`gone` stands in five places of an admission; what it was must not be kept for the next."""
    vector = max(load_suite(), key=lambda v: (v.manager == "encoder_cache", len(v.steps)))
    kept = Replay(specified("ledger"), vector.parameters)
    for step in vector.steps:
        anew = Interpreter(specified("ledger"), kept.interpreter.world)
        before = kept.state
        answer = kept.answer(step.call)
        assert answer is not None
        done = kept.steps[-1]
        assert anew.call(before, done.call).after == kept.state
