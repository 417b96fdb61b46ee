"""A matrix on a terminal, as Markdown, as JSON, and as one HTML page. Rows down, clauses across."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmcache_vectors.clauses import clause
from mmcache_vectors.document import canonical, schema_of

from ..reports.decisions import links_of
from ..reports.page import document, element
from ..suites.load import AnyVector
from ..verdicts.model import TargetReport
from ..verdicts.tally import Tally, clause_ids, tally
from .defects import Defect, unexplained
from .run import Matrix

__all__ = [
    "defect_line",
    "encode_matrix",
    "matrix_markdown",
    "matrix_page",
    "matrix_schema",
    "print_matrix",
]

LEGEND = (
    "✓ every vector of the clause that applies passes; ✗ n: n of them fail; - none applies, "
    "because the release does not have what they call."
)
RULE = (
    "A release has a defect if it fails every vector that applies to it and that the wrong "
    "decision fails, with the answers that the decision gives. First and last are of the releases "
    "run, not of every commit between them."
)


class _Cell(NamedTuple):
    text: str
    style: str


def _cell(counts: Tally) -> _Cell:
    if not counts.run:
        return _Cell("-", "none")
    if not counts.bad:
        return _Cell("✓", "good")
    return _Cell(f"✗ {counts.run - counts.passed}", "bad")


def row_name(row: TargetReport) -> str:
    """A release by its version."""
    return _release(row.target)


def _release(target: str) -> str:
    return target.removeprefix("vllm-processor-cache:").removeprefix("vllm:")


def defect_line(defect: Defect) -> str:
    """One sentence: where it was met first, and where no longer."""
    first, last = map(_release, (defect.first_with, defect.last_with))
    if defect.first_without is None:
        rest = "no later one is without it"
    else:
        rest = f"{_release(defect.first_without)} is the first after it without"
    if first == last:
        return f"met in {first} only; {rest}"
    gaps = ", but not in all between" if defect.gaps else ""
    return f"first met in {first}, last in {last}{gaps}; {rest}"


# --- terminal ----------------------------------------------------------------------------------


def print_matrix(matrix: Matrix, vectors: Sequence[AnyVector], console: Console) -> None:
    """The defects and what counts as one, what they do not explain, the table and its legend."""
    ids = clause_ids(matrix.rows)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("release", no_wrap=True)
    for id in ids:
        table.add_column(id, justify="center", no_wrap=True)
    styles = {"good": "green", "bad": "bold red", "none": "dim"}
    for row in matrix.rows:
        if row.implementation is None:
            continue
        cells = (_cell(tally(row, id)) for id in ids)
        table.add_row(row_name(row), *(Text(c.text, styles[c.style]) for c in cells))
    console.print(Text(RULE, "dim"))
    for defect in matrix.defects:
        known = "".join(f", {report}" for report in defect.reports)
        head = Text.assemble((", ".join(defect.clauses), "bold"), f" {defect.variant}{known}: ")
        console.print(head.append(defect_line(defect)), soft_wrap=True)
    for line in _unexplained_lines(matrix, vectors):
        console.print(Text(line, "bold red"), soft_wrap=True)
    console.print()
    console.print(table)
    console.print(Text(LEGEND, "dim"))
    for row in matrix.rows:
        if row.implementation is None:
            console.print(Text(f"{row_name(row)}: not run: {row.reason}"), soft_wrap=True)


def _unexplained_lines(matrix: Matrix, vectors: Sequence[AnyVector]) -> list[str]:
    """Rows that stand together and fail in the same vectors are told in one line."""
    found = ((row, unexplained(row, vectors)) for row in matrix.rows)
    lines = []
    for ids, group in groupby(found, key=lambda pair: pair[1]):
        names = [row_name(row) for row, _ in group]
        if not ids:
            continue
        who = f"{names[0]} fails" if len(names) == 1 else f"{names[0]} to {names[-1]} fail"
        lines.append(f"{who}, for no reason that the specification lists: {', '.join(ids)}")
    return lines


# --- files -------------------------------------------------------------------------------------


def encode_matrix(matrix: Matrix) -> bytes:
    """The canonical bytes of the JSON output."""
    return canonical(matrix)


def matrix_schema() -> dict[str, Any]:
    """The JSON Schema of the JSON output (draft 2020-12)."""
    return schema_of(Matrix, "mmcache conformance matrix, version 1")


def matrix_markdown(matrix: Matrix, vectors: Sequence[AnyVector]) -> str:
    """A page for a repository."""
    ids = clause_ids(matrix.rows)
    run = [row for row in matrix.rows if row.implementation is not None]
    lines = [
        "# The processor cache of vLLM's releases against the clauses"
        if _is_of_pairs(vectors)
        else "# vLLM releases against the clauses",
        "",
        f"Run on {matrix.date}: {len(run)} targets, {_suite(matrix)}. Regenerate with",
        f"`mmcache-conformance matrix{_option(vectors)} --out DIR`.",
        "",
        f"{LEGEND} What a clause says is in [clauses.md](clauses.md).",
        "",
        "## Defects",
        "",
        RULE,
        "",
    ]
    for defect in matrix.defects:
        lines.append(
            f"* **{', '.join(defect.clauses)}** `{defect.variant}`{_markdown_links(defect)} "
            f"({defect.says.rstrip('.')}): {defect_line(defect)}."
        )
    if not matrix.defects:
        lines.append("None.")
    lines += [f"* {line}" for line in _unexplained_lines(matrix, vectors)]
    lines += ["", "## Releases", ""]
    lines += [f"| release | {' | '.join(ids)} |", "|---|" + ":-:|" * len(ids)]
    for row in run:
        cells = " | ".join(_cell(tally(row, id)).text for id in ids)
        lines.append(f"| {row_name(row)} | {cells} |")
    left_out = [row for row in matrix.rows if row.implementation is None]
    if left_out:
        lines += ["", "## Not run", ""]
        lines += [f"* {row_name(row)}: {row.reason}" for row in left_out]
    return "\n".join(lines) + "\n"


def _is_of_pairs(vectors: Sequence[AnyVector]) -> bool:
    return any(vector.kind == "processor_cache" for vector in vectors)


def _option(vectors: Sequence[AnyVector]) -> str:
    return " --processor-cache" if _is_of_pairs(vectors) else ""


def _markdown_links(defect: Defect) -> str:
    links = links_of(defect.reports)
    return "".join(f", [{r}]({links[r]})" if r in links else f", {r}" for r in defect.reports)


def _html_links(defect: Defect) -> str:
    links = links_of(defect.reports)
    shown = [
        element("a", escape(r), href=links[r]) if r in links else escape(r) for r in defect.reports
    ]
    return "".join(f", {link}" for link in shown)


def _suite(matrix: Matrix) -> str:
    suite = matrix.suite
    return f"{suite.vectors} vectors of suite {suite.version}, digest `{suite.digest}`"


def matrix_page(matrix: Matrix, vectors: Sequence[AnyVector]) -> str:
    """The page. It asks nothing of the network."""
    ids = clause_ids(matrix.rows)
    heads = "".join(element("th", id, title=f"{clause(id).name}: {clause(id).says}") for id in ids)
    lines = [element("tr", element("th", "release") + heads)]
    for row in matrix.rows:
        name = element("td", escape(row_name(row)))
        if row.implementation is None:
            said = element("td", escape(row.reason or ""), class_="reason", colspan=str(len(ids)))
            lines.append(element("tr", name + said))
            continue
        cells = []
        for id in ids:
            cell, failing = _cell(tally(row, id)), _failing(row, id)
            title = f"{row_name(row)}, {id} {clause(id).name}"
            title += f": fails {', '.join(failing)}" if failing else ""
            cells.append(element("td", cell.text, class_=f"cell-{cell.style}", title=title))
        lines.append(element("tr", name + "".join(cells)))
    defects = [
        element(
            "li",
            element("b", escape(", ".join(d.clauses)))
            + f" {element('code', escape(d.variant))}{_html_links(d)} "
            + f"({escape(d.says.rstrip('.'))}): "
            + escape(f"{defect_line(d)}."),
        )
        for d in matrix.defects
    ]
    defects += [
        element("li", escape(line), class_="bad") for line in _unexplained_lines(matrix, vectors)
    ]
    suite = matrix.suite
    about = (
        f"Run on {matrix.date}: {suite.vectors} vectors of suite {suite.version}, digest "
        + element("code", suite.digest)
    )
    clauses = "".join(
        element("tr", element("td", id) + element("td", escape(clause(id).says))) for id in ids
    )
    body = [
        element("h1", "Releases against the clauses"),
        element("p", about, class_="soft"),
        element("h2", "Defects"),
        element("p", escape(RULE), class_="soft"),
        element("ul", "\n".join(defects)) if defects else element("p", "None."),
        element("h2", "Releases"),
        element("div", element("table", "\n".join(lines), class_="matrix"), class_="scroll"),
        element("p", escape(LEGEND), class_="soft"),
        element("h2", "What the clauses say"),
        element("table", clauses),
    ]
    return document("Releases against the clauses", "\n".join(body))


def _failing(row: TargetReport, id: str) -> list[str]:
    return [v.id for v in row.verdicts if id in v.charged and v.outcome in {"fail", "error"}]
