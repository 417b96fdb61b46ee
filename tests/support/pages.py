"""The pages as the tests read them: fenced blocks, and commands with what they print.

In a console block, a line that begins with `$ ` is a command, and what follows is what it prints on
its terminal, standard error included. A line `…` stands for any lines that are left out, and `…`
within a line for anything there. Not compared are blanks at the end of a line, and two things that
differ from run to run: seconds, and the numbers of vectors that passed, failed and were skipped
(none stays none).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LEFT_OUT = "…"

_FENCE = re.compile(
    r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<content>.*?)^(?P=fence)$", re.M | re.S
)
_NAME = re.compile(r"`(?P<name>[\w./-]+)`:\n+\Z")


@dataclass(frozen=True)
class Command:
    """One line of a console, and what the page shows below it."""

    words: str
    shown: str


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page, relative to the root of the project.
        line: The line of the opening fence, from 1.
        language: What stands behind the fence; empty if nothing does.
        content: The lines between the fences.
        file: The name of a file that a line such as "`driver.cpp`:" before the block gives it.
    """

    page: str
    line: int
    language: str
    content: str
    file: str | None

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """The commands of a console.

        Raises:
            ValueError: Something is shown before the first command.
        """
        before, *parts = re.split(r"^\$ (.*)\n", self.content, flags=re.M)
        if before or not parts:
            raise ValueError(f"{self}: a console begins with a command")
        return tuple(map(Command, parts[::2], parts[1::2]))

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> tuple[str, ...]:
    """The Markdown files of the project's root and of docs/, as names relative to the root."""
    files = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return tuple(sorted(str(file.relative_to(ROOT)) for file in files))


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> tuple[Block, ...]:
    """Every fenced block of a page, in order."""
    return tuple(blocks_in(page, text_of(page)))


def blocks_in(page: str, text: str) -> Iterator[Block]:
    """Every fenced block of a text, said to be a page's."""
    for found in _FENCE.finditer(text):
        before = text[: found.start()]
        name = _NAME.search(before)
        yield Block(
            page,
            before.count("\n") + 1,
            found["language"],
            found["content"],
            name and name["name"],
        )


def prose(page: str) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", text_of(page))


def normalised(printed: str) -> str:
    """Without what differs from run to run: seconds, and numbers of vectors other than none."""
    printed = re.sub(r" +$", "", printed, flags=re.M)
    printed = re.sub(r" *\b\d+(\.\d+)? s\b", " N s", printed)
    return re.sub(r"\b[1-9]\d* (passed|failed|skipped)\b", r"N \1", printed)


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether a command printed what a page shows of it."""
    pattern = ""
    for line in normalised(shown).splitlines():
        if line.strip() == LEFT_OUT:
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(map(re.escape, line.split(LEFT_OUT))) + r"\n"
    return re.fullmatch(pattern, normalised(printed)) is not None


def patched(source: str, diff: str) -> str:
    """The source after the diff.

    Raises:
        ValueError: What the diff changes does not occur exactly once.
    """
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    if source.count(before) != 1:
        raise ValueError(f"occurs {source.count(before)} times:\n{before}")
    return source.replace(before, after)
