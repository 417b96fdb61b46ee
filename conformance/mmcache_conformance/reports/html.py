"""A run as one HTML page: what holds, clause by clause, and each failure as a picture."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple
from html import escape

from mmcache_vectors.clauses import clause
from mmcache_vectors.engine import EngineVector
from mmcache_vectors.manager import Vector
from mmcache_vectors.pair import PairVector

from ..suites.load import AnyVector
from ..verdicts.model import (
    BAD,
    CallFailure,
    Decision,
    PairFailure,
    PassFailure,
    RunReport,
    TargetReport,
    Verdict,
)
from ..verdicts.tally import OUTCOMES, RUN_WORDS, Tally, clause_ids, counts_text, tally
from .decisions import decision_lines, links_of, partial_line, untested_lines
from .lanes import Ledger, Row, rows
from .page import document, element, options
from .pairs import pair_failure_lines
from .passes import COLUMNS, breach_of, pass_cells, workload_lines
from .story import broken_lines, difference_lines, parameter_lines

__all__ = ["run_page"]


def run_page(run: RunReport, vectors: Sequence[AnyVector]) -> str:
    """The page. It asks nothing of the network."""
    by_id = {vector.id: vector for vector in vectors}
    started = [report for report in run.targets if report.implementation is not None]
    parts = [_head(run)]
    parts += [_decisions(k, report) for k, report in enumerate(run.targets)]
    parts += [_target(report) for report in run.targets]
    if started:
        parts += [element("h2", "By clause"), _clauses(started)]
        parts += [element("h2", "Vectors"), _filters(started)]
        for k, report in enumerate(run.targets):
            parts += [_article(k, report, v, by_id[v.id]) for v in report.verdicts]
        parts.append(element("p", "No vector matches.", class_="soft", id="none"))
    return document("Encoder cache conformance", "\n".join(parts), _SCRIPT)


def _head(run: RunReport) -> str:
    style = "bad" if run.exit_code else "good"
    word = element("span", RUN_WORDS[run.exit_code], class_=style)
    title = f"Encoder cache conformance: {word}"
    suite = (
        f"suite {run.suite.version}, {run.suite.vectors} vectors, "
        f"digest {element('code', run.suite.digest)}"
    )
    return element("h1", title) + element("p", suite, class_="soft")


def _decisions(number: int, report: TargetReport) -> str:
    """What the target has decided otherwise, before all else; nothing where nothing failed."""
    lines = list(decision_lines(report))
    if not lines:
        return ""
    taken = [d for d in report.decisions if not d.contradicted_by]
    partly = [d for d in report.decisions if d.contradicted_by]
    head = f"{escape(report.target)}: {escape(lines[0].rstrip(':'))}"
    parts = [element("h2", head, class_="bad")]
    parts += [_decision(number, decision) for decision in taken]
    if taken and report.unexplained:
        left = _links(number, report.unexplained)
        parts.append(element("p", f"No known decision explains {left}."))
    parts += [element("p", escape(partial_line(d)) + ".", class_="soft") for d in partly]
    return "\n".join(parts)


def _decision(number: int, decision: Decision) -> str:
    """One decision: what it is, who reported it, what it should be, and where it shows."""
    addresses = links_of(decision.reports)
    reports = [
        element("a", escape(r), href=addresses[r]) if r in addresses else escape(r)
        for r in decision.reports
    ]
    names = " or ".join((decision.name, *decision.alternatives))
    known = f" ({', '.join(reports)})" if reports else ""
    ought = element("a", decision.clause, href=f"#clause-{decision.clause}")
    lines = (
        element("h3", element("code", escape(names)) + known),
        element("p", escape(decision.says[:1].upper() + decision.says[1:]) + "."),
        element("p", f"How it ought to be: {escape(decision.ought)} ({ought})"),
        element("p", f"Shown by {_links(number, decision.vectors)}; first seen at "
                f"{escape(decision.first)}.", class_="soft"),
    )  # fmt: skip
    return element("section", "\n".join(lines), class_="decision")


_LINKED = 12
"""So many vectors are linked; the others are below."""


def _links(number: int, ids: Sequence[str]) -> str:
    """The vectors, each a link to its verdict."""
    links = [element("a", escape(id), href=f"#{_anchor(number, id)}") for id in ids[:_LINKED]]
    more = len(ids) - _LINKED
    what = f"{len(ids)} vector{'s' * (len(ids) != 1)}"
    return f"{what}: {', '.join(links)}" + (f" and {more} more" if more > 0 else "")


def _anchor(number: int, id: str) -> str:
    """The permanent name of a verdict on the page: of the target of this number."""
    return id if number == 0 else f"{number}-{id}"


def _target(report: TargetReport) -> str:
    name = element("b", escape(report.target))
    found = report.implementation
    if found is None:
        said = escape(report.reason or "")
        return element("p", f"{name} could not be started") + element("pre", said)
    version = found.version or ""
    name_and_version = found.name if version in found.name else f"{found.name} {version}"
    about = f"{name_and_version}, {found.language}"
    link = ""
    if found.source is not None and found.source.startswith(("http://", "https://")):
        link = ", " + element("a", "source", href=found.source)
    line = element(
        "p",
        f"{name} ({escape(about)}{link}): {escape(counts_text(report))}, {report.seconds:.2f} s",
    )
    more = [element("p", escape(text), class_="warn") for text in untested_lines(report)]
    return "\n".join((line, *more))


def _clauses(reports: Sequence[TargetReport]) -> str:
    heads = "".join(element("th", escape(r.target), class_="number") for r in reports)
    lines = [element("tr", element("th", "clause") + heads + element("th", "says"))]
    for id in clause_ids(reports):
        known = clause(id)
        cells = "".join(_cell(tally(report, id)) for report in reports)
        says = element("b", escape(known.name)) + "<br>" + escape(known.says)
        row = element("td", escape(id)) + cells + element("td", says)
        lines.append(element("tr", row, id=f"clause-{id}"))
    return element("div", element("table", "\n".join(lines)), class_="scroll")


def _web(link: str) -> str:
    """The address, if a browser would only follow it."""
    return link if link.startswith(("https://", "http://")) else "#"


def _cell(counts: Tally) -> str:
    if not counts.run:
        return element("td", "skipped" if counts.skipped else "-", class_="number warn")
    whole = counts.passed == counts.run
    style = "good" if whole else "bad" if counts.bad else "warn"
    sign = "✓ " if whole else "✗ " if counts.bad else "! "
    return element("td", f"{sign}{counts.passed}/{counts.run}", class_=f"number {style}")


def _filters(reports: Sequence[TargetReport]) -> str:
    outcomes = {"": "all", "bad": "what fails the run"}
    outcomes |= {o: word for o, word in OUTCOMES.items() if any(r.count()[o] for r in reports)}
    choices = [options("outcome", "Outcome", outcomes)]
    ids = {id: f"{id} {clause(id).name}" for id in clause_ids(reports)}
    choices.append(options("clause", "Clause", {"": "all", **ids}))
    if len(reports) > 1:
        targets = {str(k): report.target for k, report in enumerate(reports)}
        choices.append(options("target", "Target", {"": "all", **targets}))
    choices.append('<label>Text <input name="text" type="search"></label>')
    any_bad = any(verdict.outcome in BAD for report in reports for verdict in report.verdicts)
    first = "bad" if any_bad else ""
    return element("form", "".join(choices), id="filters", class_="filters", data_first=first)


def _article(number: int, report: TargetReport, verdict: Verdict, vector: AnyVector) -> str:
    anchor = _anchor(number, verdict.id)
    link = element("a", escape(verdict.id), href=f"#{anchor}")
    parts = [
        element("h3", f"{link} {_outcome(verdict)}"),
        element("p", f"on {escape(report.target)}", class_="soft"),
        element("p", escape(vector.description)),
    ]
    if verdict.outcome not in {"pass", "skip"}:
        parts += [element("p", escape(t), class_="soft") for t in broken_lines(vector, verdict)]
    if verdict.reason is not None:
        link = "" if verdict.link is None else " " + element("a", "link", href=_web(verdict.link))
        parts.append(element("p", escape(verdict.reason) + link))
    if verdict.outcome == "pass" and verdict.reached is False:
        parts.append(element("p", "The situation did not come up.", class_="soft"))
    if isinstance(verdict.failure, CallFailure) and isinstance(vector, Vector):
        found = report.implementation
        shown = () if found is None else found.capabilities.get(vector.kind, ())
        parts.append(_picture(vector, verdict.failure, shown))
    elif isinstance(verdict.failure, PassFailure) and isinstance(vector, EngineVector):
        parts.append(_passes(vector, verdict.failure))
    elif isinstance(verdict.failure, PairFailure) and isinstance(vector, PairVector):
        told = "\n".join(pair_failure_lines(vector, verdict.failure))
        parts += [element("pre", escape(told)), _reproduce(verdict.failure.reproduce)]
    if verdict.stderr is not None:
        parts.append(element("p", "Its standard error meanwhile:", class_="soft"))
        parts.append(element("pre", escape(verdict.stderr)))
    return element(
        "article",
        "\n".join(parts),
        id=anchor,
        class_=verdict.outcome,
        data_outcome=verdict.outcome,
        data_bad=str(verdict.outcome in BAD).lower(),
        data_clauses=" ".join(dict.fromkeys((*verdict.charged, *verdict.clauses))),
        data_target=report.target,
    )


def _outcome(verdict: Verdict) -> str:
    style = "good" if verdict.outcome == "pass" else "bad" if verdict.outcome in BAD else "warn"
    return element("span", OUTCOMES[verdict.outcome], class_=style)


# --- the picture -------------------------------------------------------------------------------


def _picture(vector: Vector, failure: CallFailure, shown: Collection[str]) -> str:
    heads = "".join(
        element("div", head)
        for head in ("call, and what it should return", "ledger", "a worker that obeys")
    )
    steps = rows(vector, failure, shown)
    lines = [element("div", heads, class_="heads")]
    lines += [_step(row, failure if row is steps[-1] else None) for row in steps]
    left = len(vector.steps) - len(steps)
    later = "1 later step is" if left == 1 else f"{left} later steps are"
    after = element("p", f"{later} not judged.", class_="soft") if left else ""
    world = "\n".join(map(escape, parameter_lines(vector.parameters)))
    return "\n".join(
        (
            element("pre", world),
            element("div", "\n".join(lines), class_="lanes"),
            after,
            _reproduce(failure.reproduce),
        )
    )


def _reproduce(command: str) -> str:
    copy = element("button", "Copy", type="button")
    return element("div", element("pre", escape(command)) + copy, class_="copy")


def _passes(vector: EngineVector, failure: PassFailure) -> str:
    """The passes as a table, and under each what it broke."""
    heads = "".join(element("th", name) for name in ("pass", *COLUMNS))
    lines = [element("tr", heads)]
    for record in failure.records:
        cells = (str(record.number), *pass_cells(record))
        broken = breach_of(failure, record.number)
        row = "".join(element("td", escape(cell)) for cell in cells)
        lines.append(element("tr", row, class_="broken" if broken else "kept"))
        for text in broken:
            told = element("td", "✗ " + escape(text), colspan=str(len(cells)), class_="bad")
            lines.append(element("tr", told, class_="broken"))
    world = element("pre", escape("\n".join(workload_lines(vector))))
    table = element("div", element("table", "\n".join(lines)), class_="scroll")
    return "\n".join((world, table, _reproduce(failure.reproduce)))


def _step(row: Row, failure: CallFailure | None) -> str:
    call = f"{row.number}. {escape(row.call)}"
    if row.returns is not None:
        call += f" → {element('b', escape(row.returns))}"
    first = element("div", call, class_="call")
    if failure is not None:
        first += element("p", "✗ this step went wrong", class_="bad")
        first += element("pre", escape("\n".join(difference_lines(failure))))
    columns = element("div", first)
    columns += element("div", _ledgers(row)) + element("div", _worker(row))
    return element("div", columns, class_="step broken" if failure is not None else "step")


def _ledgers(row: Row) -> str:
    """The ledger as specified; and where they differ, the target's own below it."""
    if row.own is None or _same(row.own, row.ledger):
        return _ledger(row.ledger)
    specified = element("p", "As specified", class_="soft") + _ledger(row.ledger)
    own = element("p", "The target's own", class_="soft") + _ledger(row.own)
    return specified + element("div", own, class_="own")


def _same(own: Ledger, specified: Ledger) -> bool:
    """Whether whatever the target shows is as specified."""
    pairs = zip(astuple(own), astuple(specified), strict=True)
    return all(shown is None or shown == wanted for shown, wanted in pairs)


def _ledger(ledger: Ledger) -> str:
    lines = []
    if ledger.cached is not None:
        chips = [
            element(
                "span",
                f"{escape(mm_hash)} · {escape(users)}",
                class_="chip idle" if users == "nobody" else "chip",
                title=f"{mm_hash} is cached, and referenced by {users}",
            )
            for mm_hash, users in ledger.cached
        ]
        lines.append("".join(chips) or element("span", "empty", class_="soft"))
    if ledger.free_slots is not None:
        lines.append(element("span", f"{ledger.free_slots} free", class_="soft"))
    if ledger.freeable is not None and len(ledger.freeable) > 1:
        order = ", ".join(ledger.freeable)
        lines.append(element("span", f"evicted first to last: {escape(order)}", class_="soft"))
    return "<br>".join(lines) or element("span", "not shown", class_="soft")


_LOST = {
    True: "dropped, though its own ledger counts on it",
    False: "dropped: its own ledger has evicted it, where the specified one keeps it",
    None: "dropped, though the specified ledger counts on it",
}
_SURPLUS = {
    True: "kept: its own ledger keeps it, where the specified one has evicted it",
    False: "kept, though its own ledger has evicted it",
    None: "kept, though the specified ledger has evicted it",
}
"""What is wrong with a tensor, by whether the ledger of the target counts on it."""


def _worker(row: Row) -> str:
    held = dict.fromkeys(row.worker)
    instead = held if row.instead is None else dict.fromkeys(row.instead)
    chips = []
    for mm_hash in held | instead:
        counted = None if row.own is None else row.own.counts_on(mm_hash)
        style, title = "chip", "held"
        if mm_hash not in instead:
            style, title = "chip lost", _LOST[counted]
        elif mm_hash not in held:
            style, title = "chip surplus", _SURPLUS[counted]
        chips.append(element("span", escape(mm_hash), class_=style, title=title))
        if style != "chip":
            chips.append(element("span", escape(title) + ". ", class_="bad"))
    said = element("p", escape(row.change), class_="soft") if row.change else ""
    return ("".join(chips) or element("span", "empty", class_="soft")) + said


_SCRIPT = """
const form = document.getElementById("filters");
if (form) {
  const articles = [...document.querySelectorAll("article")];
  const apply = () => {
    const { outcome, clause, target, text } = form.elements;
    const name = target && target.value ? target.selectedOptions[0].text : "";
    const word = text.value.toLowerCase();
    let shown = 0;
    for (const a of articles) {
      const d = a.dataset;
      const fits = (!outcome.value || d.outcome === outcome.value ||
          (outcome.value === "bad" && d.bad === "true")) &&
        (!clause.value || d.clauses.split(" ").includes(clause.value)) &&
        (!name || d.target === name) &&
        (!word || a.textContent.toLowerCase().includes(word));
      a.hidden = !fits;
      shown += fits;
    }
    document.getElementById("none").hidden = shown > 0;
  };
  form.elements.outcome.value = form.dataset.first;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (e) => e.preventDefault());
  apply();
}
document.addEventListener("click", async (e) => {
  const box = e.target.closest(".copy button")?.parentElement;
  if (!box) return;
  const command = box.querySelector("pre");
  try {
    await navigator.clipboard.writeText(command.textContent);
    e.target.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(command);
    e.target.textContent = "Selected";
  }
});
"""
