"""How fast are `exhaust`, `check` and the recorder?

    python -m tests.tools.bench logs

Say what else runs on the machine.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from statistics import median

from mmcache import EncoderCacheManager
from mmcache_conformance.exhaust.search import exhaust
from mmcache_conformance.exhaust.world import SearchScope
from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.record import Recorder, record_class

from .bench_manager import serve, timed, trace

CAPACITY = 40_000


def bench_exhaust(target: str, scope: SearchScope) -> None:
    found = exhaust(target, scope, max_states=10**6)
    verdict = "differs" if found.disagreement else "complete"
    print(
        f"exhaust {target}: {found.pairs:,} states, "
        f"{found.transitions:,} calls, {found.seconds:.2f} s, {verdict}"
    )


def bench_recorder(passes: int, rounds: int) -> None:
    script = trace(passes, 8, 2000, 20, 1)
    plain_class = type("Plain", (EncoderCacheManager,), dict(vars(EncoderCacheManager)))
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(Path(directory), "bench")
        recorded_class = type("Recorded", (EncoderCacheManager,), dict(vars(EncoderCacheManager)))
        record_class(recorded_class, "encoder_cache", recorder)
        classes = {"without": plain_class, "with": recorded_class}
        times: dict[str, list[float]] = {name: [] for name in classes}
        order = list(classes)
        for _ in range(rounds):
            for name in order:
                manager = classes[name](CAPACITY)
                took, (calls, _, _) = timed(serve, manager, script, True, clock=time.process_time)
                times[name].append(took)
            order.reverse()
        recorder.close()
        (path,) = Path(directory).glob("*.jsonl")
        events = sum(1 for _ in path.open("rb")) // rounds
    ratios = [w / o for w, o in zip(times["with"], times["without"], strict=True)]
    without, with_it = (median(times[name]) for name in ("without", "with"))
    more = with_it - without
    print(
        f"recorder: {median(ratios):.2f} times the processor time without it "
        f"({rounds} rounds from {min(ratios):.2f} to {max(ratios):.2f}); "
        f"{without / calls * 1e6:.2f} us a call without, {with_it / calls * 1e6:.2f} with; "
        f"{more / events * 1e6:.2f} us more for each of {events:,} events, "
        f"{more / passes * 1e6:.0f} us a pass of {events / passes:.0f} events"
    )


def bench_check(events: int, passes: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        cls = type("Recorded", (EncoderCacheManager,), dict(vars(EncoderCacheManager)))
        recorder = Recorder(Path(directory), "bench")
        record_class(cls, "encoder_cache", recorder)
        script = trace(passes, 8, 2000, 20, 1)
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
            found = check_log(lambda: file, path.name, can_reread=False)
        seconds = time.perf_counter() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(
        f"check: {found.events:,} events of {found.managers} managers, {seconds:.1f} s, "
        f"{found.events / seconds:,.0f} events/s, {grown / 1024:.0f} MiB more at the peak, "
        f"{'allowed' if found.illegal is None else 'ILLEGAL'}"
    )


def main(quick: bool = False) -> None:
    if quick:
        bench_exhaust("reference", SearchScope(hashes=2, requests=1, inputs=2, capacity=3))
        bench_recorder(passes=20, rounds=1)
        bench_check(1000, passes=20)
        return
    bench_exhaust("reference", SearchScope())
    bench_recorder(passes=2000, rounds=5)
    bench_check(200_000, passes=2000)
