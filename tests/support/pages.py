"""The pages as the tests read them: fenced blocks, and commands with what they print.

In a console block, a line that begins with `$ ` is a command, and what follows is what it prints on
its terminal, standard error included. A line `…` stands for any lines that are left out, and `…`
within a line for anything there. Not compared are blanks at the end of a line, and seconds, which
differ from run to run; nor the lines of progress, of which a busy machine shows more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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
    """Without what differs from run to run: seconds, and the lines that say what takes long."""
    printed = re.sub(r"^\d+ s: .*\n", "", printed, flags=re.M)
    printed = re.sub(r" +$", "", printed, flags=re.M)
    return re.sub(r" *\b\d+(\.\d+)? s\b", " N s", printed)


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether a command printed what a page shows of it."""
    return re.fullmatch(_pattern(shown, re.escape), normalised(printed)) is not None


_COUNT = re.compile(r"\b\d+(?= (?:passed|failed|skipped)\b)")


def shows_counts(text: str) -> bool:
    """Whether the text has numbers of vectors in it."""
    return _COUNT.search(text) is not None


def with_counts_of(printed: str, shown: str) -> str | None:
    """What is shown, with the numbers of vectors that were printed; None if more is otherwise."""
    found = re.fullmatch(_pattern(shown, _any_counts), normalised(printed))
    if found is None:
        return None
    counts = iter(found.groups())
    return _COUNT.sub(lambda _: next(counts), shown)


def _any_counts(text: str) -> str:
    return r"(\d+)".join(map(re.escape, _COUNT.split(text)))


def _pattern(shown: str, exactly: Callable[[str], str]) -> str:
    """An expression for all that may be printed where this is shown."""
    pattern = ""
    for line in normalised(shown).splitlines():
        if line.strip() == LEFT_OUT:
            pattern += r"(?:.*\n)*"
        else:
            pattern += ".*".join(map(exactly, line.split(LEFT_OUT))) + r"\n"
    return pattern


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
