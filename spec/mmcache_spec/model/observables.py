"""What an implementation shows: where two ledgers must agree, if nobody is to tell them apart."""

from __future__ import annotations

from collections.abc import Callable

from ..kernel.terms import Term, all_of, forall
from . import encoder_decoder as ed
from . import ledger as lg
from .world import HASH

__all__ = ["agree", "agreement_of"]

Other = Callable[[Term], Term]
"""A term, seen in the other ledger."""


def agreement_of(system: str) -> Callable[[Other], Term]:
    """The agreement on everything that vectors compare, for the system of this name."""
    return agree if system == "ledger" else _agree_on_slots


def agree(other: Other) -> Term:
    """The same sets, slots, and order of the freeable hashes, after a call.

    A tie in the other's order is not seen here; it will be when one of the two is evicted.
    """
    sets = (lg.cached, lg.references, lg.held, lg.freeable)
    numbers = (lg.free_slots, lg.freeable_slots)
    mine, theirs = lg.since.next, other(lg.since.next)

    def same_order(g: Term, k: Term) -> Term:
        both = lg.freeable.next.has(g) & lg.freeable.next.has(k)
        return ~all_of(both, mine[g] < mine[k], theirs[k] < theirs[g])

    return all_of(
        *(v.next.same_elements(other(v.next)) for v in sets),
        *(v.next == other(v.next) for v in numbers),
        forall(HASH, HASH, same_order),
    )


def _agree_on_slots(other: Other) -> Term:
    return ed.free_slots.next == other(ed.free_slots.next)
