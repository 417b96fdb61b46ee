"""A run on a terminal: the failures as stories, then one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmcache_vectors.clauses import CLAUSES, clause

from ..suites.load import AnyVector
from ..verdicts.model import BAD, Outcome, TargetReport, Verdict
from ..verdicts.tally import OUTCOMES, Tally, clause_ids, tally
from .decisions import decision_lines, untested_lines
from .story import verdict_story

__all__ = ["print_run"]


def print_run(
    reports: Sequence[TargetReport],
    vectors: Sequence[AnyVector],
    console: Console,
    *,
    quiet: bool = False,
) -> None:
    """Everything that a person needs to know; if `quiet`, one line a target."""
    if quiet:
        for report in reports:
            console.print(_line(report), soft_wrap=True)
        return
    by_id = {vector.id: vector for vector in vectors}
    for report in reports:
        _print_decisions(report, console)
    for report in reports:
        for verdict in report.verdicts:
            if verdict.outcome in BAD:
                _print_failure(report, verdict, by_id[verdict.id], console)
    started = [report for report in reports if report.implementation is not None]
    across = _targets_across(started, console.width)
    for first in range(0, len(started), across):
        console.print(_table(started[first : first + across]))
    for report in started:
        for line in untested_lines(report):
            _print_plain(f"{report.target}: {line}", console)
        _print_expected(report, console)
        _print_skips(report, console)
        _print_unreached(report, console)
    for report in reports:
        if report.implementation is None:
            console.print(Text.assemble((report.target, "bold"), " could not be started"))
            _print_plain(f"  {report.reason}", console)


def _print_decisions(report: TargetReport, console: Console) -> None:
    """What explains the failures, before the first of them."""
    lines = list(decision_lines(report))
    if lines:
        console.print(Text.assemble((report.target, "bold"), ": ", lines[0]), soft_wrap=True)
        for line in lines[1:]:
            _print_plain(line, console)
        console.print()


def _line(report: TargetReport) -> Text:
    """The numbers of verdicts, and which clauses the failures are about."""
    line = Text.assemble((f"{report.target:12}", "bold"), "  ")
    if report.implementation is None:
        return line.append(f"could not be started: {report.reason}")
    total = report.count()
    failing = {c for v in report.verdicts if v.outcome in BAD for c in v.charged}
    parts = [
        Text(f"{total[outcome]} {word}", style=_STYLES[outcome])
        for outcome, word in OUTCOMES.items()
        if outcome == "pass" or total[outcome]
    ]
    line.append(Text(", ").join(parts))
    if total["skip"] == len(report.verdicts) > 0:
        line.append("  nothing was checked")
    if failing:
        line.append(f"  ({', '.join(c for c in CLAUSES if c in failing)})")
    taken = [d.name for d in report.decisions if not d.contradicted_by]
    if taken:
        line.append(f"  decisions: {', '.join(taken)}")
    for said in untested_lines(report):
        line.append(f"  {said}")
    return line


def _print_failure(
    report: TargetReport, verdict: Verdict, vector: AnyVector, console: Console
) -> None:
    head = {"fail": "FAIL", "error": "ERROR"}.get(verdict.outcome, "UNEXPECTED PASS")
    title = Text.assemble((head, "bold red"), " ", (verdict.id, "bold"), f" on {report.target}")
    console.print(title, soft_wrap=True)
    _print_plain(verdict_story(vector, verdict), console)
    if verdict.stderr is not None:
        _print_plain("its standard error meanwhile:", console)
        _print_plain("".join(f"     {line}\n" for line in verdict.stderr.splitlines()), console)


def _print_plain(text: str, console: Console) -> None:
    console.print(Text(text), soft_wrap=True)


_LEFT_COLUMNS = 30
_WIDEST_HEADER = 30


def _header(report: TargetReport) -> Text:
    """The target; of a long one, its end."""
    name = report.target
    return Text(name if len(name) <= _WIDEST_HEADER else "\u2026" + name[1 - _WIDEST_HEADER :])


def _targets_across(reports: Sequence[TargetReport], width: int) -> int:
    """How many targets one table can show, side by side."""
    widest = max((len(_header(report)) for report in reports), default=0)
    return max(1, (width - _LEFT_COLUMNS) // (widest + 2))


def _table(reports: Sequence[TargetReport]) -> Table:
    """Clauses down, targets across. A vector of several clauses counts for each."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("clause", no_wrap=True)
    table.add_column()
    for report in reports:
        table.add_column(_header(report), justify="right", no_wrap=True)
    for id in clause_ids(reports):
        cells = (_passed_of_run(tally(report, id)) for report in reports)
        table.add_row(id, _shortened(clause(id).name), *cells)
    table.add_row()
    totals = [report.count() for report in reports]
    for outcome, word in OUTCOMES.items():
        if outcome == "pass" or any(total[outcome] for total in totals):
            style = _STYLES[outcome]
            cells = (Text(str(n), style=style if n else "") for n in (t[outcome] for t in totals))
            table.add_row(word, "", *cells)
    table.add_row("seconds", "", *(f"{report.seconds:.2f}" for report in reports))
    return table


def _shortened(name: str) -> Text:
    """Gives way to the results where the terminal is narrow."""
    return Text(name, no_wrap=True, overflow="ellipsis")


_STYLES: dict[Outcome, str] = {
    "pass": "bold green",
    "fail": "bold red",
    "error": "bold red",
    "xpass": "bold red",
    "xfail": "bold yellow",
    "skip": "bold yellow",
}


def _passed_of_run(counts: Tally) -> Text:
    if not counts.run:
        return Text("skipped" if counts.skipped else "-", style="yellow")
    whole = counts.passed == counts.run
    style = "green" if whole else "red" if counts.bad else "yellow"
    return Text(f"{counts.passed}/{counts.run}", style=style)


def _print_expected(report: TargetReport, console: Console) -> None:
    reasons = Counter((v.reason, v.link) for v in report.verdicts if v.outcome == "xfail")
    for (reason, link), count in reasons.items():
        _print_plain(f"{report.target}: {count} failed as expected: {reason} ({link})", console)


def _print_skips(report: TargetReport, console: Console) -> None:
    reasons = Counter(v.reason for v in report.verdicts if v.outcome == "skip")
    for reason, count in reasons.items():
        _print_plain(f"{report.target}: {count} skipped: {reason}", console)
    if reasons.total() == len(report.verdicts) > 0:
        _print_plain(f"{report.target}: nothing was checked", console)


def _print_unreached(report: TargetReport, console: Console) -> None:
    """A pass that says little: what the vector is about did not happen."""
    ids = [v.id for v in report.verdicts if v.outcome == "pass" and v.reached is False]
    if ids:
        told = f"{len(ids)} passed without coming to its situation: {', '.join(ids)}"
        _print_plain(f"{report.target}: {told}", console)
