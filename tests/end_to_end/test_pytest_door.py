"""`pytest --pyargs mmcache_conformance`: one test a vector, and no trace in other runs."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_vectors.manager import Vector
from tests.support.drivers import SHORT, short_vectors

PLUGIN = "mmcache_conformance.pytest_plugin"
ROOT = Path(__file__).parents[2]
UNFILTERED = "tests.known_bad.managers:UnfilteredReport"
RIGHT = "tests.support.plain_managers:Attaches"


def _pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A pytest elsewhere, with our plugin alone, in this process: to start one takes longer."""
    words = ["-p", PLUGIN, "-p", "no:cacheprovider", *arguments]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(cwd)
        patch.setenv("PYTEST_ADDOPTS", "")
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        code = pytest.main(words)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def _installed(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A pytest as a user types it: a process of its own, with all plugins that are installed."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def _outcomes(output: str) -> dict[str, int]:
    last = output.strip().splitlines()[-1]
    return {
        word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", last)
    }


DOOR = ("--pyargs", "mmcache_conformance")


def test_the_reference_by_default(tmp_path: Path, vector_directory: Path) -> None:
    """Named as well as installed, the plugin is registered once."""
    words = ["-p", PLUGIN, "--vectors", str(vector_directory)]
    done = _installed(*DOOR, *words, cwd=tmp_path)
    assert done.returncode == 0
    assert _outcomes(done.stdout) == {"passed": 7}


@pytest.mark.parametrize("chosen", [("-k", SHORT), pytest.param((), marks=pytest.mark.slow)])
def test_the_packaged_vectors(chosen: tuple[str, ...], tmp_path: Path) -> None:
    done = _installed(*DOOR, "-q", *chosen, cwd=tmp_path)
    assert done.returncode == 0
    assert _outcomes(done.stdout)["passed"] >= len(short_vectors())
    assert set(_outcomes(done.stdout)) == {"passed"}


def test_the_ids_are_the_ids_of_the_vectors(
    tmp_path: Path, vector_directory: Path, hand_made: dict[str, Vector]
) -> None:
    done = _pytest(*DOOR, "--collect-only", "-q", "--vectors", str(vector_directory), cwd=tmp_path)
    collected = re.findall(r"::test_vector\[(.*)\]", done.stdout)
    assert collected == sorted(vector.id for vector in hand_made.values())


def test_vectors_are_chosen_by_clause_variant_or_kind(
    tmp_path: Path, vector_directory: Path, hand_made: dict[str, Vector]
) -> None:
    words = ["--vectors", str(vector_directory), "--strict-markers", "--collect-only", "-q"]
    done = _pytest(*DOOR, *words, "-m", "(L1 or encoder_decoder) and not E2", cwd=tmp_path)
    collected = re.findall(r"::test_vector\[(.*)\]", done.stdout)
    wanted = [
        vector.id
        for vector in hand_made.values()
        if ("L1" in vector.clauses or vector.kind == "encoder_decoder")
        and "E2" not in vector.clauses
    ]
    assert collected == sorted(wanted)
    assert len(wanted) == 2
    assert "warning" not in done.stdout


def test_a_failure_is_the_same_story(tmp_path: Path, vector_directory: Path) -> None:
    target = UNFILTERED
    done = _pytest(
        *DOOR, "--target", target, "--vectors", str(vector_directory), "-rs", cwd=tmp_path
    )
    assert done.returncode == 1
    assert _outcomes(done.stdout) == {"passed": 4, "failed": 1, "skipped": 2}
    assert "step 9 of 10: get_freed_mm_hashes()\n" in done.stdout
    assert f"reproduce: mmcache-conformance run {target} -k evicted-and-allocated" in done.stdout
    assert f"needs encoder_decoder, which {target} does not have" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_module_of_the_package_can_be_named(tmp_path: Path, vector_directory: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\npython_files = only_these_*.py\n")
    done = _pytest(
        "--pyargs",
        "mmcache_conformance.test_vectors",
        "--target=reference",
        f"--vectors={vector_directory}",
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert _outcomes(done.stdout) == {"passed": 7}


@pytest.mark.parametrize(
    ("spec", "code", "reason"),
    [
        ("nonsense", 2, "'nonsense' does not name a target"),
        ("no_such:C", 3, "no_such:C could not be started: no_such:C: ModuleNotFoundError"),
    ],
)
def test_a_target_that_does_not_start_ends_the_run(
    spec: str, code: int, reason: str, tmp_path: Path, vector_directory: Path
) -> None:
    done = _pytest(*DOOR, "--target", spec, "--vectors", str(vector_directory), cwd=tmp_path)
    assert done.returncode == code
    assert reason in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_malformed_vector_is_named(tmp_path: Path, vector_directory: Path) -> None:
    (vector_directory / "broken.json").write_text("{}")
    done = _pytest(*DOOR, "--vectors", str(vector_directory), cwd=tmp_path)
    assert done.returncode == 2
    assert "broken.json: at $.format: not a vector" in done.stdout


def test_a_target_of_which_nothing_was_checked_has_not_passed(
    tmp_path: Path, vector_directory: Path
) -> None:
    words = ["--target", "tests.known_bad.misbehaving:Hidden", "--vectors", str(vector_directory)]
    done = _pytest(*DOOR, *words, "-k", "encoder-decoder", cwd=tmp_path)
    assert _outcomes(done.stdout.replace("every vector was skipped", "")) == {"skipped": 2}
    assert done.returncode == 3
    assert "every vector was skipped, so nothing was checked" in done.stdout
    some = _pytest(*DOOR, *words, cwd=tmp_path)
    assert some.returncode == 0
    assert "nothing was checked" not in some.stdout


def _expected(path: Path, **entry: str) -> str:
    known = {"reason": "we know", "link": "https://example.org", **entry}
    header = {"format": "mmcache/expected-failures", "format_version": 1}
    path.write_text(json.dumps({**header, "expected": [known]}))
    return str(path)


@pytest.mark.parametrize(
    ("target", "entry", "code", "outcomes"),
    [
        (UNFILTERED, {"clause": "L1"}, 0, {"passed": 4, "skipped": 2, "xfailed": 1}),
        (RIGHT, {"clause": "L1"}, 1, {"passed": 4, "skipped": 2, "failed": 1}),
        (UNFILTERED, {"clause": "L7"}, 1, {"passed": 3, "skipped": 2, "failed": 2}),
    ],
)
def test_expected_failures(
    target: str,
    entry: dict[str, str],
    code: int,
    outcomes: dict[str, int],
    tmp_path: Path,
    vector_directory: Path,
) -> None:
    """A clause that has one vector here: it is expected to fail, and must."""
    file = _expected(tmp_path / "x.json", **entry)
    words = ["--target", target, "--vectors", str(vector_directory)]
    done = _pytest(*DOOR, *words, "--expected", file, cwd=tmp_path)
    assert done.returncode == code, done.stdout
    found = _outcomes(done.stdout)
    assert {word: found.get(word, 0) for word in outcomes} == outcomes


def test_a_clause_that_fails_nowhere_is_noticed_at_the_end(tmp_path: Path) -> None:
    """Which of its vectors fails is not known before the last."""
    file = _expected(tmp_path / "x.json", clause="L1")
    done = _pytest(*DOOR, "-q", "--expected", file, cwd=tmp_path)
    assert done.returncode == 1
    assert "clause L1 is an expected failure, but passes: we know" in done.stdout
    part = _pytest(*DOOR, "-q", "--expected", file, "-k", "unfiltered", cwd=tmp_path)
    assert part.returncode == 0


def test_a_wrong_file_of_expected_failures_ends_the_run(tmp_path: Path) -> None:
    file = _expected(tmp_path / "x.json", clause="L99")
    done = _pytest(*DOOR, "--expected", file, cwd=tmp_path)
    assert done.returncode == 2
    assert "the suite has no clause 'L99'" in done.stdout


def test_an_engine_gets_the_engine_vectors(tmp_path: Path) -> None:
    target = "reference-pass:preemption_keeps_unencoded_entry"
    done = _pytest(*DOOR, "--target", target, "-q", cwd=tmp_path)
    assert done.returncode == 1
    killed = [v for v in load_suite(None, ENGINES) if target.partition(":")[2] in v.kills]
    assert _outcomes(done.stdout)["failed"] == len(killed)
    assert "S1: Encoder cache miss for A." in done.stdout
    assert "Traceback" not in done.stdout


class TestOtherRuns:
    """A project that has the package installed, and `--target` options of its own."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        (tmp_path / "conftest.py").write_text(
            "def pytest_addoption(parser):\n"
            "    parser.addoption('--target', default='theirs')\n"
            "    parser.addoption('--vectors', default='theirs')\n"
        )
        (tmp_path / "test_it.py").write_text(
            "import sys\n\n"
            "def test_it(pytestconfig):\n"
            "    assert pytestconfig.getoption('--target') == 'theirs'\n"
            "    assert not {'msgspec', 'mmcache', 'mmcache_spec', 'rich'} & set(sys.modules)\n"
        )
        return tmp_path

    def test_are_not_disturbed(self, project: Path) -> None:
        done = _installed(cwd=project)
        assert done.returncode == 0, done.stdout + done.stderr
        assert _outcomes(done.stdout) == {"passed": 1}

    def test_do_not_know_our_options(self, tmp_path: Path) -> None:
        done = _installed("--help", cwd=tmp_path)
        assert done.returncode == 0
        assert "--target" not in done.stdout
