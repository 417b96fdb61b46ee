"""Logs of right and wrong engines, damaged at random, judged by `check` and by a fresh oracle.

The oracle is the interpreter of the specification on the whole log, and the plainest of workers
(`tests/support/fresh_oracle.py`); it shares no code with the checker but the JSON Schema of a line.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmcache_conformance.engines.random import random_workload
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS
from mmcache_conformance.exits import ExitCode
from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.format import LogError
from mmcache_conformance.logs.verdict import Checked
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_vectors.engine import EngineVector
from tests.support.fresh_oracle import judge_log
from tests.support.log_damage import DAMAGES, damaged, engine_log
from tests.support.logs import recorded

_DAMAGED = 2
"""Damages of each log, of different kinds."""


def judged(lines: list[bytes]) -> Checked | None:
    """The verdict; None for a log that cannot be read."""
    try:
        return check_log(lambda: lines, "a.jsonl")
    except LogError:
        return None


def expect_agreement(lines: list[bytes], what: str) -> tuple[bool, bool]:
    """Compare the two; whether the log has a breach, and whether it could not be read."""
    found, oracle = judged(lines), judge_log(lines)
    breach, malformed = oracle.breach, oracle.malformed
    if found is None:
        assert malformed is not None, what
        assert breach is None, f"{what}: not told: {oracle.about}"
        return False, True
    if malformed is not None:
        assert found.exit_code != ExitCode.OK, what
    if breach is not None:
        assert found.illegal is not None, f"{what}: not told at line {breach}: {oracle.about}"
    if found.illegal is not None:
        assert found.illegal.line == breach, f"{what}: {found.illegal.reason}"
    return breach is not None, malformed is not None


def workloads(variant: str) -> Iterator[EngineVector]:
    yield random_workload(3)
    yield from [v for v in load_suite(None, ENGINES) if v.variant == variant][:2]


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param(v, marks=[pytest.mark.slow] if k % 3 else [])
        for k, v in enumerate(REFERENCE_VARIANTS)
    ],
)
def test_a_damaged_log_of_an_engine_is_judged_as_the_oracle_judges_it(variant: str) -> None:
    chance = random.Random(variant)
    breaches = unread = 0
    for steps, workload in enumerate(workloads(variant)):
        lines = engine_log(variant, workload, steps=steps != 1)
        expect_agreement(lines, f"{workload.id}, whole")
        for what in chance.sample(sorted(DAMAGES), _DAMAGED):
            one = damaged(lines, what, chance)
            name = f"{workload.id}, {what} at line {one.line}"
            breach, malformed = expect_agreement(one.lines, name)
            breaches, unread = breaches + breach, unread + malformed
    assert breaches + unread > 0, "no damage did any harm: nothing was tried"


@pytest.mark.slow
@pytest.mark.parametrize("variant", REFERENCE_VARIANTS)
@pytest.mark.parametrize("what", DAMAGES)
def test_so_is_every_kind_of_damage(variant: str, what: str) -> None:
    chance = random.Random(variant + what)
    for seed in range(2):
        lines = engine_log(variant, random_workload(seed), steps=bool(seed))
        for _ in range(20):
            one = damaged(lines, what, chance)
            expect_agreement(one.lines, f"random-{seed}, {what} at line {one.line}")


@pytest.mark.parametrize("name", range(3))
def test_so_are_the_logs_of_managers_alone(tmp_path: Path, name: int) -> None:
    """Two ledgers, and one of encoder-decoder models, without passes."""
    every = recorded(tmp_path, passes=8)
    managers = list(
        dict.fromkeys(line.split(b'"manager":')[1].split(b",")[0] for line in every[1:])
    )
    lines = [every[0], *(x for x in every[1:] if b'"manager":' + managers[name] + b"," in x)]
    chance = random.Random(name)
    for what in sorted(DAMAGES):
        one = damaged(lines, what, chance)
        expect_agreement(one.lines, f"{what} at line {one.line}")
