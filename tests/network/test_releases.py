"""Real vLLM releases fail exactly the vectors that the spec predicts for their decisions."""

from __future__ import annotations

import os
from functools import cache

import pytest

from mmcache_conformance.open import open_target
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.oracle.set_order import SET_ORDER
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.vllm.source import find_source
from mmcache_conformance.targets.vllm.wheel import IndexUnreachable
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from mmcache_spec.model.releases import RELEASES
from mmcache_spec.oracle import predicted_failures

VECTORS = load_suite()

CLAUSES = {
    "vllm:0.27.1": ({"L1", "L8", "E1"}, {"L2", "L3", "L4", "L5", "L6", "L7", "L10", "L11", "E2"}),
    "vllm:0.28.0": ({"L8", "E1"}, {"L1", "L2", "L3", "L4", "L5", "L6", "L7", "L10", "L11", "E2"}),
    "vllm:0.33.0": ({"E1"}, {f"L{n}" for n in range(1, 12)} | {"E2"}),
}
"""For each release: the clauses that some vector finds broken, and those that none does.

First-occurrence release breaks L9 with L8, so L9 is in neither list where L8 is broken.
"""


DECIDED = {
    "vllm:0.27.1": {
        "unfiltered_report",
        "first_occurrence_release",
        "encoder_decoder_repeated_credit",
        SET_ORDER.name,
    },
    "vllm:0.28.0": {
        "first_occurrence_release",
        "encoder_decoder_repeated_credit",
        SET_ORDER.name,
    },
    "vllm:0.33.0": {"encoder_decoder_repeated_credit", SET_ORDER.name},
}
"""For each release: its decisions, as the public reports and its source have them."""


OLDEST, *OTHERS = RELEASES
EACH = [OLDEST, *(pytest.param(release, marks=pytest.mark.slow) for release in OTHERS)]
"""The oldest has taken all the decisions; the others are played beside it by CI."""


@cache
def played(release: str) -> TargetReport:
    """Every vector in its own world."""
    try:
        find_source(release.removeprefix("vllm:"))
    except IndexUnreachable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT TESTED against {release}: {error}")
    report = run_target(open_target(release), VECTORS, stretch=False)
    assert report.reason is None
    assert all(v.outcome in {"pass", "fail", "skip"} for v in report.verdicts)
    return explained(report, VECTORS)


def failing(release: str) -> tuple[str, ...]:
    return tuple(v.id for v in played(release).verdicts if v.outcome == "fail")


@pytest.mark.network
@pytest.mark.parametrize("release", EACH)
def test_it_fails_exactly_what_the_spec_predicts(release: str) -> None:
    predicted = predicted_failures(release, VECTORS)
    assert predicted
    assert list(failing(release)) == predicted


@pytest.mark.network
@pytest.mark.parametrize("release", EACH)
def test_the_failures_blame_the_right_clauses(release: str) -> None:
    broken, kept = CLAUSES[release]
    blamed = {c for v in played(release).verdicts for c in v.broke or ()}
    assert broken <= blamed
    assert not blamed & kept


@pytest.mark.network
@pytest.mark.parametrize("release", EACH)
def test_the_decisions_are_named_in_larger_worlds_too(release: str) -> None:
    """Every failure is laid to a decision; what fails there only hides no other: L15."""
    failing(release)  # skips where there is no index
    report = explained(run_target(open_target(release), VECTORS, stretch=True), VECTORS)
    named = {d.name for d in report.decisions if not d.contradicted_by}
    assert named == DECIDED[release]
    assert report.unexplained == ()


def test_the_reference_fails_none() -> None:
    report = run_target(open_target("reference"), VECTORS, stretch=False)
    assert {v.outcome for v in report.verdicts} == {"pass"}
