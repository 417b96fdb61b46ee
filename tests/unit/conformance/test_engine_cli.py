"""`mmcache-conformance system ...` as a user meets it."""

from __future__ import annotations

import json

import jsonschema
import pytest
from click.testing import CliRunner

from mmcache_conformance.cli import cli
from mmcache_conformance.suites.load_engine import load_system_suite
from mmcache_vectors.engine import encode_system


def run(*arguments):
    return CliRunner().invoke(cli, ["system", *arguments], catch_exceptions=False)


def test_the_reference_passes():
    done = run("run")
    assert done.exit_code == 0
    count = len(load_system_suite())
    assert f"{count} of {count} passed" in done.output


def test_a_mistake_fails_and_its_passes_are_told():
    done = run("run", "reference-pass:preemption_keeps_unencoded_entry", "-k", "same-pass")
    assert done.exit_code == 1
    assert "S1, Encoder cache miss for A." in done.output
    assert "preempted ['r1']" in done.output
    quiet = run("run", "-q", "reference-pass:preemption_keeps_unencoded_entry", "-k", "same-pass")
    assert "preempted ['r1']" not in quiet.output


def test_json():
    done = run("run", "--json", "reference-pass:retain_everything")
    document = json.loads(done.output)
    assert document["format"] == "mmcache/system-run"
    (target,) = document["targets"]
    assert {v["outcome"] for v in target["verdicts"]} == {"pass", "fail"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "nothing"), "does not name an engine"),
        (("run", "reference-pass:nothing"), "no variant 'nothing'"),
        (("run", "vllm-scheduler:nothing"), "does not name a scheduler"),
        (("run", "-k", "nothing"), "no system vector has 'nothing'"),
        (("random", "nothing"), "does not name an engine"),
    ],
)
def test_usage_errors(arguments, says):
    done = run(*arguments)
    assert done.exit_code == 2
    assert says in done.output


def test_a_scheduler_that_is_not_here(monkeypatch):
    import mmcache_conformance.engines.vllm.target as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    done = run("run", "vllm-scheduler")
    assert done.exit_code == 3
    assert "could not be started" in done.output
    assert run("random", "vllm-scheduler").exit_code == 3


def test_vectors_of_a_directory(tmp_path):
    vector = load_system_suite()[0]
    (tmp_path / f"{vector.id}.json").write_bytes(encode_system(vector))
    done = run("list", "--vectors", str(tmp_path))
    assert done.output.split()[0] == vector.id
    (tmp_path / "bad.json").write_text("{}")
    done = run("list", "--vectors", str(tmp_path))
    assert done.exit_code == 2
    assert "not a system vector" in done.output


def test_schema():
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema").output))


def test_random():
    done = run("random", "--passes", "300", "--like", "reference-pass")
    assert done.exit_code == 0
    assert "no clause breaks" in done.output
    assert "the schedule of reference-pass is the same" in done.output
    done = run("random", "reference-pass:waiting_keeps_references", "--passes", "300")
    assert done.exit_code == 1
    assert "S5 breaks in" in done.output
