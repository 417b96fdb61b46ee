"""State is compared as what it is: sets as sets, and only the order of eviction as an order."""

from __future__ import annotations

from typing import Any

import pytest

from mmcache_conformance.verdicts.judge import observed_differences
from mmcache_vectors.manager import Observed


def differs(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    return [d.what for d in observed_differences(Observed(**expected), Observed(**got))]


@pytest.mark.parametrize(
    ("name", "expected", "got", "same"),
    [
        ("cached", {"A": ("r1", "r2")}, {"A": ("r2", "r1")}, True),
        ("cached", {"A": ("r1",), "B": ()}, {"B": (), "A": ("r1",)}, True),
        ("cached", {"A": ("r1", "r2")}, {"A": ("r2", "r1", "r2")}, True),
        ("cached", {"A": ("r1", "r2")}, {"A": ("r2",)}, False),
        ("cached", {"A": ()}, {}, False),
        ("cached", {"A": ()}, {"A": ("r1",)}, False),
        ("held", {"r1": (0, 2)}, {"r1": (2, 0)}, True),
        ("held", {"r1": (0,)}, {"r1": (0,), "r2": ()}, True),
        ("held", {"r1": (0,)}, {}, False),
        ("held", {"r1": (0,)}, {"r1": (1,)}, False),
        ("freeable", ("A", "B"), ("A", "B"), True),
        ("freeable", ("A", "B"), ("B", "A"), False),
        ("freeable", ("A",), ("A", "A"), False),
        ("num_free_slots", 3, 3, True),
        ("num_free_slots", 3, 4, False),
    ],
)
def test_what_is_the_same(name: str, expected: Any, got: Any, same: bool) -> None:
    assert differs({name: expected}, {name: got}) == ([] if same else [name])


def test_what_is_not_shown_is_not_compared() -> None:
    assert differs({"num_free_slots": 3, "cached": {}}, {}) == []
