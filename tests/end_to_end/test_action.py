"""The action and the workflows: what they run is run here, and what they name exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mmcache_conformance.suites.load import load_suite
from tests.support.drivers import SHORT
from tests.support.pages import DOCS, ROOT, blocks

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def step(name: str) -> dict[str, Any]:
    (found,) = (s for s in ACTION["runs"]["steps"] if s.get("name") == name)
    return dict(found)


def run_step(directory: Path, **inputs: str) -> tuple[int, str, str]:
    """The exit code, the outputs and the summary of the step that runs the vectors."""
    bin_ = directory / "mmcache" / "bin"
    bin_.mkdir(parents=True, exist_ok=True)
    command = bin_ / "mmcache-conformance"
    if not command.exists():
        command.symlink_to(Path(sys.executable).parent / "mmcache-conformance")
    given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
    values = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: given[m[1]], value)
        for name, value in step("Run the vectors")["env"].items()
    }
    files = {name: directory / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    environment = {**os.environ, **values, **{k: str(v) for k, v in files.items()}}
    environment |= {"RUNNER_TEMP": str(directory), "PYTHONPATH": str(ROOT)}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
    done = subprocess.run(
        [*script, step("Run the vectors")["run"]],
        cwd=directory,
        env=environment,
        capture_output=True,
    )
    outputs, summary = (file.read_text() for file in files.values())
    return done.returncode, outputs, summary


def test_it_passes(tmp_path: Path) -> None:
    code, outputs, summary = run_step(tmp_path, target="reference")
    assert (code, outputs) == (0, "exit-code=0\n")
    assert summary.startswith("## Encoder cache conformance: passed")
    written = sorted(p.name for p in (tmp_path / "conformance-report").iterdir())
    assert written == ["report.html", "report.xml"]


def test_it_fails_and_still_reports(tmp_path: Path) -> None:
    code, outputs, summary = run_step(
        tmp_path, target="tests.known_bad.managers:UnfilteredReport", select=f"L1 and {SHORT}"
    )
    assert (code, outputs) == (1, "exit-code=1\n")
    assert "| L1 | report_disjoint_from_cached | ❌ 0/" in summary


def test_its_inputs_arrive(tmp_path: Path) -> None:
    lines = ['format = "mmcache/expected-failures"', "format_version = 1"]
    for vector in load_suite():
        if "unfiltered_report" in vector.kills:
            lines += ["[[expected]]", f'vector = "{vector.id}"', 'reason = "x"']
            lines += ['link = "https://example.org"']
    (tmp_path / "x.toml").write_text("\n".join(lines))
    wrong = "tests.known_bad.managers:UnfilteredReport"
    assert run_step(tmp_path, target=wrong, expected="x.toml", select=f"L1 and {SHORT}")[0] == 0
    assert run_step(tmp_path, target=wrong, select=f"L1 and {SHORT}")[0] == 1
    assert run_step(tmp_path, target=wrong, select=f"L2 and not L1 and {SHORT}")[0] == 0
    assert run_step(tmp_path, target=wrong, select="L1 or")[0] == 2
    assert run_step(tmp_path, target="no_such:C")[:2] == (3, "exit-code=3\n")
    # Nothing in an input is a command.
    assert run_step(tmp_path, target="$(touch owned); touch owned")[0] == 2
    assert not (tmp_path / "owned").exists()


def test_inputs_are_never_pasted_into_a_script() -> None:
    for s in ACTION["runs"]["steps"]:
        assert "${{" not in s.get("run", "")


WORKFLOWS = [
    *((p.name, p.read_text()) for p in sorted((ROOT / ".github" / "workflows").glob("*.yml"))),
    *((str(b), b.content) for b in blocks("docs/in-your-ci.md") if b.language == "yaml"),
]


@pytest.mark.parametrize(("name", "text"), WORKFLOWS, ids=[name for name, _ in WORKFLOWS])
def test_what_a_workflow_names_exists(name: str, text: str) -> None:
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for s in job["steps"]:
            if s.get("uses", "").startswith(("./", "OWNER/mmcache@")):
                assert set(s["with"]) <= set(ACTION["inputs"])
                required = {k for k, v in ACTION["inputs"].items() if v.get("required")}
                assert required <= set(s["with"])
            for path in re.findall(r"[\w./-]+\.cpp|\.ci/\w+|constraints\.txt", s.get("run", "")):
                assert (ROOT / path).exists(), path


def test_the_page_tells_the_outputs() -> None:
    text = (DOCS / "in-your-ci.md").read_text()
    assert all(f"`{name}`" in text for name in ACTION["outputs"])
