"""The processor cache: the state, the decisions, and how one side accesses its cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..kernel.terms import (
    INT,
    TRUE,
    MapSort,
    SetSort,
    Term,
    all_of,
    empty,
    exists,
    forall,
    ite,
    largest,
    mapof,
    number,
    parameter,
    setof,
    state,
    total,
)
from .world import HASH, INPUT, REQUEST, capacity, hash_of, owner, position, size

__all__ = [
    "DESIGN_STATE",
    "INIT",
    "NEVER",
    "OBSERVABLES",
    "ProcessorCacheDesign",
    "Side",
    "bare",
    "data_of",
    "goes_before",
    "i",
    "in_flight",
    "is_first_of_its_request",
    "k",
    "later_of",
    "looked_up",
    "next_in_line",
    "none_was_taken",
    "ordered",
    "owed",
    "r",
    "receiver",
    "receiver_now",
    "receiver_side",
    "receiver_used",
    "sender",
    "sender_now",
    "sender_side",
    "sender_used",
    "sent_at",
    "told",
    "touched",
    "waiting",
]

# --- the state ---------------------------------------------------------------------------------

sender = state("sender", SetSort.of(HASH))
"""What P0 holds, as far as it knows: keys and sizes, no data."""
sender_used = state("sender_used", MapSort.of(HASH, INT))
"""When P0 used a hash for the last time: the order of use."""
sender_now = state("sender_now", INT)
receiver = state("receiver", SetSort.of(HASH))
"""What P1 holds."""
receiver_used = state("receiver_used", MapSort.of(HASH, INT))
receiver_now = state("receiver_now", INT)
ordered = state("ordered", SetSort.of(HASH))
"""The keys in P1's order of use: those that it may come to evict."""
data_of = state("data_of", SetSort.of(HASH, INPUT))
"""With which input the data came that P1 holds under a hash."""
waiting = state("waiting", SetSort.of(INPUT))
"""The inputs of the request that P0 is at, which it has not taken yet."""
looked_up = state("looked_up", SetSort.of(INPUT))
"""What of its request P0 found when it began: only the rest has been processed."""
in_flight = state("in_flight", SetSort.of(INPUT))
"""What was taken and is not handled by P1 yet: the channel."""
sent_at = state("sent_at", MapSort.of(INPUT, INT))
"""When an input in flight was taken: the order of the channel."""
bare = state("bare", SetSort.of(INPUT))
"""The inputs that are sent without their data."""
owed = state("owed", SetSort.of(HASH))
"""What P0 has forgotten and not told yet."""
told = state("told", SetSort.of(INPUT, HASH))
"""What an input in flight tells P1 to forget before it is handled."""

DESIGN_STATE = (
    sender,
    sender_used,
    sender_now,
    receiver,
    receiver_used,
    receiver_now,
    ordered,
    data_of,
    waiting,
    looked_up,
    in_flight,
    sent_at,
    bare,
    owed,
    told,
)

NEVER = mapof(HASH, lambda h: number(0))

INIT = (
    sender.becomes(empty(HASH)),
    sender_used.becomes(NEVER),
    sender_now.becomes(number(0)),
    receiver.becomes(empty(HASH)),
    receiver_used.becomes(NEVER),
    receiver_now.becomes(number(0)),
    ordered.becomes(empty(HASH)),
    data_of.becomes(empty(HASH, INPUT)),
    waiting.becomes(empty(INPUT)),
    looked_up.becomes(empty(INPUT)),
    in_flight.becomes(empty(INPUT)),
    sent_at.becomes(mapof(INPUT, lambda j: number(0))),
    bare.becomes(empty(INPUT)),
    owed.becomes(empty(HASH)),
    told.becomes(empty(INPUT, HASH)),
)

OBSERVABLES: dict[str, Term] = {
    "sender": sender,
    "sender_used": sender_used,
    "receiver": receiver,
    "ordered": ordered,
    "data_of": data_of,
    "in_flight": in_flight,
}
"""What an observer sees. Of times only the order means something."""

# --- the decisions -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ProcessorCacheDesign:
    """The switches of the processor cache. The first value of each is the right one."""

    walk: Literal["prompt_order", "by_modality"] = "prompt_order"
    """In which order P0 takes the items of a request. P1 takes them in the order of the prompt.
    `by_modality`: in any order in which items of one hash, which are of one modality, stay in
    theirs."""
    insertion: Literal["spares_the_request", "touches_first", "plain"] = "spares_the_request"
    """What keeps the items of a request from evicting one another."""
    too_large: Literal["not_stored", "stored"] = "not_stored"
    """What becomes of an item that there cannot be room for."""
    gone: Literal["recomputed", "asserted"] = "recomputed"
    """What P0 does with an item that it said it has, and has no more."""
    rejected: Literal["travels", "lost", "lost_if_bare"] = "travels"
    """What becomes of the items of a request that is rejected, or cancelled, after the recording.
    `lost_if_bare`: lost if none of them carries data."""
    clear: Literal["told", "sender_only", "receiver_only", "each_by_itself"] = "told"
    miss: Literal["forgotten_and_told", "forgotten", "ignored"] = "forgotten_and_told"
    """What P0 does when P1 reports a miss."""
    receiver_hit: Literal["uses", "reads"] = "uses"
    """Whether a hit at P1 counts as a use."""
    arrival: Literal["replaces", "keeps"] = "replaces"
    """What P1 does with data of which it holds some already."""
    absent: Literal["stays_out", "enters_the_order"] = "stays_out"
    """What P1 does with the touch of a key that it does not hold."""
    channel: Literal["in_order", "any_order"] = "in_order"
    """In which order requests are delivered."""
    fault: Literal["ends_the_request", "ends_the_engine"] = "ends_the_request"
    """What a miss does at P1."""


# --- what both sides do ------------------------------------------------------------------------

i = parameter("input", INPUT)
r = parameter("request", REQUEST)
k = parameter("hash", HASH)


def goes_before(j: Term, m: Term) -> Term:
    """Whether of two inputs in flight the first is handled before the second.

    A request is handled in the order of its prompt, and requests as they were taken.
    """
    mine = owner(j) == owner(m)
    return ite(mine, position(j) < position(m), sent_at[j] < sent_at[m])


def next_in_line(m: Term) -> Term:
    """Nothing in flight is handled before it."""
    return forall(INPUT, lambda j: in_flight.has(j).implies(~goes_before(j, m) | (j == m)))


def later_of(m: Term) -> Term:
    """The hashes of the later items of the same request."""

    def is_later(j: Term, x: Term) -> Term:
        return all_of(owner(j) == owner(m), position(m) < position(j), hash_of(j) == x)

    return setof(HASH, lambda x: exists(INPUT, lambda j: is_later(j, x)))


def is_first_of_its_request(m: Term) -> Term:
    return forall(INPUT, lambda j: (owner(j) == owner(m)).implies(position(m) <= position(j)))


def none_was_taken(m: Term) -> Term:
    """P0 has taken nothing of this input's request."""
    return forall(INPUT, lambda j: (owner(j) == owner(m)).implies(waiting.has(j)))


def touched(side: Members, used: Term, now: Term, first: Term, m: Term) -> Term:
    """The times of use after all that the side holds of the request was touched, one by one."""

    def is_of(j: Term, x: Term) -> Term:
        return all_of(owner(j) == owner(m), hash_of(j) == x)

    def last(x: Term) -> Term:
        return largest(INPUT, lambda j: is_of(j, x), position)

    def is_touched(x: Term) -> Term:
        return all_of(first, side(x), exists(INPUT, lambda j: is_of(j, x)))

    return mapof(HASH, lambda x: ite(is_touched(x), now + last(x), used[x]))


Members = Callable[[Term], Term]
Older = Callable[[Term, Term], Term]


@dataclass(frozen=True)
class Side:
    """A cache in the moment in which an input is handled.

    `members` and `older` say what it holds and in which order of use; `spares` whether the
    insertion leaves the rest of the request alone.
    """

    members: Members
    older: Older
    of: Term
    """The input."""
    spares: bool = True
    set: Term | None = None
    """What it holds as one term, where there is one."""
    always: bool = False
    """Whether it stores also what there cannot be room for."""

    @property
    def all(self) -> Term:
        return setof(HASH, self.members) if self.set is None else self.set

    def _spared(self, x: Term) -> Term:
        return later_of(self.of).has(x)

    def _may_go(self, x: Term) -> Term:
        return self.members(x) & ~self._spared(x) if self.spares else self.members(x)

    @property
    def may_go(self) -> Term:
        """What an insertion may evict."""
        return setof(HASH, self._may_go)

    @property
    def stays(self) -> Term:
        """What an insertion leaves alone, whatever its size."""
        if not self.spares:
            return empty(HASH)
        return setof(HASH, lambda x: self.members(x) & self._spared(x))

    def goes_first(self, x: Term) -> Term:
        """What goes before this one has to."""
        return setof(HASH, lambda y: self._may_go(y) & self.older(y, x))

    @property
    def fits(self) -> Term:
        """Whether there can be room beside what stays."""
        if self.always:
            return TRUE
        return total(self.stays, size) + size(hash_of(self.of)) <= capacity

    def _goes(self, x: Term) -> Term:
        """Whether this one is evicted for the input: the oldest are, and no more than must be."""
        left = total(self.all, size) - total(self.goes_first(x), size)
        return all_of(self._may_go(x), self.fits, capacity < left + size(hash_of(self.of)))

    @property
    def gone(self) -> Term:
        return setof(HASH, self._goes)

    def holds_after(self, x: Term) -> Term:
        """Whether the input with its data leaves the side with this one."""
        h = hash_of(self.of)
        hit = self.members(h)
        return ite(x == h, hit | self.fits, self.members(x) & (hit | ~self.gone.has(x)))


def sender_side(m: Term) -> Side:
    return Side(sender.has, lambda g, x: sender_used[g] < sender_used[x], m, set=sender)


def receiver_side(m: Term) -> Side:
    """P1, after it has forgotten what the input tells it to."""
    return Side(
        lambda x: receiver.has(x) & ~told.has(m, x),
        lambda g, x: receiver_used[g] < receiver_used[x],
        m,
    )
