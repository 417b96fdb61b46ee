"""The wheel holds exactly our four packages; the sdist it is built from, all that make needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

# Each needs a build in an environment of its own, which pip fills.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an sdist was built, and from it a wheel."""
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (built,) = dist.glob("*.whl")
    return built


def test_the_sdist_has_all_that_make_and_ci_name(dist: Path) -> None:
    (built,) = dist.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", ".ci/run", "constraints.txt"} <= names
    for file in ("Makefile", ".ci/run", "pyproject.toml"):
        for word in re.findall(r"[\w./-]+", (ROOT / file).read_text()):
            path = Path(word.strip("/."))
            if not word.startswith((".venv", "/", ".")) and (ROOT / path).is_file():
                assert str(path) in names, f"{file} names {path}"
    for folder in ("docs", "spec/lemmas", "tests"):
        here = {str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob("*.[mpv][dy]*")}
        assert {n for n in here if "__pycache__" not in n} <= names


def test_its_top_level_names(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    info = {name for name in names if name.endswith(".dist-info")}
    assert len(info) == 1
    assert names - info == {"mmcache", "mmcache_spec", "mmcache_vectors", "mmcache_conformance"}


def test_it_brings_the_vectors_and_the_type_markers(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for folder in ("mmcache_vectors/vectors/", "mmcache_vectors/engine_vectors/"):
        here = {p.name for p in (ROOT / "conformance" / folder).glob("*.json")}
        assert {n.removeprefix(folder) for n in names if n.startswith(folder)} == here
    assert "mmcache_conformance/engines/sketches.toml" in names
    assert "mmcache_spec/generate/engine_seeds.json" in names
    for package in ("mmcache", "mmcache_spec", "mmcache_vectors", "mmcache_conformance"):
        assert f"{package}/py.typed" in names


def test_it_proves_and_runs_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=True)
    bin_ = tmp_path / "fresh" / "bin"
    install: list[str | Path] = [bin_ / "python", "-m", "pip", "install", "--quiet"]
    constraints: list[str | Path] = ["--constraint", ROOT / "constraints.txt"]
    subprocess.run([*install, *constraints, wheel], check=True, capture_output=True)
    for command, expected in (
        (["mmcache-spec", "prove"], "PROVED"),
        (["mmcache-conformance", "run", "--quiet"], "passed"),
    ):
        done = subprocess.run(
            [bin_ / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout
    alone: list[str | Path] = [bin_ / "python", "-c", "import mmcache; print(mmcache.__file__)"]
    where = subprocess.run(alone, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) in where
