"""A page that is followed: files written, diffs applied, the commands of its consoles typed.

A page is followed from above in a folder of its own: a file that it gives a name is written, a diff
is applied to that file, and the commands of a console are typed into one shell. What a page takes
for granted (a driver, a log) is `GIVEN`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.pages import Block, Command, is_as_shown, normalised, patched

__all__ = ["GIVEN", "NOT_RUN", "NoIndex", "Played", "follow", "is_run"]

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
    ("docs/findings/phantom-entry.md", "mmcache-conformance live phantom"): "the same",
    ("docs/findings/stripped-payload.md", "mmcache-conformance live stripped"): "the same",
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


class NoIndex(Exception):
    """A command needs the package index, and there is no network."""


@dataclass(frozen=True)
class Played:
    """A command of a page, and what it printed here.

    Attributes:
        block: Where the page has it.
        command: What was typed, and what the page shows below it.
        printed: What came, standard error included.
        code: Its exit code.
        told: Whether the page shows the exit code; otherwise it is to be 0 or 1, the two verdicts.
    """

    block: Block
    command: Command
    printed: str
    code: str
    told: bool

    @property
    def wrong(self) -> str | None:
        """What is otherwise than the page says."""
        if not is_as_shown(self.printed, self.command.shown):
            return f"{self.block}: {self.command.words}\n{normalised(self.printed)}"
        if self.code not in ("0", "1") and not self.told:
            return f"{self.block}: {self.command.words} ends with {self.code}"
        return None


def is_run(block: Block) -> bool:
    """Whether a console is run; `NOT_RUN` says why not."""
    return (block.page, block.commands[0].words) not in NOT_RUN


def follow(page: str, found: tuple[Block, ...], folder: Path) -> Iterator[Played]:
    """Do what the blocks say, in order, and give each command with what it printed.

    Raises:
        NoIndex: A release of vLLM could not be read.
    """
    for name, content in GIVEN.get(page, {}).items():
        _write(folder / name, content)
    last: Path | None = None
    for block in found:
        if block.file is not None:
            last = folder / block.file
            _write(last, block.content)
        elif block.language == "diff":
            assert last is not None, f"{block}: a diff of which file?"
            last.write_text(patched(last.read_text(), block.content))
        elif block.language == "console" and is_run(block):
            yield from _typed(block, folder)


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    file.chmod(0o755 if content.startswith("#!") else 0o644)


def _typed(block: Block, folder: Path) -> Iterator[Played]:
    """Type the commands of a console into one shell."""
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
        raise NoIndex(str(block))
    for k, command in enumerate(block.commands):
        printed, _, told = told.partition(mark)
        code, _, told = told.partition("\n")
        asked = [c.words for c in block.commands[k + 1 : k + 2]] == ["echo $?"]
        yield Played(block, command, printed, code.strip(), asked)
