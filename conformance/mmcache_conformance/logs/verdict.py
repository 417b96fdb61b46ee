"""The verdict on a log, and on several: the typed model, which is also the `--json` output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from mmcache_vectors.document import schema_of

from ..exits import ExitCode
from .explain import Illegal

__all__ = [
    "CheckReport",
    "Checked",
    "check_schema",
    "report_of",
    "unreadable",
]


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
    """The first illegal event."""
    also_illegal: tuple[Illegal, ...] = ()
    """Those of other managers, of other parts of the same one, and after a reset."""
    unexplained: int = 0
    """Illegal events after these, which are only counted."""
    not_judged: tuple[str, ...] = ()
    """The clauses that the log does not show enough for, and what comes after an illegal event."""
    holes: tuple[str, ...] = ()
    """What some passes of the log show and others do not: a breach may have slipped through."""
    doubt: str | None = None
    """Why a log in which nothing is illegal cannot be called allowed all the same."""
    cut: int | None = None
    """The last line, if it is cut off: nothing is known of what it and the lines after it said."""
    unread: str | None = None
    """Why the log could not be read beyond what is illegal in it."""
    error: str | None = None
    """Why the log could not be read to its end; then the rest says nothing."""

    @property
    def exit_code(self) -> ExitCode:
        """2 if it cannot be read, 1 if something is illegal, 3 if nothing follows from it, else 0.

        Nothing follows where nothing was called, or where calls may be missing; and of a log that
        is cut off, or has holes, only what is illegal follows.
        """
        if self.error is not None:
            return ExitCode.USAGE
        if self.illegal is not None:
            return ExitCode.FAILED
        whole = self.doubt is None and self.cut is None and not self.holes
        sound = self.calls and whole
        return ExitCode.OK if sound else ExitCode.COULD_NOT


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
    order = (ExitCode.USAGE, ExitCode.FAILED, ExitCode.COULD_NOT)
    worst = next((code for code in order if code in codes), ExitCode.OK)
    return CheckReport(exit_code=worst, logs=tuple(logs))


def check_schema() -> dict[str, Any]:
    """The JSON Schema of the `--json` output (draft 2020-12)."""
    return schema_of(CheckReport, "mmcache check, version 1")
