"""`exhaust` on programs: by snapshots, by calls made again, and never on copies that are none."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.errors import TargetError
from mmcache_conformance.exhaust.search import Exhausted, exhaust
from mmcache_conformance.exhaust.world import SearchScope
from tests.support.drivers import CPP

PROGRAMS = Path(__file__).parent / "programs"
Build = Callable[..., Path]
SMALL = SearchScope(hashes=2, requests=2, inputs=2, capacity=2)
LARGER = ("--hashes", "3", "--inputs", "3", "--requests", "1", "--capacity", "4")
ARGUMENTS = ("--hashes", "2", "--inputs", "2", "--capacity", "2")


def search(program: Path | str, scope: SearchScope = SMALL) -> Exhausted:
    words = program if isinstance(program, str) else shlex.quote(str(program))
    return exhaust(f"cmd:{words}", scope, max_states=10**5)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def served(what: str) -> str:
    python = shlex.quote(sys.executable)
    return f"{python} -m mmcache_conformance.adapters.python {what}"


def test_a_right_program_is_right_in_every_state(build: Build) -> None:
    found = search(build())
    assert (found.disagreement, found.kept_as, found.known) == (None, "snapshots", 0)
    assert found.spec_states == found.spec_states_expected == 44  # as docs/exhaustive.md counts
    assert found.exit_code == 0


@pytest.mark.slow
def test_without_snapshots_the_calls_are_made_again(build: Build) -> None:
    found = search(build(PROGRAMS / "shares.cpp"))
    assert (found.disagreement, found.kept_as, found.opaque) == (None, "calls made again", True)
    assert found.spec_states == found.spec_states_expected > 30
    assert set(found.left_out) == {"free", "reset"}


@pytest.mark.slow
def test_a_restore_that_does_not_restore_is_found_and_never_judged(build: Build) -> None:
    """Its manager is right: only its copies are not."""
    program = build(PROGRAMS / "shares.cpp", "-DSHARES")
    with pytest.raises(TargetError, match=r"kept faithfully|not what was kept"):
        search(program)
    done = run("smoke", f"cmd:{shlex.quote(str(program))}")
    assert done.exit_code == 1
    assert "FAIL  encoder_cache: what is restored from a snapshot" in done.output
    assert run("run", "-q", "--plain", f"cmd:{shlex.quote(str(program))}").exit_code == 0


@pytest.mark.parametrize(
    "flags", [(), pytest.param(("-O1",), marks=pytest.mark.slow)], ids=["snapshots", "again"]
)
def test_a_wrong_report_is_found_by_five_calls_and_named(build: Build, flags: tuple[str]) -> None:
    source = PROGRAMS / "shares.cpp" if flags else CPP / "example.cpp"
    found = search(build(source, "-DUNFILTERED_REPORT", *flags))
    assert found.disagreement is not None
    assert len(found.disagreement.calls) == 5
    assert found.disagreement.clauses == ("L1",)
    assert found.disagreement.decisions == ("unfiltered_report",)


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A file that expects L1 to be broken."""
    file = tmp_path / "expected.toml"
    file.write_text(
        'format = "mmcache/expected-failures"\nformat_version = 1\n[[expected]]\nclause = "L1"\n'
        'reason = "known"\nlink = "https://github.com/vllm-project/vllm/pull/52482"\n'
    )
    return file


def test_what_is_expected_is_passed_over_and_the_rest_is_searched(
    build: Build, listed: Path
) -> None:
    program = build(CPP / "example.cpp", "-DUNFILTERED_REPORT")
    target = f"cmd:{shlex.quote(str(program))}"
    done = run("exhaust", target, *ARGUMENTS, "--expected", str(listed), "--json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)["scopes"]
    assert found["known"] > 0
    assert found["spec_states"] == found["spec_states_expected"]


@pytest.mark.slow
def test_another_defect_beside_the_one_that_is_known_is_not_hidden_by_it(
    build: Build, listed: Path, tmp_path: Path
) -> None:
    text = (CPP / "example_engine.hpp").read_text()
    right = "const Hash oldest = idle_.front();\n            idle_.pop_front();"
    assert right in text
    wrong = "const Hash oldest = idle_.back();\n            idle_.pop_back();"
    (tmp_path / "example_engine.hpp").write_text(text.replace(right, wrong))
    (tmp_path / "driver.cpp").write_text((CPP / "example.cpp").read_text())
    both = build(tmp_path / "driver.cpp", "-DUNFILTERED_REPORT")
    done = run("exhaust", f"cmd:{both}", *LARGER, "--expected", str(listed), "--json")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)["scopes"]
    assert "unfiltered_report" not in found["disagreement"]["decisions"]


def test_a_class_behind_the_protocol_is_searched_as_the_class_is() -> None:
    wrong = search(served("tests.known_bad.managers:UnfilteredReport")).disagreement
    assert wrong is not None
    assert (len(wrong.calls), wrong.decisions) == (5, ("unfiltered_report",))
    right = search(served("mmcache:EncoderCacheManager"))
    assert (right.disagreement, right.opaque, right.kept_as) == (None, False, "snapshots")


def test_a_program_that_dies_is_told_by_the_call_that_killed_it(tmp_path: Path) -> None:
    module = tmp_path / "dies.py"
    module.write_text(
        "import os\nfrom mmcache import EncoderCacheManager\n"
        "class Dies(EncoderCacheManager):\n"
        "    def free(self, request):\n"
        "        if request.request_id == 'r2': os._exit(7)\n"
        "        super().free(request)\n"
    )
    found = search(f"env PYTHONPATH={tmp_path} {served('dies:Dies')}")
    assert found.disagreement is not None
    assert len(found.disagreement.calls) == 1
    assert "exited with code 7" in str(found.disagreement.differences[0].got)
