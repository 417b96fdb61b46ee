"""The C++ example built twice, and an adapter that misbehaves on demand."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import mmcache_conformance
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.suites.select import parse_selection
from mmcache_conformance.targets.command import CommandTarget
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors.manager import Vector, encode

CPP = Path(str(mmcache_conformance.__file__)).parent / "adapters" / "cpp"
MISBEHAVES = Path(__file__).parents[1] / "end_to_end" / "programs" / "misbehaves.py"


def without(tool: str) -> None:
    """Skip loudly; in CI there is no excuse."""
    if os.environ.get("CI"):
        pytest.fail(f"no {tool} in CI")
    warnings.warn(f"NOT TESTED without {tool}", stacklevel=2)
    pytest.skip(f"no {tool}")


SHORT = "not nothing" if os.environ.get("WHOLE_SUITE") else "not long and not wheel"
"""For `-k`: all but the vectors of some hundred calls, of which a failure is explained slowly.

CI runs the tests that use it a second time, on the whole suite.
"""


@pytest.fixture(scope="session")
def vectors() -> tuple[Vector, ...]:
    return load_suite()


def short_vectors() -> tuple[Vector, ...]:
    """What `-k SHORT` selects: for tests in which the length of a vector is nothing."""
    chosen = parse_selection(SHORT)
    return tuple(v for v in load_suite() if chosen(v))


@pytest.fixture(scope="session")
def short_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The short vectors, for a command that takes `--vectors` and no `-k`."""
    folder = tmp_path_factory.mktemp("short")
    for vector in short_vectors():
        (folder / f"{vector.id}.json").write_bytes(encode(vector))
    return folder


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile a C++ file of the adapter's folder, or another one, as strictly as there is.

    What one process of a run has compiled serves the others.
    """
    mine = tmp_path_factory.getbasetemp()
    directory = (mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine) / "drivers"
    directory.mkdir(exist_ok=True)

    def make(source: Path = CPP / "example.cpp", *flags: str) -> Path:
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            without("C++ compiler")
        strict = "-std=c++17 -O0 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
        words = [str(compiler), *shlex.split(strict), *flags, f"-I{CPP}", str(source)]
        program = directory / f"driver-{zlib.crc32(shlex.join(words).encode()):08x}"
        with (directory / f"{program.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                part = program.with_suffix(".part")
                done = subprocess.run([*words, "-o", str(part)], capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                part.replace(program)
        return program

    return make


def misbehaving(how: str, *more: object, timeout: float = 20.0) -> CommandTarget:
    """The reference behind an adapter that goes wrong as `misbehaves.py` says."""
    command = shlex.join([sys.executable, str(MISBEHAVES), how, *map(str, more)])
    return CommandTarget(f"cmd:{how}", command, timeout=timeout)


def outcomes(report: TargetReport) -> list[str]:
    return [verdict.outcome for verdict in report.verdicts]


def run(target: CommandTarget, vectors: tuple[Vector, ...]) -> TargetReport:
    report = run_target(target, vectors, stretch=False)
    assert report.reason is None
    return report
