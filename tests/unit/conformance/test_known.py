"""What is known of a target is one decision, even where two explain a failure alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import mmcache_conformance.differ.campaign as campaigns
from mmcache_conformance.differ.campaign import run_campaign
from mmcache_conformance.differ.report import Finding
from mmcache_conformance.differ.search import Campaign, Done
from mmcache_conformance.differ.units import plan_of
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.oracle.garbage import without_collections
from mmcache_conformance.oracle.known import Known, Seen, Sieve, known_of
from mmcache_conformance.targets.protocol import Answer
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.verdicts.expected import ExpectedFailure, ExpectedFailures
from mmcache_conformance.verdicts.judge import answer_differences
from mmcache_conformance.verdicts.model import Difference
from mmcache_spec.model.decisions import system_of
from mmcache_spec.oracle import Replay
from mmcache_vectors.manager import GetFreedMmHashes, Vector
from tests.known_bad.managers import UnfilteredReport
from tests.support.drivers import short_vectors

SUITE = short_vectors()
X, Y = "unfiltered_report", "first_occurrence_release"
EITHER = frozenset({X, Y})


def failing(decision: str) -> list[Vector]:
    """The vectors that a manager with the decision fails, and no other of the two does."""
    other = ({X, Y} - {decision}).pop()
    return [v for v in SUITE if decision in v.kills and other not in v.kills]


@cache
def seen(decision: str) -> Seen:
    """A difference that only this decision explains."""
    vector = failing(decision)[0]
    replay = Replay(system_of([decision]), vector.parameters)
    calls, answers = [], []
    for step in vector.steps:
        told = replay.answer(step.call)
        assert told is not None
        calls.append(step.call)
        answers.append(Answer(told.returns, told.observe))
        wrong = answer_differences(step.expect, answers[-1])
        if wrong:
            return Seen(vector.manager, vector.parameters, tuple(calls), tuple(answers), wrong)
    raise AssertionError(f"{vector.id} does not fail")


def test_of_two_alternatives_the_first_that_shows_is_the_one_that_was_taken() -> None:
    for one, other in ((X, Y), (Y, X)):
        sieve = Sieve(Known(frozenset({EITHER})))
        assert sieve.covers(seen(one))
        assert sieve.choices == {frozenset({one})}
        assert not sieve.covers(seen(other))
        assert sieve.covers(seen(one))


def test_two_that_were_both_taken_are_both_known() -> None:
    sieve = Sieve(Known(frozenset({frozenset({X}), frozenset({Y})})))
    assert sieve.covers(seen(X))
    assert sieve.covers(seen(Y))


def test_what_one_known_decision_has_often_done_is_not_what_another_does() -> None:
    """Also after so many of one kind that no more are looked at."""
    sieve = Sieve(Known(frozenset({frozenset({X})})))
    one = seen(X)
    for _ in range(400):
        assert sieve.covers(one)
    call, other = one.calls[-1], Difference("returns", (), ("another",))
    assert sieve.passes_over(call, one.differences)
    assert not sieve.passes_over(call, (other,))


def listed(*ids: str) -> ExpectedFailures:
    entries = (ExpectedFailure(vector=i, reason="known", link="https://example.org") for i in ids)
    return ExpectedFailures(
        format="mmcache/expected-failures", format_version=1, expected=tuple(entries)
    )


def known(expected: ExpectedFailures) -> Known:
    classes = ManagerClasses("x", UnfilteredReport, None)
    target = PythonTarget("x", lambda: classes)
    return known_of(target, target.start(), expected, SUITE)


def test_a_decision_is_known_if_all_that_it_fails_is_listed() -> None:
    every = [v.id for v in SUITE if X in v.kills]
    found = known(listed(*every))
    assert found.decisions == {frozenset({X})}
    assert found.signatures == frozenset()
    fewer = known(listed(every[0]))
    assert fewer.decisions == frozenset()
    assert len(fewer.signatures) == 1


# --- campaigns ---------------------------------------------------------------------------------


def finding(decisions: tuple[str, ...], calls: int) -> Finding:
    """One of a kind of its own: the kind is told by what was reported."""
    vector = next(v for v in SUITE if isinstance(v.steps[-1].call, GetFreedMmHashes))
    got = tuple(f"x{k}" for k in range(calls))
    return Finding(
        vector=vector,
        differences=(Difference("returns", (), got),),
        clauses=(),
        decisions=decisions,
        sequence=0,
        calls_at_first=1,
    )


TARGET = Implementation("x", None, "python", {"encoder_cache": ()})


class _Now:
    """A unit that was played when it was submitted, as a process of its own does."""

    def __init__(self, work: Callable[..., Done], *given: Any) -> None:
        self._done = work(*given)

    def result(self) -> Done:
        return self._done

    def cancel(self) -> bool:
        return True


class _Pool:
    submit = staticmethod(_Now)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *error: object) -> None: ...


def play(monkeypatch: pytest.MonkeyPatch, search: Any, findings: int, jobs: int) -> Any:
    monkeypatch.setattr(campaigns, "search", search)
    monkeypatch.setattr(campaigns, "workers", lambda cluster, jobs: _Pool())
    count = sum(plan_of(k).sequences for k in range(6))
    report = run_campaign(
        Campaign("x"), TARGET, count=count, seconds=None, findings=findings, jobs=jobs
    )
    return count, report


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_no_unit_is_thrown_away(monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    """Each of the units 1, 2 and 4 has a defect of its own, and unit 2 that of unit 1 as well."""
    defects = {1: [1], 2: [1, 2], 4: [4]}

    def search(campaign: Campaign, unit: int, most: int, *_: object) -> Done:
        met = {len(kind.counts) and kind.counts[0][1] for kind in campaign.found}
        for defect in defects.get(unit, ()):
            if defect not in met:
                return Done(1, 1, 1, 0, finding((), defect))
        return Done(most, 1, 1, 0)

    count, report = play(monkeypatch, search, 10, jobs)
    assert report.sequences == count
    told = [len(f.differences[0].got) for f in report.findings]
    assert told == [1, 2, 4]
    _, report = play(monkeypatch, search, 2, jobs)
    assert [len(f.differences[0].got) for f in report.findings] == [1, 2]


@pytest.mark.parametrize("jobs", [1, 4])
def test_units_that_take_one_known_decision_for_two_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    """Unit 0 finds what either decision explains; unit 1 shows X only, and unit 2 Y only."""

    def search(campaign: Campaign, unit: int, most: int, *_: object) -> Done:
        choices = campaign.known.decisions
        if unit == 0 and not choices:
            return Done(1, 1, 1, 0, finding((X, Y), 1))
        shows = {1: X, 2: Y}.get(unit)
        if shows is None:
            return Done(most, 1, 1, 0, choices=choices)
        fits = [c for c in choices if shows in c]
        if not fits:
            return Done(1, 1, 1, 0, finding((shows,), 1 + unit))
        left = frozenset({*(choices - set(fits)), frozenset({shows})})
        return Done(most, 1, 1, 1, choices=left)

    _, report = play(monkeypatch, search, 10, jobs)
    assert [f.decisions for f in report.findings] == [(X, Y), (Y,)]


def test_the_collector_of_garbage_is_as_it_was_before() -> None:
    import gc

    for before in (False, True):
        (gc.enable if before else gc.disable)()
        try:
            with without_collections():
                assert not gc.isenabled()
            assert gc.isenabled() is before
        finally:
            gc.enable()
