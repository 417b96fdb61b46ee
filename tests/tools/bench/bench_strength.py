"""How fast are `exhaust`, `check` and the recorder?

    python tests/tools/bench/bench_strength.py [--target TARGET]... [--events N]

`--events 10000000` takes some minutes and two gigabytes of disk. Say what else runs on the machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

from bench_manager import serve, trace

from mmcache import EncoderCacheManager
from mmcache_conformance.exhaust.search import exhaust
from mmcache_conformance.exhaust.world import Scope
from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.record import Recorder, record_class

CAPACITY = 40_000


def bench_exhaust(target: str, processes: int) -> None:
    found = exhaust(target, Scope(), processes=processes, max_states=10**6)
    verdict = "differs" if found.disagreement else "complete"
    print(
        f"exhaust {target}, {processes} processes: {found.pairs:,} states, "
        f"{found.transitions:,} calls, {found.seconds:.2f} s, {verdict}"
    )


def bench_recorder(rounds: int = 5) -> None:
    script = trace(2000, 8, 2000, 20, 1)
    plain_class = type("Plain", (EncoderCacheManager,), dict(vars(EncoderCacheManager)))
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(Path(directory), "bench")
        recorded_class = type("Recorded", (EncoderCacheManager,), dict(vars(EncoderCacheManager)))
        record_class(recorded_class, "encoder_cache", recorder)
        times: dict[str, list[float]] = {"plain": [], "recorded": []}
        for _ in range(rounds):
            for name, cls in (("plain", plain_class), ("recorded", recorded_class)):
                started = time.perf_counter()
                serve(cls(CAPACITY), script, True)
                times[name].append(time.perf_counter() - started)
        recorder.close()
        (path,) = Path(directory).glob("*.jsonl")
        events = sum(1 for _ in path.open("rb")) // rounds
    more = median(times["recorded"]) - median(times["plain"])
    print(f"recorder: {more / events * 1e6:.2f} us an event, {more / 2000 * 1e6:.0f} us a pass")


def bench_check(events: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        cls = type("Recorded", (EncoderCacheManager,), dict(vars(EncoderCacheManager)))
        recorder = Recorder(Path(directory), "bench")
        record_class(cls, "encoder_cache", recorder)
        script = trace(2000, 8, 2000, 20, 1)
        path = None
        written = 0
        while written < events:
            manager = cls(CAPACITY)
            serve(manager, script, True)
            written += manager._mmcache_recorded.seq
        recorder.close()
        (path,) = Path(directory).glob("*.jsonl")
        del script
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        with path.open("rb") as file:
            found = check_log(lambda: file, path.name, again=False)
        seconds = time.perf_counter() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"check: {found.events:,} events of {found.managers} managers, {seconds:.1f} s, "
        f"{found.events / seconds:,.0f} events/s, {grown / 1024:.0f} MiB more at the peak, "
        f"{'allowed' if found.illegal is None else 'ILLEGAL'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append")
    parser.add_argument("--events", type=int, default=200_000)
    options = parser.parse_args()
    for target in options.target or ["reference"]:
        for processes in sorted({1, os.cpu_count() or 1}):
            bench_exhaust(target, processes)
    bench_recorder()
    bench_check(options.events)


if __name__ == "__main__":
    main()
