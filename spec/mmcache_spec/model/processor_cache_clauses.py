"""The processor cache: the record of an observer, and the clauses."""

from __future__ import annotations

from ..kernel.system import ActionProperty, Invariant, Monitor
from ..kernel.terms import (
    BOOL,
    SetSort,
    all_of,
    empty,
    forall,
    ite,
    result,
    setof,
    state,
    total,
)
from .processor_cache_state import (
    data_of,
    i,
    in_flight,
    k,
    ordered,
    r,
    receiver,
    receiver_used,
    sender,
    sender_used,
    waiting,
)
from .world import HASH, INPUT, capacity, hash_of, owner, size

__all__ = [
    "CALL_CLAIMS",
    "RECORD",
    "STATE_CLAIMS",
    "affirmed",
    "before",
    "forgotten",
    "left",
    "missed",
    "older_before",
    "overtaken",
    "renewed",
    "withheld",
]

h = hash_of(i)

# --- the record ---------------------------------------------------------------------------------

withheld = state("withheld", SetSort.of(INPUT), ghost=True)
"""The inputs that were sent bare, as P0 has answered."""
affirmed = state("affirmed", SetSort.of(INPUT), ghost=True)
"""Of the request that P0 is at: what it held when the request began, and has not taken since."""
recorded = state("recorded", SetSort.of(INPUT), ghost=True)
"""What P0 has taken and P1 has not handled."""
forgotten = state("forgotten", SetSort.of(HASH), ghost=True)
"""What P0 was seen to forget since it took an item."""
missed = state("missed", SetSort.of(HASH), ghost=True)
"""What was reported as missing, and was not taken since."""
overtaken = state("overtaken", SetSort.of(INPUT), ghost=True)
"""What was in flight when P0 was cleared for the last time."""
renewed = state("renewed", SetSort.of(HASH), ghost=True)
"""What P1 has handled of what was taken since P0 was cleared for the last time."""

# What is remembered of each item that was taken; only the proof speaks of it.
before = state("before", SetSort.of(INPUT, HASH), ghost=True)
"""What P0 held when the input was taken."""
older_before = state("older_before", SetSort.of(INPUT, HASH, HASH), ghost=True)
"""Of two hashes that it held then: which it had used earlier."""
left = state("left", SetSort.of(INPUT, HASH), ghost=True)
"""What P0 held directly after."""

_seen_to_go = sender.minus(sender.next)

RECORD = (
    Monitor(
        withheld,
        empty(INPUT),
        {"take": ite(result(BOOL), withheld.insert(i), withheld.remove(i))},
    ),
    Monitor(
        affirmed,
        empty(INPUT),
        {
            "begin": setof(INPUT, lambda j: (owner(j) == r) & sender.has(hash_of(j))),
            "take": affirmed.remove(i),
        },
    ),
    Monitor(
        recorded,
        empty(INPUT),
        {"take": recorded.insert(i), "deliver": recorded.remove(i)},
    ),
    Monitor(
        forgotten,
        empty(HASH),
        {
            "take": empty(HASH),
            "invalidate": forgotten.union(_seen_to_go),
            "clear_sender": forgotten.union(_seen_to_go),
        },
    ),
    Monitor(missed, empty(HASH), {"take": missed.remove(h), "invalidate": missed.insert(k)}),
    Monitor(
        overtaken,
        empty(INPUT),
        {"take": overtaken.remove(i), "clear_sender": in_flight, "deliver": overtaken.remove(i)},
    ),
    Monitor(
        renewed,
        empty(HASH),
        {
            "clear_sender": empty(HASH),
            "deliver": ite(overtaken.has(i), renewed, renewed.insert(h)),
        },
    ),
    Monitor(
        before,
        empty(INPUT, HASH),
        {"take": setof(INPUT, HASH, lambda j, x: ite(j == i, sender.has(x), before.has(j, x)))},
    ),
    Monitor(
        older_before,
        empty(INPUT, HASH, HASH),
        {
            "take": setof(
                INPUT,
                HASH,
                HASH,
                lambda j, g, x: ite(
                    j == i,
                    all_of(sender.has(g), sender.has(x), sender_used[g] < sender_used[x]),
                    older_before.has(j, g, x),
                ),
            )
        },
    ),
    Monitor(
        left,
        empty(INPUT, HASH),
        {"take": setof(INPUT, HASH, lambda j, x: ite(j == i, sender.next.has(x), left.has(j, x)))},
    ),
)

# --- the clauses --------------------------------------------------------------------------------

_NOTHING_IN_FLIGHT = in_flight.is_empty()

STATE_CLAIMS = (
    Invariant(
        "mirrors_agree",
        _NOTHING_IN_FLIGHT.implies(
            all_of(
                forall(HASH, lambda x: sender.has(x).iff(receiver.has(x) & ~forgotten.has(x))),
                forall(
                    HASH,
                    HASH,
                    lambda g, x: (sender.has(g) & sender.has(x)).implies(
                        (sender_used[g] < sender_used[x]).iff(receiver_used[g] < receiver_used[x])
                    ),
                ),
            )
        ),
        "P2",
    ),
    Invariant(
        "each_side_within_capacity",
        all_of(total(sender, size) <= capacity, total(receiver, size) <= capacity),
        "P3",
    ),
    Invariant(
        "what_was_affirmed_is_there",
        forall(
            INPUT,
            lambda j: (affirmed.has(j) & waiting.has(j)).implies(sender.has(hash_of(j))),
        ),
        "P4",
    ),
    Invariant("recorded_is_delivered_or_undone", recorded.subset_of(in_flight), "P5"),
    Invariant(
        "missed_is_not_there", forall(HASH, lambda x: missed.has(x).implies(~sender.has(x))), "P8"
    ),
    Invariant("receiver_never_wedges", ordered.same_elements(receiver), "P10"),
)

CALL_CLAIMS = (
    ActionProperty(
        "receiver_has_what_sender_withholds",
        "deliver",
        withheld.has(i).implies(receiver.has(h) & receiver.next.has(h)),
        "P1",
    ),
    ActionProperty(
        "hit_survives_its_own_request", "take", affirmed.has(i).implies(result(BOOL)), "P4"
    ),
    ActionProperty(
        "clear_is_one_point",
        "deliver",
        overtaken.has(i) | receiver.next.subset_of(renewed.insert(h)),
        "P6",
    ),
    ActionProperty(
        "payload_wins",
        "deliver",
        all_of(~withheld.has(i), receiver.next.has(h)).implies(
            forall(INPUT, lambda j: data_of.next.has(h, j).iff(j == i))
        ),
        "P7",
    ),
    ActionProperty("miss_heals", "take", missed.has(h).implies(~result(BOOL)), "P8"),
    ActionProperty(
        "fault_stays_in_request",
        "deliver",
        forall(INPUT, lambda j: in_flight.next.has(j).iff(in_flight.has(j) & ~(j == i))),
        "P9",
    ),
)
