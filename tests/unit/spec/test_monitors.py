"""The record of the observer: in every design as it was declared, whatever the design does."""

from dataclasses import replace

import pytest

from mmcache_spec.checks.bounded import shortest
from mmcache_spec.checks.induction import decide, obligations
from mmcache_spec.checks.product import distinguish
from mmcache_spec.evaluate.compiled import CompiledSystem
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, World
from mmcache_spec.kernel.mutants import mutants
from mmcache_spec.kernel.system import (
    Action,
    ActionProperty,
    Invariant,
    Monitor,
    Scope,
    TransitionSystem,
)
from mmcache_spec.kernel.terms import (
    BOOL,
    FALSE,
    TRUE,
    SetSort,
    Sort,
    all_of,
    empty,
    ite,
    parameter,
    result,
    state,
)
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.engine import engine
from mmcache_spec.model.ledger import ledger

COAT = Sort("Coat")
hung = state("hung", SetSort.of(COAT))
"""What the wardrobe has: its own state, which can be seen from outside."""
drawer = state("drawer", SetSort.of(COAT))
"""Hidden."""
brought = state("brought", SetSort.of(COAT), ghost=True)
lost = state("lost", SetSort.of(COAT), ghost=True)
c = parameter("coat", COAT)

RECORD = (
    Monitor(brought, empty(COAT), {"bring": ite(result(BOOL), brought.insert(c), brought)}),
    Monitor(
        lost,
        empty(COAT),
        {"tidy": lost.union(hung.minus(hung.next)), "bring": lost.minus(hung.next)},
    ),
)
ALL_THERE = Invariant("all_there", hung.same_elements(brought.minus(lost)), "L1")
BRING = Action("bring", (c,), effect=(hung.becomes(hung.insert(c)),), returns=TRUE)
TIDY = Action("tidy", (c,), effect=(hung.becomes(hung.remove(c)),))
LOOK = Action("look", returns=hung)


def wardrobe(*actions: Action, **changes: object) -> TransitionSystem:
    system = TransitionSystem(
        name="wardrobe",
        variables=(hung, drawer),
        constants=(),
        functions=(),
        axioms=(),
        init=(hung.becomes(empty(COAT)), drawer.becomes(empty(COAT))),
        actions=actions or (BRING, TIDY, LOOK),
        invariants=(ALL_THERE,),
        action_properties=(),
        pass_start=all_of(),
        monitors=RECORD,
        observables={"hung": hung},
    )
    return replace(system, **changes)  # type: ignore[arg-type]  # wrong on purpose


SCOPE = Scope("two coats", {"Coat": ("x", "y")})
WORLD = World({"Coat": ("x", "y")}, {}, {})


def verdicts(system: TransitionSystem) -> set[str]:
    return {decide(o, SCOPE).verdict for o in obligations(system)}


def states(system: TransitionSystem, *calls: ActionCall) -> list[dict[str, object]]:
    return [dict(step.after) for step in Interpreter(system, WORLD).run(calls)]


X = frozenset({("x",)})
VISIT = (ActionCall("bring", {"coat": "x"}), ActionCall("look"), ActionCall("tidy", {"coat": "x"}))


class TestTheRecordIsComposed:
    def test_it_is_among_the_variables_and_has_a_first_value(self) -> None:
        system = wardrobe()
        assert [v.name for v in system.variables] == ["hung", "drawer", "brought", "lost"]
        assert [v.name for v, _ in system.init] == ["hung", "drawer", "brought", "lost"]

    def test_it_notes_down_answers_and_what_is_seen_and_is_kept_otherwise(self) -> None:
        one, two, three = states(wardrobe(), *VISIT)
        assert (one["brought"], one["lost"]) == (X, frozenset())
        assert (two["brought"], two["lost"]) == (X, frozenset())
        assert (three["brought"], three["lost"], three["hung"]) == (X, X, frozenset())

    def test_a_refusing_answer_is_noted_down_as_one(self) -> None:
        refusing = replace(BRING, returns=FALSE)
        (after, *_) = states(wardrobe(refusing, TIDY, LOOK), *VISIT)
        assert after["brought"] == frozenset()

    def test_the_proof_knows_it(self) -> None:
        assert verdicts(wardrobe()) == {"proved"}

    def test_so_does_the_search(self) -> None:
        nothing_hung = replace(BRING, effect=())
        found = shortest(wardrobe(nothing_hung, TIDY, LOOK), [SCOPE])
        assert found is not None
        assert found.actions == ("bring",)

    def test_a_compiled_system_goes_without_it(self) -> None:
        compiled = CompiledSystem(wardrobe(), WORLD)
        assert [v.name for v in compiled.variables] == ["hung", "drawer"]

    def test_doing_it_again_changes_nothing(self) -> None:
        system = wardrobe()
        again = replace(system)
        assert states(again, *VISIT) == states(system, *VISIT)
        assert [len(a.effect) for a in again.actions] == [3, 2, 0]


EDITS = (
    (brought, brought),
    (brought, brought.remove(c)),
    (lost, lost.insert(c)),
)


class TestNoDesignCanEditIt:
    @pytest.mark.parametrize("edit", EDITS, ids=["kept", "removed", "inserted"])
    def test_a_line_about_the_record_is_overruled(self, edit: tuple[object, object]) -> None:
        """A co-mutation: the coat is not hung up, and the record is to say so."""
        wrong = replace(BRING, effect=(edit,))  # type: ignore[arg-type]  # wrong on purpose
        system = wardrobe(wrong, TIDY, LOOK)
        assert states(system, *VISIT)[0]["brought"] == X
        assert "refuted" in verdicts(system)

    def test_however_the_system_was_made(self) -> None:
        right = wardrobe()
        wrong = replace(right.action("bring"), effect=((brought, brought),))
        system = replace(right, actions=(wrong, *right.actions[1:]))
        assert states(system, *VISIT)[0]["brought"] == X

    def test_not_even_the_start(self) -> None:
        wrong = replace(wardrobe(), init=(*wardrobe().init[:2], (brought, brought.insert(c))))
        assert wrong.init[2][1] is RECORD[0].init

    @pytest.mark.slow
    def test_mutants_are_of_the_design_alone(self) -> None:
        for system in (ledger(), encoder_decoder(), engine()):
            names = {m.variable.name for m in system.monitors}
            assert names
            for mutant in mutants(system):
                _, where = mutant.name.split(": ")
                assert where.split(",")[0] not in names

    def test_the_mutant_of_an_answer_is_recorded_as_it_answers(self) -> None:
        mutant = next(m for m in mutants(wardrobe()) if m.name == "tidy: hung, remove is gone")
        assert states(mutant.system, *VISIT)[2]["lost"] == frozenset()

    def test_two_designs_with_one_record_are_told_apart_by_what_they_do(self) -> None:
        forgetful = wardrobe(replace(BRING, effect=()), TIDY, LOOK)
        found = distinguish(
            wardrobe(),
            forgetful,
            lambda other: hung.next.same_elements(other(hung.next)),
            [SCOPE],
            2,
        )
        assert found is not None
        assert found.actions == ("bring",)


class TestDeclarationsThatMeanNothing:
    def test_a_monitor_is_a_ghost(self) -> None:
        with pytest.raises(ValueError, match="the monitor hung is a state"):
            Monitor(hung, empty(COAT))

    def test_a_ghost_is_a_monitor(self) -> None:
        with pytest.raises(ValueError, match=r"\['lost'\] are ghosts"):
            wardrobe(monitors=RECORD[:1])

    def test_its_values_are_of_its_sort(self) -> None:
        with pytest.raises(TypeError, match="lost is a Set"):
            Monitor(lost, FALSE)

    def test_it_reads_what_can_be_seen(self) -> None:
        spying = Monitor(lost, empty(COAT), {"tidy": drawer.next})
        with pytest.raises(ValueError, match="lost reads drawer at tidy, which no observer sees"):
            wardrobe(monitors=(RECORD[0], spying))

    def test_an_answer_is_of_the_sort_that_is_noted_down(self) -> None:
        silent = replace(BRING, returns=None)
        with pytest.raises(ValueError, match="bring returns no Bool"):
            wardrobe(silent, TIDY, LOOK)

    def test_no_effect_and_no_answer_reads_the_record(self) -> None:
        for cheat in (
            replace(BRING, effect=(hung.becomes(brought.insert(c)),)),
            replace(BRING, returns=~brought.has(c)),
        ):
            with pytest.raises(ValueError, match="bring reads the record brought"):
                wardrobe(cheat, TIDY, LOOK)

    def test_a_guard_may_read_it(self) -> None:
        polite = replace(BRING, guard={"not_brought_yet": ~brought.has(c)})
        claim = ActionProperty("once", "bring", ~brought.has(c), "L1")
        system = wardrobe(polite, TIDY, LOOK, action_properties=(claim,))
        assert verdicts(system) == {"proved"}


@pytest.mark.parametrize("system", [ledger(), encoder_decoder(), engine()], ids=lambda s: s.name)
def test_every_update_of_the_models_is_at_an_action_that_there_is(
    system: TransitionSystem,
) -> None:
    names = {a.name for a in system.actions}
    for monitor in system.monitors:
        assert set(monitor.updates) <= names, monitor.variable.name
