"""The executor of an existing Dask cluster (`pip install mmcache-spec[cluster]`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..errors import TargetError, describe_exception

__all__ = ["connect"]

TIMEOUT_SECONDS = 10


def connect(address: str) -> Callable[[], AbstractContextManager[Executor]]:
    """How to get an executor of the cluster. Raises `TargetError` if it cannot be reached.

    Its workers need the same version of this package, and their own way to the package index.
    """
    try:
        import distributed
    except ModuleNotFoundError:
        raise TargetError("--cluster needs Dask: pip install 'mmcache-spec[cluster]'") from None

    open_client: Any = distributed.Client

    def client() -> Any:
        try:
            return open_client(address, timeout=TIMEOUT_SECONDS)
        except Exception as error:
            raise TargetError(
                f"no Dask cluster at {address}: {describe_exception(error)}"
            ) from None

    client().close()

    @contextmanager
    def executor() -> Iterator[Executor]:
        with client() as connected, connected.get_executor(pure=False) as found:
            yield found

    return executor
