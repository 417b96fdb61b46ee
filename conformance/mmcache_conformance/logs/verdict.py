"""The verdict on a log, and on several: the typed model, which is also the `--json` output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from .explain import Illegal

__all__ = [
    "CheckReport",
    "Checked",
    "ExitCode",
    "check_schema",
    "encode_check",
    "report_of",
    "unreadable",
]

ExitCode = Literal[0, 1, 2, 3]


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a log."""

    source: str
    events: int
    calls: int
    """The events that record a call or a worker step: the others say nothing that can be wrong."""
    managers: int
    unfinished: tuple[str, ...]
    """Managers without an `end`: the log may go on."""
    audited: int
    """The calls that the interpreter ran as well, with the same answer and the same state."""
    illegal: Illegal | None
    error: str | None = None
    """Why the log could not be read to its end; then the rest says nothing."""

    @property
    def exit_code(self) -> ExitCode:
        """2 if it cannot be read, 1 if something is illegal, 3 if nothing was called, else 0."""
        if self.error is not None:
            return 2
        if self.illegal is not None:
            return 1
        return 0 if self.calls else 3


def unreadable(source: str, error: str) -> Checked:
    """The verdict on a log that cannot be read."""
    return Checked(
        source=source,
        events=0,
        calls=0,
        managers=0,
        unfinished=(),
        audited=0,
        illegal=None,
        error=error,
    )


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The `--json` output: the verdicts on the logs, in the order in which they were given."""

    format: Literal["mmcache/check"] = "mmcache/check"
    format_version: Literal[1] = 1
    exit_code: ExitCode
    logs: tuple[Checked, ...]


def report_of(logs: Sequence[Checked]) -> CheckReport:
    """The worst verdict counts: unreadable, then illegal, then nothing checked."""
    codes = {log.exit_code for log in logs}
    order: tuple[ExitCode, ...] = (2, 1, 3)
    return CheckReport(
        exit_code=next((code for code in order if code in codes), 0), logs=tuple(logs)
    )


def encode_check(report: CheckReport) -> bytes:
    """Indented JSON with sorted keys and one newline at the end."""
    compact = msgspec.json.encode(report, order="sorted")
    return msgspec.json.format(compact, indent=2) + b"\n"


def check_schema() -> dict[str, Any]:
    """The JSON Schema of the `--json` output (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmcache check, version 1",
        **msgspec.json.schema(CheckReport),
    }
