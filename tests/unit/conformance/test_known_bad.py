"""The vectors of the package kill every known-bad manager, and each for what is wrong with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from mmcache_conformance.oracle.blame import blamed
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.targets.protocol import ALLOCATE_AGAIN
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.verdicts.model import CallFailure
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors.clauses import CLAUSES
from mmcache_vectors.manager import Observed
from tests.known_bad.managers import (
    ENCODER_DECODERS,
    HISTORIC,
    LEDGERS,
    RepeatedReport,
    ReportIsAString,
    ReportIsNone,
    WrongEncoderDecoder,
    WrongLedger,
)
from tests.support.drivers import short_vectors

Wrong = type[WrongLedger] | type[WrongEncoderDecoder]

VECTORS = short_vectors()
ALL: tuple[Wrong, ...] = (*LEDGERS, *ENCODER_DECODERS)


@dataclass(frozen=True)
class Found:
    """The vectors that a manager passes, and those that it fails, each with what is blamed."""

    passed: tuple[str, ...]
    failed: dict[str, frozenset[str]]
    """The clauses that the specification lays the first wrong step to, by vector."""
    raised: frozenset[str]
    """Those that fail because a call did: no clause speaks of exceptions."""


def found(cls: Wrong) -> Found:
    return _found(cls.__name__)


@cache
def _found(name: str) -> Found:
    (cls,) = (c for c in ALL if c.__name__ == name)
    encoder_decoder = issubclass(cls, WrongEncoderDecoder)
    classes = ManagerClasses(
        cls.__name__,
        None if encoder_decoder else cls,
        cls if encoder_decoder else None,
        adds=frozenset({ALLOCATE_AGAIN}),
    )
    verdicts = run_target(
        PythonTarget(cls.__name__, lambda: classes), VECTORS, stretch=False
    ).verdicts
    assert not [v for v in verdicts if v.outcome == "error"]
    vectors = {vector.id: vector for vector in VECTORS}
    failed: dict[str, frozenset[str]] = {}
    raised = set()
    for verdict in verdicts:
        if verdict.outcome != "fail":
            continue
        failure, vector = verdict.failure, vectors[verdict.id]
        assert isinstance(failure, CallFailure)
        calls = [step.call for step in vector.steps[: failure.step + 1]]
        system = specified(vector.manager)
        failed[vector.id] = frozenset(blamed(system, vector.parameters, calls, failure.differences))
        if failure.differences[0].what == "error":
            raised.add(vector.id)
    passed = tuple(v.id for v in verdicts if v.outcome == "pass")
    return Found(passed, failed, frozenset(raised))


@pytest.mark.parametrize(
    "cls", [c for c in ALL if c.clauses], ids=lambda c: "-".join((c.__name__, *c.clauses))
)
def test_it_is_killed_for_what_is_wrong_with_it(cls: Wrong) -> None:
    """Every failing vector fails at a step that breaks one of its clauses, and the rest pass.

    So a manager that does everything wrong is not taken for one that breaks the clause: its first
    wrong step is another. A long vector shows little of the state: what is wrong there may be seen
    late, by another clause.
    """
    it = found(cls)
    shown = {v.id for v in VECTORS if all(s.expect.observe != Observed() for s in v.steps)}
    judged = {n: b for n, b in it.failed.items() if n not in it.raised and n in shown}
    assert judged
    assert it.passed
    for name, blame in judged.items():
        assert blame & set(cls.clauses), name
    assert set(cls.clauses) <= frozenset().union(*judged.values())


def test_what_is_wrong_with_everything_is_laid_to_no_clause_of_a_defect() -> None:
    """The control: had it the name of another defect, the test above would fail."""
    everything = found(ReportIsAString)
    assert not everything.passed
    assert set(everything.failed.values()) == {frozenset()}


def test_those_that_break_no_clause() -> None:
    """An answer of another type is no answer; and a report is a set, so repeats mean nothing."""
    assert {c for c in ALL if not c.clauses} == {RepeatedReport, ReportIsAString, ReportIsNone}
    assert found(ReportIsNone).failed
    assert not found(RepeatedReport).failed


def test_the_defects_are_of_many_clauses() -> None:
    broken = {clause for cls in ALL for clause in cls.clauses}
    assert broken <= set(CLAUSES)
    assert {
        "L1",
        "L2",
        "L3",
        "L5",
        "L6",
        "L7",
        "L8",
        "L9",
        "L10",
        "L11",
        "L13",
        "L15",
        "E1",
        "E2",
    } <= broken


def test_a_report_is_that_of_one_defect() -> None:
    reports = [cls.report for cls in HISTORIC]
    assert len(set(reports)) == len(reports)
    for report in reports:
        project, _, number = str(report).partition("#")
        assert project
        assert number.isdigit()


def test_the_page_names_each_defect_with_its_clauses() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mutants.md").read_text()
    rows = dict(re.findall(r"^\| (\S+#\d+) \| .* \| (.*) \|$", page, re.MULTILINE))
    assert rows == {cls.report: ", ".join(cls.clauses) for cls in HISTORIC}
