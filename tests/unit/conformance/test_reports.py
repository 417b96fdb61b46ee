"""The reports that go to files: complete, well-formed, and safe whatever an engine says."""

from __future__ import annotations

import html
import html.parser
import json
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from click.testing import CliRunner

from mmcache_conformance.cli import cli
from mmcache_conformance.engines.reference import ReferencePass
from mmcache_conformance.open import open_target
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.reports.html import run_page
from mmcache_conformance.reports.junit import junit_xml
from mmcache_conformance.reports.lanes import Ledger, rows
from mmcache_conformance.reports.markdown import run_markdown
from mmcache_conformance.reports.page import document
from mmcache_conformance.suites.load import ENGINES, AnyVector, defended, load_suite, suite_digest
from mmcache_conformance.targets.protocol import OBSERVABLES
from mmcache_conformance.verdicts.model import (
    Breach,
    CallFailure,
    Difference,
    PassFailure,
    RunReport,
    TargetReport,
    Verdict,
)
from mmcache_conformance.verdicts.run import run_target, summarise
from mmcache_vectors.manager import Vector
from tests.support.drivers import SHORT, short_vectors, without

HOSTILE = "</script><script>document.title='owned'</script>&\"'\x00\x1b[31m\ud800`````|*_"
WRONG = "tests.known_bad.managers:UnfilteredReport"


@pytest.fixture(scope="module")
def vectors() -> tuple[Vector, ...]:
    return short_vectors()


def report_on(spec: str, vectors: Sequence[Vector]) -> TargetReport:
    return run_target(open_target(spec, in_process=True), vectors, stretch=False)


def failing(vectors: Sequence[Vector]) -> int:
    """How many vectors an unfiltered report fails."""
    return sum("unfiltered_report" in v.kills for v in vectors)


def hostile(vectors: Sequence[Vector]) -> RunReport:
    """A run in which whatever can be said by an engine is hostile; every outcome occurs."""
    v = vectors[0]
    about = (v.clauses, v.variant, v.manager)
    failure = CallFailure(0, v.steps[0].call, (Difference("error", None, HOSTILE),), HOSTILE)
    verdicts = (
        Verdict(v.id, "fail", *about, failure=failure, stderr=HOSTILE),
        Verdict(v.id, "error", *about, reason=HOSTILE, stderr=HOSTILE),
        Verdict(v.id, "xfail", *about, reason=HOSTILE, link="https://example.org/?a&b"),
        Verdict(v.id, "xpass", *about, reason=HOSTILE, link="https://example.org/"),
        Verdict(v.id, "skip", *about, reason=HOSTILE),
        Verdict(v.id, "pass", *about),
    )
    found = report_on("reference", ()).implementation
    reports = (
        TargetReport(f"cmd:{HOSTILE}", found, None, 0.1, verdicts),
        TargetReport("cmd:absent", None, HOSTILE, 0.1, ()),
    )
    return summarise(reports, vectors[:1])


class Tags(html.parser.HTMLParser):
    """The elements and links of a page; complains of what is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        if tag not in {"meta", "link", "br", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


class TestLanes:
    def test_the_defect_that_started_this(self, vectors: tuple[Vector, ...]) -> None:
        vector = next(v for v in vectors if v.id.startswith("unfiltered-report-c"))
        (verdict,) = report_on(WRONG, (vector,)).verdicts
        assert isinstance(verdict.failure, CallFailure)
        told = rows(vector, verdict.failure, OBSERVABLES)
        assert [row.ledger.cached for row in told] == [
            (("A", "r1"),), (("A", "nobody"),), (), (("A", "r1"),), (("A", "r1"),),
        ]  # fmt: skip
        assert [row.ledger.free_slots for row in told] == [0, 0, 1, 0, 0]
        assert [row.own for row in told] == [None] * 4 + [told[-1].ledger]
        assert [row.worker for row in told] == [("A",)] * 5
        assert [row.instead for row in told] == [None] * 4 + [()]
        assert told[0].change == "encodes A"

    @pytest.mark.parametrize("most", [20, pytest.param(100, marks=pytest.mark.slow)])
    def test_every_vector_can_be_drawn_at_every_step(
        self, vectors: tuple[Vector, ...], most: int
    ) -> None:
        """Those of many steps at some, and at the last: each is drawn with all before it."""
        for vector in vectors:
            last = len(vector.steps) - 1
            for k in range(last + 1) if last < most else (0, last // 2, last):
                step = vector.steps[k]
                failure = CallFailure(k, step.call, (Difference("error", None, "no"),), "")
                drawn = rows(vector, failure, OBSERVABLES)
                assert len(drawn) == k + 1
                assert drawn[-1].own is None  # of a call that failed nothing is known

    def test_the_own_ledger_is_what_the_target_shows(self, vectors: tuple[Vector, ...]) -> None:
        """A release that came too early: the target's entry is unreferenced, the specified not."""
        vector = next(v for v in vectors if v.id.startswith("one-position-of-two-is-freed"))
        (verdict,) = report_on(
            "tests.known_bad.managers:FirstOccurrenceRelease", (vector,)
        ).verdicts
        assert isinstance(verdict.failure, CallFailure)
        last = rows(vector, verdict.failure, OBSERVABLES)[-1]
        assert last.ledger == Ledger((("A", "r1"),), (), 0)
        assert last.own == Ledger((("A", "nobody"),), ("A",), 0)
        hidden = rows(vector, verdict.failure, ("num_free_slots",))[-1]
        assert hidden.own == Ledger(None, None, 0)

    @pytest.mark.parametrize(
        ("own", "says"),
        [
            ({"B": ()}, "dropped: its own ledger has evicted it"),
            ({"A": ()}, "dropped, though its own ledger counts on it"),
            (None, "dropped, though the specified ledger counts on it"),
            ("no mapping", "dropped, though the specified ledger counts on it"),
        ],
    )
    def test_a_dropped_tensor_is_judged_by_the_ledger_of_the_target(
        self, vectors: tuple[Vector, ...], own: Any, says: str
    ) -> None:
        vector = next(v for v in vectors if v.id.startswith("unfiltered-report-c"))
        found = report_on("reference", ()).implementation
        assert found is not None
        if own is None:
            offered = dict.fromkeys(found.capabilities, ("num_free_slots",))
            found = msgspec.structs.replace(found, capabilities=offered)
        step = vector.steps[4]
        differences = [Difference("returns", (), ("A",))]
        if own is not None:
            differences.append(Difference("cached", {"A": ("r1",)}, own))
        failure = CallFailure(4, step.call, tuple(differences), "")
        verdict = Verdict(
            vector.id, "fail", vector.clauses, vector.variant, vector.manager, failure=failure
        )
        report = TargetReport("a target", found, None, 0.1, (verdict,))
        page = run_page(summarise((report,), (vector,)), (vector,))
        assert says in page
        assert len(re.findall(r"dropped[,:]", re.sub(r'title="[^"]*"', "", page))) == 1


class TestHtml:
    def test_it_asks_nothing_of_the_network(self, vectors: tuple[Vector, ...]) -> None:
        reports = [report_on(spec, vectors) for spec in ("reference", WRONG)]
        page = run_page(summarise(reports, vectors), vectors)
        tags = Tags(page)
        assert tags.open == []
        within = {link for link in tags.links if link.startswith("#")}
        assert set(tags.links) - within == {"data:,"}
        assert {link.removeprefix("#") for link in within} <= set(
            re.findall(r' id="([^"]+)"', page)
        )
        assert len(within) == 2 * len(vectors)  # each verdict has a name on the page
        assert not re.search(r"@import|url\(", page)
        assert page.count('class="step broken"') == failing(vectors)
        assert suite_digest(vectors) in page
        assert all(page.count(vector.id) >= 2 for vector in vectors)

    def test_nothing_that_an_engine_says_is_markup(self, vectors: tuple[Vector, ...]) -> None:
        page = run_page(hostile(vectors), vectors)
        tags = Tags(page)
        assert tags.open == []
        assert tags.seen.count("script") == 1
        assert "https://example.org/?a&amp;b" in page
        assert tags.seen.count("article") == 6


def hostile_engine() -> tuple[RunReport, tuple[AnyVector, ...]]:
    """A run in which whatever an engine can say is hostile."""
    vector = next(v for v in load_suite(None, ENGINES) if v.clauses)
    target = ReferencePass("preemption_keeps_unencoded_entry")
    report = run_target(
        target, [v for v in load_suite(None, ENGINES) if "same-pass" in v.id], stretch=False
    )
    (verdict,) = report.verdicts
    assert isinstance(verdict.failure, PassFailure)
    record = msgspec.structs.replace(
        verdict.failure.records[-1], report=(HOSTILE,), worker=(HOSTILE,), preempted=(HOSTILE,)
    )
    breach = Breach(record.number, "S1", HOSTILE)
    failure = PassFailure((breach,), (record,), HOSTILE)
    about = (vector.clauses, vector.variant, vector.kind)
    verdicts = (
        Verdict(vector.id, "fail", *about, failure=failure, passes=1, reached=True),
        Verdict(vector.id, "pass", *about, passes=1, reached=False),
    )
    found = TargetReport(HOSTILE, report.implementation, None, 0.1, verdicts)
    return summarise([found], [vector]), (vector,)


class TestEngines:
    """The same reports tell of passes."""

    def test_the_page(self) -> None:
        run, vectors = hostile_engine()
        page = run_page(run, vectors)
        tags = Tags(page)
        assert tags.open == []
        assert tags.seen.count("script") == 1
        assert "The situation did not come up." in page
        assert page.count("✗ &lt;/script&gt;") + page.count("✗ S1: ") == 1

    def test_the_summary(self) -> None:
        run, vectors = hostile_engine()
        text = run_markdown(run, vectors)
        outside = re.sub(r"^(`{3,})text$.*?^\1$", "", text, flags=re.M | re.S)
        assert "<script" not in re.sub(r"(?<!\\)`[^`]*`", "", outside)
        assert "S1: </script>" in text

    def test_junit(self) -> None:
        run, vectors = hostile_engine()
        (suite,) = ET.fromstring(junit_xml(run, vectors))
        first, second = suite.findall("testcase")
        assert first.get("classname") == "mmcache.engine." + "-".join(vectors[0].clauses)
        (failure,) = first
        assert "S1: </script>" in str(failure.text)
        assert list(second) == []


class TestJunit:
    def test_counts_and_content(self, vectors: tuple[Vector, ...]) -> None:
        run = hostile(vectors)
        root = ET.fromstring(junit_xml(run, vectors))
        first, second = root.findall("testsuite")
        assert [first.get(k) for k in ("tests", "failures", "errors", "skipped")] == list("6212")
        assert [second.get(k) for k in ("tests", "failures", "errors", "skipped")] == list("1010")
        cases = first.findall("testcase")
        inside = [[child.tag for child in case if child.tag != "system-err"] for case in cases]
        assert inside == [["failure"], ["error"], ["skipped"], ["failure"], ["skipped"], []]
        properties = {p.get("name"): p.get("value") for p in first.iter("property")}
        assert properties["suite.digest"] == run.suite.digest

    def test_a_failure_is_told(self, vectors: tuple[Vector, ...]) -> None:
        run = summarise([report_on(WRONG, vectors)], vectors)
        text = junit_xml(run, vectors).decode()
        assert text.count("<failure") == failing(vectors)
        assert (
            "reproduce: mmcache-conformance run tests.known_bad.managers:UnfilteredReport -k "
            in text
        )


class TestMarkdown:
    def test_a_summary(self, vectors: tuple[Vector, ...]) -> None:
        text = run_markdown(summarise([report_on(WRONG, vectors)], vectors), vectors)
        lines = text.splitlines()
        assert lines[0] == "## Encoder cache conformance: failed"
        assert f"digest `{suite_digest(vectors)}`." in lines[2]
        assert any(line.startswith("| L1 | report_disjoint_from_cached | ❌ 0/") for line in lines)
        assert text.count("<details>") == text.count("</details>") == failing(vectors)

    def test_nothing_that_an_engine_says_is_markup(self, vectors: tuple[Vector, ...]) -> None:
        text = run_markdown(hostile(vectors), vectors)
        outside = re.sub(r"^(`{3,})text$.*?^\1$", "", text, flags=re.M | re.S)
        assert "`cmd:</script>" in outside
        assert "<script" not in re.sub(r"(?<!\\)`[^`]*`", "", outside)
        assert text.count("``````text") == 3
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_the_command_writes_them(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    files = [tmp_path / name for name in ("x.html", "x.xml", "x.md")]
    words = [
        "run",
        WRONG,
        "--plain",
        "-k",
        SHORT,
        "--html",
        files[0],
        "--junit",
        files[1],
        "--markdown",
        files[2],
    ]
    result = CliRunner().invoke(cli, list(map(str, words)))
    assert result.exit_code == 1
    assert [file.read_bytes()[:5] for file in files] == [b"<!doc", b"<?xml", b"## En"]
    result = CliRunner().invoke(cli, ["run", "--html", str(tmp_path / "no" / "x.html")])
    assert result.exit_code == 2
    assert "there is no directory" in result.output


# --- in a real browser -------------------------------------------------------------------------

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--allow-file-access-from-files --virtual-time-budget=3000"
)


def rendered(page: Path, *flags: str) -> str:
    """The document after its script has run, as the browser writes it."""
    names = ("chromium", "google-chrome", "chromium-browser")
    browser = next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        without("chromium")
    with tempfile.TemporaryDirectory() as profile:
        words = [*shlex.split(FLAGS), f"--user-data-dir={profile}", *flags, "--dump-dom"]
        done = subprocess.run(
            [str(browser), *words, page.as_uri()], capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


PROBE = """
<script>
addEventListener("load", async () => {
  const frame = document.querySelector("iframe");
  const page = frame.contentDocument;
  const shown = () => [...page.querySelectorAll("article")].filter((a) => !a.hidden).length;
  const choose = (name, value) => {
    const form = page.getElementById("filters");
    form.elements[name].value = value;
    form.dispatchEvent(new Event("input"));
    return shown();
  };
  const back = getComputedStyle(page.body).backgroundColor;
  const first = shown();
  const found = {
    title: page.title, back, first,
    overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
    all: choose("outcome", ""), clause: choose("clause", "L1"), text: choose("text", "nowhere"),
    none: !page.getElementById("none").hidden,
    requests: frame.contentWindow.performance.getEntriesByType("resource").length,
  };
  document.title = JSON.stringify(found);
});
</script>
"""


def probed(directory: Path, page: str, width: int, *flags: str) -> dict[str, object]:
    """What a script in the browser sees of the page in a frame of that width."""
    (directory / "page.html").write_text(page, encoding="utf-8", errors="replace")
    frame = f'<iframe src="page.html" style="width:{width}px;height:2000px;border:0"></iframe>'
    outer = directory / "outer.html"
    outer.write_text(f"<!doctype html><title>not run</title>{frame}{PROBE}")
    dumped = rendered(outer, *flags)
    title = re.search(r"<title>(.*?)</title>", dumped, re.S)
    assert title is not None
    found: dict[str, object] = json.loads(html.unescape(title[1]))
    return found


@pytest.mark.parametrize("width", [390, pytest.param(1100, marks=pytest.mark.slow)])
def test_in_a_browser(width: int, tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    reports = [report_on(spec, vectors) for spec in ("reference", WRONG)]
    page = run_page(summarise(reports, vectors), vectors)
    found = probed(tmp_path, page, width)
    about_l1 = sum("L1" in defended()[v.id] for v in vectors)
    assert found == {
        "title": "Encoder cache conformance",
        "back": "rgb(255, 255, 255)",
        "first": failing(vectors),
        "overflow": 0,
        "all": 2 * len(vectors),
        "clause": 2 * about_l1,
        "text": 0,
        "none": True,
        "requests": 0,
    }


@pytest.mark.slow
def test_in_the_dark(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    page = run_page(summarise([report_on(WRONG, vectors)], vectors), vectors)
    found = probed(tmp_path, page, 390, "--blink-settings=preferredColorScheme=0")
    assert found["back"] == "rgb(15, 18, 22)"


def test_a_hostile_page_runs_no_script_of_others(
    tmp_path: Path, vectors: tuple[Vector, ...]
) -> None:
    found = probed(tmp_path, run_page(hostile(vectors), vectors), 390)
    assert found["title"] == "Encoder cache conformance"
    assert found["overflow"] == 0


@pytest.mark.slow
def test_the_probe_sees_a_page_that_is_too_wide(tmp_path: Path) -> None:
    body = (
        '<div style="width:900px">x</div><form id="filters">'
        '<input name="outcome"><input name="clause"><input name="text"></form><p id="none"></p>'
    )
    found = probed(tmp_path, document("wide", body), 390)
    assert int(str(found["overflow"])) > 400


# --- the decisions come first ------------------------------------------------------------------


@pytest.fixture(scope="module")
def explained_run(vectors: tuple[Vector, ...]) -> RunReport:
    reports = [
        explained(report_on(spec, vectors), vectors) for spec in (WRONG, PARTLY, "reference")
    ]
    return summarise(reports, vectors)


PARTLY = "tests.known_bad.managers:Uncharged"
OUGHT = "A hash in the report is not cached when it is reported."


def test_the_page_begins_with_the_decisions(
    explained_run: RunReport, vectors: tuple[Vector, ...]
) -> None:
    page = run_page(explained_run, vectors)
    first = page.index("1 decision")
    assert first < page.index("By clause") < page.index("<article")
    assert page.index("unfiltered_report") > first
    assert 'href="https://github.com/vllm-project/vllm/issues/52482"' in page
    assert f"How it ought to be: {OUGHT}" in page
    assert 'href="#clause-L1"' in page
    assert '<tr id="clause-L1">' in page
    assert "no known decision explains what failed" in page
    ids = set(re.findall(r' id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= ids
    assert Tags(page).open == []


def test_the_summary_begins_with_the_decisions(
    explained_run: RunReport, vectors: tuple[Vector, ...]
) -> None:
    text = run_markdown(explained_run, vectors)
    assert text.index("1 decision:") < text.index("unfiltered") < text.index("| clause |")
    assert "vllm#52482" in text.partition("| clause |")[0]
    assert OUGHT in text


def test_junit_has_the_decisions_before_the_cases(
    explained_run: RunReport, vectors: tuple[Vector, ...]
) -> None:
    suite = ET.fromstring(junit_xml(explained_run, vectors)).find("testsuite")
    assert suite is not None
    properties = {p.get("name"): p.get("value", "") for p in suite.iter("property")}
    assert properties["decisions"] == "1 decision:"
    assert properties["decisions.1"].startswith("unfiltered_report, vllm#52482, ")
    messages = [f.get("message", "") for f in suite.iter("failure")]
    assert messages
    assert all(m.startswith("as unfiltered_report does: ") for m in messages)
