"""What a run found: the typed model of the verdicts and of the `--json` output."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

import msgspec

from mmcache_spec.vectors.format import Call, Manager

from .target import Implementation

__all__ = [
    "Difference",
    "ExitCode",
    "Failure",
    "Outcome",
    "RunReport",
    "Suite",
    "TargetReport",
    "Value",
    "Verdict",
    "encode_run",
    "run_schema",
]

Outcome = Literal["pass", "fail", "skip", "error"]
ExitCode = Literal[0, 1, 3]
Value = bool | int | str | tuple[str, ...] | dict[str, tuple[int | str, ...]] | None


class Difference(msgspec.Struct, frozen=True):
    """One thing that is not as expected: `returns`, an observable, or `error`."""

    what: str
    expected: Value
    got: Value


class Failure(msgspec.Struct, frozen=True):
    """The first step that went wrong, everything that differs there, and how to see it again."""

    step: Annotated[int, msgspec.Meta(ge=0)]
    """Counted from 0, as in `$.steps`."""
    call: Call
    differences: tuple[Difference, ...]
    reproduce: str


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one vector. `error` is a fault of the harness, never of the target."""

    id: str
    outcome: Outcome
    clauses: tuple[str, ...]
    variant: str
    manager: Manager
    reason: str | None = None
    """Why it was skipped, or what went wrong with the harness."""
    failure: Failure | None = None


class TargetReport(msgspec.Struct, frozen=True):
    """All verdicts on one target. Without an `implementation` it could not be started."""

    target: str
    implementation: Implementation | None
    reason: str | None
    seconds: float
    verdicts: tuple[Verdict, ...]

    def count(self) -> Counter[Outcome]:
        return Counter(verdict.outcome for verdict in self.verdicts)


class Suite(msgspec.Struct, frozen=True):
    """Which vectors were run: of which version of the suite, and how many after selection."""

    version: str
    vectors: int


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The `--json` output."""

    format: Literal["mmcache/run"] = "mmcache/run"
    format_version: Literal[1] = 1
    suite: Suite
    exit_code: ExitCode
    targets: tuple[TargetReport, ...]


def encode_run(report: RunReport) -> bytes:
    """Indented JSON with sorted keys and one newline at the end."""
    compact = msgspec.json.encode(report, order="sorted")
    return msgspec.json.format(compact, indent=2) + b"\n"


def run_schema() -> dict[str, Any]:
    """The JSON Schema of the `--json` output (draft 2020-12)."""
    schema = msgspec.json.schema(RunReport)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmcache conformance run, version 1",
        **schema,
    }
