"""Run system vectors against an engine, and judge what it did."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from mmcache_vectors.engine import SystemVector

from ..errors import TargetError, describe_exception
from .judge import Breach, judge, reaches
from .protocol import (
    NotSupported,
    PassRecord,
    SystemImplementation,
    SystemTarget,
    case_of_system,
)

__all__ = ["SystemReport", "SystemVerdict", "encode_system_run", "run_system", "run_system_vector"]


class SystemVerdict(msgspec.Struct, frozen=True):
    """The outcome of one system vector.

    `error`: the adapter failed, and nothing is known about the engine.
    """

    id: str
    outcome: Literal["pass", "fail", "skip", "error"]
    passes: int
    reached: bool | None
    """Whether the engine came to the situation that the vector is about; None if it has none.
    A pass without it says little, and is no failure: what is scheduled when is the engine's."""
    breaches: tuple[Breach, ...] = ()
    """The first breach of each clause, in the order of the passes."""
    reason: str | None = None
    records: tuple[PassRecord, ...] = ()


class SystemReport(msgspec.Struct, frozen=True):
    """All verdicts on one engine. Without an `implementation` it could not be started."""

    target: str
    implementation: SystemImplementation | None
    reason: str | None
    seconds: float
    verdicts: tuple[SystemVerdict, ...]

    @property
    def ok(self) -> bool:
        bad = any(v.outcome in {"fail", "error"} for v in self.verdicts)
        return self.implementation is not None and not bad


def run_system(target: SystemTarget, vectors: Iterable[SystemVector]) -> SystemReport:
    """All verdicts on one engine."""
    started = time.perf_counter()
    implementation, reason = None, None
    verdicts: list[SystemVerdict] = []
    try:
        implementation = target.start()
        verdicts += (run_system_vector(target, vector) for vector in vectors)
    except TargetError as error:
        reason = str(error)
    finally:
        target.stop()
    seconds = round(time.perf_counter() - started, 6)
    return SystemReport(target.spec, implementation, reason, seconds, tuple(verdicts))


def run_system_vector(target: SystemTarget, vector: SystemVector) -> SystemVerdict:
    """One vector on a started engine. Never raises for what the engine does."""
    records: list[PassRecord] = []
    try:
        records += target.run(case_of_system(vector))
        found = judge(vector, records)
        reached = reaches(vector, records)
    except NotSupported as error:
        return SystemVerdict(vector.id, "skip", len(records), None, reason=str(error))
    except Exception as error:
        reason = f"the adapter failed: {describe_exception(error)}"
        return SystemVerdict(vector.id, "error", len(records), None, reason=reason)
    outcome: Literal["pass", "fail"] = "fail" if found else "pass"
    kept = tuple(records[: found[-1].pass_number + 1]) if found else ()
    return SystemVerdict(vector.id, outcome, len(records), reached, found, records=kept)


def encode_system_run(reports: Sequence[SystemReport]) -> bytes:
    """Indented JSON with sorted keys and one newline at the end."""
    compact = msgspec.json.encode({"format": "mmcache/system-run", "targets": reports})
    document = msgspec.json.encode(msgspec.json.decode(compact), order="sorted")
    return msgspec.json.format(document, indent=2) + b"\n"
