"""Wrong designs are found out by the clauses; where a clause is taken away, they are not."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from click.testing import CliRunner

from mmcache_spec.checks.broken import first_breach
from mmcache_spec.checks.different import first_difference
from mmcache_spec.checks.equivalence import EQUAL, Coupling, same_steps
from mmcache_spec.checks.explore import BrokenOriginal, Explorer
from mmcache_spec.checks.findings import Found, Search
from mmcache_spec.checks.judging import Arena, judge
from mmcache_spec.checks.small_worlds import Ranges, small_worlds
from mmcache_spec.checks.times import times_of
from mmcache_spec.cli.app import cli
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, Step, World
from mmcache_spec.generate.arenas import COUPLINGS, compact
from mmcache_spec.generate.wrong import campaign
from mmcache_spec.kernel.system import Action, TransitionSystem
from mmcache_spec.kernel.terms import Term
from mmcache_spec.kernel.wrong_designs import KINDS, WrongDesign, names, wrong_designs
from mmcache_spec.model.encoder_decoder import EncoderDecoderDesign, encoder_decoder
from mmcache_spec.model.equivalents import ACCEPTED
from mmcache_spec.model.ledger import LedgerDesign, ledger
from mmcache_spec.model.variants import SPECIFIED

LEDGER, ENCODER_DECODER = ledger(), encoder_decoder()


def _worlds(system: TransitionSystem) -> tuple[World, ...]:
    """One request with two inputs, and two requests with one, of two hashes that differ."""
    found = []
    for size in ((2, 1, 2), (2, 2, 1)):
        worlds = list(small_worlds(system, compact(*size), Ranges((1,), {"capacity": (2,)})))
        found += [w for w in worlds if len(set(w.functions["hash_of"].values())) == 2][:1]
    return tuple(found)


SHARED = next(
    w
    for w in small_worlds(LEDGER, compact(2, 1, 2), Ranges((1,), {"capacity": (2,)}))
    if set(w.functions["hash_of"].values()) == {"A"}
)
"""One request that uses one hash at two positions."""

ARENA = Arena(LEDGER, (*_worlds(LEDGER), SHARED), COUPLINGS["ledger"], quick=3)
SLOTS = Arena(ENCODER_DECODER, _worlds(ENCODER_DECODER))


def _without(system: TransitionSystem, *clauses: str) -> TransitionSystem:
    return replace(
        system,
        invariants=tuple(i for i in system.invariants if i.clause not in clauses),
        action_properties=tuple(p for p in system.action_properties if p.clause not in clauses),
    )


def _changed(system: TransitionSystem, name: str, **lines: Term | None) -> TransitionSystem:
    """The system with other lines in the effect of an action; None takes a line away."""
    (old,) = (a for a in system.actions if a.name == name)
    kept = tuple((v, lines.get(v.name, t)) for v, t in old.effect if v.role != "ghost")
    effect = tuple((v, t) for v, t in kept if t is not None)
    new: Action = replace(old, effect=effect)
    return replace(system, actions=tuple(new if a is old else a for a in system.actions))


def _design(kind: str, name: str, system: TransitionSystem = LEDGER) -> WrongDesign:
    return next(d for d in wrong_designs(system, [kind]) if d.name == name)


# --- what is generated ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", [encoder_decoder, pytest.param(ledger, marks=pytest.mark.slow)])
def test_the_same_designs_come_again_under_the_same_names(
    made: Callable[[], TransitionSystem],
) -> None:
    once = [d.name for d in wrong_designs(made(), KINDS, most=1, seed=3)]
    again = [d.name for d in wrong_designs(made(), KINDS, most=1, seed=3)]
    assert once == again
    assert once != [d.name for d in wrong_designs(made(), KINDS, most=1, seed=4)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_designs_of_a_kind_have_one_name_and_a_part_is_a_part(kind: str) -> None:
    few = [d.name for d in wrong_designs(ENCODER_DECODER, [kind], most=30)]
    assert len(few) == len(set(few)) > 0
    part = [d.name for d in wrong_designs(ENCODER_DECODER, [kind], most=30, part=slice(0, 10))]
    assert part == few[: len(part)]


def test_no_wrong_design_edits_the_record() -> None:
    record = {m.variable.name for m in LEDGER.monitors}
    for design in wrong_designs(LEDGER, KINDS, most=8):
        for mine, theirs in zip(LEDGER.actions, design.system.actions, strict=True):
            assert mine.modifies & record == theirs.modifies & record, design.name


def test_an_unknown_kind_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no kind .subtle.* there are: single"):
        list(wrong_designs(LEDGER, ["subtle"]))


ALIKE = "every Input of that hash_of and owner"

# --- how they are judged -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("emptied", "free_encoder_input: does nothing"),
        ("emptied", "free: does nothing"),
        ("emptied", "allocate: forgets held and references"),
        (
            "misdirected",
            "free_encoder_input: held, remove of every Input of that hash_of and owner",
        ),
        ("copied", "allocate: does what free does"),
        ("answer", "can_allocate: answer, always false"),
        ("initial", "initially, free_slots, becomes 0"),
        ("never", "references and held never updated"),
        ("everywhere", "freeable read as cached"),
    ],
)
def test_a_wrong_ledger_is_condemned_by_a_clause(kind: str, name: str) -> None:
    design = _design(kind, name).system
    judgement = judge(ARENA, design)
    assert judgement.fate == "condemned"
    assert judgement.found is not None
    interpreter = Interpreter(design, judgement.found.world)
    steps = list(interpreter.run(judgement.found.calls))
    last = steps[-1] if steps else Step(ActionCall("begin"), (), None, {}, interpreter.initial())
    assert set(judgement.clauses) <= {p.clause for p in interpreter.breaks(last)}


@pytest.mark.slow
def test_a_strengthening_invariant_condemns_nothing() -> None:
    """Without its clauses, what is left of the claims lets everything pass."""
    silent = _without(LEDGER, *LEDGER.clauses())
    arena = Arena(silent, ARENA.worlds, COUPLINGS["ledger"], quick=3)
    judgement = judge(arena, _design("emptied", "free: does nothing", silent).system)
    assert judgement.fate == "survives"
    assert judgement.difference is not None


def test_a_clause_that_is_taken_away_lets_designs_survive() -> None:
    """The net: what only E2 says, nobody says without it."""
    silent = _without(ENCODER_DECODER, "E2")
    name = "get_freed_mm_hashes: answer, always empty"
    assert judge(SLOTS, _design("answer", name, ENCODER_DECODER).system).clauses == ("E2",)
    arena = Arena(silent, SLOTS.worlds)
    survivor = judge(arena, _design("answer", name, silent).system)
    assert survivor.fate == "survives"
    assert survivor.difference is not None
    assert survivor.difference.what.startswith("get_freed_mm_hashes: answers")


def test_an_equivalent_design_is_proved_to_be_one() -> None:
    name = "can_allocate: references, forgotten"
    judgement = judge(ARENA, _design("single", name).system)
    assert (judgement.fate, judgement.reason) == ("equivalent, proved", EQUAL.says)


@pytest.mark.slow
def test_only_the_order_of_times_counts_and_that_is_proved() -> None:
    (age, _) = COUPLINGS["ledger"]
    design = _design("single", "free_encoder_input: clock, 1 is 2").system
    assert same_steps(LEDGER, design) is None
    assert same_steps(LEDGER, design, age) == age.says


def test_a_coupling_that_says_too_little_proves_nothing() -> None:
    nothing = Coupling("whatever", frozenset({"freeable"}))
    design = _design("single", "free_encoder_input: freeable, insert is gone").system
    assert same_steps(LEDGER, design, nothing) is None


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "double"])
def test_no_wrong_encoder_decoder_survives(kind: str) -> None:
    with ThreadPoolExecutor(1) as executor:
        report = campaign(["encoder_decoder"], [kind], 25, 0, executor)
    (row,) = report.rows
    assert [j.name for j in row.alive] == []
    assert row.count("condemned") > 0


@pytest.mark.slow
def test_some_wrong_ledgers_of_every_kind_and_none_survives() -> None:
    fates = {judge(ARENA, d.system).fate for d in wrong_designs(LEDGER, KINDS, most=6, seed=1)}
    assert "survives" not in fates


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted_is_a_design(name: str) -> None:
    (system,) = (s for s in SPECIFIED.systems if s.name == name)
    for accepted in ACCEPTED[name]:
        assert any(accepted in names(system, kind) for kind in KINDS), accepted


# --- the search ----------------------------------------------------------------------------------


def test_an_original_that_breaks_its_own_clause_is_no_measure() -> None:
    wrong = ledger(LedgerDesign(report="unfiltered"))
    with pytest.raises(BrokenOriginal, match="get_freed_mm_hashes"):
        _ = Explorer(wrong, ARENA.worlds[1]).graph


def test_the_original_is_found_to_be_itself() -> None:
    explorer = Explorer(LEDGER, ARENA.worlds[0])
    answer = first_breach(explorer, ledger())
    assert answer == Search(explorer.reached, complete=True, same=True)
    assert isinstance(first_difference(explorer, ledger()), Search)


def test_a_known_wrong_decision_is_found_in_the_fewest_calls() -> None:
    wrong = encoder_decoder(EncoderDecoderDesign(credit="repeated"))
    found = first_breach(
        Explorer(ENCODER_DECODER, SLOTS.worlds[0]),
        replace(wrong, invariants=ENCODER_DECODER.invariants),
    )
    assert isinstance(found, Found)
    assert [c.action for c in found.calls] in (["free"], ["free_encoder_input"])
    assert "E1" in found.clauses


def test_times_are_what_is_compared_with_times_alone() -> None:
    assert times_of(LEDGER).names >= {"since", "clock"}
    assert not times_of(LEDGER).names & {"free_slots", "freeable_slots"}
    (age, *_) = [g for g in times_of(LEDGER).groups if "clock" in g]
    assert age == {"since", "clock"}


def test_a_time_that_meets_an_amount_is_none() -> None:
    (clock,) = (v for v in LEDGER.variables if v.name == "clock")
    mixed = _changed(LEDGER, "allocate", free_slots=clock)
    assert "clock" not in times_of(mixed).names


# --- the command ---------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_is_content() -> None:
    arguments = ["mutants", "--by-clauses", "encoder_decoder", "--kind", "answer"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    assert "encoder_decoder: condemned first by" in done.output


def test_the_command_names_the_models_that_there_are() -> None:
    done = CliRunner().invoke(cli, ["mutants", "--by-clauses", "nobody"])
    assert done.exit_code == 2
    assert "no model 'nobody'; there are: ledger" in done.output
