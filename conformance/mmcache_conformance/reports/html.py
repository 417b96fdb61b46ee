"""A run as one HTML page: what holds, clause by clause, and each failure as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mmcache_vectors.clauses import clause
from mmcache_vectors.manager import Vector

from ..verdicts.model import BAD, Failure, RunReport, TargetReport, Verdict
from ..verdicts.tally import OUTCOMES, Tally, clause_ids, counts_text, tally
from .lanes import Row, rows
from .page import document, element, options
from .story import difference_lines, parameter_lines

__all__ = ["run_page"]


def run_page(run: RunReport, vectors: Sequence[Vector]) -> str:
    """The page. It asks nothing of the network."""
    by_id = {vector.id: vector for vector in vectors}
    started = [report for report in run.targets if report.implementation is not None]
    parts = [_head(run), *(_target(report) for report in run.targets)]
    if started:
        parts += [element("h2", "By clause"), _clauses(started)]
        parts += [element("h2", "Vectors"), _filters(started)]
        for report in started:
            parts += [_article(report, verdict, by_id[verdict.id]) for verdict in report.verdicts]
        parts.append(element("p", "No vector matches.", class_="soft", id="none"))
    return document("Encoder cache conformance", "\n".join(parts), _SCRIPT)


def _head(run: RunReport) -> str:
    word, style = {
        0: ("passed", "good"),
        1: ("failed", "bad"),
        3: ("not everything could be tested", "bad"),
    }[run.exit_code]
    title = f"Encoder cache conformance: {element('span', word, class_=style)}"
    suite = (
        f"suite {run.suite.version}, {run.suite.vectors} vectors, "
        f"digest {element('code', run.suite.digest)}"
    )
    return element("h1", title) + element("p", suite, class_="soft")


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
    return element(
        "p",
        f"{name} ({escape(about)}{link}): {escape(counts_text(report))}, {report.seconds:.2f} s",
    )


def _clauses(reports: Sequence[TargetReport]) -> str:
    heads = "".join(element("th", escape(r.target), class_="number") for r in reports)
    lines = [element("tr", element("th", "clause") + heads + element("th", "says"))]
    for id in clause_ids(reports):
        known = clause(id)
        cells = "".join(_cell(tally(report, id)) for report in reports)
        says = element("b", escape(known.name)) + "<br>" + escape(known.says)
        lines.append(element("tr", element("td", id) + cells + element("td", says)))
    return element("div", element("table", "\n".join(lines)), class_="scroll")


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


def _article(report: TargetReport, verdict: Verdict, vector: Vector) -> str:
    parts = [
        element("h3", f"{escape(verdict.id)} {_outcome(verdict)}"),
        element("p", f"on {escape(report.target)}", class_="soft"),
        element("p", escape(vector.description)),
    ]
    if verdict.outcome not in {"pass", "skip"}:
        parts += [
            element(
                "p", f"{id} {escape(clause(id).name)}: {escape(clause(id).says)}", class_="soft"
            )
            for id in verdict.clauses
        ]
    if verdict.reason is not None:
        link = "" if verdict.link is None else " " + element("a", "link", href=verdict.link)
        parts.append(element("p", escape(verdict.reason) + link))
    if verdict.failure is not None:
        parts.append(_picture(vector, verdict.failure))
    if verdict.stderr is not None:
        parts.append(element("p", "Its standard error meanwhile:", class_="soft"))
        parts.append(element("pre", escape(verdict.stderr)))
    return element(
        "article",
        "\n".join(parts),
        class_=verdict.outcome,
        data_outcome=verdict.outcome,
        data_bad=str(verdict.outcome in BAD).lower(),
        data_clauses=" ".join(verdict.clauses),
        data_target=report.target,
    )


def _outcome(verdict: Verdict) -> str:
    style = "good" if verdict.outcome == "pass" else "bad" if verdict.outcome in BAD else "warn"
    return element("span", OUTCOMES[verdict.outcome], class_=style)


# --- the picture -------------------------------------------------------------------------------


def _picture(vector: Vector, failure: Failure) -> str:
    heads = "".join(
        element("div", head) for head in ("call, and what it should return", "ledger", "worker")
    )
    steps = rows(vector, failure)
    lines = [element("div", heads, class_="heads")]
    lines += [_step(row, failure if row is steps[-1] else None) for row in steps]
    left = len(vector.steps) - len(steps)
    later = "1 later step is" if left == 1 else f"{left} later steps are"
    after = element("p", f"{later} not judged.", class_="soft") if left else ""
    world = "\n".join(map(escape, parameter_lines(vector.parameters)))
    command = element("pre", escape(failure.reproduce))
    copy = element("button", "Copy", type="button")
    return "\n".join(
        (
            element("pre", world),
            element("div", "\n".join(lines), class_="lanes"),
            after,
            element("div", command + copy, class_="copy"),
        )
    )


def _step(row: Row, failure: Failure | None) -> str:
    call = f"{row.number}. {escape(row.call)}"
    if row.returns is not None:
        call += f" → {element('b', escape(row.returns))}"
    first = element("div", call, class_="call")
    if failure is not None:
        first += element("p", "✗ this step went wrong", class_="bad")
        first += element("pre", escape("\n".join(difference_lines(failure))))
    columns = element("div", first)
    columns += element("div", _ledger(row)) + element("div", _worker(row))
    return element("div", columns, class_="step broken" if failure is not None else "step")


def _ledger(row: Row) -> str:
    if row.cached is None:
        return element("span", "not looked at", class_="soft")
    chips = [
        element(
            "span",
            f"{escape(mm_hash)} · {escape(users)}",
            class_="chip idle" if users == "nobody" else "chip",
            title=f"{mm_hash} is cached, and referenced by {users}",
        )
        for mm_hash, users in row.cached
    ]
    return "".join(chips) or element("span", "empty", class_="soft")


def _worker(row: Row) -> str:
    held = dict.fromkeys(row.worker)
    instead = held if row.instead is None else dict.fromkeys(row.instead)
    chips = []
    for mm_hash in held | instead:
        style, title = "chip", "held"
        if mm_hash not in instead:
            style, title = "chip lost", "dropped, though the ledger counts on it"
        elif mm_hash not in held:
            style, title = "chip surplus", "kept, though the ledger has evicted it"
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
