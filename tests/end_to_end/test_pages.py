"""What the pages name exists: vectors, links, options, files, modules; the index has each page."""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from click import Command, Group, Option

from mmcache_conformance.cli import cli as conformance
from mmcache_conformance.oracle.blame import blamed
from mmcache_conformance.oracle.systems import specified
from mmcache_conformance.suites.load import load_all, load_suite
from mmcache_conformance.targets.protocol import Answer
from mmcache_conformance.targets.wire import adapter_schema
from mmcache_conformance.verdicts.judge import answer_differences
from mmcache_spec.cli.app import cli as spec
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.oracle import Replay
from mmcache_vectors.clauses import CLAUSES
from mmcache_vectors.manager import Vector
from tests.support.pages import DOCS, ROOT, blocks, pages, prose, text_of

VECTOR_ID = r"\b[a-z]+(?:-[a-z]+)+-[0-9a-f]{8}\b"
BASES = (
    ROOT,
    DOCS,
    ROOT / "spec" / "mmcache_spec",
    ROOT / "impl",
    ROOT / "impl" / "mmcache",
    ROOT / "conformance" / "mmcache_conformance",
)
"""Where a page may begin the path of a file of ours."""

NOT_OURS = {
    *("matrix.json", "matrix.html", "matrix.md", "report.html", "report.xml", "driver.cpp"),
    *("driver.js", "engine.js"),
    *("scheduler.py", "encoder_cache_manager.py", "mmcache_adapter.hpp"),
}
"""Files that a command or a reader makes, or vLLM has."""


def test_the_messages_of_the_protocol_page_are_messages() -> None:
    validator = jsonschema.Draft202012Validator(adapter_schema())
    shown = [b for b in blocks("docs/adapter-protocol.md") if b.language == "json"]
    assert len(shown) == 12
    for block in shown:
        validator.validate(json.loads(block.content))


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a link to the page may name after `#`."""
    text = page.read_text("utf-8")
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    return frozenset(slugs | set(re.findall(r'id="([^"]+)"', text)))


@pytest.mark.parametrize("page", pages())
def test_every_vector_that_is_named_exists(page: str) -> None:
    named = re.findall(VECTOR_ID, text_of(page))
    assert set(named) <= {vector.id for vector in load_all()}


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


def links(page: str) -> list[str]:
    """The links of a page that lead to files of ours."""
    return re.findall(r"\]\((?!https?:)([^)\s]+)\)", text_of(page))


def options(command: Command) -> set[str]:
    """Every option of a command and of those below it."""
    chosen = [p for p in command.params if isinstance(p, Option)]
    found = {o for p in chosen for o in (*p.opts, *p.secondary_opts)}
    if isinstance(command, Group):
        for inner in command.commands.values():
            found |= options(inner)
    return found


OF_OTHERS = {
    *("--target", "--pyargs", "--junit-xml"),  # pytest
    *("--no-deps", "--version", "--help"),  # pip, and click by itself
    "--flag",  # of somebody's driver
    "--ec-manager-config",  # vLLM
    *("--write", "--check"),  # of `python -m mmcache_spec.generate.engine_seeds`
    "--sample",
    "--seed",  # of tests.tools.mutants.run
    *("--list", "--escaped"),  # of tests.tools.faults.kill
}


@pytest.mark.parametrize("page", pages())
def test_every_option_that_a_page_names_exists(page: str) -> None:
    known = options(conformance) | options(spec) | OF_OTHERS
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text_of(page))) <= known


@pytest.mark.parametrize("page", pages())
def test_every_command_that_a_page_names_exists(page: str) -> None:
    for program, group in (("mmcache-conformance", conformance), ("mmcache-spec", spec)):
        assert isinstance(group, Group)
        named = re.findall(rf"(?<![\w\[]){program} ([a-z]+)(?![\w/])", text_of(page))
        assert set(named) <= set(group.commands), page
    made = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    for named in re.findall(r"(?:`|^\$ )make ((?:[a-z-]+ ?)+)", text_of(page), re.M):
        assert set(named.split()) <= made | {"driver"}, page


def is_ours(path: str) -> bool:
    return not path.startswith(("vllm/", "/")) and Path(path).name not in NOT_OURS


@pytest.mark.parametrize("page", pages())
def test_every_file_and_module_that_a_page_names_exists(page: str) -> None:
    text = prose(page)
    paths = re.findall(r"`([\w.-]+(?:/[\w.-]+)+)/?`", text) + re.findall(r"`(\w+\.(?:py|v))`", text)
    for path in filter(is_ours, paths):
        where = [base / path for base in BASES] + [
            *ROOT.glob(f"spec/**/{path}"),
            *ROOT.glob(f"tests/**/{path}"),
        ]
        assert any(file.exists() for file in where) or not looks_like_a_file(path), path
    for module in re.findall(
        r"\b(mmcache(?:_(?:spec|vectors|conformance))?(?:\.[A-Za-z_]+)+)\b", text
    ):
        assert is_there(module), module


def looks_like_a_file(path: str) -> bool:
    """Not `step/pass` and the like: it has an ending, or begins with a folder of ours."""
    first = path.split("/")[0]
    return "." in Path(path).name or any((base / first).is_dir() for base in BASES)


def is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        if importlib.util.find_spec(name) is not None:
            return True
    except ModuleNotFoundError:
        pass
    module, _, attribute = name.rpartition(".")
    return hasattr(importlib.import_module(module), attribute)


def test_architecture_knows_every_room() -> None:
    """Each folder with code has its line, and each path of the page exists (the test above)."""
    text = text_of("ARCHITECTURE.md")
    for package in ("spec/mmcache_spec", "impl/mmcache", "conformance/mmcache_conformance"):
        for init in (ROOT / package).glob("*/__init__.py"):
            room = str(init.parent.relative_to(ROOT))
            assert f"`{room}`" in text, f"{room} has no line"


def test_the_index_names_every_page_and_every_page_is_reached() -> None:
    index = {(DOCS / link.partition("#")[0]).resolve() for link in links("docs/README.md")}
    there = {file.resolve() for file in DOCS.rglob("*.md")} - {(DOCS / "README.md").resolve()}
    assert there <= index, there - index
    assert "docs/README.md" in links("README.md")


def broken_by(system: TransitionSystem, vector: Vector) -> tuple[str, ...]:
    """The clauses that the first answer or state breaks which is not as specified."""
    replay = Replay(system, vector.parameters, record=False)
    right = Replay(specified(vector.manager), vector.parameters, record=False)
    for k, step in enumerate(vector.steps):
        answer, expect = replay.answer(step.call), right.answer(step.call)
        assert expect is not None
        assert answer is not None
        differences = answer_differences(expect, Answer(answer.returns, answer.observe))
        if not differences:
            continue
        calls = [s.call for s in vector.steps[: k + 1]]
        return blamed(specified(vector.manager), vector.parameters, calls, differences)
    return ()


@pytest.mark.slow
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
        described = RELEASES[release]
        systems = {"encoder_cache": described.ledger, "encoder_decoder": described.encoder_decoder}
        broken = {
            clause
            for v in vectors
            if v.id in failing
            for clause in broken_by(systems[v.manager], v)
        }
        shown = rows[release.removeprefix("vllm:")]
        found = {c for c, cell in shown.items() if cell.startswith("✗")}
        # In larger worlds `free` shows the order of a set of integers: differences.md, point 5.
        assert broken <= found <= broken | {"L15"}
    assert re.search(r"^Run on \d{4}-\d\d-\d\d: ", text, re.M)


def test_the_table_of_readme_has_every_clause() -> None:
    row = r"^\| \[(\w+)\]\(docs/clauses\.md#(\w+)\) `(\w+)`"
    rows = re.findall(row, text_of("README.md"), re.M)
    assert {(id, anchor, name) for id, anchor, name in rows} == {
        (c.id, c.id.lower(), c.name) for c in CLAUSES.values()
    }
    assert len(rows) == len(CLAUSES)


@pytest.mark.parametrize("page", pages())
def test_no_page_installs_what_is_not_published(page: str) -> None:
    """The package is on no index: it is installed out of a checkout."""
    assert not re.search(r"pip install [^\n`]*mmcache-spec", text_of(page))
