"""The vectors of the package kill every defect of history, and say of which clause."""

from __future__ import annotations

import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.protocol import ALLOCATE_AGAIN
from mmcache_conformance.targets.python import ManagerClasses, PythonTarget
from mmcache_conformance.verdicts.run import run_target
from tests.known_bad.historic import ENCODER_DECODERS, LEDGERS

VECTORS = load_suite()


@pytest.mark.parametrize("cls", [*LEDGERS, *ENCODER_DECODERS], ids=lambda c: c.__name__)
def test_the_defect_is_killed_by_vectors_that_name_its_clause(cls):
    encoder_decoder = cls in ENCODER_DECODERS
    classes = ManagerClasses(
        cls.__name__,
        None if encoder_decoder else cls,
        cls if encoder_decoder else None,
        adds=frozenset({ALLOCATE_AGAIN}),
    )
    report = run_target(PythonTarget(cls.__name__, lambda: classes), VECTORS)
    verdicts = report.verdicts
    assert not [v for v in verdicts if v.outcome == "error"]
    failed = [v for v in verdicts if v.outcome == "fail"]
    named = {clause for v in failed for clause in v.clauses}
    assert set(cls.clauses) <= named
    assert cls.report.partition("#")[2].isdigit()


def test_every_defect_is_listed():
    assert len(LEDGERS) >= 8
    assert len(ENCODER_DECODERS) >= 3
