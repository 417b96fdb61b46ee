"""The real scheduler, where a vLLM can be imported: what fails as released, and the repairs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mmcache_conformance.engines.random import random_run
from mmcache_conformance.engines.vllm.target import VllmScheduler
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_conformance.verdicts.run import exit_code, run_target

pytest.importorskip("torch")
pytest.importorskip("vllm")

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"


@pytest.mark.parametrize(
    "words", ["withdraw:payload:skip", "v2:withdraw:skip", "two-phase:payload:skip"]
)
def test_with_the_repairs_nothing_fails(words: str) -> None:
    report = run_target(
        VllmScheduler(f"vllm-scheduler:{words}"), load_suite(None, ENGINES), stretch=False
    )
    assert exit_code([report]) == 0, [(v.id, v.failure, v.reason) for v in report.verdicts]


@pytest.mark.parametrize(
    ("words", "cured", "left"),
    [
        ("withdraw", "phantom", "stripped"),
        ("payload", "stripped", "phantom"),
        ("skip", "skipped", "phantom"),
    ],
)
def test_each_repair_cures_its_own_defect(words: str, cured: str, left: str) -> None:
    report = run_target(
        VllmScheduler(f"vllm-scheduler:{words}"), load_suite(None, ENGINES), stretch=False
    )
    failed = [v.id for v in report.verdicts if v.outcome == "fail"]
    assert not [name for name in failed if name.startswith(cured)]
    assert [name for name in failed if name.startswith(left)]


def test_controls_are_clean_as_released() -> None:
    vectors = [v for v in load_suite(None, ENGINES) if "control" in v.id]
    assert exit_code([run_target(VllmScheduler(), vectors, stretch=False)]) == 0


def test_our_ledger_gives_the_same_schedule() -> None:
    ours, theirs = (
        VllmScheduler(f"vllm-scheduler:withdraw:payload{word}") for word in (":mmcache", "")
    )
    ours.start()
    theirs.start()
    tally = random_run(ours, 1000, like=theirs)
    assert not tally.failures
    assert tally.differences == ()


def _scripts(page: str) -> list[str]:
    text = (FINDINGS / f"{page}.md").read_text()
    scripts = re.findall(r"```python\n(from mmcache_conformance.*?)```", text, re.DOTALL)
    assert scripts
    return scripts


@pytest.mark.parametrize("page", ["phantom-entry", "stripped-payload"])
def test_the_scripts_of_the_findings_end_in_a_miss(page: str) -> None:
    from mmcache_conformance.engines.vllm.engine import EncoderCacheMiss

    for script in _scripts(page):
        with pytest.raises(EncoderCacheMiss):
            exec(script, {})


def test_the_script_of_the_skipped_request_ends_with_an_orphan() -> None:
    (script,) = _scripts("skipped-request")
    left: dict[str, Any] = {}
    exec(script, left)
    assert left["engine"].manager.cached == {"A": {"r"}}
    assert left["engine"].scheduler.running == []


FORK = """
from vllm.v1.core.sched.scheduler import Scheduler

class Right(Scheduler):
    pass

class Forgets(Scheduler):
    def _free_encoder_inputs(self, request):
        pass
"""


def test_the_scheduler_of_a_fork_is_what_is_driven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_fork.py").write_text(FORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    suite = load_suite(None, ENGINES)
    words = "withdraw:payload:skip"
    right = run_target(
        VllmScheduler(f"vllm-scheduler:scheduler=a_fork:Right:{words}"), suite, stretch=False
    )
    assert exit_code([right]) == 0
    assert right.implementation is not None
    assert right.implementation.name == "the scheduler a_fork:Right"
    wrong = run_target(
        VllmScheduler(f"vllm-scheduler:scheduler=a_fork:Forgets:{words}"), suite, stretch=False
    )
    assert exit_code([wrong]) == 1
    none = run_target(
        VllmScheduler("vllm-scheduler:scheduler=a_fork:Nothing"), suite, stretch=False
    )
    assert "a_fork:Nothing is not a class" in str(none.reason)
