"""A program that is a manager and an engine is tested as both."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.engine_command import open_any_engine
from mmcache_conformance.engines.protocol import engine_case
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_vectors.engine import EngineVector
from tests.end_to_end.test_engine_commands import ALL, saying

PROGRAM = """\
import io, json, subprocess, sys
from mmcache_conformance.adapters import python
from mmcache_conformance.adapters.engine import serve_engine
from mmcache_conformance.engines.open import open_engine
from mmcache_conformance.targets.open import open_manager

MANAGER, ENGINE = {manager!r}, {engine!r}

def answer(line, serve):
    out = io.BytesIO()
    serve(io.BytesIO(line), out)
    return out.getvalue()

manager = open_manager(MANAGER, in_process=True)
engine = open_engine(ENGINE)
for line in sys.stdin.buffer:
    asked = json.loads(line)
    if asked["cmd"] == "stop":
        break
    if asked["cmd"] == "workload":
        reply = answer(line, lambda i, o: serve_engine(engine, i, o))
    elif asked["cmd"] == "start":
        both = [json.loads(answer(line, lambda i, o: python.serve(manager, i, o))),
                json.loads(answer(line, lambda i, o: serve_engine(engine, i, o)))]
        both[0]["capabilities"] |= both[1]["capabilities"]
        both[0]["features"] = []
        reply = json.dumps(both[0]).encode() + b"\\n"
    else:
        reply = answer(line, lambda i, o: python.serve(manager, i, o))
    sys.stdout.buffer.write(reply)
    sys.stdout.buffer.flush()
"""


def program(folder: Path, manager: str = "reference", engine: str = "reference-pass") -> str:
    path = folder / "both.py"
    path.write_text(PROGRAM.format(manager=manager, engine=engine))
    return f"cmd:{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def run(*words: Any) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def outcomes(done: Result) -> list[dict[str, int]]:
    counted = []
    for report in json.loads(done.output)["targets"]:
        found: dict[str, int] = {}
        for verdict in report["verdicts"]:
            found[verdict["outcome"]] = found.get(verdict["outcome"], 0) + 1
        counted.append(found)
    return counted


def test_both_are_run_and_a_fault_of_either_is_found(tmp_path: Path) -> None:
    words = ("--plain", "--json", "-k", "L1 or S1 or unfiltered-report")
    right = run("run", program(tmp_path), *words)
    assert right.exit_code == 0, right.output
    assert [set(found) for found in outcomes(right)] == [{"pass"}, {"pass"}]
    wrong = program(tmp_path, engine="reference-pass:unfiltered_drop_encode_gather")
    assert [found.get("fail", 0) > 0 for found in outcomes(run("run", wrong, *words))] == [
        False,
        True,
    ]
    wrong = program(tmp_path, manager="tests.known_bad.managers:UnfilteredReport")
    assert [found.get("fail", 0) > 0 for found in outcomes(run("run", wrong, *words))] == [
        True,
        False,
    ]


def test_a_selection_of_one_kind_runs_that_kind(tmp_path: Path) -> None:
    done = run("run", program(tmp_path), "--plain", "--json", "-k", "unfiltered-report")
    assert done.exit_code == 0, done.output
    assert len(outcomes(done)) == 1


# --- what was reported is dropped before it is gathered ------------------------------------------


@pytest.mark.parametrize(("last", "missed"), [(False, True), (True, False)])
def test_what_is_reported_is_missed_unless_it_is_dropped_last(
    tmp_path: Path, last: bool, missed: bool
) -> None:
    vector = next(v for v in load_suite(None, ENGINES) if "phantom-entry-fcfs" in v.id)
    assert isinstance(vector, EngineVector)
    first = next(r for r in vector.requests if r.items)
    item = first.items[0]
    said = {
        "num_scheduled_tokens": {first.request_id: item.position + 1},
        "starts": {first.request_id: 0},
        "held_before": [item.identifier],
        "report": [item.identifier],
    }
    offered = ALL.replace("]", ', "drops_last"]') if last else ALL
    engine = open_any_engine(saying(tmp_path, offered, json.dumps(said)))
    engine.start()
    record = next(iter(engine.passes(engine_case(vector))))
    engine.stop()
    assert record.missed == ((item.identifier,) if missed else ())


def test_the_door_of_pytest_has_both(tmp_path: Path) -> None:
    target = program(tmp_path, engine="reference-pass:skipped_keeps_references")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--pyargs"),
            *("mmcache_conformance.test_vectors", "--target", target),
            *("-k", "unfiltered-report-c5 or skipped-keeps"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "FAILED" in done.stdout
    assert "[skipped-keeps-references-" in done.stdout.partition("FAILED")[2]
    assert "[unfiltered-report-c5" in done.stdout.partition("PASSED")[2]
