"""Which scopes are searched, what `along` follows, and what is taken away from a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from mmcache_spec.checks import bounded
from mmcache_spec.checks.bounded import along, elements, shortest, unrolled, witnesses
from mmcache_spec.kernel.goals import vacuity_goals
from mmcache_spec.kernel.system import Scope
from mmcache_spec.model.ledger import ledger
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.model.world import scope

UNFILTERED = VARIANTS["unfiltered_report"].system
(L1,) = (p for p in UNFILTERED.properties if p.clause == "L1")
CALLS = ("can_allocate", "allocate", "get_freed_mm_hashes")
SMALL, MIDDLE, WIDE, WIDEST = scope(2, 1, 2), scope(3, 2, 2), scope(4, 2, 2), scope(4, 3, 3)


@dataclass(frozen=True)
class Path:
    """All that `_searched` asks of what is found."""

    length: int


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[Scope], int]]:
    """The searches that are made, of which each finds a path two calls shorter than its bound."""
    asked: list[tuple[str, list[Scope], int]] = []

    def search(
        system: object, scopes: Sequence[Scope], start: str, bound: int, *_: Any, **__: Any
    ) -> Path:
        asked.append(("searched", list(scopes), bound))
        return Path(bound - 2)

    def unroll(
        system: object, scopes: Sequence[Scope], start: str, bound: int, *_: Any, **__: Any
    ) -> Path:
        asked.append(("unrolled", list(scopes), bound))
        return Path(bound)

    monkeypatch.setattr(bounded, "quickest", search)
    monkeypatch.setattr(bounded, "unrolled", unroll)
    monkeypatch.setattr(bounded, "_told", lambda system, found, start, wanted: found)
    return asked


def test_what_is_found_is_the_bound_of_what_is_looked_for_next(
    asked: list[tuple[str, list[Scope], int]],
) -> None:
    """In larger universes only what is shorter, and each size by itself."""
    found = bounded.look_for(UNFILTERED, [SMALL, MIDDLE, WIDE, WIDEST], "init", 12)
    assert [elements(s) for s in (SMALL, MIDDLE, WIDE, WIDEST)] == sorted(
        {elements(s) for s in (SMALL, MIDDLE, WIDE, WIDEST)}
    )
    assert asked == [
        ("searched", [SMALL], 12),
        ("searched", [MIDDLE], 9),
        ("searched", [WIDE], 6),
        ("searched", [WIDEST], 3),
    ]
    assert found.searched == (SMALL, MIDDLE, WIDE, WIDEST)
    assert found.unrolled == ()


def test_from_a_pass_the_widest_alone_is_unrolled(
    asked: list[tuple[str, list[Scope], int]],
) -> None:
    bounded.look_for(UNFILTERED, [SMALL, MIDDLE, WIDE, WIDEST], "pass", 12)
    assert asked == [("searched", [SMALL], 12), ("unrolled", [WIDEST], 9)]


def test_a_path_of_just_these_calls() -> None:
    found = along(UNFILTERED, [SMALL], "pass", CALLS)
    shorter = shortest(UNFILTERED, [SMALL], "pass", 3, (L1,))
    assert found is not None
    assert shorter is not None
    assert [s.call.action for s in found.steps] == list(CALLS)
    assert found.clauses == shorter.clauses == ("L1",)


@pytest.mark.parametrize(
    "calls",
    [
        ("can_allocate", "get_freed_mm_hashes", "allocate"),  # in another order nothing breaks
        ("can_allocate", "allocate"),  # nothing is reported
        (
            "can_allocate",
            "allocate",
            "get_freed_mm_hashes",
            "get_freed_mm_hashes",
        ),  # it breaks before the last
        ("no such call", "can_allocate", "allocate", "get_freed_mm_hashes"),
        ("can_allocate", "no such call", "allocate", "get_freed_mm_hashes"),
    ],
)
def test_where_there_is_no_such_path(calls: tuple[str, ...]) -> None:
    assert along(UNFILTERED, [SMALL], "pass", calls, (L1,)) is None


def test_what_no_call_names_is_taken_away() -> None:
    """The least world: two hashes, and no request that does nothing."""
    found = unrolled(UNFILTERED, [scope(3, 2, 2)], "pass", 3, (L1,))
    least = unrolled(UNFILTERED, [SMALL], "pass", 3, (L1,))
    assert found is not None
    assert least is not None
    assert {s: len(names) for s, names in found.world.universe.items()} == {
        s: len(names) for s, names in least.world.universe.items()
    }


def test_before_a_call_that_a_guard_refuses_the_last_state_counts() -> None:
    goals = [g for g in vacuity_goals(ledger()) if g.refused]
    found = witnesses(ledger(), SMALL, goals, 3)
    lengths = [len(trace.steps) for trace in found.values() if trace is not None]
    assert lengths
    assert max(lengths) > 1
