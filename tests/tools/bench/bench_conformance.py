"""How many vectors a second, over a persistent driver? How many sequences of `differ`? The matrix?

One round trip each.

    python -m tests.tools.bench conformance

The drivers are the C++ example, built here with -O2, the program of docs/port-in-node.md, and the
reference behind the Python adapter. Sequences have 10 calls, and are checked one by one.
What is timed is a whole run: encoding the case, the round trip, decoding, judging. The suite is
repeated up to N vectors; the first tenth warms up and is not counted. The matrix is timed by the
command line, with the releases' files in the cache.
Goals: 10,000/s in C++, 3,000/s in Python, 20 releases within 20 s on two cores.
"""

from __future__ import annotations

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

from mmcache_conformance.differ.campaign import run_campaign
from mmcache_conformance.differ.search import Campaign
from mmcache_conformance.engines.reference import ReferencePass
from mmcache_conformance.open import open_target
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_conformance.targets.open import open_manager
from mmcache_conformance.targets.protocol import missing_capability
from mmcache_conformance.verdicts.run import run_target, run_vector
from mmcache_vectors.manager import Vector
from tests.support.pages import blocks

ROUNDS = 5


def vectors_per_second(spec: str, wanted: int, rounds: int) -> tuple[list[float], int, int]:
    """The rate of each round, the vectors of a round, and the mean number of their steps."""
    target = open_target(spec)
    try:
        implementation = target.start()
        suite = [v for v in load_suite() if missing_capability(v, implementation) is None]
        repeated: Sequence[Vector] = (suite * (wanted // len(suite) + 1))[:wanted]
        for vector in repeated[: wanted // 10]:
            run_vector(target, implementation, vector, stretch=False)
        rates = []
        for _ in range(rounds):
            began = time.perf_counter()
            for vector in repeated:
                outcome = run_vector(target, implementation, vector, stretch=False).outcome
                if outcome != "pass":
                    raise SystemExit(f"{spec}: {vector.id}: {outcome}")
            rates.append(len(repeated) / (time.perf_counter() - began))
    finally:
        target.stop()
    return rates, len(repeated), round(statistics.mean(len(v.steps) for v in repeated))


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


def show_rates(targets: dict[str, str], wanted: int, rounds: int) -> None:
    """Side by side: each with its share of the first one's rate."""
    first = 0.0
    for title, name in targets.items():
        rates, count, steps = vectors_per_second(name, wanted, rounds)
        middle = statistics.median(rates)
        first = first or middle
        print(
            f"{title:<16} {middle:>9,.0f} vectors/s  {middle / first:5.2f} of the first  "
            f"({min(rates):,.0f} to {max(rates):,.0f}; "
            f"{rounds} rounds of {count:,} vectors of {steps} calls)",
            flush=True,
        )


def show_sequences(targets: dict[str, str], count: int) -> None:
    """Side by side, as `differ --calls 10` counts them: each with its share of the first."""
    first = 0.0
    for title, name in targets.items():
        target = open_manager(name)
        implementation = target.start()
        target.stop()
        campaign = Campaign(name, calls=10, managers=("encoder_cache",))
        report = run_campaign(campaign, implementation, count=count, seconds=None)
        if report.findings:
            raise SystemExit(f"{name}: it differs from the specification")
        rate = report.sequences / max(report.seconds, 1e-9)
        first = first or rate
        print(
            f"{title:<16} {rate:>9,.0f} sequences/s  {rate / first:5.2f} of the first  "
            f"({report.sequences:,} of 10 calls)",
            flush=True,
        )


def in_node(directory: Path) -> str | None:
    """The command of the driver that docs/port-in-node.md shows; nothing without Node."""
    if shutil.which("node") is None:
        return None
    (shown,) = (b for b in blocks("docs/port-in-node.md") if b.file == "driver.js")
    program = directory / "driver.js"
    program.write_text(shown.content)
    return f"node {shlex.quote(str(program))}"


def time_matrix(releases: int) -> None:
    command = [sys.executable, "-m", "mmcache_conformance", "matrix", "--json"]
    command += ["--releases", f"latest:{releases}"]
    for title in ("perhaps with the network", "with the sources in the cache"):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        print(f"matrix of {releases} releases, {title}: {time.perf_counter() - began:.1f} s")


def engine_vectors(rounds: int) -> None:
    """The engine vectors on the reference engine: whole passes, not single calls."""
    vectors = load_suite(None, ENGINES)
    rates = []
    for _ in range(rounds):
        began = time.perf_counter()
        report = run_target(ReferencePass(), vectors, stretch=False)
        rates.append(len(vectors) / (time.perf_counter() - began))
        if {v.outcome for v in report.verdicts} != {"pass"}:
            raise SystemExit("reference-pass does not pass")
    print(f"{'engine vectors':<16} {statistics.median(rates):>9,.0f} vectors/s on reference-pass")


def main(quick: bool = False) -> None:
    rounds, wanted = (1, 200) if quick else (ROUNDS, 20_000)
    classes = "mmcache:EncoderCacheManager,mmcache:EncoderDecoderCacheManager"
    adapter = [sys.executable, "-m", "mmcache_conformance.adapters.python", classes]
    with tempfile.TemporaryDirectory() as directory:
        here = {"in this process": "reference", "Python driver": f"cmd:{shlex.join(adapter)}"}
        driver = build_example(Path(directory))
        if driver is None:
            print("C++ driver: not measured, no C++ compiler")
        else:
            here["C++ driver"] = f"cmd:{driver}"
        node = in_node(Path(directory))
        if node is None:
            print("Node driver: not measured, no Node")
        else:
            here["Node driver"] = f"cmd:{node}"
        show_rates(here, wanted, rounds)
        show_sequences(here, 64 if quick else 20_000)
    engine_vectors(rounds)
    if not quick:
        time_matrix(20)
