"""Engines behind the adapter protocol: the right one passes, and wrong decisions are named."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.engine_command import open_any_engine
from mmcache_conformance.engines.open import open_engine
from mmcache_conformance.engines.protocol import PassRecord, engine_case
from mmcache_conformance.engines.random import random_workload
from mmcache_conformance.errors import AdapterError, TargetError
from mmcache_conformance.open import open_target
from mmcache_conformance.suites.load import ENGINES, load_suite
from mmcache_conformance.verdicts.run import run_target
from mmcache_vectors.engine import EngineVector
from tests.support.drivers import CPP

Build = Callable[..., Path]
SCHEDULER = "example_scheduler"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def decisions(target: str) -> dict[str, Any]:
    """What `run` says of the target: the decisions by name, and the clauses that broke."""
    done = run("run", "--json", target)
    assert done.exit_code == 1, done.output
    (report,) = json.loads(done.stdout)["targets"]
    return {d["name"]: d for d in report["decisions"]}


def changed(folder: Path, file: str, *changes: tuple[str, str]) -> Path:
    """The example with these changes to one of its files."""
    for name in (f"{SCHEDULER}.cpp", f"{SCHEDULER}.hpp", "example_engine.hpp"):
        (folder / name).write_text((CPP / name).read_text())
    text = (folder / file).read_text()
    for right, wrong in changes:
        assert text.count(right) == 1, right
        text = text.replace(right, wrong)
    (folder / file).write_text(text)
    return folder / f"{SCHEDULER}.cpp"


@pytest.fixture(scope="module")
def example(build: Build) -> str:
    return f"cmd:{shlex.quote(str(build(CPP / f'{SCHEDULER}.cpp')))}"


def test_the_example_passes_every_vector_and_comes_to_every_situation(example: str) -> None:
    suite = load_suite(None, ENGINES)
    report = run_target(open_target(example), suite, stretch=False)
    assert [v.outcome for v in report.verdicts] == ["pass"] * len(suite)
    assert all(v.reached is not False for v in report.verdicts)


def test_it_decides_pass_by_pass_as_the_reference_does(example: str) -> None:
    """Two engines, written apart, that agree on everything that is shown."""
    mine, reference = open_any_engine(example), open_engine("reference-pass")
    mine.start()
    for seed in range(40):
        case = engine_case(random_workload(seed))
        assert list(mine.passes(case)) == list(reference.passes(case)), seed
    mine.stop()


def test_random_workloads_take_a_command(example: str) -> None:
    done = run("workloads", example, "--passes", "200", "--jobs", "1", "--like", "reference-pass")
    assert done.exit_code == 0, done.output
    assert "no clause breaks" in done.output


WRONG = {
    "preemption_keeps_unencoded_entry": (
        "        withdraw(*live);\n",
        "        pass_.scheduled_encoder_inputs.erase(id);\n",
    ),
    "waiting_keeps_references": (
        "                give_back(*live);\n                break;",
        "                break;",
    ),
    "skipped_keeps_references": (
        "                give_back(*live);  // nothing is left for it in this pass\n",
        "",
    ),
    "reset_only_scheduler": ("        worker_.held.clear();\n", ""),
    "retain_everything": (
        "pass_.report = cache_.take_evicted();",
        "cache_.take_evicted();",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_decision_is_found_and_named(name: str, build: Build, tmp_path: Path) -> None:
    program = build(changed(tmp_path, f"{SCHEDULER}.hpp", WRONG[name]))
    assert name in decisions(f"cmd:{shlex.quote(str(program))}")


@pytest.mark.slow
def test_an_unfiltered_report_is_named(build: Build) -> None:
    program = build(CPP / f"{SCHEDULER}.cpp", "-DUNFILTERED_REPORT")
    assert "unfiltered_drop_encode_gather" in decisions(f"cmd:{shlex.quote(str(program))}")


@pytest.mark.slow
def test_a_shared_entry_that_nobody_encodes_is_found(build: Build, tmp_path: Path) -> None:
    program = build(changed(tmp_path, f"{SCHEDULER}.hpp", ("if (heir)\n", "if (false)\n")))
    assert decisions(f"cmd:{shlex.quote(str(program))}")


# --- an engine in Python behind the same protocol -----------------------------------------------


def served(what: str) -> str:
    return f"cmd:{shlex.quote(sys.executable)} -m mmcache_conformance.adapters.python {what}"


@pytest.mark.parametrize(
    "variant",
    ["specified", "preemption_keeps_unencoded_entry", "unfiltered_encode_gather_drop"],
)
def test_an_engine_shows_the_same_through_the_protocol(variant: str) -> None:
    through, direct = (
        open_any_engine(served(f"reference-pass:{variant}")),
        open_engine(f"reference-pass:{variant}"),
    )
    through.start()
    for vector in load_suite(None, ENGINES):
        assert isinstance(vector, EngineVector)
        case = engine_case(vector)
        assert list(through.passes(case)) == list(direct.passes(case))
    through.stop()


def test_a_manager_is_no_engine_and_an_engine_no_manager() -> None:
    with pytest.raises(TargetError, match="says that it is no engine"):
        open_any_engine(served("mmcache:EncoderCacheManager")).start()
    done = run("differ", served("reference-pass"), "--count", "10")
    assert done.exit_code == 3
    done = run("exhaust", served("reference-pass"))
    assert done.exit_code == 3
    assert "no encoder_cache manager" in done.output


# --- what an adapter may not say ----------------------------------------------------------------

SAYS = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["cmd"] == "start":
        reply = {"protocol": 1, "implementation": {"name": "x", "language": "y"},
                 "capabilities": {"engine": %s}}
    elif asked["cmd"] == "stop":
        break
    else:
        one = {"num_scheduled_tokens": {}, "starts": {}, "scheduled_encoder_inputs": {},
               "report": [], "cached": [], "held_before": [], "worker": [], "missed": [],
               "preempted": [], "running": [], "waiting": [], "references": {}}
        one.update(%s)
        reply = {"seq": asked["seq"], "passes": [one] * %d}
    print(json.dumps(reply), flush=True)
"""
ALL = '["priority", "prefix_caching", "lookahead", "whole_items", "abort", "reset"]'


def saying(folder: Path, offered: str = ALL, said: str = "{}", times: int = 1) -> str:
    program = folder / "says.py"
    program.write_text(SAYS % (offered, said, times))
    return f"cmd:{shlex.quote(sys.executable)} {shlex.quote(str(program))}"


def passes(target: str, vector: EngineVector) -> list[PassRecord]:
    engine = open_any_engine(target)
    engine.start()
    try:
        return list(engine.passes(engine_case(vector)))
    finally:
        engine.stop()


@pytest.mark.parametrize(
    ("said", "times", "why"),
    [
        ('{"running": ["nobody"]}', 1, "names a request 'nobody'"),
        ('{"worker": ["no hash"]}', 1, "names a hash 'no hash'"),
        ('{"num_scheduled_tokens": {"%s": 1}}', 1, "is scheduled and has no start"),
        ('{"scheduled_encoder_inputs": {"%s": [99]}}', 1, "has no input 99"),
        ("{}", 5000, "passes, where"),
        ('{"more": 1}', 1, "unknown field"),
        ('{"report": None}', 1, "not a reply"),
    ],
)
def test_what_makes_no_sense_is_an_error(said: str, times: int, why: str, tmp_path: Path) -> None:
    vector = load_suite(None, ENGINES)[0]
    assert isinstance(vector, EngineVector)
    said = said.replace("%s", vector.requests[0].request_id)
    with pytest.raises(AdapterError, match=why):
        passes(saying(tmp_path, said=said, times=times), vector)


def test_after_what_is_no_reply_a_new_process_is_asked(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = tmp_path / "counts.py"
    note = f"open({str(started)!r}, 'a').write('x')\n"
    program.write_text(note + SAYS % (ALL, '{"report": None}', 1))
    target = open_any_engine(f"cmd:{shlex.quote(sys.executable)} {shlex.quote(str(program))}")
    report = run_target(target, load_suite(None, ENGINES)[:2], stretch=False)
    assert [v.outcome for v in report.verdicts] == ["error", "error"]
    assert started.read_text() == "xx"


def test_an_engine_that_does_nothing_is_not_believed(tmp_path: Path) -> None:
    """It says after one pass that no request is left, though later ones never arrived."""
    suite = load_suite(None, ENGINES)
    report = run_target(open_target(saying(tmp_path)), suite, stretch=False)
    assert "pass" not in {v.outcome for v in report.verdicts}


def test_a_gather_of_what_was_never_encoded_is_a_miss_whatever_is_said(tmp_path: Path) -> None:
    vector = next(v for v in load_suite(None, ENGINES) if "phantom-entry-fcfs" in v.id)
    assert isinstance(vector, EngineVector)
    first = next(r for r in vector.requests if r.items)
    tokens = first.items[0].position + 1
    said = json.dumps(
        {"num_scheduled_tokens": {first.request_id: tokens}, "starts": {first.request_id: 0}}
    )
    (record,) = passes(saying(tmp_path, said=said), vector)
    assert record.missed == (first.items[0].identifier,)


def test_what_it_cannot_be_configured_to_do_is_skipped(tmp_path: Path) -> None:
    report = run_target(
        open_target(saying(tmp_path, '["reset"]')), load_suite(None, ENGINES), stretch=False
    )
    reasons = {v.reason for v in report.verdicts if v.outcome == "skip"}
    assert any(r is not None and r.startswith("needs priority") for r in reasons)


def test_a_misspelt_capability_is_an_error(tmp_path: Path) -> None:
    done = run("run", saying(tmp_path, '["priorty"]'))
    assert done.exit_code == 3
    assert "names the capability 'priorty'" in done.output
