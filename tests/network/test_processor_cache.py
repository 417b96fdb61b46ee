"""The processor cache of real vLLM releases takes decisions that the spec knows, and no others."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.pairs.open import open_pair
from mmcache_conformance.suites.load import PAIRS, AnyVector, load_suite
from mmcache_conformance.targets.vllm.wheel import IndexUnreachable
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target

VECTORS = load_suite(None, PAIRS)

TAKEN = {
    "0.33.0": {
        "processor_walk_by_modality",
        "processor_asserts_what_it_evicted",
        "processor_rejected_is_lost",
        "processor_clears_each_by_itself",
        "processor_forgets_without_telling",
    },
    "0.33.0:order:spare:travel:tell": set(),
}


def report_on(release: str, vectors: Sequence[AnyVector] = VECTORS) -> TargetReport:
    target = open_pair(f"vllm-processor-cache:{release}")
    try:
        target.start()
    except IndexUnreachable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"NOT TESTED against {release}: {error}")
    return explained(run_target(target, vectors), vectors)


def broken_of(release: str, decision: str) -> set[str]:
    """The clauses that a release breaks in the vectors that this decision fails."""
    few = [v for v in VECTORS if decision in v.kills]
    assert few
    return {c for v in report_on(release, few).verdicts for c in v.broke or ()}


@pytest.mark.network
@pytest.mark.parametrize("release", TAKEN)
def test_a_release_takes_these_decisions(release: str) -> None:
    """P1, P2, P4, P5, P6."""
    report = report_on(release)
    assert {d.name for d in report.decisions} == TAKEN[release]
    assert not report.unexplained
    assert {v.outcome for v in report.verdicts} <= {"pass", "fail"}


@pytest.mark.network
def test_a_call_of_p0_that_never_ends_is_found() -> None:
    """P10: a key that is touched and not there enters the order of use."""
    assert "P10" in broken_of("0.23.0", "processor_absent_key_enters_the_order")


@pytest.mark.network
@pytest.mark.parametrize(("release", "ends"), [("0.13.0", True), ("0.14.0", False)])
def test_a_miss_was_the_end_of_the_engine(release: str, ends: bool) -> None:
    """P9."""
    assert ("P9" in broken_of(release, "processor_miss_ends_the_engine")) is ends
