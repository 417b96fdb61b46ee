"""Whether commands print what the pages show of them, and the pages rewritten where they do not.

    make prove | python -m tests.tools.as_shown README.md "make prove" [--write]

reads what the command printed, passes it on, and ends with 1, after a diff, if the page shows
something else. With `--write`, the page then shows it. It is for what takes too long for a test.

    python -m tests.tools.as_shown --counts [PAGE...]

follows the pages as the tests do (`tests/end_to_end/test_console_blocks.py`), by default all that
show counts, and rewrites the numbers of vectors that passed, failed and were skipped. What is
otherwise wrong is said, and it ends with 1.
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.support.followed import NoIndex, follow, is_run
from tests.support.pages import (
    ROOT,
    Command,
    blocks,
    is_as_shown,
    normalised,
    pages,
    shows_counts,
    text_of,
    with_counts_of,
)


def main(page: str, words: str, write: bool = False) -> int:
    """Compare standard input with what the page shows of a command."""
    lines = []
    for line in sys.stdin:
        print(line, end="", flush=True)
        lines.append(line)
    printed = "".join(lines)
    consoles = (b for b in blocks(page) if b.language == "console")
    (command,) = (c for b in consoles for c in b.commands if c.words == words)
    if is_as_shown(printed, command.shown):
        return 0
    if write:
        _show(page, command, "".join(f"{line.rstrip()}\n" for line in lines))
        return 0
    shown, came = (normalised(t).splitlines(keepends=True) for t in (command.shown, printed))
    sys.stdout.writelines(difflib.unified_diff(shown, came, f"{page}: {words}", "printed"))
    return 1


def rewrite_counts(asked: Sequence[str]) -> int:
    """Follow the pages, and let them show the numbers of vectors that come."""
    code = 0
    for page in asked or _with_counts():
        with tempfile.TemporaryDirectory() as folder:
            try:
                played = list(follow(page, blocks(page), Path(folder)))
            except NoIndex as block:
                print(f"{block}: left as it is, without a network")
                code = 1
                continue
        for command in (p for p in played if p.wrong is not None):
            shown = with_counts_of(command.printed, command.command.shown)
            if shown is None or shown == command.command.shown:
                print(command.wrong)
                code = 1
            else:
                _show(page, command.command, shown)
    return code


def _with_counts() -> list[str]:
    consoles = {
        page: [b for b in blocks(page) if b.language == "console" and is_run(b)] for page in pages()
    }
    return [page for page, found in consoles.items() if any(shows_counts(b.content) for b in found)]


def _show(page: str, command: Command, shown: str) -> None:
    prompt = f"$ {command.words}\n"
    text = text_of(page).replace(prompt + command.shown, prompt + shown)
    (ROOT / page).write_text(text, "utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--counts"]:
        sys.exit(rewrite_counts(sys.argv[2:]))
    page, words, *more = sys.argv[1:]
    sys.exit(main(page, words, more == ["--write"]))
