"""Every block of every page is run, parsed or compiled, unless a table says why it is not.

A page is followed from above in a folder of its own: a file that it gives a name is written, a diff
is applied to that file, and the commands of a console print what the page shows. What a page takes
for granted (a driver, a log) is `GIVEN`.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
import yaml

from tests.support.drivers import without
from tests.support.pages import (
    Block,
    blocks,
    blocks_in,
    is_as_shown,
    normalised,
    pages,
    patched,
)

NOT_RUN = {
    ("README.md", "make prove"): "CI runs it and compares what it prints (tests/tools/as_shown.py)",
    ("README.md", "make test"): "it is this run",
    ("docs/port-an-engine.md", "pip install ."): "installs; tests/end_to_end/test_wheel.py does so",
    ("docs/running-conformance.md", "pip install '.[pytest]'"): "installs; test_wheel.py does so",
    ("docs/recording.md", "pip install ."): "installs; test_wheel.py does so",
    ("docs/recording.md", "MMCACHE_RECORD=records vllm serve MODEL"): "needs vLLM, a model, a GPU",
    ("docs/vllm-scheduler.md", "make conformance-vllm"): "installs 3.5 GB of vLLM",
    (
        "docs/vllm-scheduler.md",
        "PYTHONPATH=SOURCES mmcache-conformance run vllm-scheduler vllm-scheduler:v2",
    ): "needs torch and the files of a vLLM; test_vllm_scheduler.py runs them where they are",
    ("docs/live.md", "mmcache-conformance live"): "installs 3.5 GB of vLLM",
    (
        "docs/live.md",
        "mmcache-conformance run vllm-live -k phantom --html live.html",
    ): "needs an installed vLLM; test_vllm_live.py runs it where there is one",
    ("docs/mutants.md", "make mutants"): "takes many minutes",
    (
        "docs/faults.md",
        "python -m tests.tools.faults.kill --markdown",
    ): "builds the example more than a hundred times",
    (
        "docs/differ.md",
        "mmcache-conformance differ cmd:./driver --seconds 60",
    ): "a minute; test_differ.py plays on drivers",
    ("docs/running-conformance.md", "mmcache-conformance matrix --out matrix"): "36 releases",
}
"""Console blocks that no test runs, by page and first command, and why."""

_DRIVER = (
    "#!/bin/sh\nexec python -m mmcache_conformance.adapters.python mmcache:EncoderCacheManager\n"
)
_CLASS = "from mmcache import EncoderCacheManager as MyManager\n"
_ENGINE = {"my_engine/__init__.py": "", "my_engine/cache.py": _CLASS}
_LOG = """\
{"format":"mmcache/log","format_version":1,"producer":"a test","records":["check_and_update_cache",\
"can_allocate","allocate","free_encoder_input","free","get_freed_mm_hashes","reset"]}
{"op":"new","manager":"m","seq":0,"kind":"encoder_cache","cache_size":8}
{"op":"allocate","manager":"m","seq":1,"request":"r","input_id":0,"identifier":"A","num_embeds":4}
{"op":"free","manager":"m","seq":2,"request":"r"}
{"op":"get_freed_mm_hashes","manager":"m","seq":3,"returns":[]}
"""

GIVEN: dict[str, dict[str, str]] = {
    "docs/adapter-protocol.md": {"driver": _DRIVER},
    "docs/recording.md": {"records/mmcache-1-1.jsonl": _LOG, "records/mmcache-2-1.jsonl": _LOG},
    "docs/running-conformance.md": {"driver": _DRIVER, **_ENGINE},
    "docs/trace-validation.md": {"right.jsonl": _LOG},
}
"""Files that a page takes for granted, by their names."""

ALL = {page: blocks(page) for page in pages()}
CONSOLES = [block for found in ALL.values() for block in found if block.language == "console"]
FOLLOWED = [page for page, found in ALL.items() if any(b.language == "console" for b in found)]
PARSED = ("json", "jsonl", "toml", "yaml", "python")
WITH = {"console", "diff", "cpp", "text", "", *PARSED}
"""The languages of blocks. `text`, or none, is for pictures and formulas: for no command."""


def is_run(block: Block) -> bool:
    return (block.page, block.commands[0].words) not in NOT_RUN


def needs_the_index(page: str) -> bool:
    """Whether a command that is run reads a release of vLLM."""
    consoles = (b for b in ALL[page] if b.language == "console" and is_run(b))
    return any(re.search(r"vllm:\d|matrix", c.words) for b in consoles for c in b.commands)


def _page(page: str) -> object:
    return pytest.param(page, marks=[pytest.mark.network] if needs_the_index(page) else [])


@pytest.mark.parametrize("page", [_page(page) for page in FOLLOWED])
def test_a_page_can_be_followed(page: str, tmp_path: Path) -> None:
    if any(b.language == "cpp" for b in ALL[page]) and shutil.which("g++") is None:
        without("g++")
    assert follow(page, ALL[page], tmp_path) == []


def follow(page: str, found: tuple[Block, ...], folder: Path) -> list[str]:
    """Do what the blocks say, in order; what came otherwise than it is shown."""
    for name, content in GIVEN.get(page, {}).items():
        _write(folder / name, content)
    wrong: list[str] = []
    last: Path | None = None
    for block in found:
        if block.file is not None:
            last = folder / block.file
            _write(last, block.content)
        elif block.language == "diff":
            assert last is not None, f"{block}: a diff of which file?"
            last.write_text(patched(last.read_text(), block.content))
        elif block.language == "console" and is_run(block):
            wrong += _played(block, folder)
    return wrong


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(0o755 if content.startswith("#!") else 0o644)


def _played(block: Block, folder: Path) -> list[str]:
    """Type the commands of a console into one shell; tell those that print something else.

    A command ends with 0 or 1, the two verdicts, unless the page shows its exit code.
    """
    mark = "\n<<<end of a command>>>"
    script = "".join(
        f"{c.words}\ncode=$?; echo '{mark}' $code; (exit $code)\n" for c in block.commands
    )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
    }
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    told = ran.stdout.decode()
    if "could not be read from the package index" in told and not os.environ.get("CI"):
        warnings.warn(f"NOT TESTED without a network: {block}", stacklevel=2)
        pytest.skip("no network")
    wrong: list[str] = []
    for k, command in enumerate(block.commands):
        printed, _, told = told.partition(mark)
        code, _, told = told.partition("\n")
        asked = [c.words for c in block.commands[k + 1 : k + 2]] == ["echo $?"]
        if not is_as_shown(printed, command.shown):
            wrong.append(f"{block}: {command.words}\n{normalised(printed)}")
        elif code.strip() not in ("0", "1") and not asked:
            wrong.append(f"{block}: {command.words} ends with {code}")
    return wrong


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
    with_code = {b.page for found in ALL.values() for b in found if b.language in ("cpp", "diff")}
    assert with_code <= set(FOLLOWED)


class TestTheNet:
    """A page that is not true is noticed."""

    PAGE = "docs/x.md"

    def wrong(self, folder: Path, text: str) -> list[str]:
        return follow(self.PAGE, tuple(blocks_in(self.PAGE, text)), folder)

    def test_what_is_true_passes(self, tmp_path: Path) -> None:
        told = "```console\n$ printf 'a\\nb\\nc\\nd 7 passed, 0.2 s\\n'\n"
        told += "a\n…\nd 9 passed, 1.3 s\n```\n"
        assert self.wrong(tmp_path, told) == []

    @pytest.mark.parametrize(
        "shown",
        ["two", "one\ntwo", "…\ntwo", "", "one 3", "one…x"],
    )
    def test_another_word_is_noticed(self, shown: str, tmp_path: Path) -> None:
        shown = shown and shown + "\n"
        (told,) = self.wrong(tmp_path, f"```console\n$ echo one\n{shown}```\n")
        assert told == "docs/x.md:1: echo one\none\n"

    def test_none_is_not_some(self, tmp_path: Path) -> None:
        assert self.wrong(tmp_path, "```console\n$ echo 0 failed\n3 failed\n```\n")

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
