"""A first file of expected failures, made of what a run found."""

from __future__ import annotations

import json
from collections.abc import Iterator

from mmcache_vectors.clauses import report_address

from .model import TargetReport, Verdict

__all__ = ["draft"]


def draft(report: TargetReport, link: str) -> str:
    """The file, in TOML: an entry for each clause that decisions explain, then for the rest.

    Args:
        report: What was found, with what each failure broke and the decisions that explain it.
        link: What an entry refers to where no public report is known.
    """
    bad = [v for v in report.verdicts if v.outcome in {"fail", "error"}]
    lines = [
        f"# Of {json.dumps(report.target)}: {len(bad)} failures. Say in each entry what is true.",
        'format = "mmcache/expected-failures"',
        "format_version = 1",
    ]
    by_clause, left = _by_clause(report, bad)
    for clause, (reason, reports) in by_clause.items():
        lines += _entry("clause", clause, reason, _address(reports, link))
    for verdict in left:
        lines += _entry("vector", verdict.id, *_of(verdict, link), outcome=verdict.outcome)
    return "\n".join(lines) + "\n"


def _by_clause(
    report: TargetReport, bad: list[Verdict]
) -> tuple[dict[str, tuple[str, tuple[str, ...]]], list[Verdict]]:
    """Clauses that stand for failures of known decisions only, and the failures that are left."""
    known = {d.name: d for d in report.decisions if not d.contradicted_by}
    failing = [v for v in bad if v.outcome == "fail"]
    about = {c for v in report.verdicts for c in v.clauses}
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    covered: set[str] = set()
    for decision in known.values():
        mine = [v for v in failing if (v.decision or "").split(" ")[0] == decision.name]
        for clause in dict.fromkeys(c for v in mine for c in v.charged if c in about):
            of_it = [v for v in failing if clause in v.charged]
            new = [v for v in of_it if v.id not in covered]
            if clause not in found and new and all(v.decision is not None for v in of_it):
                found[clause] = decision.says, decision.reports
                covered |= {v.id for v in of_it}
    return found, [v for v in bad if v.id not in covered]


def _of(verdict: Verdict, link: str) -> tuple[str, str]:
    why = verdict.reason or ""
    if verdict.broke:
        why = f"breaks {', '.join(verdict.broke)}"
    elif not why:
        why = "differs from the specification"
    return why, link


def _entry(kind: str, name: str, reason: str, link: str, outcome: str = "fail") -> Iterator[str]:
    yield ""
    yield "[[expected]]"
    yield f"{kind} = {json.dumps(name)}"
    if outcome == "error":
        yield 'outcome = "error"'
    # A JSON text is a TOML text, but for the escape of what is beyond 16 bits, which is not used.
    yield f"reason = {json.dumps(reason, ensure_ascii=False)}"
    yield f"link = {json.dumps(link)}"


def _address(reports: tuple[str, ...], link: str) -> str:
    return next((a for r in reports if (a := report_address(r)) is not None), link)
