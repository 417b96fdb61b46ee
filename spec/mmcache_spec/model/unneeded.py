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

_CHOICE = "what an engine does; the clauses hold of the passes too in which it does otherwise"
_CHOICES = (
    ("prefix_hit", "waiting"),
    ("prefix_hit", "something_hit"),
    ("prefix_hit", "a_token_is_left"),
    ("look_up", "not_scheduled_yet"),
    ("look_up", "not_in_window"),
    ("admit", "not_scheduled_yet"),
    ("schedule", "not_scheduled_yet"),
    ("schedule", "some_tokens"),
    ("schedule", "tokens_are_left"),
    ("defer", "nothing_allocated"),
    ("preempt", "running"),
    ("dispatch", "in_pass"),
    ("accept", "between_passes"),
    ("accept", "computed"),
    ("reject", "between_passes"),
    ("reject", "not_confirmed"),
)
_KNOWN = "only an engine that ships raw items once asks who is known (the variant of S8 is one)"

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
    "engine": {
        **{("guard", action, name): _CHOICE for action, name in _CHOICES},
        ("guard", "admit", "budget_not_negative"): _DUTY,
        ("invariant", "", "no_two_became_freeable_at_once"): "as in the ledger",
        ("invariant", "", "the_current_request_is_not_scheduled"): "what `not_scheduled_yet` is "
        "for: a request is decided once a pass",
        ("invariant", "", "what_was_evicted_is_at_the_worker"): "the report names nothing in vain; "
        "no clause asks that, since a worker may be told to drop what it does not hold",
        ("invariant", "", "what_came_back_is_new"): "what is evicted and comes back in one pass "
        "is encoded anew: it says why the report may leave it out (L1); S2 says more",
        ("record", "dispatch", "in_pass"): "what holds between passes holds after a dispatch "
        "whether the observer calls it so or not; that there is such a state is a goal",
        ("record", "dispatch", "known"): _KNOWN,
        ("record", "finish", "known"): _KNOWN,
        ("record", "finish", "payload"): "a raw item that stays longer does no harm: S8 asks that "
        "it is there",
        ("line", "reset", "since"): "as in the ledger",
        ("record", "reset", "ended"): "as in the ledger",
    },
    "progress": {
        ("guard", "arrive", "last"): "the order of the queue; the ranking counts those that have "
        "not come yet, so a request that came before others would do no harm",
        **dict.fromkeys(
            (("guard", "touch", "waiting"), ("guard", "touch", "hit")),
            "a touch changes nothing as it should be; in a wrong design it keeps a reference",
        ),
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
