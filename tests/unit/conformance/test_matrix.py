"""The matrix: rows in order, what they have in common, and whatever will not run."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.errors import TargetNameError
from mmcache_conformance.matrix.choose import choose_releases
from mmcache_conformance.matrix.defects import defects, has_defect, unexplained
from mmcache_conformance.matrix.report import (
    RULE,
    defect_line,
    matrix_markdown,
    matrix_page,
    matrix_schema,
)
from mmcache_conformance.matrix.run import matrix_of, run_matrix
from mmcache_conformance.open import Target, open_target
from mmcache_conformance.targets.vllm.source import find_source
from mmcache_conformance.targets.vllm.wheel import IndexUnreachable
from mmcache_conformance.verdicts.model import TargetReport, Verdict
from mmcache_vectors.manager import Vector
from tests.support.drivers import short_vectors

from .test_reports import Tags

WRONG = "tests.known_bad.managers:UnfilteredReport"
ALSO_WRONG = "mmcache_conformance.engines.reference:Unfiltered"


@pytest.fixture(scope="module")
def vectors() -> tuple[Vector, ...]:
    return short_vectors()


def row(
    name: str, vectors: Sequence[Vector], failing: frozenset[str] | set[str] = frozenset()
) -> TargetReport:
    verdicts = tuple(
        Verdict(v.id, "fail" if v.id in failing else "pass", v.clauses, v.variant, v.kind)
        for v in vectors
    )
    return TargetReport(name, None, None, 0.0, verdicts)


def killed_by(vectors: Sequence[Vector], variant: str) -> set[str]:
    return {v.id for v in vectors if variant in v.kills}


class TestChoice:
    KNOWN = ("0.9.2", "0.10.2", "0.10.10", "0.11.0rc1", "0.11.0", "0.11.1.dev3", "junk", "0.12.0")

    @pytest.mark.parametrize(
        ("expression", "chosen"),
        [
            ("0.10.2..", "0.10.2 0.10.10 0.11.0 0.12.0"),
            ("..0.10.2", "0.9.2 0.10.2"),
            ("0.10.3..0.11.0", "0.10.10 0.11.0"),
            ("latest:2", "0.11.0 0.12.0"),
            ("latest:99", "0.9.2 0.10.2 0.10.10 0.11.0 0.12.0"),
            ("0.11.0rc1", "0.11.0rc1"),
            ("v0.99.0, 0.9.2,0.99.0", "0.9.2 0.99.0"),
            ("latest:1,0.9.2", "0.9.2 0.12.0"),
        ],
    )
    def test_it_is_in_the_order_of_versions(self, expression: str, chosen: str) -> None:
        assert choose_releases(expression, lambda: self.KNOWN) == tuple(chosen.split())

    @pytest.mark.parametrize("expression", ["", "latest:0", "latest:x", "1..2", "x..", "a,b", ","])
    def test_it_says_what_it_does_not_understand(self, expression: str) -> None:
        with pytest.raises(TargetNameError):
            choose_releases(expression, lambda: self.KNOWN)

    def test_names_need_no_list(self) -> None:
        def no_index() -> tuple[str, ...]:
            raise AssertionError

        assert choose_releases("0.10.2,0.9", no_index) == ("0.9", "0.10.2")


class TestRunning:
    def test_in_order_whatever_will_not_run(self) -> None:
        vectors = short_vectors()
        unfiltered = killed_by(vectors, "unfiltered_report")
        names = [WRONG, "reference", "no_such_module:Class", "nonsense", "reference"]
        seen: list[str] = []
        rows = run_matrix(names, vectors, lambda report: seen.append(report.target))
        assert [r.target for r in rows] == names
        assert seen == names[:-1]
        assert [r.count()["fail"] for r in rows] == [len(unfiltered), 0, 0, 0, 0]
        assert "no_such_module" in str(rows[2].reason)
        assert "does not name a target" in str(rows[3].reason)

    def test_a_row_that_breaks_the_harness_costs_no_other(
        self, vectors: tuple[Vector, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(name: str, **options: Any) -> Target:
            if name == WRONG:
                raise OSError("disk")
            return open_target(name, **options)

        monkeypatch.setattr("mmcache_conformance.matrix.run.open_target", broken)
        one, other = run_matrix([WRONG, "reference"], vectors)
        assert str(one.reason).startswith("OSError: disk")
        assert other.count()["pass"] == len(vectors)

    def test_what_a_target_prints_is_no_output(
        self, vectors: tuple[Vector, ...], capfd: pytest.CaptureFixture[str]
    ) -> None:
        (only,) = run_matrix(["tests.known_bad.misbehaving:Prints"], vectors)
        assert only.count()["pass"] > 0
        printed = capfd.readouterr()
        assert (printed.out, printed.err) == ("", "")


class TestDefects:
    def test_first_and_last(self, vectors: tuple[Vector, ...]) -> None:
        bad = killed_by(vectors, "unfiltered_report")
        names = ("vllm:1", "vllm:2", "vllm:3", "vllm:4")
        rows = [row(n, vectors, bad if n in names[1:3] else set()) for n in names]
        (found,) = defects(rows, vectors)
        assert (found.variant, found.clauses) == ("unfiltered_report", ("L1",))
        assert (found.first_with, found.last_with, found.first_without) == (*names[1:3], "vllm:4")
        assert defect_line(found) == ("first met in 2, last in 3; 4 is the first after it without")

    def test_one_that_is_still_there(self, vectors: tuple[Vector, ...]) -> None:
        bad = killed_by(vectors, "unfiltered_report")
        (found,) = defects([row("vllm:1", vectors, bad)], vectors)
        assert defect_line(found) == "met in 1 only; no later one is without it"

    @pytest.mark.parametrize(
        ("rows_with_it", "gaps"),
        [("1", False), ("12", False), ("1234", False), ("13", True), ("124", True), ("24", True)],
    )
    def test_one_that_comes_back(
        self, vectors: tuple[Vector, ...], rows_with_it: str, gaps: bool
    ) -> None:
        bad = killed_by(vectors, "unfiltered_report")
        rows = [row(f"vllm:{n}", vectors, bad if n in rows_with_it else set()) for n in "1234"]
        (found,) = defects(rows, vectors)
        assert found.gaps is gaps
        assert ("but not in all between" in defect_line(found)) is gaps

    def test_a_row_of_which_nothing_is_known_is_no_gap(self, vectors: tuple[Vector, ...]) -> None:
        bad = killed_by(vectors, "unfiltered_report")
        rows = [row("vllm:1", vectors, bad), row("vllm:2", ()), row("vllm:3", vectors, bad)]
        (found,) = defects(rows, vectors)
        assert (found.gaps, found.rows) == (False, ("vllm:1", "vllm:3"))

    def test_a_single_failure_is_no_defect(self, vectors: tuple[Vector, ...]) -> None:
        one = next(v.id for v in vectors if "unfiltered_report" in v.kills)
        only = row("vllm:1", vectors, {one})
        assert has_defect(only, "unfiltered_report", vectors) is False
        assert unexplained(only, vectors) == (one,)

    def test_where_nothing_applies_nothing_is_known(self, vectors: tuple[Vector, ...]) -> None:
        assert has_defect(row("vllm:1", ()), "unfiltered_report", vectors) is None

    def test_every_variant_is_told_from_every_other(self, vectors: tuple[Vector, ...]) -> None:
        """An engine with one wrong decision has that defect, and no failure is unexplained."""
        for variant in dict.fromkeys(name for v in vectors for name in v.kills):
            bad = killed_by(vectors, variant)
            only = row("vllm:1", vectors, bad)
            assert variant in {d.variant for d in defects([only], vectors)}
            assert unexplained(only, vectors) == ()


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, ["matrix", *words], prog_name="mmcache-conformance")


class TestCommand:
    def test_the_wrong_command(self) -> None:
        for words, reason in (
            (["--releases", "newest"], "'newest' is not a release"),
            (["--also", "nonsense"], "does not name a target"),
        ):
            result = invoke(*words)
            assert (result.exit_code, reason in result.output) == (2, True), result.output

    def test_nothing_that_can_be_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        result = invoke("--releases", "latest:1")
        assert result.exit_code == 3
        assert "the package index did not answer" in result.output
        result = invoke("--releases", "0.33.0")
        assert result.exit_code == 3
        assert "0.33.0: not run: vllm 0.33.0 is not in the cache" in result.output

    def test_a_defect_that_comes_back_and_what_counts_as_one(
        self, short_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        also = (word for name in (WRONG, "reference", ALSO_WRONG) for word in ("--also", name))
        some = ("--vectors", str(short_folder))
        result = invoke("--in-process", "--releases", "0.0.1", *also, *some)
        assert result.exit_code == 0, result.output
        line = f"first met in {WRONG}, last in {ALSO_WRONG}, but not in all between; no later"
        assert line in result.output
        assert " ".join(RULE.split()) in " ".join(result.output.split())


@pytest.fixture
def few() -> str:
    """Some releases that are out of scope, wrong, and less wrong."""
    try:
        for version in ("0.9.2", "0.27.1", "0.28.0"):
            find_source(version)
    except IndexUnreachable as error:
        if os.environ.get("CI"):
            raise
        warnings.warn(f"NOT TESTED without a network: {error}", stacklevel=2)
        pytest.skip(str(error))
    return "0.9.2,0.27.1,0.28.0"


@pytest.mark.network
class TestReleases:
    def test_the_files(self, few: str, tmp_path: Path, short_folder: Path) -> None:
        to = ("--out", str(tmp_path / "out"), "--vectors", str(short_folder))
        result = invoke("--in-process", "--releases", few, *to, "--also", WRONG)
        assert result.exit_code == 0, result.output
        assert "0.9.2: not run: out of scope: " in result.output
        assert (
            "L1 unfiltered_report, vllm#52482: first met in 0.27.1, "
            "last in tests.known_bad.managers:UnfilteredReport, "
            "but not in all between; no later one is without it"
        ) in result.output
        document = json.loads((tmp_path / "out" / "matrix.json").read_text())
        jsonschema.Draft202012Validator(matrix_schema()).validate(document)
        assert [r["target"] for r in document["rows"]][1:3] == ["vllm:0.27.1", "vllm:0.28.0"]
        page = (tmp_path / "out" / "matrix.html").read_text()
        tags = Tags(page)
        known = "https://github.com/vllm-project/"
        asked = {link for link in tags.links if not link.startswith(known)}
        assert (tags.open, asked) == ([], {"data:,"})
        text = (tmp_path / "out" / "matrix.md").read_text()
        assert "| 0.28.0 | ✓ |" in text
        assert re.search(r"Run on \d{4}-\d\d-\d\d: 3 targets", text)


def test_pages_are_safe_and_say_what_is_unexplained(vectors: tuple[Vector, ...]) -> None:
    one = next(v.id for v in vectors if "unfiltered_report" in v.kills)
    found = row("vllm:1", vectors, {one})
    implementation = run_matrix(["reference"], ())[0].implementation
    rows = (
        msgspec.structs.replace(found, implementation=implementation),
        TargetReport("vllm:<b>2", None, "<script>", 0.0, ()),
    )
    matrix = matrix_of(rows, vectors, "2026-01-31")
    page = matrix_page(matrix, vectors)
    assert Tags(page).seen.count("script") == 1
    assert Tags(page).seen.count("b") == 0
    line = f"1 fails, for no reason that the specification lists: {one}"
    assert line in page
    assert line in matrix_markdown(matrix, vectors)
