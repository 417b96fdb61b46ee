"""The matrix: in order, parallel, kept, resumable, and tolerant of whatever will not run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.errors import TargetSpecError
from mmcache_conformance.matrix.choose import choose_releases
from mmcache_conformance.matrix.report import (
    defect_line,
    matrix_markdown,
    matrix_page,
    matrix_schema,
)
from mmcache_conformance.matrix.run import (
    Defect,
    ResultCache,
    defects,
    has_defect,
    matrix_of,
    run_matrix,
    unexplained,
    worker_processes,
)
from mmcache_conformance.targets.vllm.source import find_source
from mmcache_conformance.targets.vllm.wheel import IndexUnreachable
from mmcache_conformance.verdicts.model import TargetReport, Verdict
from mmcache_vectors.manager import Vector

from .test_reports import Tags

WRONG = "tests.known_bad.processes:Unfiltered"


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


processes = worker_processes(2)


def row(name: str, vectors: Sequence[Vector], failing: set[str] = frozenset()) -> TargetReport:  # type: ignore[assignment]
    verdicts = tuple(
        Verdict(v.id, "fail" if v.id in failing else "pass", v.clauses, v.variant, v.manager)
        for v in vectors
    )
    return TargetReport(name, None, None, 0.0, verdicts)


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
        with pytest.raises(TargetSpecError):
            choose_releases(expression, lambda: self.KNOWN)

    def test_names_need_no_list(self) -> None:
        def no_index() -> tuple[str, ...]:
            raise AssertionError

        assert choose_releases("0.10.2,0.9", no_index) == ("0.9", "0.10.2")


class TestRunning:
    def test_in_order_whatever_the_executor(self, vectors: tuple[Vector, ...]) -> None:
        unfiltered = [v for v in vectors if "unfiltered_report" in v.kills]
        specs = [WRONG, "reference", "no_such_module:Class", "nonsense", "reference"]
        for executor in (threads, processes):
            rows = run_matrix(specs, vectors, executor)
            assert [r.target for r in rows] == specs
            assert [r.count()["fail"] for r in rows] == [len(unfiltered), 0, 0, 0, 0]
            assert "no_such_module" in str(rows[2].reason)
            assert "does not name a target" in str(rows[3].reason)

    def test_a_target_that_takes_its_process_down(self, vectors: tuple[Vector, ...]) -> None:
        specs = ["reference", "tests.known_bad.processes:Dies", WRONG]
        rows = run_matrix(specs, vectors, processes)
        assert [r.count()["pass"] > 0 for r in rows] == [True, False, True]
        assert rows[1].reason == "the process that ran it died"

    def test_what_a_target_prints_is_no_output(
        self, vectors: tuple[Vector, ...], capfd: pytest.CaptureFixture[str]
    ) -> None:
        (only,) = run_matrix(["tests.known_bad.processes:Prints"], vectors, processes)
        assert only.count()["pass"] > 0
        assert capfd.readouterr().out == ""

    def test_interrupted_it_ends_soon_and_without_a_traceback(self, tmp_path: Path) -> None:
        mark = tmp_path / "mark"
        words = ["matrix", "--releases", "0.0.1", "--jobs", "1"]
        words += ["--also", "tests.known_bad.processes:Slow"]
        words += ["--also", "tests.known_bad.processes:Unfiltered"]
        environment = os.environ | {"SLOW_MARK": str(mark), "XDG_CACHE_HOME": str(tmp_path)}
        environment |= {"PIP_NO_INDEX": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
        process = subprocess.Popen(
            [sys.executable, "-m", "mmcache_conformance", *words],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        began = time.monotonic()
        while not mark.exists():
            assert time.monotonic() - began < 60
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=10)  # what has begun would take longer
        assert process.returncode == 1
        assert "Aborted!" in said
        assert "Traceback" not in said

    def test_a_worker_with_another_harness_is_not_believed(
        self, vectors: tuple[Vector, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("mmcache_conformance.matrix.run.harness_digest", lambda: "another")
        (only,) = run_matrix(["reference"], vectors, processes)
        assert "another version" in str(only.reason)

    def test_an_executor_that_fails(self, vectors: tuple[Vector, ...]) -> None:
        class Failing(Executor):
            def submit(self, *arguments: object, **named: object) -> Future[TargetReport]:  # type: ignore[override]
                future: Future[TargetReport] = Future()
                future.set_exception(OSError("no worker"))
                return future

        @contextmanager
        def failing() -> Iterator[Executor]:
            yield Failing()

        (only,) = run_matrix(["reference"], vectors, failing)
        assert str(only.reason).startswith("OSError: no worker")


class TestKeeping:
    def test_what_is_kept_is_not_run_again(
        self, tmp_path: Path, vectors: tuple[Vector, ...]
    ) -> None:
        cache = ResultCache(tmp_path, vectors)
        kept = msgspec.structs.replace(
            run_matrix(["reference"], vectors, threads)[0], target="vllm:1.2.3"
        )
        cache.put(kept)

        @contextmanager
        def forbidden() -> Iterator[Executor]:
            raise AssertionError("nothing is left to run")
            yield

        seen: list[TargetReport] = []
        rows = run_matrix(["vllm:1.2.3"], vectors, forbidden, cache=cache, done=seen.append)
        assert list(rows) == seen == [kept]

    def test_other_vectors_are_another_question(
        self, tmp_path: Path, vectors: tuple[Vector, ...]
    ) -> None:
        kept = msgspec.structs.replace(
            run_matrix(["reference"], vectors, threads)[0], target="vllm:1.2.3"
        )
        ResultCache(tmp_path, vectors).put(kept)
        assert ResultCache(tmp_path, vectors[1:]).get("vllm:1.2.3") is None
        assert ResultCache(tmp_path, vectors).get("vllm:1.2.4") is None

    def test_only_results_of_releases_are_kept(
        self, tmp_path: Path, vectors: tuple[Vector, ...]
    ) -> None:
        cache = ResultCache(tmp_path, vectors)
        run_matrix(["reference", WRONG, "vllm:no/such/path"], vectors, threads, cache=cache)
        assert not list(tmp_path.rglob("*.json"))

    def test_a_broken_file_is_run_again(self, tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
        cache = ResultCache(tmp_path, vectors)
        kept = msgspec.structs.replace(
            run_matrix(["reference"], vectors, threads)[0], target="vllm:1.2.3"
        )
        cache.put(kept)
        (file,) = tmp_path.rglob("*.json")
        file.write_bytes(file.read_bytes()[:-5])
        assert cache.get("vllm:1.2.3") is None


class TestDefects:
    def test_first_and_last(self, vectors: tuple[Vector, ...]) -> None:
        bad = {v.id for v in vectors if "unfiltered_report" in v.kills}
        names = ("vllm:1", "vllm:2", "vllm:3", "vllm:4")
        rows = [row(n, vectors, bad if n in names[1:3] else set()) for n in names]
        (found,) = defects(rows, vectors)
        assert (found.variant, found.clauses) == ("unfiltered_report", ("L1",))
        assert (found.first_with, found.last_with, found.first_without) == (*names[1:3], "vllm:4")
        assert defect_line(found) == ("first met in 2, last in 3; 4 is the first after it without")

    def test_one_that_is_still_there(self, vectors: tuple[Vector, ...]) -> None:
        bad = {v.id for v in vectors if "unfiltered_report" in v.kills}
        (found,) = defects([row("vllm:1", vectors, bad)], vectors)
        assert defect_line(found) == "met in 1 only; no later one is without it"

    def test_one_that_comes_back(self) -> None:
        found = Defect("x", "x", (), "vllm:1", "vllm:3", None, ("vllm:1", "vllm:3"))
        assert "but not in all between" in defect_line(msgspec.structs.replace(found, gaps=True))

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
            bad = {v.id for v in vectors if variant in v.kills}
            only = row("vllm:1", vectors, bad)
            assert variant in {d.variant for d in defects([only], vectors)}
            assert unexplained(only, vectors) == ()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmcache_conformance.cli.kit._cache_directory", lambda: tmp_path)
    monkeypatch.setenv("COLUMNS", "120")


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, ["matrix", *words], prog_name="mmcache-conformance")


class TestCommand:
    def test_the_wrong_command(self) -> None:
        for words, reason in (
            (["--releases", "newest"], "'newest' is not a release"),
            (["--also", "nonsense"], "does not name a target"),
            (["--releases", "1.0", "--cluster", "x", "--jobs", "2"], "--jobs is for processes"),
        ):
            result = invoke(*words)
            assert (result.exit_code, reason in result.output) == (2, True), result.output

    def test_nothing_that_can_be_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # the processes read it too
        result = invoke("--releases", "latest:1")
        assert result.exit_code == 3
        assert "the package index did not answer" in result.output
        result = invoke("--releases", "0.33.0")
        assert result.exit_code == 3
        assert "0.33.0: not run: vllm 0.33.0 is not in the cache" in result.output


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
    def test_the_files(self, few: str, tmp_path: Path, vectors: tuple[Vector, ...]) -> None:
        result = invoke("--releases", few, "--out", str(tmp_path / "out"), "--also", WRONG)
        assert result.exit_code == 0, result.output
        assert "0.9.2: not run: out of scope: " in result.output
        assert (
            "L1 unfiltered_report: first met in 0.27.1, "
            "last in tests.known_bad.processes:Unfiltered, "
            "but not in all between; no later one is without it"
        ) in result.output
        document = json.loads((tmp_path / "out" / "matrix.json").read_text())
        jsonschema.Draft202012Validator(matrix_schema()).validate(document)
        assert [r["target"] for r in document["rows"]][1:3] == ["vllm:0.27.1", "vllm:0.28.0"]
        page = (tmp_path / "out" / "matrix.html").read_text()
        tags = Tags(page)
        assert (tags.open, set(tags.links)) == ([], {"data:,"})
        text = (tmp_path / "out" / "matrix.md").read_text()
        assert "| 0.28.0 | ✓ |" in text
        assert re.search(r"Run on \d{4}-\d\d-\d\d: 3 targets", text)
        assert sorted(p.stem for p in tmp_path.rglob("matrix/*/*.json")) == ["0.27.1", "0.28.0"]

    def test_a_second_run_runs_nothing(self, few: str, monkeypatch: pytest.MonkeyPatch) -> None:
        first = invoke("--releases", few.partition(",")[2], "--json")

        def forbidden(*arguments: object) -> None:
            raise AssertionError("it was run again")

        monkeypatch.setattr("mmcache_conformance.matrix.run._run_in", forbidden)
        again = invoke("--releases", few.partition(",")[2], "--json")
        assert again.exit_code == 0
        assert again.output == first.output
        result = invoke("--releases", "0.27.1", "--refresh")
        assert isinstance(result.exception, AssertionError)

    def test_on_a_cluster(self, few: str, vectors: tuple[Vector, ...]) -> None:
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
        ) as cluster:
            address = cluster.scheduler_address
            result = invoke("--releases", few, "--cluster", address, "--json")
        assert result.exit_code == 0, result.output
        rows = json.loads(result.stdout)["rows"]
        here = invoke("--releases", few, "--refresh", "--json")

        def outcomes(rows: list[dict[str, list[dict[str, str]]]]) -> list[list[str]]:
            return [[v["outcome"] for v in r["verdicts"]] for r in rows]

        assert outcomes(rows) == outcomes(json.loads(here.stdout)["rows"])
        assert sum(map(len, outcomes(rows))) == 2 * len(vectors)


def test_no_cluster_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("mmcache_conformance.matrix.cluster.TIMEOUT_SECONDS", 0.5)
    began = time.monotonic()
    words = ["matrix", "--releases", "0.33.0", "--cluster", "tcp://127.0.0.1:9"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 3
    assert "no Dask cluster at tcp://127.0.0.1:9" in result.output
    assert time.monotonic() - began < 30


def test_pages_are_safe_and_say_what_is_unexplained(vectors: tuple[Vector, ...]) -> None:
    one = next(v.id for v in vectors if "unfiltered_report" in v.kills)
    found = row("vllm:1", vectors, {one})
    implementation = run_matrix(["reference"], (), threads)[0].implementation
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
