"""The pages are true: what they do is done again, and what they name exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from mmcache_conformance.suites.load import load_all, load_suite
from mmcache_conformance.targets.wire import adapter_schema
from tests.support.drivers import without

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (
    "adapter-protocol.md",
    "engine-vectors.md",
    "port-an-engine.md",
    "in-your-ci.md",
    "matrix.md",
    "running-conformance.md",
    "vector-format.md",
)


def blocks(name: str) -> list[tuple[str, str]]:
    """The language and content of every fenced block of a page."""
    text = (DOCS / name).read_text()
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)


def patched(source: str, diff: str) -> str:
    """The source after the diff, whose context must occur exactly once."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert source.count(before) == 1, before
    return source.replace(before, after)


def transcript(content: str) -> list[tuple[str, str]]:
    """Each command and what it prints; `…` stands for what is left out."""
    parts = re.split(r"^\$ (.*)\n", content, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _uncounted(text: str) -> str:
    """Without the numbers of vectors, which grow with the suite; none stays none."""
    return re.sub(r"[1-9]\d* (passed|failed|skipped)", r"N \1", text)


def test_the_porting_page_can_be_followed(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        without("g++")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    driver = tmp_path / "driver.cpp"
    done = 0
    for language, content in blocks("port-an-engine.md"):
        if language == "cpp":
            driver.write_text(content)
        elif language == "diff":
            driver.write_text(patched(driver.read_text(), content))
        else:
            for command, printed in transcript(content):
                if command.startswith("pip "):
                    continue
                ran = subprocess.run(
                    command, shell=True, cwd=tmp_path, env=environment, capture_output=True
                )
                told = ran.stdout.decode() + ran.stderr.decode()
                shown, cut, _ = printed.partition("…\n")
                if cut:
                    assert told.startswith(shown), command
                else:
                    assert _uncounted(told) == _uncounted(shown), command
                done += 1
    assert done == 9


def test_the_messages_of_the_protocol_page_are_messages() -> None:
    validator = jsonschema.Draft202012Validator(adapter_schema())
    messages = [json.loads(text) for language, text in blocks("adapter-protocol.md") if language]
    assert len(messages) == 4
    for message in messages:
        validator.validate(message)


@pytest.mark.parametrize("name", PAGES)
def test_every_vector_and_link_exists(name: str) -> None:
    text = (DOCS / name).read_text()
    named = re.findall(r"\b[a-z]+(?:-[a-z]+)+-[0-9a-f]{8}\b", text)
    assert set(named) <= {vector.id for vector in load_all()}
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        page = DOCS / (path or name)
        assert page.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
            anchors = slugs | set(re.findall(r'id="([^"]+)"', page.read_text()))
            assert anchor in anchors, target


@pytest.mark.parametrize("name", PAGES)
def test_every_option_that_a_page_names_exists(name: str) -> None:
    from click import Command, Group, Option

    from mmcache_conformance.cli import cli

    def all_options(command: Command) -> set[str]:
        found = {o for p in command.params if isinstance(p, Option) for o in p.opts}
        if isinstance(command, Group):
            for inner in command.commands.values():
                found |= all_options(inner)
        return found

    others = {"--target", "--help", "--no-deps", "--junit-xml", "--pyargs", "--version", "--flag"}
    known = all_options(cli) | others
    text = (DOCS / name).read_text()
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known


def test_the_table_of_releases_is_what_the_spec_predicts() -> None:
    """For the releases whose decisions the specification describes."""
    from mmcache_spec.model.releases import RELEASES
    from mmcache_spec.oracle import predicted_failures

    vectors = load_suite()
    text = (DOCS / "matrix.md").read_text()
    table = [line.strip("| ").split(" | ") for line in text.splitlines() if line[:2] == "| "]
    clauses = table[0][1:]
    rows = {cells[0]: dict(zip(clauses, cells[1:], strict=True)) for cells in table[1:]}
    for release in RELEASES:
        failing = set(predicted_failures(release, vectors))
        broken = {c for v in vectors if v.id in failing for c in v.clauses}
        shown = rows[release.removeprefix("vllm:")]
        assert {c for c, cell in shown.items() if cell.startswith("✗")} == broken
    assert re.search(r"^Run on \d{4}-\d\d-\d\d: ", text, re.M)
