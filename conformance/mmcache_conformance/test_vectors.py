"""One test a vector: `pytest --pyargs mmcache_conformance --target SPEC [--vectors DIR]`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mmcache_conformance.errors import TargetError, TargetSpecError
from mmcache_conformance.reports.story import failure_story
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.open import open_target
from mmcache_conformance.targets.protocol import Implementation, Target
from mmcache_conformance.verdicts.run import run_vector
from mmcache_vectors.manager import Vector, VectorError

Started = tuple[Target, Implementation]


def _directory(config: pytest.Config) -> Path | None:
    given = config.getoption("mmcache_vectors", None)
    return Path(given) if given else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "vector" not in metafunc.fixturenames:
        return
    try:
        vectors = load_suite(_directory(metafunc.config))
    except VectorError as error:
        raise pytest.Collector.CollectError(str(error)) from None
    metafunc.parametrize("vector", vectors, ids=[vector.id for vector in vectors])


@pytest.fixture(scope="module")
def started(pytestconfig: pytest.Config) -> Iterator[Started]:
    """The target of `--target`, started. A target that does not start ends the session."""
    spec = pytestconfig.getoption("mmcache_target", "reference")
    try:
        target = open_target(spec)
    except TargetSpecError as error:
        pytest.exit(str(error), returncode=2)
    try:
        try:
            implementation = target.start()
        except TargetError as error:
            pytest.exit(f"{spec} could not be started: {error}", returncode=3)
        yield target, implementation
    finally:
        target.stop()


def test_vector(started: Started, vector: Vector, pytestconfig: pytest.Config) -> None:
    verdict = run_vector(*started, vector, _directory(pytestconfig))
    if verdict.outcome == "skip":
        pytest.skip(str(verdict.reason))
    log = f"its standard error meanwhile:\n{verdict.stderr}\n" if verdict.stderr else ""
    if verdict.failure is not None:
        pytest.fail(failure_story(vector, verdict.failure) + log, pytrace=False)
    if verdict.outcome == "error":
        pytest.fail(f"{verdict.reason}\n{log}", pytrace=False)
