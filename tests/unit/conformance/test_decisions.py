"""The decision is named first, and only where the target really does as whoever takes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from mmcache import EncoderCacheManager, Request
from mmcache_conformance.cli import cli
from mmcache_conformance.engines.protocol import EngineCase, PassRecord
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS, ReferencePass
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.reports.story import broken_lines
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_conformance.targets.protocol import ALLOCATE_AGAIN, CALLS, Answer, Case
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.verdicts.model import CallFailure, TargetReport, Verdict
from mmcache_conformance.verdicts.run import run_target
from mmcache_spec.generate.managers import digest
from mmcache_spec.model.decisions import DECISIONS, system_of
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.oracle import Replay
from mmcache_vectors.clauses import CLAUSES
from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    GetFreedMmHashes,
    Observed,
    Vector,
)
from tests.support import drivers

VECTORS = load_suite()
SHORT = [v for v in VECTORS if len(v.steps) < 100]
LONG = [v for v in VECTORS if len(v.steps) >= 100]
LEDGERS = [name for name, d in DECISIONS.items() if d.system == "ledger"]


class Taking:
    """A target made of the specification: it takes these decisions, and shows that much."""

    def __init__(self, names: Sequence[str], shows: Sequence[str]) -> None:
        self.name = "and ".join(names)
        self._names, self._shows = names, shows

    def start(self) -> Implementation:
        (kind,) = {DECISIONS[n].system for n in self._names}
        manager: Any = "encoder_cache" if kind == "ledger" else "encoder_decoder"
        offered = (*CALLS, *self._shows, *([ALLOCATE_AGAIN] if kind == "ledger" else []))
        return Implementation(self.name, None, "spec", {manager: offered})

    def run(self, case: Case) -> tuple[Answer, ...]:
        replay = Replay(system_of(self._names), case.parameters, record=False)
        answers: list[Answer] = []
        for call in case.calls:
            given = replay.answer(call)
            if given is None:
                return (*answers, Answer(error="a duty was broken"))
            seen = {n: getattr(given.observe, n) for n in self._shows}
            answers.append(Answer(given.returns, Observed(**seen)))
        return tuple(answers)

    def stop(self) -> None:
        pass


EVERYTHING = ("num_free_slots", "num_freeable_slots", "cached", "freeable", "held")


SUITES = ["every third", pytest.param("all", marks=pytest.mark.slow)]
"""A third of the short vectors and one long one tell the decisions apart just as well."""


def of_suite(name: str) -> Sequence[Any]:
    return VECTORS if name == "all" else [*SHORT[::3], min(LONG, key=lambda v: len(v.steps))]


@cache
def report_on(
    names: tuple[str, ...], shows: tuple[str, ...] = EVERYTHING, suite: str = "all"
) -> TargetReport:
    ed = DECISIONS[names[0]].system == "encoder_decoder"
    target = Taking(names, ("num_free_slots",) if ed and shows else shows)
    vectors = of_suite(suite)
    return explained(run_target(target, vectors, stretch=False), vectors)


def test_a_long_vector_is_laid_to_the_clause_that_the_decision_breaks() -> None:
    """L8: It shows little of the state: what is wrong is seen late, by an innocent eviction."""
    name = "first_occurrence_release"
    mine = [v for v in LONG if name in v.kills]
    few = [*SHORT[::3], *mine]
    report = explained(run_target(Taking([name], EVERYTHING), few, stretch=False), few)
    broke = {v.id: v.broke for v in report.verdicts if v.id in {m.id for m in mine}}
    assert len(broke) > 1
    assert all(clauses and not {"L6", "L7"} & set(clauses) for clauses in broke.values())
    assert any("L8" in clauses for clauses in broke.values() if clauses)


def duty_broken(verdict: Verdict) -> bool:
    """Whether the failing call is one that the protocol does not allow of the wrong manager."""
    assert isinstance(verdict.failure, CallFailure)
    return [d.what for d in verdict.failure.differences] == ["error"]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("name", DECISIONS)
def test_who_takes_a_decision_is_told_so(name: str, suite: str) -> None:
    report = report_on((name,), suite=suite)
    (decision,) = report.decisions
    assert (decision.name, decision.contradicted_by) == (name, ())
    assert report.unexplained == ()
    failing = [v for v in report.verdicts if v.failure is not None]
    assert [v.id for v in failing] == list(decision.vectors)
    assert {v.decision for v in failing} == {name}
    assert all(v.broke or duty_broken(v) for v in failing)
    step, _, first = decision.first.partition(" of ")
    assert step.startswith("step ")
    assert first in decision.vectors


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("name", DECISIONS)
def test_who_shows_nothing_is_told_too_or_is_told_both_that_fit(name: str, suite: str) -> None:
    report = report_on((name,), (), suite)
    if not report.decisions:  # the answers alone do not show it; what then breaks is a duty
        assert all(v.failure is None or v.broke == () for v in report.verdicts)
        return
    named = {n for d in report.decisions for n in (d.name, *d.alternatives)}
    assert name in named
    assert report.unexplained == ()


@pytest.mark.parametrize(
    "names",
    [
        ("unfiltered_report", "first_occurrence_release"),
        ("unfiltered_report", "refusal_evicts", "evict_newest_first"),
        ("encoder_decoder_repeated_credit", "encoder_decoder_same_pass_notice"),
        ("release_credits_twice", "reset_keeps_references"),
    ],
)
@pytest.mark.parametrize("suite", SUITES)
def test_several_decisions_are_told_apart(names: tuple[str, ...], suite: str) -> None:
    """L1 and L8; L1, L6 and L7; E1 and E2; L9 and L10."""
    report = report_on(names, suite=suite)
    taken = {d.name for d in report.decisions if not d.contradicted_by}
    assert taken == set(names)
    assert report.unexplained == ()


@pytest.mark.parametrize("suite", SUITES)
def test_what_no_decision_explains_is_laid_to_none(suite: str) -> None:
    """L3, L6 and L7 are broken in ways that no known decision has."""
    from mmcache_conformance.open import open_target

    for name in ("Uncharged", "ReportIsAString", "EvictsOneTooMany", "IgnoresTheBudget"):
        target = open_target(f"tests.known_bad.managers:{name}", in_process=True)
        vectors = of_suite(suite)
        report = explained(run_target(target, vectors, stretch=False), vectors)
        failing = [v.id for v in report.verdicts if v.failure is not None]
        assert failing
        assert [d for d in report.decisions if not d.contradicted_by] == []
        assert list(report.unexplained) == failing


class Answering:
    """A target that answers by a rule of its own, or distorts what is right.

    Whatever it was asked before.
    """

    def __init__(self, name: str, answer: Callable[[Call, Any], Any]) -> None:
        self.name, self._answer = name, answer

    def start(self) -> Implementation:
        return Implementation(self.name, None, "none", {"encoder_cache": (*CALLS, ALLOCATE_AGAIN)})

    def run(self, case: Case) -> tuple[Answer, ...]:
        replay = Replay(specified(case.manager), case.parameters)
        right = [replay.answer(call) for call in case.calls]
        assert None not in right
        return tuple(
            Answer(self._answer(call, expect.returns if expect is not None else None))
            for call, expect in zip(case.calls, right, strict=True)
        )

    def stop(self) -> None:
        pass


def _constant(truth: bool, report: tuple[str, ...]) -> Callable[[Call, Any], Any]:
    def answer(call: Call, right: Any) -> Any:
        if isinstance(call, GetFreedMmHashes):
            return report
        return truth if isinstance(call, CheckAndUpdateCache | CanAllocate) else None

    return answer


def _only(kind: type[Call], told: Callable[[Any], Any]) -> Callable[[Call, Any], Any]:
    return lambda call, right: told(right) if isinstance(call, kind) else right


ADVERSARIES: dict[str, Callable[[Call, Any], Any]] = {
    "nothing, never": _constant(False, ()),
    "yes, and nothing to drop": _constant(True, ()),
    "yes, and a name that nobody has": _constant(True, ("A",)),
    "no, and a name": _constant(False, ("A", "B")),
    "every hit a miss": _only(CheckAndUpdateCache, lambda right: False),
    "every miss a hit": _only(CheckAndUpdateCache, lambda right: True),
    "hits and misses are swapped": _only(CheckAndUpdateCache, lambda right: not right),
    "everything is admitted": _only(CanAllocate, lambda right: True),
    "nothing is admitted": _only(CanAllocate, lambda right: False),
    "admissions are swapped": _only(CanAllocate, lambda right: not right),
    "a report of one name": _only(GetFreedMmHashes, lambda right: ("A",)),
    "a report where none is due": _only(GetFreedMmHashes, lambda right: () if right else ("A",)),
    "nothing is a value": lambda call, right: None,
    "a number": lambda call, right: 1 if right is True else right,
}


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("name", ADVERSARIES)
def test_who_answers_by_no_ledger_has_taken_no_decision(name: str, suite: str) -> None:
    vectors = VECTORS if suite == "all" else SHORT[::3]
    report = explained(
        run_target(Answering(name, ADVERSARIES[name]), vectors, stretch=False), vectors
    )
    failing = [v.id for v in report.verdicts if v.failure is not None]
    assert failing
    assert [d.name for d in report.decisions if not d.contradicted_by] == []
    assert list(report.unexplained) == failing


@pytest.mark.parametrize("suite", SUITES)
def test_who_is_right_but_for_an_empty_report_has_taken_that_decision(suite: str) -> None:
    """L2: The least distance from those above: here the claim holds in all that fails."""
    vectors = of_suite(suite)
    nothing = Answering("no report", _only(GetFreedMmHashes, lambda right: ()))
    report = explained(run_target(nothing, vectors, stretch=False), vectors)
    (decision,) = report.decisions
    assert (decision.name, report.unexplained) == ("report_nothing", ())


def test_one_that_does_so_only_in_part_has_not_taken_it() -> None:
    """L8: It keeps the reference where the other positions were never held."""
    from mmcache_conformance.open import open_target

    target = open_target("tests.known_bad.managers:FirstOccurrenceRelease", in_process=True)
    report = explained(run_target(target, VECTORS, stretch=False), VECTORS)
    (likeness,) = report.decisions
    assert likeness.name == "first_occurrence_release"
    passed = {v.id for v in report.verdicts if v.outcome == "pass"}
    otherwise = set(report.unexplained) - set(likeness.vectors)
    assert set(likeness.contradicted_by) & passed
    assert set(likeness.contradicted_by) <= passed | otherwise
    assert likeness.contradicted_by
    assert set(likeness.vectors) <= set(report.unexplained)


class Crowded(EncoderCacheManager):
    """Notes no release while more than twenty hashes are cached."""

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        if len(self.cached) <= 20:
            super().free_encoder_input(request, input_id)


class Forgetful(EncoderCacheManager):
    """Notes no release of a second position."""

    def free_encoder_input(self, request: Request, input_id: int) -> None:
        if input_id != 1:
            super().free_encoder_input(request, input_id)


def test_what_is_seen_late_is_not_said_to_be_what_broke() -> None:
    """A long vector shows little of the state: there, an earlier call may be what is wrong."""
    late = unexplained_failures(Crowded, LONG)
    assert late
    assert {v.seen_late for v in late} == {True}
    by_id = {v.id: v for v in LONG}
    lines = [line for v in late for line in broken_lines(by_id[v.id], v) if v.broke]
    assert any(line.startswith("is seen at ") for line in lines)
    assert not any(line.startswith("breaks ") for line in lines)


def test_what_is_seen_at_once_is_what_broke() -> None:
    soon = unexplained_failures(Forgetful, SHORT)
    assert soon
    assert {v.seen_late for v in soon} == {False}
    lines = [line for v in soon for line in broken_lines(v_of(v.id), v) if v.broke]
    assert any(line.startswith("breaks ") for line in lines)
    assert not any(line.startswith("is seen at ") for line in lines)


def v_of(id: str) -> Vector:
    (vector,) = (v for v in SHORT if v.id == id)
    assert isinstance(vector, Vector)
    return vector


def unexplained_failures(
    manager: type[EncoderCacheManager], vectors: Sequence[Any]
) -> list[Verdict]:
    target = PythonTarget("foe", lambda: ManagerClasses("foe", manager, None))
    report = explained(run_target(target, vectors, stretch=False), vectors)
    return [v for v in report.verdicts if v.id in report.unexplained]


def test_an_exception_breaks_no_clause() -> None:
    from mmcache_conformance.open import open_target

    report = explained(
        run_target(
            open_target("tests.known_bad.misbehaving:Raises", in_process=True),
            VECTORS,
            stretch=False,
        ),
        VECTORS,
    )
    failing = [v for v in report.verdicts if v.failure is not None]
    assert failing
    assert {v.broke for v in failing} == {()}
    assert report.decisions == ()


def test_nothing_failed_nothing_is_said() -> None:
    from mmcache_conformance.open import open_target

    report = explained(run_target(open_target("reference"), VECTORS, stretch=False), VECTORS)
    assert (report.decisions, report.unexplained) == ((), ())
    assert {v.broke for v in report.verdicts} == {None}


# --- the list ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_is_the_variant_of_its_name(name: str) -> None:
    decision, variant = DECISIONS[name], VARIANTS[name]
    assert (decision.says, decision.seen_in) == (variant.says, variant.seen_in)
    assert digest(system_of([name])) == digest(variant.system)
    assert variant.expected is not None
    assert decision.clause in (*variant.expected.breaks, variant.expected.target)
    assert decision.clause in CLAUSES


@pytest.mark.parametrize(
    "names",
    [
        ("report_nothing", "unfiltered_report"),
        ("unfiltered_report", "encoder_decoder_repeated_credit"),
    ],
)
def test_decisions_that_exclude_each_other(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no manager takes all of these"):
        system_of(names)


# --- the reports -------------------------------------------------------------------------------


def test_the_json_has_the_decisions_and_what_broke() -> None:
    words = ["run", "--plain", "-k", drivers.SHORT, "--json"]
    words.append("tests.known_bad.managers:UnfilteredReport")
    document = json.loads(CliRunner().invoke(cli, words).stdout)
    (target,) = document["targets"]
    (decision,) = target["decisions"]
    assert (decision["name"], decision["reports"]) == ("unfiltered_report", ["vllm#52482"])
    failing = [v for v in target["verdicts"] if v["outcome"] == "fail"]
    assert [v["id"] for v in failing] == decision["vectors"]
    assert all("L1" in v["broke"] for v in failing)


# --- whole engines -----------------------------------------------------------------------------

ENGINE_VECTORS = load_suite(None, ENGINES)
WRONG_ENGINES = [n for n in REFERENCE_VARIANTS if VARIANTS[n].expected is not None]


@pytest.mark.parametrize("name", WRONG_ENGINES)
def test_an_engine_is_told_its_decision(name: str) -> None:
    report = explained(
        run_target(ReferencePass(name), ENGINE_VECTORS, stretch=False), ENGINE_VECTORS
    )
    failing = [v for v in report.verdicts if v.failure is not None]
    if not failing:
        assert report.decisions == ()
        return
    named = {n for d in report.decisions for n in (d.name, *d.alternatives)}
    assert name in named
    assert report.unexplained == ()
    assert all(v.broke and v.decision for v in failing)
    assert not [d for d in report.decisions if d.contradicted_by]


def test_an_engine_that_does_otherwise_has_taken_none() -> None:
    """What breaks is another thing than a known decision breaks."""

    class Haunted(ReferencePass):
        def passes(self, case: Any) -> Iterator[Any]:
            for record in super().passes(case):
                yield replace(record, references=dict.fromkeys(record.cached, ("ghost",)))

    report = explained(
        run_target(Haunted("specified"), ENGINE_VECTORS, stretch=False), ENGINE_VECTORS
    )
    assert [v for v in report.verdicts if v.failure is not None]
    assert [d for d in report.decisions if not d.contradicted_by] == []
    assert report.unexplained


def _distorted(change: Callable[[PassRecord], PassRecord]) -> ReferencePass:
    class Distorted(ReferencePass):
        def passes(self, case: EngineCase) -> Iterator[PassRecord]:
            for record in super().passes(case):
                yield change(record)

    return Distorted("specified")


def _empty_worker(record: PassRecord) -> PassRecord:
    return replace(record, worker=(), held_before=(), missed=record.gathered, peak=0)


DISTORTIONS: dict[str, Callable[[PassRecord], PassRecord]] = {
    "a worker that holds nothing": lambda r: replace(r, worker=()),
    "a worker that never held anything": _empty_worker,
    "a ledger that caches nothing": lambda r: replace(r, cached=(), references={}),
    "everything is reported": lambda r: replace(r, report=r.cached),
    "a ledger that caches one more": lambda r: replace(r, cached=(*r.cached, "zz")),
    "a worker without any payload": lambda r: replace(r, without_payload=r.worker),
    "everyone references everything": lambda r: replace(
        r, references=dict.fromkeys(r.cached, (*r.running, *r.waiting, "zz"))
    ),
}


@pytest.mark.parametrize("name", DISTORTIONS)
def test_who_does_what_no_engine_does_has_taken_no_decision(name: str) -> None:
    target = _distorted(DISTORTIONS[name])
    report = explained(run_target(target, ENGINE_VECTORS, stretch=False), ENGINE_VECTORS)
    assert [v for v in report.verdicts if v.failure is not None]
    assert [d.name for d in report.decisions if not d.contradicted_by] == []
    assert report.unexplained


def test_who_keeps_what_it_is_told_to_drop_has_taken_that_decision() -> None:
    """S3: The least distance from those above: here the claim holds in all that fails."""
    target = _distorted(lambda r: replace(r, worker=tuple(sorted({*r.worker, *r.report}))))
    report = explained(run_target(target, ENGINE_VECTORS, stretch=False), ENGINE_VECTORS)
    (decision,) = report.decisions
    assert (decision.name, report.unexplained) == ("retain_everything", ())


class TakingIfLarge(Taking):
    """It takes the decisions in a world with other names than letters, and is right in others."""

    def run(self, case: Case) -> tuple[Answer, ...]:
        longest = max(len(i.identifier) for r in case.parameters.requests for i in r.items)
        if longest > 1:
            return super().run(case)
        replay = Replay(specified(case.manager), case.parameters)
        answers = []
        for call in case.calls:
            given = replay.answer(call)
            assert given is not None
            answers.append(Answer(given.returns, Observed(cached=given.observe.cached)))
        return tuple(answers)


@pytest.mark.parametrize("name", ["unfiltered_report", "first_occurrence_release"])
def test_a_failure_in_a_larger_world_is_explained_there(name: str) -> None:
    """L1, L8: Its names are those of the larger world, and so are its inputs."""
    few = [v for v in SHORT if name in v.kills and "deep" not in v.id][:3]
    report = explained(run_target(TakingIfLarge([name], ["cached"]), few, stretch=True), few)
    assert [v.outcome for v in report.verdicts] == ["fail"] * 3
    assert all(isinstance(v.failure, CallFailure) and v.failure.stretched for v in report.verdicts)
    assert name in {n for d in report.decisions for n in (d.name, *d.alternatives)}
    assert report.unexplained == ()


def test_an_input_that_is_beside_the_vector_is_credited_too() -> None:
    """E1: Where positions are apart, an input that the vector does not have lies between them."""
    few = [v for v in VECTORS if v.id.startswith("encoder-decoder-mutant-free-outstanding")]
    taking = Taking(["encoder_decoder_repeated_credit"], ["num_free_slots"])
    report = explained(run_target(taking, few, stretch=True), few)
    assert [d.name for d in report.decisions] == ["encoder_decoder_repeated_credit"]
    stretches = {v.failure.stretched for v in report.verdicts if isinstance(v.failure, CallFailure)}
    assert "positions 256 apart" in stretches
    assert report.unexplained == ()
