"""A run as Markdown, short enough for the summary of a CI job."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mmcache_vectors.clauses import clause

from ..suites.load import AnyVector
from ..verdicts.model import BAD, RunReport, TargetReport
from ..verdicts.tally import RUN_WORDS, clause_ids, counts_text, tally
from .decisions import decision_lines, untested_lines
from .story import verdict_story

__all__ = ["run_markdown"]

_MOST_STORIES = 20


def run_markdown(run: RunReport, vectors: Sequence[AnyVector]) -> str:
    """A line a target, a table of clauses, and the failures, folded."""
    lines = [f"## {_verdict(run)}", ""]
    lines += [
        f"Suite {run.suite.version}, {run.suite.vectors} vectors, digest `{run.suite.digest}`.",
        "",
    ]
    for report in run.targets:
        lines += _decisions(report)
    for report in run.targets:
        lines.append(f"* `{_code(report.target)}`: {_counts(report)}")
        lines += [f"  * {_text(said)}" for said in untested_lines(report)]
    started = [report for report in run.targets if report.implementation is not None]
    if started:
        lines += ["", *_table(started)]
    by_id = {vector.id: vector for vector in vectors}
    for report in started:
        lines += _stories(report, by_id)
    return "\n".join(lines) + "\n"


def _decisions(report: TargetReport) -> list[str]:
    """What the target has decided otherwise; before the numbers."""
    found = list(decision_lines(report))
    if not found:
        return []
    lines = [f"**`{_code(report.target)}`: {_text(found[0])}**", ""]
    lines += [f"* {_text(line)}" for line in found[1:]]
    return [*lines, ""] if found[1:] else lines


def _verdict(run: RunReport) -> str:
    return f"Encoder cache conformance: {RUN_WORDS[run.exit_code]}"


def _counts(report: TargetReport) -> str:
    if report.implementation is None:
        return f"could not be started: {_text(report.reason or '')}"
    return counts_text(report)


def _table(reports: Sequence[TargetReport]) -> list[str]:
    heads = " | ".join(f"`{_code(report.target)}`" for report in reports)
    lines = [f"| clause | | {heads} |", "|---|---|" + "---:|" * len(reports)]
    for id in clause_ids(reports):
        cells = []
        for report in reports:
            counts = tally(report, id)
            passed = f"{'❌ ' if counts.bad else ''}{counts.passed}/{counts.run}"
            cells.append(passed if counts.run else "skipped")
        lines.append(f"| {_known(id)} | {_known(clause(id).name)} | {' | '.join(cells)} |")
    return lines


def _stories(report: TargetReport, by_id: dict[str, AnyVector]) -> list[str]:
    bad = [v for v in report.verdicts if v.outcome in BAD]
    lines: list[str] = []
    for verdict in bad[:_MOST_STORIES]:
        story = verdict_story(by_id[verdict.id], verdict)
        if verdict.stderr is not None:
            story += f"its standard error meanwhile:\n{verdict.stderr}\n"
        fence = "`" * max(3, _longest_run(story) + 1)
        summary = f"{_text(report.target)}: {_known(verdict.id)}"
        lines += ["", f"<details><summary>{summary}</summary>", "", f"{fence}text"]
        lines += [story.rstrip("\n"), fence, "", "</details>"]
    if len(bad) > _MOST_STORIES:
        lines += ["", f"… and {len(bad) - _MOST_STORIES} more on `{_code(report.target)}`."]
    return lines


def _known(name: str) -> str:
    """A name as it is, unless there is more in it than in a name of ours."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]*", name) else _text(name)


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _code(text: str) -> str:
    """For a code span, which must be one line, in a table too."""
    return " ".join(text.split()).replace("`", "'").replace("|", "\\|")


def _text(text: str) -> str:
    """For running text: nothing in it is markup, and it is one line."""
    one = " ".join(text.split())
    for sign in "\\`*_[]|":
        one = one.replace(sign, f"\\{sign}")
    return one.replace("&", "&amp;").replace("<", "&lt;")
