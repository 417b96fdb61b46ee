"""One test a vector: `pytest --pyargs mmcache_conformance --target TARGET`.

`--vectors DIR` and `--expected FILE` are as for `mmcache-conformance run`; what kind of vectors is
run follows from the target, as there. `-m "L1 or encoder_decoder"` chooses by clause, variant or
kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pytest

from mmcache_conformance.errors import TargetError, TargetNameError, describe_exception
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.open import Target, format_for, open_target
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.pytest_plugin import tell
from mmcache_conformance.reports.decisions import decision_lines, untested_lines
from mmcache_conformance.reports.story import verdict_story
from mmcache_conformance.suites.load import AnyVector, load_suite
from mmcache_conformance.verdicts.expected import (
    ExpectedFailures,
    ExpectedFailuresError,
    apply_expected,
    load_expected,
)
from mmcache_conformance.verdicts.model import TargetReport, Verdict
from mmcache_conformance.verdicts.run import could_not, run_vector
from mmcache_vectors.manager import VectorError


@dataclass(frozen=True)
class StartedTarget:
    """The target of `--target`, started, what is expected of it, and what was found so far."""

    target: Target
    implementation: Implementation
    expected: ExpectedFailures | None
    directory: Path | None
    found: list[Verdict] = field(default_factory=list)

    @cached_property
    def suite(self) -> tuple[AnyVector, ...]:
        """All vectors of its kind, also those that are not run."""
        return load_suite(self.directory, format_for(self.target))

    def verdict_on(self, vector: AnyVector) -> Verdict:
        """One vector, and whether its failure is expected."""
        verdict = run_vector(self.target, self.implementation, vector, self.directory)
        if verdict.failure is not None:
            report = TargetReport(self.target.name, self.implementation, None, 0.0, (verdict,))
            (verdict,) = explained(report, [vector]).verdicts
        self.found.append(verdict)
        return self._judged(self.found[-1:])[0]

    def in_all(self) -> TargetReport:
        """What was found, explained together."""
        found = tuple(self.found)
        report = TargetReport(self.target.name, self.implementation, None, 0.0, found)
        return explained(report, self.suite)

    def lapsed(self) -> list[str]:
        """What is said to fail at some vector of a clause, and fails at none of them."""
        return sorted({str(v.reason) for v in self._judged(self.found) if v.outcome == "xpass"})

    def _judged(self, verdicts: list[Verdict]) -> tuple[Verdict, ...]:
        if self.expected is None:
            return tuple(verdicts)
        report = TargetReport(self.target.name, self.implementation, None, 0.0, tuple(verdicts))
        return apply_expected(report, self.expected, self.suite).verdicts


def _path(config: pytest.Config, option: str) -> Path | None:
    given = config.getoption(option, None)
    return Path(given) if given else None


def _opened(config: pytest.Config) -> Target:
    try:
        return open_target(
            config.getoption("mmcache_target", "reference"),
            in_process=config.getoption("mmcache_in_process", False),
        )
    except TargetNameError as error:
        pytest.exit(str(error), returncode=ExitCode.USAGE)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" not in metafunc.fixturenames:
        return
    format = format_for(_opened(metafunc.config))
    try:
        vectors = load_suite(_path(metafunc.config, "mmcache_vectors"), format)
    except VectorError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    metafunc.parametrize("vector", [_marked(vector, metafunc.config) for vector in vectors])


def _marked(vector: AnyVector, config: pytest.Config) -> object:
    """The vector under its id, with marks for `-m`: its clauses, its variant and what it tests."""
    names = (*vector.clauses, vector.variant, vector.kind)
    for name in names:
        config.addinivalue_line("markers", f"{name}: vectors of this clause, variant or kind")
    return pytest.param(vector, id=vector.id, marks=[getattr(pytest.mark, n) for n in names])


@pytest.fixture(scope="module")
def started(pytestconfig: pytest.Config) -> Iterator[StartedTarget]:
    """The target of `--target`, started. A target that does not start ends the session."""
    target = _opened(pytestconfig)
    directory = _path(pytestconfig, "mmcache_vectors")
    file = _path(pytestconfig, "mmcache_expected")
    expected: ExpectedFailures | None = None
    if file is not None:
        try:
            expected = load_expected(file, load_suite(directory, format_for(target)))
        except ExpectedFailuresError as error:
            pytest.exit(str(error), returncode=ExitCode.USAGE)
    try:
        try:
            implementation = target.start()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            why = str(error) if isinstance(error, TargetError) else describe_exception(error)
            reason = f"{target.name} could not be started: {why}"
            pytest.exit(reason, returncode=ExitCode.COULD_NOT)
        running = StartedTarget(target, implementation, expected, directory)
        yield running
    finally:
        target.stop()
    report = running.in_all()
    tell(pytestconfig, [*decision_lines(report), *untested_lines(report)], could_not(report))
    if lapsed := running.lapsed():
        pytest.fail("\n".join(lapsed), pytrace=False)


def test_vector(started: StartedTarget, vector: AnyVector) -> None:
    verdict = started.verdict_on(vector)
    if verdict.outcome == "skip":
        pytest.skip(str(verdict.reason))
    if verdict.outcome == "xfail":
        pytest.xfail(f"{verdict.reason} ({verdict.link})")
    if verdict.outcome != "pass":
        log = f"its standard error meanwhile:\n{verdict.stderr}\n" if verdict.stderr else ""
        pytest.fail(verdict_story(vector, verdict) + log, pytrace=False)
