"""The smoke test finds what would make every other verdict worthless."""

from __future__ import annotations

import shlex
import sys

import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.targets.open import open_manager
from mmcache_conformance.verdicts.model import Verdict
from mmcache_conformance.verdicts.smoke import smoke, smoke_vectors
from tests.support.drivers import MISBEHAVES


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, ["smoke", *words], prog_name="mmcache-conformance")


def test_a_fit_target() -> None:
    result = invoke("reference")
    assert result.exit_code == 0
    assert result.output.count("\nok  ") == 8
    assert result.output.endswith("\nits verdicts can be trusted\n")


def test_three_that_pass_and_one_that_must_fail() -> None:
    report, checks = smoke(open_manager("reference"))
    assert [v.outcome for v in report.verdicts] == ["pass", "pass", "pass", "fail"] * 2
    assert all(check.ok for check in checks)
    assert len({v.id for m in ("encoder_cache", "encoder_decoder") for v in smoke_vectors(m)}) == 8


def test_an_engine_that_refuses_everything() -> None:
    """L7 in every call: of such an engine the self-test is not content."""
    result = invoke("tests.known_bad.managers:RefusesEverything")
    assert result.exit_code == 1
    assert "FAIL  encoder_cache: an item that fits is admitted" in result.output
    wrong = "encoder_cache: an item within its budget is refused, which must be reported as failing"
    assert f"FAIL  {wrong}\n      it was reported as: pass" in result.output
    assert result.output.endswith("\nits verdicts cannot be trusted\n")


def test_a_judge_that_passes_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(target: object, implementation: object, vector: object, directory: object) -> Verdict:
        v = smoke_vectors("encoder_cache")[0]
        return Verdict(getattr(vector, "id", v.id), "pass", (), "specified", "encoder_cache")

    monkeypatch.setattr("mmcache_conformance.verdicts.run.run_vector", blind)
    assert invoke("reference").exit_code == 1


def test_a_crash_shows_what_was_said_before_it() -> None:
    command = shlex.join([sys.executable, str(MISBEHAVES), "exits"])
    result = invoke(f"cmd:{command}")
    assert result.exit_code == 1
    assert "it was reported as: error the adapter exited with code 7" in result.output
    assert "      | out of memory" in result.output


def test_the_wire_can_be_seen() -> None:
    command = shlex.join([sys.executable, "-m", "mmcache_conformance.adapters.python"])
    result = invoke("--wire", f"cmd:{command} mmcache:EncoderCacheManager")
    assert result.exit_code == 0
    assert '> {"cmd":"start","protocol":1}\n< {"protocol":1,' in result.stderr


@pytest.mark.parametrize(
    ("target", "code"), [("nonsense", 2), ("cmd:", 2), ("cmd:false", 3), ("no_such:C", 3)]
)
def test_exit_codes(target: str, code: int) -> None:
    assert invoke(target).exit_code == code
