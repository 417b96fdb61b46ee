"""What the judge says of answers that are a little wrong, and of what happens around them.

Each of these is a small change of the judge that no other of its tests had noticed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from mmcache_conformance.errors import AdapterError
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.targets.api import CANNOT
from mmcache_conformance.targets.open import open_manager
from mmcache_conformance.targets.protocol import CAPABILITIES, Answer, Case, case_of
from mmcache_conformance.verdicts.changes import largest_number
from mmcache_conformance.verdicts.judge import (
    ProtocolError,
    first_difference,
    observed_differences,
)
from mmcache_conformance.verdicts.model import CallFailure, TargetReport, Verdict
from mmcache_conformance.verdicts.run import could_not, exit_code, run_target
from mmcache_conformance.verdicts.stretch import BESIDE, hits_of, stretched
from mmcache_vectors.manager import Expect, Free, Observed, Step, Vector

OFFERED = CAPABILITIES["encoder_cache"]

Change = Callable[[Case, list[Answer]], list[Answer]]


def as_it_is(case: Case, answers: list[Answer]) -> list[Answer]:
    return answers


class Changed:
    """The reference, with its answers changed on their way."""

    runs_together = False
    log = "what it wrote"

    def __init__(self, change: Change = as_it_is, at_stop: str | None = None) -> None:
        self.name = "changed"
        self._right = open_manager("reference")
        self._change, self._at_stop = change, at_stop

    def start(self) -> Implementation:
        return self._right.start()

    def run(self, case: Case) -> tuple[Answer, ...]:
        return tuple(self._change(case, list(self._right.run(case))))

    def stop(self) -> None:
        self._right.stop()
        if self._at_stop is not None:
            raise AdapterError(self._at_stop)


class Together(Changed):
    """Several of its managers may be alive; the second of them answers as it is told to."""

    runs_together = True

    def __init__(self, beside: Change) -> None:
        super().__init__()
        self._beside = beside

    def run_together(self, cases: Sequence[Case]) -> tuple[tuple[Answer, ...], ...]:
        first, *others = (list(self._right.run(case)) for case in cases)
        changed = (self._beside(c, a) for c, a in zip(cases[1:], others, strict=True))
        return tuple(map(tuple, (first, *changed)))


def last(**changes: Any) -> Change:
    """The last answer has other things in it."""
    return lambda case, answers: [*answers[:-1], replace(answers[-1], **changes)]


def first(**changes: Any) -> Change:
    return lambda case, answers: [replace(answers[0], **changes), *answers[1:]]


def some(hand_made: dict[str, Vector]) -> tuple[Vector, ...]:
    """Two that the reference passes."""
    return hand_made["evicted-and-allocated-again"], hand_made["one-hash-twice"]


# --- around the vectors ------------------------------------------------------------------------


def test_what_is_said_at_the_end_discredits_the_last_that_was_played(
    hand_made: dict[str, Vector],
) -> None:
    vectors = (*some(hand_made), hand_made["encoder-decoder-credit"])

    class OneKind(Changed):
        def start(self) -> Implementation:
            found = super().start()
            offered = found.capabilities["encoder_cache"]
            return replace(found, capabilities={"encoder_cache": offered})

    report = run_target(OneKind(at_stop="and another thing"), vectors, stretch=False)
    assert [v.outcome for v in report.verdicts] == ["pass", "error", "skip"]
    assert report.verdicts[1].reason == "and another thing"


def test_whoever_interrupts_a_start_ends_the_run() -> None:
    class Interrupted(Changed):
        def start(self) -> Implementation:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_target(Interrupted(), (), stretch=False)


def test_the_seconds_are_those_between_start_and_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(10.0, 2.5)
    monkeypatch.setattr("mmcache_conformance.verdicts.run.time.perf_counter", lambda: next(clock))
    assert run_target(Changed(), (), stretch=False).seconds == 2.5


def test_what_a_target_wrote_is_shown_with_what_did_not_pass(
    hand_made: dict[str, Vector],
) -> None:
    right, wrong = (
        run_target(Changed(c), some(hand_made), stretch=False) for c in (as_it_is, last(error="no"))
    )
    assert [(v.outcome, v.stderr) for v in right.verdicts] == [("pass", None)] * 2
    assert [(v.outcome, v.stderr) for v in wrong.verdicts] == [("fail", "what it wrote")] * 2


def report_of(**changes: Any) -> TargetReport:
    plain = Verdict("v", "pass", (), "specified", "encoder_cache")
    found = Changed().start()
    return TargetReport("x", found, None, 0.0, (plain, replace(plain, **changes)))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, ExitCode.OK),
        ({"outcome": "error", "reason": f"{CANNOT}no `free`"}, ExitCode.COULD_NOT),
        ({"outcome": "error", "reason": "it died"}, ExitCode.FAILED),
        ({"outcome": "fail", "reason": f"{CANNOT}no `free`"}, ExitCode.FAILED),
    ],
)
def test_an_error_that_says_that_it_cannot_be_driven_is_no_verdict(
    changes: dict[str, Any], code: ExitCode
) -> None:
    report = report_of(**changes)
    assert exit_code([report]) == code
    assert could_not(report) == (code == ExitCode.COULD_NOT)


# --- the answers of a vector -------------------------------------------------------------------


def test_a_call_that_cannot_be_made_breaks_no_clause(hand_made: dict[str, Vector]) -> None:
    """And is named; another error is a failure, and a text that is returned is no error."""

    def verdict(change: Change) -> Verdict:
        return run_target(Changed(change), some(hand_made)[:1], stretch=False).verdicts[0]

    cannot = verdict(first(error=f"{CANNOT}no such thing"))
    assert (cannot.outcome, cannot.reason) == ("error", f"{CANNOT}`allocate`: no such thing")
    assert verdict(first(error="no room")).outcome == "fail"
    returned = some(hand_made)[0].steps[3]
    assert isinstance(returned.expect.returns, bool)

    def text(case: Case, answers: list[Answer]) -> list[Answer]:
        return [*answers[:3], replace(answers[3], returns=f"{CANNOT}it"), *answers[4:]]

    assert verdict(text).outcome == "fail"


@pytest.mark.parametrize("number", range(3))
def test_a_failure_in_a_larger_world_alone_is_one(
    number: int, hand_made: dict[str, Vector]
) -> None:
    vector = hand_made["evicted-and-allocated-again"]
    world = list(stretched(case_of(vector), largest_number("Python"), OFFERED, hits_of(vector)))[
        number
    ]

    def change(case: Case, answers: list[Answer]) -> list[Answer]:
        same = (case.parameters, case.calls) == (world.case.parameters, world.case.calls)
        return last(error="no")(case, answers) if same else answers

    plain = run_target(Changed(change), [vector], stretch=False)
    larger = run_target(Changed(change), [vector], stretch=True)
    assert [v.outcome for v in (*plain.verdicts, *larger.verdicts)] == ["pass", "fail"]
    failure = larger.verdicts[0].failure
    assert isinstance(failure, CallFailure)
    assert (failure.stretched, failure.step) == (world.name, len(vector.steps) - 1)


def test_a_manager_that_is_wrong_beside_another_is_wrong(hand_made: dict[str, Vector]) -> None:
    vector = hand_made["evicted-and-allocated-again"]
    right = run_target(Together(as_it_is), [vector], stretch=True)
    assert [v.outcome for v in right.verdicts] == ["pass"]
    for wrong in (last(error="no"), first(returns=("X",))):
        report = run_target(Together(wrong), [vector], stretch=True)
        (verdict,) = report.verdicts
        assert verdict.outcome == "fail"
        assert isinstance(verdict.failure, CallFailure)
        assert verdict.failure.stretched == BESIDE


# --- one answer --------------------------------------------------------------------------------


def test_as_many_answers_as_calls_are_needed_however_many_there_are() -> None:
    steps = [Step(Free("r"), Expect(None, Observed()))] * 300
    answers = [Answer()] * 300
    assert first_difference(steps, answers) is None
    for wrong in (answers[1:], [*answers, Answer()]):
        with pytest.raises(ProtocolError, match=f"{len(wrong)} answers to 300 calls"):
            first_difference(steps, wrong)


@pytest.mark.parametrize(
    ("name", "wanted", "got", "same"),
    [
        ("cached", {"A": ("r1", "r2")}, {"A": ("r2", "r1")}, True),
        ("cached", {"A": ()}, {}, False),
        ("held", {"r1": (0, 1)}, {"r1": (1, 0)}, True),
        ("held", {"r1": ()}, {}, True),
        ("held", {"r1": (0,)}, {}, False),
        ("freeable", ("A", "B"), ("B", "A"), False),
        ("num_free_slots", 1, 2, False),
        ("cached", {"A": ("r1",)}, None, True),
    ],
)
def test_only_what_is_a_set_has_no_order(name: str, wanted: Any, got: Any, same: bool) -> None:
    """L5, L6: the order of the freeable hashes is one that is specified."""
    found = observed_differences(Observed(**{name: wanted}), Observed(**{name: got}))
    assert [d.what for d in found] == ([] if same else [name])
