"""Units of a campaign: how large their worlds are, how long their sequences, and how many.

The first units are small, so that what is easily found is found soon and in small worlds. After
them most are in worlds of some size, where a sequence costs little; of eight units, one has crowded
worlds, one has requests with many positions, and one has few managers that live long.
"""

from __future__ import annotations

from dataclasses import dataclass

from .worlds import LARGEST, Largest

__all__ = ["Plan", "plan_of"]

_SHORT = (6, 8, 10, 10, 12, 16, 24, 40)


@dataclass(frozen=True)
class Plan:
    """What a unit plays."""

    largest: Largest
    sequences: int
    calls: tuple[int, ...] = _SHORT
    """The lengths that a sequence may have."""
    batch: int = 64
    """Sequences of one world, which go to the target together."""


_LONG = (150, 300, 600, 1200)
_OF_MIDDLE = (30, 60, 90, 150)
_SMALL = tuple(
    Plan(largest, 256)
    for largest in (Largest(3, 2, 4), Largest(4, 3, 6), Largest(6, 4, 9))
    for _ in range(2)
)
_FIRST = (
    *_SMALL,
    Plan(LARGEST, 256),
    Plan(Largest(5, 3, 8), 16, _LONG, 4),
    Plan(LARGEST, 512),
    Plan(Largest(18, 18, 20, full=True), 64, _OF_MIDDLE, 8),
    Plan(Largest(3, 2, 270, tall=True, full=True), 64, _OF_MIDDLE, 8),
    Plan(LARGEST, 512),
    Plan(Largest(8, 4, 12, full=True), 512, (16, 24, 40, 60)),
)
_LARGE = Plan(LARGEST, 4096)
_LATER = (
    _LARGE,
    Plan(Largest(36, 20, 40, full=True), 96, (60, 90, 150, 300), 4),
    Plan(Largest(5, 3, 8), 96, _LONG, 4),
    _LARGE,
    Plan(Largest(3, 3, 270, tall=True, full=True), 128, _OF_MIDDLE, 8),
    Plan(Largest(14, 14, 20), 1024, (24, 40, 60), 32),
    Plan(Largest(24, 3, 26, full=True, tall=True), 384, _OF_MIDDLE, 16),
    Plan(Largest(8, 4, 12, full=True), 2048, (16, 24, 40, 60)),
)


def plan_of(unit: int) -> Plan:
    """What the unit of this number plays, from 0."""
    if unit < len(_FIRST):
        return _FIRST[unit]
    return _LATER[(unit - len(_FIRST)) % len(_LATER)]
