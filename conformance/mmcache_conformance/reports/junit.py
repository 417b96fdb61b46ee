"""A run as JUnit XML, for systems that show test results: one suite a target, one case a vector."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from ..suites.load import AnyVector
from ..verdicts.model import RunReport, TargetReport, Verdict
from .decisions import decision_lines, untested_lines
from .story import failure_story

__all__ = ["junit_xml"]


def junit_xml(run: RunReport, vectors: Sequence[AnyVector]) -> bytes:
    """The document. A target that could not be started is a suite with one error."""
    by_id = {vector.id: vector for vector in vectors}
    root = ET.Element("testsuites", name="mmcache-conformance")
    for report in run.targets:
        root.append(_suite(report, run, by_id))
    ET.indent(root)
    body: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return body + b"\n"


def _suite(report: TargetReport, run: RunReport, by_id: dict[str, AnyVector]) -> ET.Element:
    count = report.count()
    started = report.implementation is not None
    suite = ET.Element(
        "testsuite",
        name=_clean(report.target),
        tests=str(count.total() + int(not started)),
        failures=str(count["fail"] + count["xpass"]),
        errors=str(count["error"] + int(not started)),
        skipped=str(count["skip"] + count["xfail"]),
        time=f"{report.seconds:.3f}",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("suite.version", run.suite.version),
        ("suite.digest", run.suite.digest),
    ):
        ET.SubElement(properties, "property", name=name, value=value)
    for k, line in enumerate((*decision_lines(report), *untested_lines(report))):
        name = "decisions" if k == 0 else f"decisions.{k}"
        ET.SubElement(properties, "property", name=name, value=_clean(line.strip()))
    if not started:
        case = ET.SubElement(suite, "testcase", classname="mmcache", name="start")
        _add(case, "error", "could not be started", report.reason or "")
    for verdict in report.verdicts:
        suite.append(_case(verdict, by_id[verdict.id]))
    return suite


def _case(verdict: Verdict, vector: AnyVector) -> ET.Element:
    classname = f"mmcache.{verdict.kind}.{'-'.join(verdict.clauses) or 'none'}"
    case = ET.Element("testcase", classname=classname, name=verdict.id)
    if verdict.outcome == "fail" and verdict.failure is not None:
        first = vector.description.partition("\n")[0]
        if verdict.decision is not None:
            first = f"as {verdict.decision} does: {first}"
        _add(case, "failure", first, failure_story(vector, verdict.failure, verdict))
    elif verdict.outcome == "xpass":
        _add(case, "failure", "passes, although it is expected to fail", verdict.reason or "")
    elif verdict.outcome == "error":
        _add(case, "error", verdict.reason or "", verdict.reason or "")
    elif verdict.outcome == "xfail":
        _add(case, "skipped", f"expected to fail: {verdict.reason} ({verdict.link})", "")
    elif verdict.outcome == "skip":
        _add(case, "skipped", verdict.reason or "", "")
    if verdict.stderr is not None:
        ET.SubElement(case, "system-err").text = _clean(verdict.stderr)
    return case


def _add(case: ET.Element, tag: str, message: str, text: str) -> None:
    ET.SubElement(case, tag, message=_clean(message)).text = _clean(text)


def _clean(text: str) -> str:
    """XML has no way to write most control characters, and none to write half a surrogate."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
