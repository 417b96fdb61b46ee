"""Whether a command printed what a page shows of it: for those that take too long for a test.

    make prove | python -m tests.tools.as_shown README.md "make prove" [--write]

reads what the command printed, passes it on, and ends with 1, after a diff, if the page shows
something else. With `--write`, the page then shows it.
"""

from __future__ import annotations

import difflib
import sys

from tests.support.pages import ROOT, blocks, is_as_shown, normalised


def main(page: str, words: str, write: bool = False) -> int:
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
        file, prompt = ROOT / page, f"$ {words}\n"
        tidy = "".join(f"{line.rstrip()}\n" for line in lines)
        text = file.read_text("utf-8")
        file.write_text(text.replace(prompt + command.shown, prompt + tidy), "utf-8")
        return 0
    shown, came = (normalised(t).splitlines(keepends=True) for t in (command.shown, printed))
    sys.stdout.writelines(difflib.unified_diff(shown, came, f"{page}: {words}", "printed"))
    return 1


if __name__ == "__main__":
    page, words, *more = sys.argv[1:]
    sys.exit(main(page, words, more == ["--write"]))
