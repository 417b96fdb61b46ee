"""The decisions that a target has taken, for people: the first thing on every report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmcache_vectors.clauses import report_address

from ..implementation import Implementation
from ..verdicts.model import BAD, Decision, TargetReport

__all__ = [
    "decision_line",
    "decision_lines",
    "links_of",
    "partial_line",
    "uncompared_lines",
    "untested_lines",
]

_SHOWN = 8
"""So many vectors are named before it says how many more there are."""


def decision_lines(report: TargetReport) -> Iterator[str]:
    """How many decisions the target has taken, each of them, and what no known one explains.

    Nothing where nothing failed.
    """
    taken = [d for d in report.decisions if not d.contradicted_by]
    failing = [v for v in report.verdicts if v.failure is not None and v.outcome in BAD | {"xfail"}]
    if not failing:
        return
    if taken:
        yield f"{len(taken)} decision{'s' * (len(taken) != 1)}:"
        yield from (f"  {decision_line(d)}" for d in taken)
    elif report.unexplained:
        yield "no known decision explains what failed"
    if taken and report.unexplained:
        yield f"no known decision explains {_named(report.unexplained)}"
    yield from (f"  {partial_line(d)}" for d in report.decisions if d.contradicted_by)


def decision_line(decision: Decision) -> str:
    """One sentence for each thing that one wants to know of it."""
    names = " or ".join((decision.name, *decision.alternatives))
    reports = "".join(f", {report}" for report in decision.reports)
    count = len(decision.vectors)
    vectors = f", {count} vector{'s' * (count != 1)}" if count else ""
    first = f" First seen at {decision.first}." if decision.first else ""
    return (
        f"{names}{reports}{vectors}: {decision.says}.{first} "
        f"How it ought to be: {decision.ought} ({decision.clause})"
    )


def partial_line(decision: Decision) -> str:
    """What speaks for a decision, and what against it."""
    return (
        f"{_named(decision.vectors)}: as {decision.name} does ({decision.says}), up to the failing "
        f"call; but it passes {_named(decision.contradicted_by)}, which that fails"
    )


def untested_lines(report: TargetReport) -> Iterator[str]:
    """What of the target was not tested, and what was demanded of it and not given."""
    found = report.implementation
    if found is None:
        return
    if found.untested:
        yield f"not tested: {', '.join(found.untested)}"
    for kind, why in found.undriven.items():
        yield f"{kind}: {why}"
    yield from uncompared_lines(found)
    if report.reason is not None:
        yield report.reason


def uncompared_lines(found: Implementation) -> Iterator[str]:
    """What the target shows of its state and nobody can compare: a pass says nothing about it."""
    yield from (f"not compared: {said}" for said in found.uncompared)


def links_of(reports: Sequence[str]) -> dict[str, str]:
    """The address of each public report, where its project is known."""
    found = ((report, report_address(report)) for report in reports)
    return {report: address for report, address in found if address is not None}


def _named(ids: Sequence[str]) -> str:
    more = len(ids) - _SHOWN
    shown = ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"{len(ids)} vector{'s' * (len(ids) != 1)} ({shown})"
