"""Where work that outgrows one process is done: processes of this machine, or a Dask cluster.

Whoever has many independent pieces of work takes a `concurrent.futures` executor, and the command
line gets it here. Nothing else knows how many machines there are. It is the one module of its kind,
for the specification and for the conformance kit, and it imports nothing of either.
"""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["ClusterError", "end_with_parent", "source_digest", "workers"]

EXIT_OF_AN_ORPHAN = 143
"""Nobody reads it: whoever waited for the process is gone."""

_PR_SET_PDEATHSIG = 1

TIMEOUT_SECONDS = 10
"""How long the scheduler of a cluster has to answer."""

PACKAGES = ("mmcache", "mmcache_spec", "mmcache_vectors", "mmcache_conformance")
"""What a worker's answers depend on."""


class ClusterError(RuntimeError):
    """The cluster cannot be used; the text says why, and how to mend it."""


@contextmanager
def workers(cluster: str | None = None, *, jobs: int | None = None) -> Iterator[Executor]:
    """An executor: `jobs` processes here (default: one a core), or the workers of a cluster.

    What the work prints goes to standard error. The workers are ended when the caller is
    interrupted or fails, and when its process is gone, however it ended.

    Args:
        cluster: The address of a running Dask scheduler, such as `tcp://10.0.0.1:8786`. Its workers
            need this package in the same version, which is checked for those that are there.
        jobs: How many processes, without a cluster.

    Raises:
        ClusterError: There is no such cluster, or its workers have other sources than this process.
    """
    if cluster is not None:
        with _cluster(cluster) as executor:
            yield executor
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(jobs or os.cpu_count() or 1, initializer=_be_quiet) as pool:
        try:
            yield pool
        except BaseException:
            # What has begun may take minutes, and nobody waits for it any more. Cancelling as well
            # would race with the executor, which gives up all of it when its workers are gone.
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.kill()
            raise


def _be_quiet() -> None:
    """Standard output belongs to the process that reports, and nobody outlives it."""
    sys.stdout = sys.stderr
    # Ctrl-C goes to the whole group: what it means is for the caller to say, who ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), name="leash", daemon=True).start()
    end_with_parent()


def _end_with(parent: Any) -> None:
    """Wait until the parent is gone, however it ended."""
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(EXIT_OF_AN_ORPHAN)


def end_with_parent() -> None:
    """From now on this process is killed when the thread that started it ends (on Linux).

    A solver may keep the interpreter busy for minutes, so that no thread of ours can see it.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        import distributed
    except ModuleNotFoundError:
        raise ClusterError("--cluster needs Dask: pip install '.[cluster]' in a checkout") from None
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=TIMEOUT_SECONDS)
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise ClusterError(
            f"no Dask cluster at {address}: {type(error).__name__}: {lines[0]}"
        ) from None
    with client:
        digests = client.run(source_digest)
        if not digests:
            raise ClusterError(f"the Dask cluster at {address} has no workers: start some")
        here = source_digest()
        if others := sorted(str(worker) for worker, there in digests.items() if there != here):
            raise ClusterError(
                f"{others[0]} has other sources of mmcache than this process: install the same "
                "version on every worker"
            )
        with client.get_executor(pure=False) as executor:
            yield executor


def source_digest(roots: Iterable[Path] | None = None) -> str:
    """Sixteen hex digits of the Python sources: what the answers of a worker depend on.

    `roots` are directories; without them, those of the packages of this project.
    """
    digest = hashlib.sha256()
    for root in _installed() if roots is None else roots:
        for path in sorted(root.rglob("*.py")):
            digest.update(f"{root.name}/{path.relative_to(root).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _installed() -> Iterator[Path]:
    for name in PACKAGES:
        found = find_spec(name)
        if found is not None and found.origin is not None:
            yield Path(found.origin).parent
