"""Every block of every page is run, parsed or compiled, unless a table says why it is not.

What a console prints is what the page shows, but for seconds. After a change that makes other
counts of vectors, `make docs` rewrites these.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import tomllib
import warnings
from pathlib import Path

import pytest
import yaml

from tests.support.drivers import without
from tests.support.followed import GIVEN, NOT_RUN, NoIndex, follow, is_run
from tests.support.pages import Block, blocks, blocks_in, pages, with_counts_of

ALL = {page: blocks(page) for page in pages()}
CONSOLES = [block for found in ALL.values() for block in found if block.language == "console"]
FOLLOWED = [page for page, found in ALL.items() if any(b.language == "console" for b in found)]
PARSED = ("json", "jsonl", "toml", "yaml", "python")
WITH = {"console", "diff", "cpp", "js", "text", "", *PARSED}
"""The languages of blocks. `text`, or none, is for pictures and formulas: for no command."""


def needs_the_index(page: str) -> bool:
    """Whether a command that is run reads a release of vLLM."""
    consoles = (b for b in ALL[page] if b.language == "console" and is_run(b))
    return any(
        re.search(r"vllm:\d|vllm-processor-cache|matrix", c.words)
        for b in consoles
        for c in b.commands
    )


_QUICK = 10
"""A page with more commands takes half a minute: CI follows it, and `make test` does not; nor a
page on a pair, whose releases are played whole, nor that of a port to JavaScript."""


def _page(page: str) -> object:
    marks = [pytest.mark.network] if needs_the_index(page) else []
    commands = [c for b in ALL[page] if b.language == "console" and is_run(b) for c in b.commands]
    played_whole = any("vllm-processor-cache" in c.words for c in commands)
    if len(commands) > _QUICK or played_whole or any(b.language == "js" for b in ALL[page]):
        marks.append(pytest.mark.slow)
    return pytest.param(page, marks=marks)


@pytest.mark.parametrize("page", [_page(page) for page in FOLLOWED])
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    if any(b.language == "cpp" for b in ALL[page]) and shutil.which("g++") is None:
        without("g++")
    try:
        assert wrong(page, ALL[page], tmp_path) == []
    except NoIndex as block:
        warnings.warn(f"NOT TESTED without a network: {block}", stacklevel=2)
        pytest.skip("no network")


def wrong(page: str, found: tuple[Block, ...], folder: Path) -> list[str]:
    """What came otherwise than the page shows it."""
    return [played.wrong for played in follow(page, found, folder) if played.wrong is not None]


def test_the_table_names_blocks_that_exist() -> None:
    there = {(block.page, block.commands[0].words) for block in CONSOLES}
    assert set(NOT_RUN) <= there, set(NOT_RUN) - there
    assert set(GIVEN) <= set(FOLLOWED)


OURS = r"^\s*(?:\S+=\S+ )*(?:mmcache-(?:spec|conformance)|make|pip|pytest|python -m) "


@pytest.mark.parametrize("page", pages())
def test_a_block_says_what_it_is_and_commands_are_in_consoles(page: str) -> None:
    for block in ALL[page]:
        assert block.language in WITH, f"{block}: say one of {sorted(WITH)}"
        if block.language in ("text", ""):
            assert not re.search(OURS, block.content, re.M), f"{block}: a console?"
            assert not re.search(r"^\$ ", block.content, re.M), f"{block}: a console?"


CODE = [block for found in ALL.values() for block in found if block.language in PARSED]


@pytest.mark.parametrize("block", CODE, ids=str)
def test_what_is_no_command_can_be_read(block: Block) -> None:
    """JSON, TOML and YAML are; Python compiles, and what it imports of ours is there."""
    match block.language:
        case "json":
            json.loads(block.content)
        case "jsonl":
            for line in block.content.splitlines():
                json.loads(line)
        case "toml":
            tomllib.loads(block.content)
        case "yaml":
            yaml.safe_load(block.content)
        case "python" if ">>> " not in block.content:  # those: tests/unit/impl/test_differences.py
            for statement in ast.walk(ast.parse(block.content)):
                if isinstance(statement, ast.ImportFrom) and "mmcache" in (statement.module or ""):
                    module = importlib.import_module(str(statement.module))
                    assert all(hasattr(module, alias.name) for alias in statement.names)


def test_every_page_with_a_block_of_c_has_a_test_that_compiles_it() -> None:
    with_code = {
        b.page for found in ALL.values() for b in found if b.language in ("cpp", "js", "diff")
    }
    assert with_code <= set(FOLLOWED)


class TestTheNet:
    """A page that is not true is noticed."""

    PAGE = "docs/x.md"

    def wrong(self, folder: Path, text: str) -> list[str]:
        return wrong(self.PAGE, tuple(blocks_in(self.PAGE, text)), folder)

    def test_what_is_true_passes(self, tmp_path: Path) -> None:
        told = "```console\n$ printf 'a\\nb\\nc\\nd 7 passed, 0.2 s\\n'\n"
        told += "a\n…\nd 7 passed, 1.3 s\n```\n"
        assert self.wrong(tmp_path, told) == []

    def test_what_a_busy_machine_says_of_its_progress_is_not_compared(self, tmp_path: Path) -> None:
        told = "```console\n$ printf '1 s: part 1\\n11 s: part 2\\nend\\n'\nend\n```\n"
        assert self.wrong(tmp_path, told) == []
        assert self.wrong(tmp_path, told.replace("11 s: ", "late: ")) != []

    @pytest.mark.parametrize(
        "shown",
        ["two", "one\ntwo", "…\ntwo", "", "one 3", "one…x"],
    )
    def test_another_word_is_noticed(self, shown: str, tmp_path: Path) -> None:
        shown = shown and shown + "\n"
        (told,) = self.wrong(tmp_path, f"```console\n$ echo one\n{shown}```\n")
        assert told == "docs/x.md:1: echo one\none\n"

    @pytest.mark.parametrize("printed", ["0 failed", "30 failed", "4 failed"])
    def test_another_count_is_noticed(self, printed: str, tmp_path: Path) -> None:
        assert self.wrong(tmp_path, f"```console\n$ echo {printed}\n3 failed\n```\n")

    def test_a_command_that_is_not_there_is_noticed(self, tmp_path: Path) -> None:
        assert self.wrong(tmp_path, "```console\n$ no-such-command\n…\n```\n")

    def test_an_exit_code_that_is_no_verdict_is_noticed(self, tmp_path: Path) -> None:
        assert self.wrong(tmp_path, "```console\n$ (exit 2)\n```\n")
        assert self.wrong(tmp_path, "```console\n$ (exit 2)\n$ echo $?\n2\n```\n") == []
        assert self.wrong(tmp_path, "```console\n$ (exit 2)\n$ echo $?\n3\n```\n")

    def test_files_and_diffs_are_followed(self, tmp_path: Path) -> None:
        page = "`a.txt`:\n\n```text\none\ntwo\n```\n\n```diff\n one\n-two\n+six\n```\n"
        page += "```console\n$ cat a.txt\none\nsix\n```\n"
        assert self.wrong(tmp_path, page) == []
        assert self.wrong(tmp_path, page.replace("one\nsix", "one\ntwo"))

    @pytest.mark.parametrize(
        ("printed", "shown", "rewritten"),
        [
            ("x\n5 passed, 0 failed in 3 s\n", "…\n4 passed, 1 failed in 2 s\n",
             "…\n5 passed, 0 failed in 2 s\n"),
            ("a  7 passed\nb  8 skipped\n", "a  6 passed\n…8 skipped\n",
             "a  7 passed\n…8 skipped\n"),
            ("a  7 passed\n", "b  6 passed\n", None),
            ("a  7 passed, 1 failed\n", "a  6 passed\n", None),
        ],
    )  # fmt: skip
    def test_counts_alone_are_rewritten(
        self, printed: str, shown: str, rewritten: str | None
    ) -> None:
        assert with_counts_of(printed, shown) == rewritten
