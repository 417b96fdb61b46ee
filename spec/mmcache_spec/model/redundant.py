"""Clauses that determine nothing by themselves: why they follow from the others, and are kept.

`mmcache-spec complete` holds without them, and the tests prove of each that it follows. What is
not listed here is needed: without it there are two answers that the rest allows.
"""

from __future__ import annotations

from ..kernel.system import ActionProperty, Property

__all__ = ["REDUNDANT", "place_of"]

Place = tuple[str, str | None]
"""The id of a clause, and the action of which it is claimed, or None for every state."""

REDUNDANT: dict[str, dict[Place, str]] = {
    "ledger": {
        ("L14", None): "what is needed was cached when the need began (L16, L11), and only what "
        "is freeable is evicted (L6), which nobody needs (L5, L8)",
        ("L9", "free_encoder_input"): "the record of an input that is not needed does not change, "
        "and the record determines everything else that is seen",
        ("L9", "free"): "the same, of a request that needs nothing",
        ("L10", "reset"): "the record of a reset is the first one (L12, L13, L16 and the sums)",
    },
    "progress": {
        ("S7", None): "the other clauses leave one answer, and a design that gives it is known to "
        "make progress: the one that is specified",
        ("S7", "arrive"): "the same",
        ("S7", "schedule"): "the same",
        ("S7", "preempt"): "the same",
        ("S7", "touch"): "the same",
        ("L3", None): "the same, of what is cached: it fits",
    },
    "encoder_decoder": {
        ("E1", "free_encoder_input"): "the free slots follow from what is needed (E1, of states)",
        ("E1", "free"): "the free slots follow from what is needed (E1, of states)",
        ("L10", "reset"): "after a reset nothing is needed (E1, E3)",
    },
}


def place_of(claim: Property) -> Place:
    """Where a clause is claimed."""
    assert claim.clause is not None
    return claim.clause, claim.action if isinstance(claim, ActionProperty) else None
