"""Take an engine that is driven pass by pass through a workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Protocol

from mmcache_vectors.engine import Abort, WorkloadRequest

from ..protocol import EngineCase, PassRecord

__all__ = ["Driven", "drive", "installed_version"]


class Driven(Protocol):
    """What is asked of the engine besides its requests."""

    def abort(self, request_id: str) -> None: ...
    def reset(self) -> None: ...
    def record(self) -> PassRecord: ...


def drive(
    engine: Driven, case: EngineCase, add: Callable[[WorkloadRequest], None], most: int
) -> Iterator[PassRecord]:
    """The passes, up to so many, or to the end of the work or of the engine.

    Before each come its events, and then the requests that arrive, which `add` sends.
    """
    for number in range(most):
        for event in case.events:
            if event.before_pass != number:
                continue
            if isinstance(event, Abort):
                engine.abort(event.request)
            else:
                engine.reset()
        for request in case.requests:
            if request.arrival == number:
                add(request)
        record = engine.record()
        yield record
        later = any(r.arrival > number for r in case.requests)
        later = later or any(e.before_pass > number for e in case.events)
        if record.missed or record.error or not (record.running or record.waiting or later):
            return


def installed_version(*distributions: str) -> str | None:
    """The version of the first of these that is installed; None if none is."""
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None
