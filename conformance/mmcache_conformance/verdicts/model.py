"""What a run found: the typed model of the verdicts and of the `--json` output."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

import msgspec

from mmcache_vectors.manager import Call, Manager

from ..targets.protocol import Implementation

__all__ = [
    "BAD",
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

Outcome = Literal["pass", "fail", "skip", "error", "xfail", "xpass"]
BAD: frozenset[Outcome] = frozenset({"fail", "error", "xpass"})
"""The outcomes that fail a run."""

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
    """The outcome of one vector.

    `error`: the adapter broke down, or the harness; nothing is known about the implementation.
    `xfail` and `xpass`: it failed as a file of expected failures says, or passed in spite of it.
    """

    id: str
    outcome: Outcome
    clauses: tuple[str, ...]
    variant: str
    manager: Manager
    reason: str | None = None
    """Why it was skipped, what went wrong, or why the failure is expected."""
    failure: Failure | None = None
    link: str | None = None
    """Where the expected failure is dealt with."""
    stderr: str | None = None
    """The end of what the adapter wrote to standard error meanwhile, if it did not pass."""


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
    digest: str
    """Of the vectors that were run: two runs with one digest ran the same."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The `--json` output."""

    format: Literal["mmcache/run"] = "mmcache/run"
    format_version: Literal[2] = 2
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
        "title": "mmcache conformance run, version 2",
        **schema,
    }
