"""The judge: what is compared, what is a failure, a skip, a fault of the harness."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mmcache_conformance.errors import TargetError
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.open import open_target
from mmcache_conformance.targets.protocol import CALLS, MANAGERS, Answer, Case, case_of
from mmcache_conformance.targets.python import PythonTarget
from mmcache_conformance.verdicts.model import CallFailure, TargetReport, Verdict
from mmcache_conformance.verdicts.run import exit_code, run_target, run_vector
from mmcache_vectors.manager import Expect, Observed, Vector
from tests.known_bad import managers
from tests.support.plain_managers import Manager

EVERYTHING = Implementation(
    "scripted", None, "python", dict.fromkeys(MANAGERS, (*CALLS, "allocate_again"))
)


class Scripted:
    """Answers what it was told to, whatever is asked."""

    name = "scripted"

    def __init__(self, *answers: Answer) -> None:
        self.answers = answers
        self.cases: list[Case] = []
        self.stopped = 0

    def start(self) -> Implementation:
        return EVERYTHING

    def run(self, case: Case) -> tuple[Answer, ...]:
        self.cases.append(case)
        return self.answers

    def stop(self) -> None:
        self.stopped += 1


def _obedient(vector: Vector) -> list[Answer]:
    return [Answer(step.expect.returns, step.expect.observe) for step in vector.steps]


def _judge(vector: Vector, answers: list[Answer]) -> Verdict:
    return run_vector(Scripted(*answers), EVERYTHING, vector, stretch=False)


def _run(spec: str, vectors: dict[str, Vector]) -> TargetReport:
    return run_target(open_target(spec), vectors.values(), stretch=False)


@pytest.fixture
def sample(hand_made: dict[str, Vector]) -> Vector:
    return hand_made["evicted-and-allocated-again"]


class TestComparison:
    def test_as_expected(self, sample: Vector) -> None:
        assert _judge(sample, _obedient(sample)).outcome == "pass"

    def test_what_is_not_observed_is_not_compared(self, sample: Vector) -> None:
        answers = [Answer(step.expect.returns) for step in sample.steps]
        assert _judge(sample, answers).outcome == "pass"

    @pytest.mark.parametrize("got", [False, 1, "True", None, ("True",)])
    def test_a_boolean_is_a_boolean(self, got: object, sample: Vector) -> None:
        answers = _obedient(sample)
        answers[3] = Answer(got)  # type: ignore[arg-type]  # wrong on purpose
        verdict = _judge(sample, answers)
        assert verdict.outcome == "fail"
        assert isinstance(verdict.failure, CallFailure)
        assert verdict.failure.step == 3
        assert [(d.what, d.expected, d.got) for d in verdict.failure.differences] == [
            ("returns", True, got)
        ]

    @pytest.mark.parametrize("got", [(), ("X",), ("X", "Y"), None, True, "Y"])
    def test_another_report(self, got: object, sample: Vector) -> None:
        answers = _obedient(sample)
        answers[8] = Answer(got)  # type: ignore[arg-type]  # wrong on purpose
        assert _judge(sample, answers).outcome == "fail"

    @pytest.mark.parametrize("got", [None, False])
    def test_an_empty_report_is_a_report(self, got: bool | None, sample: Vector) -> None:
        answers = _obedient(sample)
        answers[9] = Answer(got)
        assert _judge(sample, answers).outcome == "fail"

    def test_a_report_is_a_set(self, sample: Vector) -> None:
        answers = _obedient(sample)
        answers[8] = Answer(("Y", "Y"))
        assert _judge(sample, answers).outcome == "pass"

    @pytest.mark.parametrize("got", [True, ("X",), "an object"])
    def test_a_call_without_a_result_may_return_anything(
        self, got: bool | tuple[str, ...] | str, sample: Vector
    ) -> None:
        answers = _obedient(sample)
        answers[0] = Answer(got, answers[0].observed)
        assert _judge(sample, answers).outcome == "pass"

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("num_free_slots", 1),
            ("num_freeable_slots", 1),
            ("cached", {"X": (), "Y": ("r1",)}),
            ("freeable", ("Y", "X")),
            ("held", {"r1": (0,)}),
        ],
    )
    def test_each_observable(self, name: str, wrong: object, sample: Vector) -> None:
        answers = _obedient(sample)
        answers[2] = Answer(None, Observed(**{name: wrong}))  # type: ignore[arg-type]  # wrong on purpose
        failure = _judge(sample, answers).failure
        assert isinstance(failure, CallFailure)
        assert failure.step == 2
        assert [(d.what, d.got) for d in failure.differences] == [(name, wrong)]

    def test_all_differences_of_the_first_wrong_step(self, sample: Vector) -> None:
        answers = _obedient(sample)
        answers[3] = Answer(False, Observed(cached={}, freeable=()))
        answers[4] = Answer(error="late")
        failure = _judge(sample, answers).failure
        assert isinstance(failure, CallFailure)
        assert failure.step == 3
        assert [d.what for d in failure.differences] == ["returns", "cached", "freeable"]

    def test_an_error_fails_the_step(self, sample: Vector) -> None:
        answers = [*_obedient(sample)[:4], Answer(error="AssertionError")]
        verdict = _judge(sample, answers)
        assert verdict.outcome == "fail"
        assert isinstance(verdict.failure, CallFailure)
        assert verdict.failure.step == 4
        assert verdict.failure.differences[0].got == "AssertionError"


class TestHarness:
    @pytest.mark.parametrize("count", [0, 3, 9, 11])
    def test_a_wrong_number_of_answers_never_passes(self, count: int, sample: Vector) -> None:
        verdict = _judge(sample, (_obedient(sample) * 2)[:count])
        assert verdict.outcome == "error"
        assert f"{count} answers to 10 calls" in str(verdict.reason)

    def test_an_exception_of_the_target_is_an_error_of_one_vector(
        self, hand_made: dict[str, Vector]
    ) -> None:
        class Broken(Scripted):
            def run(self, case: Case) -> tuple[Answer, ...]:
                raise OSError("pipe closed")

        target = Broken()
        report = run_target(target, hand_made.values(), stretch=False)
        assert [v.outcome for v in report.verdicts] == ["error"] * 7
        assert "OSError: pipe closed" in str(report.verdicts[0].reason)
        assert exit_code([report]) == 1
        assert target.stopped == 1

    def test_fail_fast(self, hand_made: dict[str, Vector]) -> None:
        report = run_target(Scripted(), hand_made.values(), fail_fast=True, stretch=False)
        assert len(report.verdicts) == 1

    def test_not_started(self, hand_made: dict[str, Vector]) -> None:
        class Absent(Scripted):
            def start(self) -> Implementation:
                raise TargetError("nobody home")

        target = Absent()
        report = run_target(target, hand_made.values(), stretch=False)
        assert (report.implementation, report.reason) == (None, "nobody home")
        assert exit_code([report]) == 3
        assert target.stopped == 1

    def test_the_target_sees_no_expectation(self, sample: Vector) -> None:
        target = Scripted(*_obedient(sample))
        run_vector(target, EVERYTHING, sample, stretch=False)
        (case,) = target.cases
        assert case == case_of(sample)
        assert case.__struct_fields__ == ("id", "manager", "parameters", "calls", "watched")
        assert not any(isinstance(part, Expect) for part in case.calls)

    def test_reproduce_command(self, sample: Vector) -> None:
        verdict = run_vector(Scripted(), EVERYTHING, sample, stretch=False)
        assert verdict.failure is None
        failing = Scripted(Answer(error="no"))
        verdict = run_vector(failing, EVERYTHING, sample, Path("my vectors"), stretch=False)
        assert isinstance(verdict.failure, CallFailure)
        assert verdict.failure.reproduce == (
            f"mmcache-conformance run scripted -k {sample.id} --vectors 'my vectors'"
        )


RIGHT = "tests.support.plain_managers:Attaches,tests.support.plain_managers:EncoderDecoder"

WRONG = {
    "UnfilteredReport": "evicted-and-allocated-again",
    "NothingIsEverReported": "evicted-and-allocated-again",
    "ReportIsNotCleared": "evicted-and-allocated-again",
    "ReportIsAString": "evicted-and-allocated-again",
    "ReportIsNone": None,
    "AdmissionIsAnInteger": "evicted-and-allocated-again admission",
    "EvictsTheNewest": "evicted-and-allocated-again",
    "IgnoresPending": "admission",
    "IgnoresTheBudget": "admission",
    "FirstOccurrenceRelease": "one-hash-twice",
    "ResetKeepsWhatIsHeld": "reset-while-referenced",
    "RepeatedCredit": "encoder-decoder-credit",
    "SamePassNotice": "encoder-decoder-notice",
}


def _failing(report: TargetReport) -> set[str]:
    return {v.id[:-9] for v in report.verdicts if v.outcome == "fail"}


class TestEngines:
    def test_the_right_one_passes(self, hand_made: dict[str, Vector]) -> None:
        report = _run(RIGHT, hand_made)
        assert [v.outcome for v in report.verdicts] == ["pass"] * 7
        assert exit_code([report]) == 0

    @pytest.mark.parametrize("name", WRONG)
    def test_each_wrong_one_fails(self, name: str, hand_made: dict[str, Vector]) -> None:
        """L1, L2, L6, L7, L8, L10, E1 and E2 are broken, each by the vectors about it alone."""
        spec = f"{managers.__name__}:{name}"
        if getattr(managers, name) in managers.ENCODER_DECODERS:
            spec = f",{spec}"
        report = _run(spec, hand_made)
        expected = WRONG[name]
        if expected is None:
            assert _failing(report)
        else:
            assert _failing(report) == set(expected.split())
        assert exit_code([report]) == 1

    def test_skips_have_reasons(self, hand_made: dict[str, Vector]) -> None:
        report = _run("tests.known_bad.misbehaving:Hidden", hand_made)
        skipped = {v.id[:-9]: v.reason for v in report.verdicts if v.outcome == "skip"}
        lacks = "which tests.known_bad.misbehaving:Hidden does not have"
        assert skipped == {
            "reset-while-referenced": f"needs reset, {lacks}",
            "allocated-while-resident": f"needs allocate_again, {lacks}",
            "encoder-decoder-credit": f"needs encoder_decoder, {lacks}",
            "encoder-decoder-notice": f"needs encoder_decoder, {lacks}",
        }
        assert report.count()["pass"] == 3
        assert exit_code([report]) == 0

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("Raises", "ValueError: [red]no room[/red] (misbehaving.py, line "),
            ("Exits", "SystemExit: 0 (misbehaving.py, line "),
        ],
    )
    def test_an_exception_is_a_failure_of_its_step(
        self, name: str, text: str, hand_made: dict[str, Vector]
    ) -> None:
        report = _run(f"tests.known_bad.misbehaving:{name}", hand_made)
        failure = report.verdicts[0].failure
        assert isinstance(failure, CallFailure)
        assert failure.step == 0
        assert failure.differences[0].what == "error"
        assert str(failure.differences[0].got).startswith(text)

    def test_cases_do_not_share_a_manager(
        self, start: Callable[..., PythonTarget], sample: Vector
    ) -> None:
        target = start(Manager)
        assert target.run(case_of(sample)) == target.run(case_of(sample))


class TestReference:
    def test_passes_the_hand_made_vectors(self, hand_made: dict[str, Vector]) -> None:
        report = _run("reference", hand_made)
        assert [v.outcome for v in report.verdicts] == ["pass"] * 7
