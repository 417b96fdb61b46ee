"""One test a vector: `pytest --pyargs mmcache_conformance --target TARGET`.

`--vectors DIR` and `--expected FILE` are as for `mmcache-conformance run`; what kind of vectors is
run follows from the target, as there, and a program that is a manager and an engine gets both.
`-m "L1 or encoder_decoder"` chooses by clause, variant or kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mmcache_conformance.errors import TargetError, TargetNameError, describe_exception
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.implementation import Implementation
from mmcache_conformance.open import Target, format_for, open_targets
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.pytest_plugin import tell
from mmcache_conformance.reports.decisions import decision_lines, untested_lines
from mmcache_conformance.reports.story import verdict_story
from mmcache_conformance.suites.load import AnyVector, load_suite
from mmcache_conformance.verdicts.expected import (
    ExpectedFailuresError,
    apply_expected,
    load_expected,
)
from mmcache_conformance.verdicts.model import TargetReport, Verdict
from mmcache_conformance.verdicts.run import could_not, run_vector
from mmcache_conformance.verdicts.together import together
from mmcache_vectors.manager import VectorError


@dataclass(frozen=True)
class StartedTarget:
    """The target of `--target`, started, what is expected of it, and what was found so far."""

    target: Target
    implementation: Implementation
    suite: tuple[AnyVector, ...]
    """All vectors of its kind, also those that are not run."""
    judged: Callable[[TargetReport], TargetReport]
    """What is expected of all of `--target` is taken into account."""
    directory: Path | None
    found: list[Verdict] = field(default_factory=list)

    def verdict_on(self, vector: AnyVector) -> Verdict:
        """One vector, and whether its failure is expected."""
        verdict = run_vector(self.target, self.implementation, vector, self.directory)
        if verdict.failure is not None:
            (verdict,) = explained(self._report(verdict), [vector]).verdicts
        self.found.append(verdict)
        return self.judged(self._report(verdict)).verdicts[0]

    def in_all(self) -> TargetReport:
        """What was found, explained together."""
        return explained(self._report(*self.found), self.suite)

    def _report(self, *verdicts: Verdict) -> TargetReport:
        return TargetReport(self.target.name, self.implementation, None, 0.0, verdicts)


def _path(config: pytest.Config, option: str) -> Path | None:
    given = config.getoption(option, None)
    return Path(given) if given else None


def _opened(config: pytest.Config) -> dict[Target, tuple[AnyVector, ...]]:
    """All that `--target` stands for, each with the vectors that are about it."""
    directory = _path(config, "mmcache_vectors")
    try:
        targets = open_targets(
            config.getoption("mmcache_target", "reference"),
            in_process=config.getoption("mmcache_in_process", False),
        )
    except TargetNameError as error:
        pytest.exit(str(error), returncode=ExitCode.USAGE)
    return {target: load_suite(directory, format_for(target)) for target in targets}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" not in metafunc.fixturenames:
        return
    try:
        suites = _opened(metafunc.config).values()
    except VectorError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    marked = [_marked(vector, metafunc.config) for suite in suites for vector in suite]
    metafunc.parametrize("vector", marked)


def _marked(vector: AnyVector, config: pytest.Config) -> object:
    """The vector under its id, with marks for `-m`: its clauses, its variant and what it tests."""
    names = (*vector.clauses, vector.variant, vector.kind)
    for name in names:
        config.addinivalue_line("markers", f"{name}: vectors of this clause, variant or kind")
    return pytest.param(vector, id=vector.id, marks=[getattr(pytest.mark, n) for n in names])


@pytest.fixture(scope="module")
def started(pytestconfig: pytest.Config) -> Iterator[tuple[StartedTarget, ...]]:
    """All of `--target`, started. A target that does not start ends the session."""
    suites = _opened(pytestconfig)
    directory = _path(pytestconfig, "mmcache_vectors")
    judged = _judge(_path(pytestconfig, "mmcache_expected"), suites)
    with ExitStack() as stopped:
        running = []
        for target, suite in suites.items():
            stopped.callback(target.stop)
            found = _implementation(target)
            running.append(StartedTarget(target, found, suite, judged, directory))
        yield tuple(running)
    reports = [one.in_all() for one in running if one.found]
    lines = [line for r in reports for line in (*decision_lines(r), *untested_lines(r))]
    tell(pytestconfig, lines, any(map(could_not, reports)))
    verdicts = judged(together(reports)).verdicts if reports else ()
    # What is said to fail at some vector of a clause, and fails at none of them.
    if lapsed := sorted({str(v.reason) for v in verdicts if v.outcome == "xpass"}):
        pytest.fail("\n".join(lapsed), pytrace=False)


def _judge(
    file: Path | None, suites: Mapping[Target, tuple[AnyVector, ...]]
) -> Callable[[TargetReport], TargetReport]:
    """What `--expected` makes of a report."""
    if file is None:
        return lambda report: report
    whole = tuple(vector for suite in suites.values() for vector in suite)
    try:
        expected = load_expected(file, whole)
    except ExpectedFailuresError as error:
        pytest.exit(str(error), returncode=ExitCode.USAGE)
    return lambda report: apply_expected(report, expected, whole)


def _implementation(target: Target) -> Implementation:
    """What the target is, once it has started."""
    try:
        return target.start()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        why = str(error) if isinstance(error, TargetError) else describe_exception(error)
        reason = f"{target.name} could not be started: {why}"
        pytest.exit(reason, returncode=ExitCode.COULD_NOT)


def test_vector(started: tuple[StartedTarget, ...], vector: AnyVector) -> None:
    (about,) = (one for one in started if vector in one.suite)
    verdict = about.verdict_on(vector)
    if verdict.outcome == "skip":
        pytest.skip(str(verdict.reason))
    if verdict.outcome == "xfail":
        pytest.xfail(f"{verdict.reason} ({verdict.link})")
    if verdict.outcome != "pass":
        log = f"its standard error meanwhile:\n{verdict.stderr}\n" if verdict.stderr else ""
        pytest.fail(verdict_story(vector, verdict) + log, pytrace=False)
