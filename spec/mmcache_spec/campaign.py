"""Where work that outgrows one process is done: processes of this machine, or a Dask cluster.

Whoever has many independent pieces of work takes a `concurrent.futures` executor, and the command
line gets it here. Nothing else knows how many machines there are. It is the one module of its kind,
for the specification and for the conformance kit, and it imports nothing of either.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["ClusterError", "source_digest", "workers"]

TIMEOUT_SECONDS = 10
"""How long the scheduler of a cluster has to answer."""

PACKAGES = ("mmcache", "mmcache_spec", "mmcache_vectors", "mmcache_conformance")
"""What a worker's answers depend on."""


class ClusterError(RuntimeError):
    """The cluster cannot be used; the text says why, and how to mend it."""


@contextmanager
def workers(cluster: str | None = None, *, jobs: int | None = None) -> Iterator[Executor]:
    """An executor: `jobs` processes here (default: one a core), or the workers of a cluster.

    What the work prints goes to standard error. Work that has not begun is cancelled when the
    caller is interrupted or fails.

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
    with ProcessPoolExecutor(jobs or os.cpu_count() or 1, initializer=_be_quiet) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _be_quiet() -> None:
    """Standard output belongs to the process that reports."""
    sys.stdout = sys.stderr


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
