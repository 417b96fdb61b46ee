"""A child of an adapter that has cleared its environment outlives neither adapter nor harness."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mmcache_conformance.targets.leash import descendants
from mmcache_conformance.targets.process import Process
from mmcache_conformance.targets.watcher import EVERY

PROGRAM = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(300)"], env={},
                         start_new_session=True)
for line in sys.stdin:
    print(child.pid, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows whose child a process is")
def test_it_ends_with_the_adapter(tmp_path: Path) -> None:
    path = tmp_path / "leaves.py"
    path.write_text(PROGRAM)
    process = Process([sys.executable, str(path)], None)
    pid = int(process.exchange(b"who", 60))
    assert pid in {child for child, _ in descendants(os.getpid())}
    process.kill()
    until = time.monotonic() + 20
    while _lives(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(pid), shlex.join(["kill", str(pid)])


HARNESS = """\
import sys, time
from mmcache_conformance.targets.process import Process

process = Process([sys.executable, sys.argv[1]], None)
print(process.exchange(b"who", 60).decode(), flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows whose child a process is")
@pytest.mark.parametrize("ends", ["with its input", "late"])
def test_it_ends_with_the_harness(tmp_path: Path, ends: str) -> None:
    """By a signal that nobody can catch; the adapter may notice that at once, or not."""
    path = tmp_path / "leaves.py"
    path.write_text(PROGRAM + ("import time\ntime.sleep(300)\n" if ends == "late" else ""))
    words = [sys.executable, "-c", HARNESS, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        pid = int(harness.stdout.readline())
        time.sleep(1.5 * EVERY / 1000)  # the watcher has looked
        harness.kill()
    until = time.monotonic() + 20
    while _lives(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(pid), shlex.join(["kill", str(pid)])


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
