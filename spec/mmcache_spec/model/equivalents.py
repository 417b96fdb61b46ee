"""Mutants that nobody can tell from the specification, and why.

`mmcache-spec mutants` looks for a difference in every one of them, and fails where it finds one.
"""

from __future__ import annotations

__all__ = ["ACCEPTED", "EQUIVALENT", "REASONS"]

REASONS: dict[str, dict[str, tuple[str, ...]]] = {
    "ledger": {
        "a freeable hash is cached, so there is nothing to guard against": (
            "check_and_update_cache: freeable, always then",
            "check_and_update_cache: freeable_slots, condition 1 of 2 is gone",
        ),
        "where it is refused, `gone` is empty already, or nobody looks at it": (
            "can_allocate: freeable, condition 2 of 3 is gone",
            "can_allocate: freed, condition 1 of 3 is gone",
            "can_allocate: freed, condition 3 of 3 is gone",
        ),
        "what is evicted has no references to drop": (
            "can_allocate: references, forgotten",
            "can_allocate: references, condition 2 of 2 is gone",
            "can_allocate: references, condition 1 of 3 is gone",
            "can_allocate: references, condition 3 of 3 is gone",
            "can_allocate: references, condition 1 of 2 is gone (2)",
            "can_allocate: references, condition 2 of 2 is gone (2)",
            "can_allocate: references, ≤ is <",
            "can_allocate: references, ≤ is ≥",
            "can_allocate: references, ≤ is < (2)",
            "can_allocate: references, ≤ is ≥ (2)",
            "can_allocate: references, + is −",
            "can_allocate: references, < is ≤",
            "can_allocate: references, < is >",
            "can_allocate: references, + is − (2)",
            "can_allocate: references, condition 1 of 2 is gone (3)",
            "can_allocate: references, condition 2 of 2 is gone (3)",
            "can_allocate: references, < is ≤ (2)",
            "can_allocate: references, < is > (2)",
            "can_allocate: references, + is − (3)",
        ),
        "the report leaves out what is cached, so a hash too many in `freed` is not seen": (
            "can_allocate: freed, condition 1 of 2 is gone",
            "can_allocate: freed, condition 2 of 2 is gone",
            "can_allocate: freed, + is −",
            "can_allocate: freed, < is ≤",
            "can_allocate: freed, + is − (2)",
        ),
        "what is held is referenced, and what is referenced is held somewhere": (
            "free_encoder_input: references, condition 1 of 3 is gone",
            "free_encoder_input: references, condition 2 of 3 is gone",
            "free_encoder_input: freeable, condition 1 of 3 is gone",
            "free_encoder_input: freeable, condition 2 of 3 is gone",
            "free_encoder_input: freeable, condition 3 of 4 is gone",
            "free_encoder_input: freeable_slots, condition 1 of 3 is gone",
            "free_encoder_input: freeable_slots, condition 2 of 3 is gone",
            "free_encoder_input: freeable_slots, condition 3 of 4 is gone",
        ),
        "`since` counts only for freeable hashes": (
            "free_encoder_input: since, condition 1 of 2 is gone",
            "free_encoder_input: since, condition 2 of 2 is gone",
            "free_encoder_input: since, condition 1 of 2 is gone (2)",
            "free_encoder_input: since, condition 2 of 2 is gone (2)",
            "free_encoder_input: since, condition 1 of 3 is gone",
            "free_encoder_input: since, condition 2 of 3 is gone",
            "free_encoder_input: since, condition 3 of 3 is gone",
            "free_encoder_input: since, condition 3 of 4 is gone",
            "free: since, condition 2 of 2 is gone",
            "free: since, condition 2 of 3 is gone",
        ),
        "only the order of times counts": (
            "free_encoder_input: clock, 1 is 2",
            "reset: since, forgotten",
            "reset: since, 0 is 1",
            "reset: clock, forgotten",
            "reset: clock, 0 is 1",
        ),
    },
    "encoder_decoder": {
        "a released input is charged": ("free: outstanding, condition 1 of 2 is gone",),
    },
}
"""For each system: the reason, and the names of the mutants."""

EQUIVALENT: dict[str, frozenset[str]] = {
    system: frozenset(name for names in reasons.values() for name in names)
    for system, reasons in REASONS.items()
}

HARMLESS: dict[str, dict[str, tuple[str, ...]]] = {
    "progress": {
        "an item that is not ahead needs room for what is pinned, which fits, and for the items "
        "ahead up to it: the last of these has no more room, and lies before it": (
            "schedule: answer, condition 1 of 2 is gone (8)",
        ),
    },
}
"""Of wrong designs that no clause condemns and no proof settles: the reason, and their names."""

ACCEPTED: dict[str, dict[str, str]] = {
    system: {name: reason for reason, names in reasons.items() for name in names}
    for system, reasons in HARMLESS.items()
}
"""For each system: the name of the design, and why it is none the worse."""
