"""How many vectors a second, over a persistent driver, one round trip each? And the matrix?

    python tests/tools/bench/bench_conformance.py [--vectors N] [--releases N]

The drivers are the C++ example, built here with -O2, and the reference behind the Python adapter.
What is timed is a whole run: encoding the case, the round trip, decoding, judging. The suite is
repeated up to N vectors; the first tenth warms up and is not counted. The matrix is timed by the
command line, with the releases' files in the cache: once with nothing else kept, once with results.
Goals: 10,000/s in C++, 3,000/s in Python, 20 releases within 20 s on two cores.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.targets.open import open_target
from mmcache_conformance.verdicts.run import run_target, run_vector
from mmcache_vectors.manager import Vector

ROUNDS = 5


def vectors_per_second(spec: str, wanted: int) -> tuple[list[float], int, int]:
    """The rate of each round, the vectors of a round, and the mean number of their steps."""
    target = open_target(spec)
    try:
        implementation = target.start()
        suite = [v for v in load_suite() if _applies(spec, v)]
        repeated: Sequence[Vector] = (suite * (wanted // len(suite) + 1))[:wanted]
        for vector in repeated[: wanted // 10]:
            run_vector(target, implementation, vector)
        rates = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for vector in repeated:
                outcome = run_vector(target, implementation, vector).outcome
                if outcome != "pass":
                    raise SystemExit(f"{spec}: {vector.id}: {outcome}")
            rates.append(len(repeated) / (time.perf_counter() - began))
    finally:
        target.stop()
    return rates, len(repeated), round(statistics.mean(len(v.steps) for v in repeated))


def _applies(spec: str, vector: Vector) -> bool:
    (verdict,) = run_target(open_target(spec), (vector,)).verdicts
    return verdict.outcome != "skip"


def build_example(directory: Path) -> str | None:
    """The command of the C++ example; nothing without a compiler."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        return None
    program = directory / "driver"
    with as_file(files("mmcache_conformance") / "adapters" / "cpp") as sources:
        words = [compiler, "-std=c++17", "-O2", "-o", str(program), str(sources / "example.cpp")]
        subprocess.run(words, check=True)
    return shlex.quote(str(program))


def show_rate(title: str, spec: str, wanted: int) -> None:
    rates, count, steps = vectors_per_second(spec, wanted)
    middle = statistics.median(rates)
    print(
        f"{title:<16} {middle:>9,.0f} vectors/s  ({min(rates):,.0f} to {max(rates):,.0f}; "
        f"{ROUNDS} rounds of {count:,} vectors of {steps} calls)"
    )


def time_matrix(releases: int) -> None:
    command = [sys.executable, "-m", "mmcache_conformance", "matrix"]
    command += ["--releases", f"latest:{releases}", "--jobs", "2"]
    subprocess.run([*command, "--json"], check=True, stdout=subprocess.DEVNULL)
    for title, more in (("every vector run", ["--refresh"]), ("results kept", [])):
        began = time.perf_counter()
        subprocess.run([*command, *more, "--json"], check=True, stdout=subprocess.DEVNULL)
        print(
            f"matrix of {releases} releases, 2 jobs, {title}: {time.perf_counter() - began:.1f} s"
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--vectors", type=int, default=20_000)
    options.add_argument("--releases", type=int, default=20)
    asked = options.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory:
        driver = build_example(Path(directory))
        if driver is None:
            print("C++ driver: not measured, no C++ compiler")
        else:
            show_rate("C++ driver", f"cmd:{driver}", asked.vectors)
    classes = "mmcache:EncoderCacheManager,mmcache:EncoderDecoderCacheManager"
    adapter = [sys.executable, "-m", "mmcache_conformance.adapters.python", classes]
    show_rate("Python driver", f"cmd:{shlex.join(adapter)}", asked.vectors)
    show_rate("in this process", "reference", asked.vectors)
    time_matrix(asked.releases)


if __name__ == "__main__":
    main()
