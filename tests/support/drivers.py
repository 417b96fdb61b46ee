"""The C++ example built twice, and an adapter that misbehaves on demand."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import mmcache_conformance
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.command import CommandTarget
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors.manager import Vector

CPP = Path(str(mmcache_conformance.__file__)).parent / "adapters" / "cpp"
MISBEHAVES = Path(__file__).parents[1] / "end_to_end" / "programs" / "misbehaves.py"


def without(tool: str) -> None:
    """Skip loudly; in CI there is no excuse."""
    if os.environ.get("CI"):
        pytest.fail(f"no {tool} in CI")
    warnings.warn(f"NOT TESTED without {tool}", stacklevel=2)
    pytest.skip(f"no {tool}")


@pytest.fixture(scope="session")
def vectors() -> tuple[Vector, ...]:
    return load_suite()


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile a C++ file of the adapter's folder, or another one, as strictly as there is."""
    directory = tmp_path_factory.mktemp("drivers")
    built: dict[tuple[str, ...], Path] = {}

    def make(source: Path = CPP / "example.cpp", *flags: str) -> Path:
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            without("C++ compiler")
        key = (str(source), *flags)
        if key not in built:
            program = directory / f"driver{len(built)}"
            strict = "-std=c++17 -O0 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
            words = [*shlex.split(strict), *flags, f"-I{CPP}", "-o", str(program), str(source)]
            done = subprocess.run([str(compiler), *words], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            built[key] = program
        return built[key]

    return make


def misbehaving(how: str, *more: object, timeout: float = 20.0) -> CommandTarget:
    """The reference behind an adapter that goes wrong as `misbehaves.py` says."""
    command = shlex.join([sys.executable, str(MISBEHAVES), how, *map(str, more)])
    return CommandTarget(f"cmd:{how}", command, timeout=timeout)


def outcomes(report: TargetReport) -> list[str]:
    return [verdict.outcome for verdict in report.verdicts]


def run(target: CommandTarget, vectors: tuple[Vector, ...]) -> TargetReport:
    report = run_target(target, vectors)
    assert report.reason is None
    return report
