"""The reports of a program that is a manager and an engine, as one, and apart again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from .model import TargetReport

__all__ = ["apart", "together"]


def together(reports: Sequence[TargetReport]) -> TargetReport:
    """One report of all that a name stands for: what the first says of itself, and all verdicts."""
    return msgspec.structs.replace(
        reports[0],
        verdicts=tuple(v for report in reports for v in report.verdicts),
        decisions=tuple(d for report in reports for d in report.decisions),
        unexplained=tuple(u for report in reports for u in report.unexplained),
    )


def apart(one: TargetReport, reports: Sequence[TargetReport]) -> Iterator[TargetReport]:
    """The reports that were put together, with the verdicts that the one has by now."""
    left = iter(one.verdicts)
    for report in reports:
        now = tuple(next(left) for _ in report.verdicts)
        yield msgspec.structs.replace(report, verdicts=now)
