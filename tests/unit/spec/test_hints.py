"""Hints make a proof quicker and never prove anything: what they say is checked each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import z3

from mmcache_spec.checks import complete
from mmcache_spec.checks.asking import AT_FIRST, WITH_A_HINT, Attempt, unsatisfiable
from mmcache_spec.checks.hints import NO_HINTS, Hints, about
from mmcache_spec.checks.induction import decide, is_proved, obligations
from mmcache_spec.checks.known_paths import KnownPath, few_paths, reached
from mmcache_spec.checks.proof import check_vacuity, prove, prove_complete
from mmcache_spec.checks.vacuity import goals_of
from mmcache_spec.cli.jobs import vacuity_of
from mmcache_spec.evaluate.interpreter import ActionCall, World
from mmcache_spec.generate.arenas import compact, situations
from mmcache_spec.generate.hints import HINTS, find_hints, read_hints, write_hints
from mmcache_spec.kernel.goals import vacuity_goals
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.variants import SPECIFIED, VARIANTS

Query = Sequence[z3.BoolRef]
SMALL = compact(2, 2, 2)
NAMES = [system.name for system in SPECIFIED.systems]
SYSTEM = encoder_decoder()
KNOWN = read_hints(HINTS)
GOALS = goals_of(SYSTEM, situations(SYSTEM))


def _proof_needs_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a test fails where a proof, or a path, is searched for."""

    def searched(*_: object, **__: object) -> bool:
        raise AssertionError("searched, in spite of a hint")

    def only_hinted(query: Query, attempts: Sequence[Attempt] = AT_FIRST) -> bool:
        assert attempts is WITH_A_HINT
        return unsatisfiable(query, attempts)

    monkeypatch.setattr("mmcache_spec.checks.induction.is_proved", searched)
    monkeypatch.setattr("mmcache_spec.checks.complete.unsatisfiable", only_hinted)
    monkeypatch.setattr("mmcache_spec.checks.reach._worlds", searched)


@pytest.mark.parametrize("system", SPECIFIED.systems, ids=NAMES)
def test_there_is_a_hint_for_nearly_everything_and_of_nothing_else(
    system: TransitionSystem,
) -> None:
    """The file is of these definitions: `mmcache-spec prove --record` makes it again."""
    labels = {about(o) for o in obligations(system)} | {
        about(q) for q in complete.questions(system)
    }
    known = KNOWN[system.name].enough.keys()
    assert known <= labels
    assert len(labels - known) <= 10
    names = {f.name for f in system.axioms} | {i.name for i in system.invariants}
    for obligation in obligations(system):
        assert KNOWN[system.name].enough.get(about(obligation), set()) <= names


@pytest.mark.parametrize("system", SPECIFIED.systems, ids=NAMES)
def test_the_known_paths_reach_all_that_must_be_reachable(system: TransitionSystem) -> None:
    goals = goals_of(system, situations(system))
    assert reached(system, goals, KNOWN[system.name].paths).keys() == {g.name for g in goals}


def test_with_hints_a_proof_says_the_same_without_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = prove(SYSTEM, SMALL)
    plainly_decided = prove_complete(SYSTEM, SMALL)
    _proof_needs_search(monkeypatch)
    hints = KNOWN[SYSTEM.name]
    proof = prove(SYSTEM, SMALL, hints=hints)
    said = [(o.obligation, o.verdict, o.by_definition) for o in proof.outcomes]
    assert said == [(o.obligation, o.verdict, o.by_definition) for o in plain.outcomes]
    decided = prove_complete(SYSTEM, SMALL, hints=hints).decided
    assert [(a.question, a.verdict) for a in decided] == [
        (a.question, a.verdict) for a in plainly_decided.decided
    ]
    assert check_vacuity(SYSTEM, situations(SYSTEM), SMALL, hints).verdict == "proved"


@pytest.mark.parametrize("enough", [frozenset[str](), frozenset({"no such invariant"})])
def test_a_hint_that_names_too_little_costs_nothing_but_time(enough: frozenset[str]) -> None:
    every = Hints({about(o): enough for o in obligations(SYSTEM)})
    every_question = Hints({about(q): enough for q in complete.questions(SYSTEM)})
    assert {o.verdict for o in prove(SYSTEM, SMALL, hints=every).outcomes} == {"proved"}
    decided = prove_complete(SYSTEM, SMALL, hints=every_question).decided
    assert {a.verdict for a in decided} == {"proved"}


@pytest.mark.parametrize("name", ["encoder_decoder_repeated_credit"])
def test_no_hint_proves_what_is_wrong(name: str) -> None:
    """Whichever premises are named: all of them, those of the right design, or none."""
    system = VARIANTS[name].system
    wrong = [o for o in prove(system, SMALL).outcomes if o.verdict == "refuted"]
    every = frozenset({f.name for f in system.axioms} | {i.name for i in system.invariants})
    for outcome in wrong:
        known = KNOWN[system.name].enough.get(about(outcome.obligation))
        for enough in (every, known, frozenset[str]()):
            assert decide(outcome.obligation, SMALL, enough).verdict == "refuted"
    assert wrong


def test_no_hint_determines_what_no_clause_does() -> None:
    silent = SYSTEM.claiming()
    (question,) = (q for q in complete.questions(silent) if q.label == "the answer of can_allocate")
    known = KNOWN[SYSTEM.name].enough[about(question)]
    for enough in (None, known, frozenset[str]()):
        assert complete.decide(question, SMALL, enough).verdict == "refuted"


def test_a_proof_is_given_only_what_is_named() -> None:
    """So what is proved with a hint is proved from fewer premises, not from others."""
    label = "allocate preserves credit_once"
    (obligation,) = (o for o in obligations(SYSTEM) if o.label == label)
    assert is_proved(obligation)
    assert is_proved(replace(obligation, given=KNOWN[SYSTEM.name].enough[label]))
    assert not is_proved(replace(obligation, given=frozenset()))


# --- known paths -------------------------------------------------------------------------------


def _path() -> KnownPath:
    return max(KNOWN[SYSTEM.name].paths, key=lambda p: len(p.calls))


def _reached(path: KnownPath) -> set[str]:
    return set(reached(SYSTEM, GOALS, [path]))


def test_a_path_reaches_what_it_says() -> None:
    assert _reached(_path()) == set(_path().reaches)


def test_a_path_that_says_too_much_is_not_believed() -> None:
    """Every goal is claimed of every place of the path; only those that are met there count."""
    path = _path()
    for k in range(-1, len(path.calls) + 1):
        claims = replace(path, reaches={goal.name: k for goal in GOALS})
        for name, trace in reached(SYSTEM, GOALS, [claims]).items():
            assert 0 <= k < len(path.calls)
            assert trace.length == k + 1
            (goal,) = (g for g in GOALS if g.name == name)
            made = trace.steps[:-1] if goal.refused else trace.steps
            assert not any(step.refused_by for step in made)


def test_a_path_through_a_call_that_is_refused_is_none() -> None:
    refused = "allocate lacks room"
    path = next(p for p in KNOWN[SYSTEM.name].paths if refused in p.reaches)
    k = path.reaches[refused]
    calls = (*path.calls[: k + 1], ActionCall("get_freed_mm_hashes"))
    assert _reached(replace(path, calls=calls)) == {n for n, at in path.reaches.items() if at <= k}
    later = replace(path, calls=calls, reaches={"get_freed_mm_hashes happens": k + 1})
    assert not _reached(later)
    without = replace(
        later, calls=(*calls[:k], calls[-1]), reaches={"get_freed_mm_hashes happens": k}
    )
    assert _reached(without)


def _changed(world: World) -> list[World]:
    """Worlds that are none: no size, a size below one, a stranger, and one thing too few."""
    sizes = world.functions["size"]
    element = next(iter(sizes))
    functions = dict(world.functions)
    return [
        replace(world, functions={**functions, "size": {**sizes, element: -1}}),
        replace(world, functions={**functions, "size": {**sizes, element: True}}),
        replace(world, functions={**functions, "size": {}}),
        replace(
            world, functions={**functions, "hash_of": dict.fromkeys(functions["hash_of"], "x")}
        ),
        replace(world, functions={k: v for k, v in functions.items() if k != "hash_of"}),
        replace(world, constants={}),
        replace(world, universe={}),
    ]


@pytest.mark.parametrize("which", range(7))
def test_a_path_in_what_is_no_world_is_none(which: int) -> None:
    path = _path()
    assert not _reached(replace(path, world=_changed(path.world)[which]))


@pytest.mark.parametrize(
    "call",
    [
        ActionCall("no such call"),
        ActionCall("allocate"),
        ActionCall("allocate", {"input": "a stranger"}),
        ActionCall("allocate", {"input": 1}),
    ],
    ids=str,
)
def test_a_path_with_what_is_no_call_is_none(call: ActionCall) -> None:
    path = _path()
    assert not _reached(replace(path, calls=(*path.calls, call)))


# --- the file ----------------------------------------------------------------------------------


def test_hints_are_found_written_and_read_again(tmp_path: Path) -> None:
    found = check_vacuity(SYSTEM, situations(SYSTEM), SMALL).witnesses
    prefix = f"{SYSTEM.name}: "
    hints = find_hints(SYSTEM, {k.removeprefix(prefix): t for k, t in found.items()})
    write_hints({SYSTEM.name: hints}, tmp_path / "hints.json")
    again = read_hints(tmp_path / "hints.json")[SYSTEM.name]
    assert again.enough == hints.enough
    assert reached(SYSTEM, GOALS, again.paths).keys() == {g.name for g in GOALS}
    assert hints.enough.keys() == KNOWN[SYSTEM.name].enough.keys()


def test_few_paths_reach_what_many_do() -> None:
    traces = reached(SYSTEM, GOALS, KNOWN[SYSTEM.name].paths)
    few = list(few_paths(SYSTEM, GOALS, traces.values()))
    assert len(few) < len(traces)
    assert reached(SYSTEM, GOALS, few).keys() == traces.keys()


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"ledger": {"enough": 1}}'])
def test_a_file_that_cannot_be_read_has_no_hints(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "hints.json"
    if text is not None:
        path.write_text(text, "utf-8")
    assert read_hints(path) == {}
    assert read_hints(path).get("ledger", NO_HINTS) is NO_HINTS


def test_of_a_wrong_design_only_actions_guards_and_answers_are_asked() -> None:
    """`variants --check` accepts that such a design does not come to a condition of a clause."""
    name = "encoder_decoder_same_pass_notice"
    system = VARIANTS[name].system
    asked = {f"{system.name}: {goal.name}" for goal in vacuity_goals(system)}
    every = {f"{system.name}: {goal.name}" for goal in goals_of(system, situations(system))}
    found = vacuity_of(name, 0, conditions=False)
    assert found.witnesses.keys() == asked
    assert found.unreachable == ()
    assert vacuity_of(name, 0).witnesses.keys() == every > asked
