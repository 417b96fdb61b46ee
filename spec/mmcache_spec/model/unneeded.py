"""What no proof of a clause needs, and why it is in the definition all the same.

`mmcache-spec cores` finds these; what it finds and is not listed here is a gap in the clauses.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REASONS", "reason_for"]

_DUTY = "a duty of the caller: no real caller does otherwise, and the answer would be no worse"
_OBEDIENT = (
    "about a worker that obeys: it shows what the report is for; no clause of a ledger needs it"
)

REASONS: Mapping[str, Mapping[tuple[str, str, str], str]] = {
    "ledger": {
        ("guard", "can_allocate", "missed"): "a caller asks only after a miss; what is claimed of "
        "admission is true of a resident hash too",
        ("guard", "can_allocate", "budget_not_negative"): _DUTY,
        ("guard", "can_allocate", "pending_not_negative"): _DUTY,
        ("invariant", "", "no_two_became_freeable_at_once"): "age is the order of the last needs "
        "(L15), which has no ties but within one `free`",
        ("line", "reset", "since"): "after a reset nothing is freeable, and only the times of what "
        "is freeable count",
        ("record", "reset", "ended"): "the same, of the observer's times",
    },
    "encoder_decoder": {
        ("guard", "can_allocate", "budget_not_negative"): _DUTY,
        ("guard", "can_allocate", "pending_not_negative"): _DUTY,
    },
}
"""For each system: kind, action ("" for an invariant) and name, and the reason."""


def reason_for(system: str, kind: str, where: str, name: str) -> str | None:
    """Why it is there though no clause needs it; None where nobody has said."""
    if system == "ledger" and "worker" in name:
        return _OBEDIENT
    return REASONS.get(system, {}).get((kind, where, name))
