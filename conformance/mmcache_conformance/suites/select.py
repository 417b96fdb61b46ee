"""Choose vectors by an expression, as pytest's `-k` does: words, `and`, `or`, `not`, brackets."""

from __future__ import annotations

import re
from collections.abc import Callable

from mmcache_vectors.clauses import clause
from mmcache_vectors.engine import EngineVector
from mmcache_vectors.pair import PairVector

from .load import AnyVector

__all__ = ["SelectionError", "parse_selection"]

Selection = Callable[[AnyVector], bool]

_MOST_NESTED = 100


class SelectionError(ValueError):
    """The expression cannot be understood; the text shows where."""


def parse_selection(expression: str) -> Selection:
    """The predicate. Raises `SelectionError`.

    A clause id such as `L1` chooses the vectors of that clause. Any other word chooses the vectors
    that have it, in whatever case, within their id, variant, kind (the manager, `engine`, or
    `processor_cache`), goal, situation or a clause's name.
    """
    return _Parser(expression).parse()


class _Parser:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = [(m[0], m.start()) for m in re.finditer(r"[()]|[^\s()]+", expression)]
        self._at = 0
        if sum(token in {"(", "not"} for token, _ in self._tokens) > _MOST_NESTED:
            raise SelectionError(f"more than {_MOST_NESTED} brackets and 'not's")

    def parse(self) -> Selection:
        chosen = self._either()
        if self._at < len(self._tokens):
            self._fail("'and', 'or' or the end")
        return chosen

    def _either(self) -> Selection:
        options = [self._both()]
        while self._accept("or"):
            options.append(self._both())
        return lambda vector: any(option(vector) for option in options)

    def _both(self) -> Selection:
        parts = [self._one()]
        while self._accept("and"):
            parts.append(self._one())
        return lambda vector: all(part(vector) for part in parts)

    def _one(self) -> Selection:
        if self._accept("not"):
            negated = self._one()
            return lambda vector: not negated(vector)
        if self._accept("("):
            inner = self._either()
            if not self._accept(")"):
                self._fail("')'")
            return inner
        word = self._token()
        if word in {None, "and", "or", ")"}:
            self._fail("a word, 'not' or '('")
        self._at += 1
        return _has(str(word))

    def _token(self) -> str | None:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else None

    def _accept(self, token: str) -> bool:
        found = self._token() == token
        self._at += found
        return found

    def _fail(self, wanted: str) -> None:
        end = self._at == len(self._tokens)
        column = len(self._expression) + 1 if end else self._tokens[self._at][1] + 1
        raise SelectionError(f"expected {wanted} at column {column} of {self._expression!r}")


def _has(word: str) -> Selection:
    if re.fullmatch(r"[a-zA-Z]\d{1,2}", word):
        return lambda vector: word.upper() in vector.clauses
    part = word.lower()

    def matches(vector: AnyVector) -> bool:
        names = (clause(id).name for id in vector.clauses)
        return any(part in text.lower() for text in (*_words(vector), *names))

    return matches


def _words(vector: AnyVector) -> tuple[str, ...]:
    """What a word may be a part of, besides the names of the clauses."""
    if isinstance(vector, EngineVector):
        goal = vector.provenance.goal
        return vector.id, vector.variant, vector.kind, goal, vector.situation or ""
    if isinstance(vector, PairVector):
        return vector.id, vector.variant, vector.kind
    return vector.id, vector.variant, vector.kind, vector.goal
