"""A text that two states have only if nothing at all tells them apart.

`pickle` writes it quickly of a state of built-in parts: its types, its values, its orders, and what
in it is one thing that is reached in two ways. Two states that are alike may have different marks
(of two texts that are equal it says whether they are one object), so a mark only ever saves work
that would come to the same.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict, deque
from io import BytesIO
from typing import Any

__all__ = ["Marker"]


class _NotBuiltIn(Exception):
    """Something in the state may not tell all of itself."""


class _Pickler(pickle.Pickler):
    """Refuses all that is not of Python's own making: it could leave something out."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is OrderedDict and not vars(value):
            return OrderedDict, (list(value.items()),)
        if kind is deque or value is OrderedDict or value is deque:
            return NotImplemented
        raise _NotBuiltIn


class Marker:
    """Makes the marks of many states."""

    def __init__(self) -> None:
        self._file = BytesIO()
        self._pickler = _Pickler(self._file, pickle.HIGHEST_PROTOCOL)

    def mark(self, state: Any) -> bytes | None:
        """The mark of a state; None if something in it is not of Python's own making."""
        self._file.seek(0)
        self._file.truncate()
        self._pickler.clear_memo()
        try:
            self._pickler.dump(state)
        except (_NotBuiltIn, RecursionError):
            return None
        return self._file.getvalue()
