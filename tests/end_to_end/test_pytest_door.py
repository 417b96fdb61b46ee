"""`pytest --pyargs mmcache_conformance`: one test a vector, and no trace in other runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmcache_vectors.manager import Vector

PLUGIN = "mmcache_conformance.pytest_plugin"
ENGINES = Path(__file__).parents[1] / "known_bad"


def _pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A pytest of its own, elsewhere, with the plugin as its entry point would load it."""
    path = os.pathsep.join([str(ENGINES), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def _outcomes(output: str) -> dict[str, int]:
    last = output.strip().splitlines()[-1]
    return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}


DOOR = ("--pyargs", "mmcache_conformance")


def test_the_reference_by_default(tmp_path: Path, vector_directory: Path) -> None:
    done = _pytest(*DOOR, "--vectors", str(vector_directory), cwd=tmp_path)
    assert done.returncode == 0
    assert _outcomes(done.stdout) == {"passed": 7}


def test_the_packaged_vectors(tmp_path: Path) -> None:
    done = _pytest(*DOOR, "-q", cwd=tmp_path)
    assert done.returncode == 0
    assert set(_outcomes(done.stdout)) == {"passed"}


def test_the_ids_are_the_ids_of_the_vectors(
    tmp_path: Path, vector_directory: Path, hand_made: dict[str, Vector]
) -> None:
    done = _pytest(*DOOR, "--collect-only", "-q", "--vectors", str(vector_directory), cwd=tmp_path)
    collected = re.findall(r"::test_vector\[(.*)\]", done.stdout)
    assert collected == sorted(vector.id for vector in hand_made.values())


def test_a_failure_is_the_same_story(tmp_path: Path, vector_directory: Path) -> None:
    target = "conformance_engines:Unfiltered"
    done = _pytest(
        *DOOR, "--target", target, "--vectors", str(vector_directory), "-rs", cwd=tmp_path
    )
    assert done.returncode == 1
    assert _outcomes(done.stdout) == {"passed": 3, "failed": 1, "skipped": 3}
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
        done = _pytest(cwd=project)
        assert done.returncode == 0, done.stdout + done.stderr
        assert _outcomes(done.stdout) == {"passed": 1}

    def test_do_not_know_our_options(self, tmp_path: Path) -> None:
        done = _pytest("--help", cwd=tmp_path)
        assert done.returncode == 0
        assert "--target" not in done.stdout
