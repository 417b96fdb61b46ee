"""What a log shows of some passes and not of others, so that it is said and never passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["Gaps"]


class Gaps:
    """Counts, for each thing that a pass may say, how often it was said and where it was not."""

    def __init__(self) -> None:
        self._said: dict[str, int] = {}
        self._unsaid: dict[str, tuple[int, int]] = {}
        """How often, and the first line."""

    def said(self, what: str) -> None:
        """Something was there, and has been judged."""
        self._said[what] = self._said.get(what, 0) + 1

    def unsaid(self, what: str, line: int) -> None:
        """Something was not there, so that nothing was judged by it."""
        count, first = self._unsaid.get(what, (0, line))
        self._unsaid[what] = count + 1, first

    def never(self, what: str) -> bool:
        """Whether it was never there."""
        return what not in self._said

    def told(self, texts: Mapping[str, str]) -> Iterator[str]:
        """Of each thing that was there at times and not at others: the text, how often, where."""
        there = {what: text for what, text in texts.items() if what in self._said}
        yield from self.told_always(there)

    def told_always(self, texts: Mapping[str, str]) -> Iterator[str]:
        """The same of each thing that was not there at times, or never."""
        for what, text in texts.items():
            if what in self._unsaid:
                count, line = self._unsaid[what]
                where = f"at line {line}" if count == 1 else f"{count} times, first at line {line}"
                yield f"{text} ({where})"
