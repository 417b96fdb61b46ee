"""Counts of verdicts, as every report shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mmcache_vectors.clauses import CLAUSES

from ..exits import ExitCode
from .model import BAD, Outcome, TargetReport

__all__ = ["OUTCOMES", "RUN_WORDS", "Tally", "clause_ids", "counts_text", "tally"]

OUTCOMES: dict[Outcome, str] = {
    "pass": "passed",
    "fail": "failed",
    "error": "errors",
    "xpass": "passed, expected to fail",
    "xfail": "failed as expected",
    "skip": "skipped",
}
"""The words for the outcomes, in the order in which they are shown."""


RUN_WORDS: dict[ExitCode, str] = {
    ExitCode.OK: "passed",
    ExitCode.FAILED: "failed",
    ExitCode.COULD_NOT: "not everything could be tested",
}
"""What a whole run comes to."""


class Tally(NamedTuple):
    """The verdicts on the vectors that defend one clause, on one target, counted.

    A failure counts against the clauses that it broke. Of the others that its vector defends it
    says nothing: what comes after the first wrong step is not judged.
    """

    passed: int
    run: int
    """Those that were not skipped."""
    skipped: int
    bad: bool
    """Whether any of them fails the run."""


def tally(report: TargetReport, clause_id: str) -> Tally:
    """A vector that defends several clauses counts for each."""
    found = [v.outcome for v in report.verdicts if clause_id in v.charged]
    skipped = found.count("skip")
    return Tally(found.count("pass"), len(found) - skipped, skipped, not BAD.isdisjoint(found))


def clause_ids(reports: Iterable[TargetReport]) -> list[str]:
    """The clauses that the verdicts are about, in the order of the specification."""
    ids = {id for r in reports for v in r.verdicts for id in v.charged}
    order = {id: k for k, id in enumerate(CLAUSES)}
    return sorted(ids, key=lambda id: (order.get(id, len(order)), id))


def counts_text(report: TargetReport) -> str:
    """Such as `42 passed, 12 skipped`."""
    total = report.count()
    said = [f"{total[o]} {word}" for o, word in OUTCOMES.items() if o == "pass" or total[o]]
    return ", ".join(said)
