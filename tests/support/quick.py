"""Which cases of a long list are quick tests; the others are `slow`, and CI runs them besides."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["first_of_each", "only_quick"]


def only_quick(cases: Iterable[Sequence[Any]], quick: Callable[..., bool]) -> list[Any]:
    """Parameters of a test, in their order, each slow for which `quick` does not say yes."""
    return [pytest.param(*case, marks=[] if quick(*case) else [pytest.mark.slow]) for case in cases]


def first_of_each(cases: Iterable[Sequence[Any]], kind: Callable[..., Hashable]) -> list[Any]:
    """Parameters of a test: the first of each kind is quick."""
    seen: set[Hashable] = set()

    def quick(*case: Any) -> bool:
        new = kind(*case) not in seen
        seen.add(kind(*case))
        return new

    return only_quick(cases, quick)
