"""The processor cache: what its proof by induction needs besides the clauses.

The receiver lags behind by any number of items. For each item in flight the record keeps what the
sender held when it took it. Four facts are inductive: the first in flight finds at the receiver
what the sender held then; each finds what the one before it leaves; the last leaves what the sender
holds; and each leaves what an access leaves. The rest is that equal sets have equal sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..kernel.lemmas import Lemma, for_every, has_least, monotone, subtraction
from ..kernel.system import Invariant
from ..kernel.terms import (
    Term,
    all_of,
    exists,
    forall,
    ite,
    setof,
)
from .processor_cache_clauses import (
    STATE_CLAIMS,
    before,
    forgotten,
    left,
    older_before,
    overtaken,
    renewed,
    withheld,
)
from .processor_cache_state import (
    Side,
    bare,
    in_flight,
    owed,
    receiver,
    receiver_now,
    receiver_used,
    sender,
    sender_now,
    sender_used,
    sent_at,
    told,
    waiting,
)
from .world import HASH, INPUT, hash_of, owner, position, size

__all__ = [
    "DELIVER_PREMISES",
    "INVARIANTS",
    "TAKE_PREMISES",
    "deliver_lemmas",
    "take_lemmas",
    "withdraw_lemmas",
]

# --- what the proof needs besides ---------------------------------------------------------------


def _taken_earlier(j: Term, m: Term) -> Term:
    return all_of(in_flight.has(j), in_flight.has(m), sent_at[j] < sent_at[m])


def _follows(j: Term, m: Term) -> Term:
    """The second was taken next after the first, of those in flight."""
    between = exists(INPUT, lambda x: _taken_earlier(j, x) & _taken_earlier(x, m))
    return _taken_earlier(j, m) & ~between


def _first(m: Term) -> Term:
    return in_flight.has(m) & ~exists(INPUT, lambda j: _taken_earlier(j, m))


def _last(m: Term) -> Term:
    return in_flight.has(m) & ~exists(INPUT, lambda j: _taken_earlier(m, j))


def _older_left(m: Term, g: Term, x: Term) -> Term:
    """The order of use directly after an input was taken: its hash is the newest."""
    return ite(x == hash_of(m), ~(g == x), ~(g == hash_of(m)) & older_before.has(m, g, x))


def _renews(j: Term, x: Term) -> Term:
    """It is on its way, taken since the last clear, and of this hash."""
    return all_of(in_flight.has(j), ~overtaken.has(j), hash_of(j) == x)


def _side_before(m: Term) -> Side:
    """What an input that was taken found at P0."""
    return Side(lambda x: before.has(m, x), lambda g, x: older_before.has(m, g, x), m)


def _is_an_access(m: Term, x: Term) -> Term:
    return left.has(m, x).iff(_side_before(m).holds_after(x))


def _ordered_by_time(keys: Term, used: Term, now: Term) -> Term:
    return all_of(
        forall(HASH, lambda x: keys.has(x).implies(used[x] < now)),
        forall(
            HASH,
            HASH,
            lambda g, x: all_of(keys.has(g), keys.has(x), used[g] == used[x]).implies(g == x),
        ),
    )


STRENGTHENING = (
    Invariant("sender_is_ordered_by_time", _ordered_by_time(sender, sender_used, sender_now)),
    Invariant(
        "receiver_is_ordered_by_time", _ordered_by_time(receiver, receiver_used, receiver_now)
    ),
    Invariant(
        "the_channel_is_ordered_by_time",
        all_of(
            forall(INPUT, lambda j: in_flight.has(j).implies(sent_at[j] < sender_now)),
            forall(
                INPUT,
                INPUT,
                lambda j, m: all_of(
                    in_flight.has(j), in_flight.has(m), sent_at[j] == sent_at[m]
                ).implies(j == m),
            ),
        ),
    ),
    Invariant(
        "a_request_is_taken_in_the_order_of_its_prompt",
        all_of(
            forall(
                INPUT,
                INPUT,
                lambda j, m: all_of(waiting.has(j), waiting.has(m)).implies(owner(j) == owner(m)),
            ),
            forall(
                INPUT,
                INPUT,
                lambda j, m: all_of(in_flight.has(j), waiting.has(m), owner(j) == owner(m)).implies(
                    position(j) < position(m)
                ),
            ),
            forall(
                INPUT,
                INPUT,
                lambda j, m: all_of(
                    in_flight.has(j), in_flight.has(m), owner(j) == owner(m)
                ).implies((position(j) < position(m)).iff(sent_at[j] < sent_at[m])),
            ),
        ),
    ),
    Invariant("withheld_is_bare", forall(INPUT, lambda j: withheld.has(j).iff(bare.has(j)))),
    Invariant(
        "bare_is_what_the_sender_held",
        forall(
            INPUT,
            lambda j: in_flight.has(j).implies(bare.has(j).iff(before.has(j, hash_of(j)))),
        ),
    ),
    Invariant("owed_is_what_was_forgotten", owed.same_elements(forgotten)),
    Invariant(
        "the_first_finds_what_the_sender_held",
        forall(
            INPUT,
            HASH,
            lambda m, x: _first(m).implies(before.has(m, x).iff(receiver.has(x) & ~told.has(m, x))),
        ),
    ),
    Invariant(
        "the_first_finds_it_in_the_same_order",
        forall(
            INPUT,
            HASH,
            HASH,
            lambda m, g, x: all_of(_first(m), before.has(m, g), before.has(m, x)).implies(
                older_before.has(m, g, x).iff(receiver_used[g] < receiver_used[x])
            ),
        ),
    ),
    Invariant(
        "each_finds_what_the_one_before_leaves",
        forall(
            INPUT,
            INPUT,
            HASH,
            lambda j, m, x: _follows(j, m).implies(
                before.has(m, x).iff(left.has(j, x) & ~told.has(m, x))
            ),
        ),
    ),
    Invariant(
        "each_finds_it_in_the_same_order",
        forall(
            INPUT,
            INPUT,
            HASH,
            HASH,
            lambda j, m, g, x: all_of(_follows(j, m), before.has(m, g), before.has(m, x)).implies(
                older_before.has(m, g, x).iff(_older_left(j, g, x))
            ),
        ),
    ),
    Invariant(
        "the_last_leaves_what_the_sender_holds",
        forall(
            INPUT,
            HASH,
            lambda m, x: _last(m).implies(sender.has(x).iff(left.has(m, x) & ~owed.has(x))),
        ),
    ),
    Invariant(
        "the_last_leaves_it_in_the_same_order",
        forall(
            INPUT,
            HASH,
            HASH,
            lambda m, g, x: all_of(_last(m), sender.has(g), sender.has(x)).implies(
                (sender_used[g] < sender_used[x]).iff(_older_left(m, g, x))
            ),
        ),
    ),
    Invariant(
        "each_leaves_what_an_access_leaves",
        forall(INPUT, HASH, lambda m, x: in_flight.has(m).implies(_is_an_access(m, x))),
    ),
    Invariant(
        "what_is_held_was_renewed",
        all_of(
            forall(
                HASH,
                lambda x: sender.has(x).implies(
                    renewed.has(x) | exists(INPUT, lambda j: _renews(j, x))
                ),
            ),
            forall(
                INPUT,
                HASH,
                lambda m, x: all_of(in_flight.has(m), ~overtaken.has(m), before.has(m, x)).implies(
                    renewed.has(x)
                    | exists(INPUT, lambda j: _renews(j, x) & (sent_at[j] < sent_at[m]))
                ),
            ),
        ),
    ),
)

INVARIANTS = (*STATE_CLAIMS, *STRENGTHENING)

# --- facts about sums ---------------------------------------------------------------------------


def _room(side: Side, used: Term) -> tuple[Lemma, ...]:
    """Why there is room after an insertion: the oldest that is left would have had to go."""
    return (
        subtraction(side.all, side.gone, size),
        monotone(side.all.minus(side.gone), side.stays, size),
        has_least(
            side.may_go.minus(side.gone),
            used,
            lambda x: monotone(side.goes_first(x), side.gone, size),
        ),
    )


def _side_then(m: Term) -> Side:
    """The same after the call."""
    return Side(lambda x: before.next.has(m, x), lambda g, x: older_before.next.has(m, g, x), m)


def _alike(one: Callable[[Term], Side], two: Callable[[Term], Side]) -> Iterator[Lemma]:
    """Two sides that hold the same weigh the same, and so does what goes before each hash.

    It is said of the sides that any input finds, since so do the invariants.
    """
    for a, b in ((one, two), (two, one)):
        yield for_every(INPUT, lambda m, a=a, b=b: monotone(a(m).all, b(m).all, size))
        yield for_every(INPUT, lambda m, a=a, b=b: monotone(a(m).stays, b(m).stays, size))
        yield for_every(
            INPUT,
            HASH,
            lambda m, x, a=a, b=b: monotone(a(m).goes_first(x), b(m).goes_first(x), size),
        )


def take_lemmas(side: Side, used: Term) -> dict[str, tuple[Lemma, ...]]:
    """For the proofs about `take`, of P0's side in the moment of it."""
    return {
        "each_side_within_capacity": _room(side, used),
        "each_leaves_what_an_access_leaves": (
            *_alike(_side_before, _side_then),
            *_alike(lambda m: side, _side_then),
        ),
    }


def deliver_lemmas(side: Side, used: Term) -> dict[str, tuple[Lemma, ...]]:
    """For the proofs about `deliver`, of P1's side in the moment of it."""
    alike = tuple(_alike(lambda m: side, _side_before))
    return {
        "each_side_within_capacity": (*_room(side, used), monotone(side.all, receiver, size)),
        **dict.fromkeys(
            (
                "mirrors_agree",
                "the_first_finds_what_the_sender_held",
                "the_first_finds_it_in_the_same_order",
            ),
            alike,
        ),
    }


def withdraw_lemmas() -> dict[str, tuple[Lemma, ...]]:
    """For the proofs about `withdraw` where what is withdrawn is lost if it carries no data.

    The first that renewed a hash found it absent, so it carries data, and is not lost.
    """
    renewals = for_every(HASH, lambda x: has_least(setof(INPUT, lambda j: _renews(j, x)), sent_at))
    return {"what_is_held_was_renewed": (renewals,)}


_WORLD = (
    "sizes_are_not_negative",
    "capacity_is_not_negative",
    "a_request_has_one_input_at_a_position",
)
_CHANNEL = ("the_channel_is_ordered_by_time", "a_request_is_taken_in_the_order_of_its_prompt")

_HANDLED = (
    *_CHANNEL,
    "bare_is_what_the_sender_held",
    "the_first_finds_what_the_sender_held",
    "the_first_finds_it_in_the_same_order",
    "each_leaves_what_an_access_leaves",
)

TAKE_PREMISES = {
    "each_side_within_capacity": (
        *_WORLD,
        "each_side_within_capacity",
        "sender_is_ordered_by_time",
    ),
    "the_first_finds_it_in_the_same_order": (
        *_CHANNEL,
        "mirrors_agree",
        "the_first_finds_it_in_the_same_order",
    ),
    "the_first_finds_what_the_sender_held": (
        *_CHANNEL,
        "owed_is_what_was_forgotten",
        "mirrors_agree",
        "the_first_finds_what_the_sender_held",
    ),
    "each_finds_what_the_one_before_leaves": (
        *_CHANNEL,
        "the_last_leaves_what_the_sender_holds",
        "each_finds_what_the_one_before_leaves",
    ),
    "each_finds_it_in_the_same_order": (
        *_CHANNEL,
        "the_last_leaves_it_in_the_same_order",
        "each_finds_it_in_the_same_order",
    ),
    "each_leaves_what_an_access_leaves": (*_WORLD, *_CHANNEL, "each_leaves_what_an_access_leaves"),
}
DELIVER_PREMISES = {
    "each_side_within_capacity": (
        *_WORLD,
        "each_side_within_capacity",
        "receiver_is_ordered_by_time",
    ),
    "the_first_finds_what_the_sender_held": (
        *_HANDLED,
        "each_finds_what_the_one_before_leaves",
    ),
    "the_first_finds_it_in_the_same_order": (
        *_HANDLED,
        "receiver_is_ordered_by_time",
        "each_finds_what_the_one_before_leaves",
        "each_finds_it_in_the_same_order",
    ),
    "mirrors_agree": (
        *_HANDLED,
        "receiver_is_ordered_by_time",
        "owed_is_what_was_forgotten",
        "the_last_leaves_what_the_sender_holds",
        "the_last_leaves_it_in_the_same_order",
    ),
}
WITHDRAW_PREMISES = {
    "what_is_held_was_renewed": (
        *_CHANNEL,
        "bare_is_what_the_sender_held",
        "what_is_held_was_renewed",
    ),
}
