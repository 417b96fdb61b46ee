"""Failures that an implementer knows about: a strict list, beside the adapter.

An entry names a vector or a clause, says why it fails and where that is dealt with. What is listed
must go on failing: an entry that is no longer true fails the run, so that the list shrinks.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from mmcache_vectors.document import DocumentError, convert, read, schema_of

from ..suites.load import AnyVector, defended
from .model import Outcome, TargetReport, Verdict

__all__ = [
    "ExpectedFailure",
    "ExpectedFailures",
    "ExpectedFailuresError",
    "apply_expected",
    "expected_failures_schema",
    "load_expected",
]

Text = Annotated[str, msgspec.Meta(min_length=1)]


class ExpectedFailuresError(DocumentError):
    """The file cannot be used: which file, where in it, why."""


class ExpectedFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry. Exactly one of `vector` and `clause` is given."""

    vector: Text | None = None
    """The id of a vector, which fails."""
    clause: Text | None = None
    """The id of a clause: at least one vector breaks it, and all that break it are expected to."""
    outcome: Literal["fail", "error"] = "fail"
    """`error` for an engine that takes its process down, or never answers."""
    reason: Text
    link: Annotated[str, msgspec.Meta(pattern="^https?://")]

    def covers(self, verdict: Verdict) -> bool:
        """Whether it is about the vector: it names it, or the clause that its failure broke.

        Of a vector that did not fail, a clause is meant if the vector defends it.
        """
        return self.vector == verdict.id or self.clause in verdict.charged

    def text(self) -> str:
        return f"vector {self.vector}" if self.vector is not None else f"clause {self.clause}"


class ExpectedFailures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file, in TOML or JSON."""

    format: Literal["mmcache/expected-failures"]
    format_version: Literal[1]
    expected: tuple[ExpectedFailure, ...] = ()


def load_expected(path: Path, suite: Sequence[AnyVector]) -> ExpectedFailures:
    """Read and check a file against the whole suite. Raises `ExpectedFailuresError`."""
    document = _parse(path, read(path, error=ExpectedFailuresError))
    found = convert(document, str(path), ExpectedFailures, error=ExpectedFailuresError)
    _check(path, found, suite)
    return found


def _parse(path: Path, content: bytes) -> Any:
    if path.suffix not in {".toml", ".json"}:
        raise ExpectedFailuresError(f"{path}: the name should end with .toml or .json")
    try:
        text = content.decode()
        return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        what = path.suffix[1:].upper()
        raise ExpectedFailuresError(f"{path}: not {what}: {error}") from None


def _check(path: Path, found: ExpectedFailures, suite: Sequence[AnyVector]) -> None:
    known: Mapping[str, set[str]] = {
        "vector": {v.id for v in suite},
        "clause": {c for v in suite for c in (*v.clauses, *defended().get(v.id, ()))},
    }
    seen: set[str] = set()
    for k, entry in enumerate(found.expected):
        where = f"{path}: at $.expected[{k}]"
        if (entry.vector is None) is (entry.clause is None):
            raise ExpectedFailuresError(f"{where}: give either vector or clause")
        kind, name = ("vector", entry.vector) if entry.vector else ("clause", entry.clause)
        assert name is not None
        if name not in known[kind]:
            near = get_close_matches(name, sorted(known[kind]), n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise ExpectedFailuresError(f"{where}.{kind}: the suite has no {kind} {name!r}{hint}")
        if entry.text() in seen:
            raise ExpectedFailuresError(f"{where}: {entry.text()} is listed twice")
        seen.add(entry.text())


def apply_expected(
    report: TargetReport, expected: ExpectedFailures, suite: Sequence[AnyVector]
) -> TargetReport:
    """The report in which listed failures are expected, and lapsed entries are failures.

    An entry about a clause is judged only if every vector of the clause was run or skipped, since
    any one of them may be the one that fails.
    """
    verdicts = list(report.verdicts)
    done = {verdict.id for verdict in verdicts}
    for entry in expected.expected:
        covered = [k for k, verdict in enumerate(report.verdicts) if entry.covers(verdict)]
        failing = [k for k in covered if report.verdicts[k].outcome == entry.outcome]
        for k in failing:
            verdicts[k] = _with(verdicts[k], "xfail", entry.reason, entry.link)
        complete = entry.vector is not None or all(
            v.id in done for v in suite if entry.clause in v.clauses
        )
        if failing or not complete:
            continue
        lapsed = f"{entry.text()} is an expected failure, but passes: {entry.reason}"
        for k in covered:
            if report.verdicts[k].outcome == "pass":
                verdicts[k] = _with(verdicts[k], "xpass", lapsed, entry.link)
    return msgspec.structs.replace(report, verdicts=tuple(verdicts))


def _with(verdict: Verdict, outcome: Outcome, reason: str, link: str) -> Verdict:
    return msgspec.structs.replace(verdict, outcome=outcome, reason=reason, link=link)


def expected_failures_schema() -> dict[str, Any]:
    """The JSON Schema of the file (draft 2020-12)."""
    return schema_of(ExpectedFailures, "mmcache expected failures, version 1")
