"""A strict list: what it names fails as expected, and what it names wrongly fails the run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.verdicts.expected import (
    ExpectedFailuresError,
    apply_expected,
    expected_failures_schema,
    load_expected,
)
from mmcache_conformance.verdicts.model import TargetReport, Verdict
from mmcache_vectors.manager import Vector
from tests.support.drivers import SHORT, short_vectors

LINK = "https://example.org/issues/1"
WRONG = "tests.known_bad.managers:UnfilteredReport"


def entry(**fields: str) -> dict[str, str]:
    return {"reason": "we know", "link": LINK, **fields}


def written(path: Path, *entries: dict[str, str]) -> Path:
    document = {
        "format": "mmcache/expected-failures",
        "format_version": 1,
        "expected": list(entries),
    }
    path.write_text(json.dumps(document))
    return path


def judged(
    path: Path, vectors: tuple[Vector, ...], failing: set[str], *, of: tuple[Vector, ...] = ()
) -> dict[str, str]:
    """The outcomes by id, if these vectors fail and the others pass."""
    verdicts = tuple(
        Verdict(v.id, "fail" if v.id in failing else "pass", v.clauses, v.variant, kind=v.kind)
        for v in of or vectors
    )
    report = TargetReport("x", None, None, 0.0, verdicts)
    found = apply_expected(report, load_expected(path, vectors), vectors)
    return {v.id: v.outcome for v in found.verdicts}


def test_a_vector(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    a, b = vectors[0].id, vectors[1].id
    path = written(tmp_path / "x.json", entry(vector=a))
    assert judged(path, vectors, {a}, of=vectors[:2]) == {a: "xfail", b: "pass"}
    assert judged(path, vectors, {a, b}, of=vectors[:2]) == {a: "xfail", b: "fail"}
    assert judged(path, vectors, set(), of=vectors[:2]) == {a: "xpass", b: "pass"}
    assert judged(path, vectors, set(), of=vectors[1:2]) == {b: "pass"}


def test_a_clause(tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
    mine = [v.id for v in vectors if "L1" in v.clauses]
    path = written(tmp_path / "x.json", entry(clause="L1"))
    other = next(v.id for v in vectors if "L1" not in v.clauses)
    some = judged(path, vectors, {mine[0], other})
    assert Counter(some.values()) == {"pass": len(vectors) - 2, "xfail": 1, "fail": 1}
    assert some[mine[0]] == "xfail"
    none = judged(path, vectors, set())
    assert {id for id, outcome in none.items() if outcome == "xpass"} == set(mine)
    # Of a part of the clause nothing follows.
    part = tuple(v for v in vectors if v.id == mine[0])
    assert judged(path, vectors, set(), of=part) == {mine[0]: "pass"}


def test_an_error_is_expected_only_if_it_says_so(
    tmp_path: Path, vectors: tuple[Vector, ...]
) -> None:
    v = vectors[0]
    verdict = Verdict(v.id, "error", v.clauses, v.variant, v.manager, reason="it crashed")
    report = TargetReport("x", None, None, 0.0, (verdict,))
    for outcome, becomes in (("fail", "error"), ("error", "xfail")):
        path = written(tmp_path / "x.json", entry(vector=v.id, outcome=outcome))
        found = apply_expected(report, load_expected(path, vectors), vectors)
        assert found.verdicts[0].outcome == becomes


HEAD = 'format = "mmcache/expected-failures"\nformat_version = 1\n'
ENTRY = f'[[expected]]\nclause = "L1"\nreason = "x"\nlink = "{LINK}"\n'
WRONG_FILES = {
    "": "at $: Object missing required field `format`",
    "format = ": "not TOML: ",
    HEAD.replace("= 1", "= 2") + ENTRY: "at $.format_version: ",
    HEAD + 'surplus = 1\n': "at $: Object contains unknown field `surplus`",
    HEAD + ENTRY.replace("L1", "L99"): "at $.expected[0].clause: the suite has no clause 'L99'",
    HEAD + ENTRY.replace('clause = "L1"', 'vector = "unfiltered-report-0"'):
        "the suite has no vector 'unfiltered-report-0'; did you mean unfiltered-report-",
    HEAD + ENTRY + ENTRY: "at $.expected[1]: clause L1 is listed twice",
    HEAD + ENTRY + 'vector = "x"\n': "at $.expected[0]: give either vector or clause",
    HEAD + ENTRY.replace('clause = "L1"\n', ""): "at $.expected[0]: give either vector or clause",
    HEAD + ENTRY.replace('reason = "x"\n', ""): "at $.expected[0]: Object missing required field",
    HEAD + ENTRY.replace('reason = "x"', 'reason = ""'): "at $.expected[0].reason: ",
    HEAD + ENTRY.replace("https:", "file:"): "at $.expected[0].link: ",
    HEAD + ENTRY + 'outcome = "skip"\n': "at $.expected[0].outcome: Invalid enum value 'skip'",
}  # fmt: skip


@pytest.mark.parametrize("content", WRONG_FILES)
def test_what_is_wrong_with_a_file_is_said(
    content: str, tmp_path: Path, vectors: tuple[Vector, ...]
) -> None:
    path = tmp_path / "x.toml"
    path.write_text(content)
    with pytest.raises(ExpectedFailuresError) as caught:
        load_expected(path, vectors)
    assert str(caught.value).startswith(f"{path}: ")
    assert WRONG_FILES[content] in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [("x.json", b"{"), ("x.json", b"\xff"), ("x", b"")])
def test_not_a_file_of_them(
    name: str, content: bytes, tmp_path: Path, vectors: tuple[Vector, ...]
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExpectedFailuresError, match=r"not JSON|should end with"):
        load_expected(tmp_path / name, vectors)
    with pytest.raises(ExpectedFailuresError, match="No such file"):
        load_expected(tmp_path / "absent.toml", vectors)


def test_the_schema(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(expected_failures_schema())
    good = json.loads(written(tmp_path / "x.json", entry(clause="L1")).read_text())
    validator.validate(good)
    bad = json.loads(written(tmp_path / "x.json", {"clause": "L1"}).read_text())
    assert not validator.is_valid(bad)


class TestCommand:
    def invoke(self, *words: str) -> Result:
        return CliRunner().invoke(
            cli,
            ["run", "--in-process", "--plain", "-k", SHORT, *words],
            prog_name="mmcache-conformance",
        )

    def test_an_expected_failure_does_not_fail_the_run(self, tmp_path: Path) -> None:
        mine = [v.id for v in short_vectors() if "unfiltered_report" in v.kills]
        path = written(tmp_path / "x.json", *(entry(vector=id) for id in mine))
        assert self.invoke(WRONG).exit_code == 1
        result = self.invoke(WRONG, "--expected", str(path))
        assert result.exit_code == 0, result.output
        assert f"{WRONG}: {len(mine)} failed as expected: we know ({LINK})" in result.output
        document: Any = json.loads(self.invoke(WRONG, "--expected", str(path), "--json").output)
        counted = Counter(v["outcome"] for v in document["targets"][0]["verdicts"])
        assert counted["xfail"] == len(mine)
        assert document["exit_code"] == 0

    def test_one_that_passes_fails_the_run(self, tmp_path: Path) -> None:
        path = written(tmp_path / "x.json", entry(clause="L1"))
        result = self.invoke("reference", "--expected", str(path))
        assert result.exit_code == 1
        assert "UNEXPECTED PASS" in result.output
        assert "clause L1 is an expected failure, but passes: we know" in result.output

    def test_it_is_about_one_target(self, tmp_path: Path) -> None:
        path = written(tmp_path / "x.json")
        result = self.invoke("reference", WRONG, "--expected", str(path))
        assert result.exit_code == 2
        assert "--expected is about one target" in result.output

    def test_a_wrong_file_is_a_wrong_command(self, tmp_path: Path) -> None:
        result = self.invoke("--expected", str(tmp_path / "absent.toml"))
        assert result.exit_code == 2
        assert "No such file" in result.output
