"""`run`, `workloads`, `list` and `show` with engines: the same options as for managers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.engines.vllm.target import WORDS
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_vectors.document import canonical

WRONG = "reference-pass:preemption_keeps_unencoded_entry"
SUITE = load_suite(None, ENGINES)
LINK = "https://example.org/1"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="mmcache-conformance")


def test_the_reference_passes() -> None:
    done = invoke("run", "-q", "reference-pass")
    assert done.exit_code == 0, done.output
    assert f"{len(SUITE)} passed" in done.output


def test_a_mistake_fails_and_its_passes_are_told() -> None:
    done = invoke("run", WRONG, "-k", "same-pass")
    assert done.exit_code == 1
    assert "     S1: Encoder cache miss for A.\n" in done.output
    assert "; preempted r1; " in done.output
    (line,) = (line for line in done.output.splitlines() if line.startswith("reproduce: "))
    again = invoke(*line.split()[2:])
    assert again.exit_code == 1
    assert line in again.output
    assert "preempted r1" not in invoke("run", "-q", WRONG, "-k", "same-pass").output


def test_expressions_choose_engine_vectors() -> None:
    done = invoke("run", "reference-pass", "--json", "-k", "S1 and not (same-pass or bystander)")
    (target,) = json.loads(done.stdout)["targets"]
    chosen = {v["id"] for v in target["verdicts"]}
    wanted = {v.id for v in SUITE if "S1" in v.clauses}
    assert chosen == {id for id in wanted if "same-pass" not in id and "bystander" not in id}
    assert chosen


def test_a_run_of_both_kinds(tmp_path: Path) -> None:
    """Each target gets the vectors that are about it, and every report tells of both."""
    html, junit, markdown = (tmp_path / name for name in ("x.html", "x.xml", "x.md"))
    files = ["--html", str(html), "--junit", str(junit), "--markdown", str(markdown)]
    done = invoke("run", "--plain", "reference", WRONG, "--json", *files)
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    managers, engines = document["targets"]
    assert document["suite"]["vectors"] == len((*load_suite(), *load_suite(None, ENGINES)))
    assert {v["kind"] for v in managers["verdicts"]} == {"encoder_cache", "encoder_decoder"}
    assert {v["kind"] for v in engines["verdicts"]} == {"engine"}
    failed = [v for v in engines["verdicts"] if v["outcome"] == "fail"]
    assert len(failed) == sum("preemption_keeps_unencoded_entry" in v.kills for v in SUITE) > 0
    for verdict in failed:
        assert verdict["failure"]["of"] == "pass"
        assert verdict["failure"]["breaches"]
        assert verdict["failure"]["records"]
    assert html.read_text().count("✗ S1: Encoder cache miss for A.") == len(failed)
    root = ET.parse(junit).getroot()
    assert [suite.get("failures") for suite in root] == ["0", str(len(failed))]
    assert "mmcache.engine.S1" in {case.get("classname") for case in root.iter("testcase")}
    assert markdown.read_text().count("S1: Encoder cache miss for A.") == len(failed)


def test_a_terminal_shows_both_kinds() -> None:
    done = invoke("run", "--plain", "reference", "reference-pass")
    assert done.exit_code == 0
    rows = {line.split()[0]: line.split()[2:] for line in done.output.splitlines() if line.strip()}
    assert rows["L10"][1] == "-"
    assert rows["S1"][0] == "-"


def test_expected_failures_of_an_engine(tmp_path: Path) -> None:
    def file(*entries: dict[str, str]) -> str:
        known = [{"reason": "we know", "link": LINK, **entry} for entry in entries]
        path = tmp_path / "x.json"
        header = {"format": "mmcache/expected-failures", "format_version": 1}
        path.write_text(json.dumps({**header, "expected": known}))
        return str(path)

    killed = [v.id for v in SUITE if "preemption_keeps_unencoded_entry" in v.kills]
    all_of_them = file(*({"vector": id} for id in killed))
    assert invoke("run", WRONG, "--expected", all_of_them).exit_code == 0
    assert invoke("run", "reference-pass", "--expected", all_of_them).exit_code == 1
    done = invoke("run", WRONG, "--expected", file({"vector": "unfiltered-report-c5075b97"}))
    assert done.exit_code == 2
    assert "the suite has no vector" in done.output
    assert invoke("run", WRONG, "--expected", file({"clause": "S1"})).exit_code == 0


def test_fail_fast() -> None:
    done = invoke("run", WRONG, "reference-pass", "--fail-fast", "--json")
    (only,) = json.loads(done.stdout)["targets"]
    assert only["verdicts"][-1]["outcome"] == "fail"
    assert len(only["verdicts"]) < len(SUITE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "reference-pass:nothing"), "no variant 'nothing'"),
        (("run", "vllm-scheduler:nothing"), "does not name a scheduler"),
        (("run", "reference-pass", "-k", "nothing"), "no engine vector matches 'nothing'"),
        (("run", "reference-pass", "-k", "S1 and"), "expected a word"),
        (("workloads", "nothing"), "does not name an engine"),
        (("workloads", "--like", "reference"), "does not name an engine"),
        (("smoke", "reference-pass"), "does not name a target"),
    ],
)
def test_usage_errors(arguments: tuple[str, ...], says: str) -> None:
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert says in done.output


def test_a_scheduler_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    import mmcache_conformance.engines.vllm.target as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = invoke("run", "vllm-scheduler")
    assert done.exit_code == 3
    assert "could not be started" in done.output
    assert invoke("workloads", "vllm-scheduler").exit_code == 3


def test_vectors_of_a_directory(tmp_path: Path) -> None:
    vector = SUITE[0]
    (tmp_path / f"{vector.id}.json").write_bytes(canonical(vector))
    done = invoke("list", "--vectors", str(tmp_path))
    assert done.output.split()[0] == vector.id
    assert invoke("run", "reference-pass", "--vectors", str(tmp_path)).exit_code == 0
    done = invoke("run", "reference", "--vectors", str(tmp_path))
    assert done.exit_code == 2
    assert "no vectors here" in done.output
    (tmp_path / "bad.json").write_text("{}")
    done = invoke("run", "reference-pass", "--vectors", str(tmp_path))
    assert done.exit_code == 2
    assert "not an engine vector" in done.output


def test_workloads() -> None:
    done = invoke("workloads", "--passes", "300", "--like", "reference-pass")
    assert done.exit_code == 0
    assert "no clause breaks" in done.output
    assert "the schedule of reference-pass is the same" in done.output
    done = invoke("workloads", "reference-pass:waiting_keeps_references", "--passes", "300")
    assert done.exit_code == 1
    assert "S5 breaks in" in done.output
    found = json.loads(invoke("workloads", "--passes", "30", "--json").stdout)
    assert found["passes"] >= 30


@pytest.mark.parametrize("command", [("workloads",), ("exhaust", "--hashes", "1")])
def test_a_cluster_that_is_not_there(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = invoke(*command, "--cluster", "tcp://nowhere:1")
    assert done.exit_code == 3
    assert "--cluster needs Dask: pip install" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["run", "workloads"])
def test_the_help_names_every_word_of_the_scheduler(command: str) -> None:
    told = invoke(command, "--help").output
    assert [word for word in WORDS if word not in told] == []
