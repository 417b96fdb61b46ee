"""Situations at the edges of the protocol, each of which a conformance vector should reach."""

from __future__ import annotations

from ..kernel.goals import Goal, combination_goals
from ..kernel.terms import BOOL, INT, SetSort, Term, all_of, exists, forall, parameter, result
from . import encoder_decoder as ed
from . import engine_state as en
from . import ledger as lg
from .world import HASH, INPUT, REQUEST, end_of, first_token, hash_of, owner, size

__all__ = [
    "ENCODER_DECODER_GOALS",
    "ENGINE_COMBINATIONS",
    "ENGINE_GOALS",
    "LEDGER_COMBINATIONS",
    "LEDGER_GOALS",
]

i, r = parameter("input", INPUT), parameter("request", REQUEST)
budget = parameter("encoder_compute_budget", INT)
pending = parameter("num_embeds_to_schedule", INT)
h = hash_of(i)
need = size(h) + pending
told = result(SetSort.of(HASH))
yes = result(BOOL)
gone = lg.cached.minus(lg.cached.next)


def _two_in(members: Term) -> Term:
    return exists(HASH, HASH, lambda g, k: all_of(members.has(g), members.has(k), ~(g == k)))


def _three_in(members: Term) -> Term:
    return exists(
        HASH,
        HASH,
        HASH,
        lambda f, g, k: all_of(
            members.has(f), members.has(g), members.has(k), ~(f == g), ~(g == k), ~(f == k)
        ),
    )


def _uses(j: Term, request: Term, of: Term) -> Term:
    return all_of(lg.held.has(j), owner(j) == request, hash_of(j) == of)


def _shared(of: Term) -> Term:
    return exists(
        REQUEST,
        REQUEST,
        lambda p, q: all_of(lg.references.has(of, p), lg.references.has(of, q), ~(p == q)),
    )


LEDGER_GOALS = (
    Goal(
        "hit on a freeable hash",
        "check_and_update_cache",
        yes & lg.freeable.has(h),
        about=("L11", "L4", "L5"),
    ),
    Goal(
        "hit on a hash that another request references",
        "check_and_update_cache",
        yes & exists(REQUEST, lambda q: lg.references.has(h, q) & ~(q == owner(i))),
        about=("L11",),
    ),
    Goal(
        "hit on a second position of the same request",
        "check_and_update_cache",
        all_of(yes, lg.references.has(h, owner(i)), ~lg.held.has(i)),
        about=("L11", "L8"),
    ),
    Goal(
        "miss on a hash that was evicted in this pass",
        "check_and_update_cache",
        ~yes & lg.freed.has(h),
        about=("L11",),
    ),
    Goal(
        "exact fit without eviction",
        "can_allocate",
        all_of(yes, need == lg.free_slots, pending > 0, gone.is_empty()),
        about=("L7",),
    ),
    Goal(
        "exact fit with eviction",
        "can_allocate",
        all_of(yes, need == lg.freeable_slots, ~gone.is_empty()),
        about=("L7", "L6"),
    ),
    Goal(
        "one over the freeable slots",
        "can_allocate",
        all_of(~yes, need == lg.freeable_slots + 1, size(h) <= budget, ~lg.freeable.is_empty()),
        about=("L7",),
    ),
    Goal("budget equal to the size", "can_allocate", yes & (size(h) == budget), about=("L7",)),
    Goal(
        "budget one short of the size",
        "can_allocate",
        all_of(~yes, size(h) == budget + 1, need <= lg.freeable_slots),
        about=("L7",),
    ),
    Goal(
        "refused although something could be evicted",
        "can_allocate",
        all_of(~yes, ~lg.freeable.is_empty(), need > lg.free_slots),
        about=("L7",),
    ),
    Goal(
        "the oldest of two is evicted",
        "can_allocate",
        all_of(~gone.is_empty(), _two_in(lg.freeable), ~lg.freeable.next.is_empty()),
        about=("L6", "L15"),
    ),
    Goal("two are evicted for one", "can_allocate", _two_in(gone), about=("L6",)),
    Goal("three are evicted for one", "can_allocate", _three_in(gone), about=("L6",)),
    Goal(
        "room for what is pending only by eviction",
        "can_allocate",
        all_of(yes, ~gone.is_empty(), size(h) <= lg.free_slots, pending > 0),
        about=("L6", "L7"),
    ),
    Goal(
        "pending equal to the free slots",
        "can_allocate",
        all_of(~yes, pending == lg.free_slots, pending > 0, size(h) <= budget),
        about=("L7",),
    ),
    Goal(
        "one is evicted while another is referenced",
        "can_allocate",
        all_of(~gone.is_empty(), exists(HASH, REQUEST, lambda k, q: lg.references.has(k, q))),
        about=("L6", "L14"),
    ),
    Goal(
        "the oldest is evicted although a smaller one would do",
        "can_allocate",
        exists(
            HASH,
            HASH,
            lambda g, k: all_of(
                gone.has(g),
                lg.freeable.next.has(k),
                size(k) < size(g),
                need <= lg.free_slots + size(k),
            ),
        ),
        about=("L6",),
    ),
    Goal(
        "a hash that was evicted in this pass is allocated",
        "allocate",
        lg.freed.has(h),
        about=("L1", "L16"),
    ),
    Goal("exact room", "allocate", (size(h) == lg.free_slots) & (size(h) > 1), about=("L3",)),
    Goal(
        "the last reference is freed",
        "free_encoder_input",
        ~lg.freeable.has(h) & lg.freeable.next.has(h),
        about=("L5", "L4"),
    ),
    Goal(
        "one reference of two is freed",
        "free_encoder_input",
        lg.held.has(i) & _shared(h),
        about=("L5",),
    ),
    Goal(
        "one position of two is freed",
        "free_encoder_input",
        lg.held.has(i) & exists(INPUT, lambda j: _uses(j, owner(i), h) & ~(j == i)),
        about=("L8",),
    ),
    Goal(
        "the second position of two is freed",
        "free_encoder_input",
        all_of(
            lg.held.has(i),
            lg.freeable.next.has(h),
            exists(
                INPUT,
                lambda j: all_of(owner(j) == owner(i), hash_of(j) == h, ~(j == i)),
            ),
        ),
        about=("L8", "L5", "L12"),
    ),
    Goal(
        "an input is freed that was never held",
        "free_encoder_input",
        ~lg.held.has(i) & lg.cached.has(h) & ~lg.freeable.has(h),
        about=("L9",),
    ),
    Goal(
        "an input is freed again after its hash was evicted",
        "free_encoder_input",
        all_of(~lg.held.has(i), lg.freed.has(h), ~lg.cached.has(h)),
        about=("L9",),
    ),
    Goal(
        "a request with two hashes is freed",
        "free",
        _two_in(lg.freeable.next.minus(lg.freeable)),
        about=("L5", "L6"),
    ),
    Goal(
        "a request with one hash at two positions is freed",
        "free",
        exists(
            INPUT,
            INPUT,
            lambda a, b: all_of(~(a == b), lg.held.has(a), _uses(b, r, hash_of(a)), owner(a) == r),
        ),
        about=("L8", "L5"),
    ),
    Goal(
        "a request is freed while another keeps its hash",
        "free",
        exists(HASH, lambda k: lg.references.has(k, r) & _shared(k)),
        about=("L5", "L13"),
    ),
    Goal("the report names one hash", "get_freed_mm_hashes", ~told.is_empty(), about=("L2",)),
    Goal("the report names two hashes", "get_freed_mm_hashes", _two_in(told), about=("L2",)),
    Goal(
        "the report leaves out a hash that came back",
        "get_freed_mm_hashes",
        exists(HASH, lambda k: lg.freed.has(k) & lg.cached.has(k)),
        about=("L1",),
    ),
    Goal(
        "the report names one hash and leaves out another",
        "get_freed_mm_hashes",
        ~told.is_empty() & exists(HASH, lambda k: lg.freed.has(k) & lg.cached.has(k)),
        about=("L1",),
    ),
    Goal(
        "reset with references, freeable and freed hashes",
        "reset",
        all_of(
            exists(HASH, REQUEST, lambda k, q: lg.references.has(k, q)),
            ~lg.freeable.is_empty(),
            ~lg.freed.is_empty(),
        ),
        about=("L10",),
    ),
)

ENCODER_DECODER_GOALS = (
    Goal(
        "exact fit",
        "can_allocate",
        all_of(yes, ed.embeds(i) + pending == ed.free_slots, pending > 0),
        about=("L7",),
    ),
    Goal(
        "one over",
        "can_allocate",
        all_of(~yes, ed.embeds(i) + pending == ed.free_slots + 1, ed.embeds(i) <= budget),
        about=("L7",),
    ),
    Goal("budget one short of the size", "can_allocate", ed.embeds(i) == budget + 1, about=("L7",)),
    Goal(
        "a charged input is freed beside another",
        "free_encoder_input",
        ed.outstanding.has(i) & exists(INPUT, lambda j: ed.outstanding.has(j) & ~(j == i)),
        about=("E1",),
    ),
    Goal(
        "an input is freed that is not charged",
        "free_encoder_input",
        ~ed.outstanding.has(i) & ~ed.outstanding.is_empty(),
        about=("E1", "E3"),
    ),
    Goal(
        "an input is freed again",
        "free_encoder_input",
        ~ed.outstanding.has(i) & ed.allocated.has(h),
        about=("E1",),
    ),
    Goal(
        "a request is freed of whose two inputs one is charged",
        "free",
        all_of(
            exists(INPUT, lambda j: ed.outstanding.has(j) & (owner(j) == r)),
            exists(INPUT, lambda j: ~ed.outstanding.has(j) & (owner(j) == r)),
        ),
        about=("E1",),
    ),
    Goal(
        "an input is allocated again in the pass in which it was freed",
        "allocate",
        ed.allocated.has(h),
        about=("E1",),
    ),
    Goal(
        "the report of one pass while another pass has allocated",
        "get_freed_mm_hashes",
        all_of(
            ~told.is_empty(),
            ~ed.allocated.is_empty(),
            forall(HASH, lambda k: ~told.has(k) | ~ed.allocated.has(k)),
        ),
        about=("E2",),
    ),
    Goal(
        "a hash is reported that this pass has allocated again",
        "get_freed_mm_hashes",
        exists(HASH, lambda k: told.has(k) & ed.allocated.has(k)),
        about=("E2",),
    ),
    Goal(
        "reset with charges and notices outstanding",
        "reset",
        all_of(~ed.outstanding.is_empty(), ~ed.allocated.is_empty(), ~ed.to_free.is_empty()),
        about=("L10", "E2"),
    ),
)


def _gathers(which: Term) -> Term:
    """Something of this relation of hashes and requests is gathered."""
    return exists(INPUT, lambda j: en.promised.has(j) & which.has(hash_of(j), owner(j)))


old = lg.cached.minus(en.encoded).minus(en.loaded)

ENGINE_GOALS = (
    Goal("what is encoded is gathered", "dispatch", _gathers(en.encodes), about=("S1",)),
    Goal("what is loaded is gathered", "dispatch", _gathers(en.loads), about=("S1",)),
    Goal(
        "what an earlier pass encoded is gathered",
        "dispatch",
        exists(INPUT, lambda j: en.promised.has(j) & old.has(hash_of(j))),
        about=("S1", "S2"),
    ),
    Goal(
        "two requests share what one of them encodes",
        "dispatch",
        exists(
            INPUT,
            INPUT,
            lambda j, k: all_of(
                en.promised.has(j),
                en.promised.has(k),
                hash_of(j) == hash_of(k),
                ~(owner(j) == owner(k)),
                en.encoded.has(hash_of(j)),
            ),
        ),
        about=("S1", "S2"),
    ),
    Goal(
        "an encoding is handed over",
        "preempt",
        exists(HASH, REQUEST, lambda k, q: en.encodes.next.has(k, q) & ~en.encodes.has(k, q)),
        about=("S2",),
    ),
    Goal(
        "an allocation is undone",
        "preempt",
        exists(HASH, lambda k: lg.cached.has(k) & ~lg.cached.next.has(k)),
        about=("S2",),
    ),
    Goal(
        "an encoded entry survives preemption",
        "preempt",
        exists(HASH, lambda k: lg.cached.next.has(k) & lg.freeable.next.has(k)),
        about=("S2",),
    ),
    Goal(
        "a request runs again after its preemption",
        "schedule",
        en.known.has(r) & ~en.running.has(r),
        about=("S1",),
    ),
    Goal(
        "a drafted input is gathered again",
        "schedule",
        exists(
            INPUT,
            lambda j: all_of(en.at_risk(r).has(j), en.promised.next.has(j), ~en.window.has(j)),
        ),
        about=("S1",),
    ),
    Goal(
        "a waiting request gives a reference back",
        "give_back",
        exists(HASH, lambda k: lg.references.has(k, r)),
        about=("S5",),
    ),
    Goal(
        "a skipped request gives a reference back",
        "skip_waiting",
        exists(HASH, lambda k: lg.references.has(k, r)),
        about=("S5", "L13"),
    ),
    Goal(
        "a request begins within an input",
        "schedule",
        exists(
            INPUT,
            lambda j: all_of(en.window.has(j), ~en.running.has(r), first_token(j) < en.computed[r]),
        ),
        about=("S1", "S9"),
    ),
    Goal(
        "an input is computed in two steps",
        "schedule",
        exists(
            INPUT,
            lambda j: all_of(
                en.promised.next.has(j),
                owner(j) == r,
                en.running.has(r),
                first_token(j) < en.computed[r],
                en.computed.next[r] < end_of(j),
            ),
        ),
        about=("S1", "S9"),
    ),
    Goal(
        "the look-ahead alone overlaps an input",
        "schedule",
        exists(
            INPUT,
            lambda j: all_of(
                en.promised.next.has(j), owner(j) == r, en.computed.next[r] <= first_token(j)
            ),
        ),
        about=("S1", "S9"),
    ),
    Goal(
        "a rejection brings an input back",
        "reject",
        exists(
            INPUT,
            lambda j: all_of(
                owner(j) == r, end_of(j) <= en.computed[r], en.computed.next[r] < end_of(j)
            ),
        ),
        about=("S9",),
    ),
    Goal(
        "an evicted hash comes back in the same pass",
        "dispatch",
        exists(HASH, lambda k: lg.freed.has(k) & lg.cached.has(k)),
        about=("L1", "S6"),
    ),
    Goal(
        "the worker drops one hash and encodes another",
        "dispatch",
        all_of(
            ~told.is_empty(),
            exists(HASH, REQUEST, lambda k, q: en.encodes.has(k, q)),
        ),
        about=("S3", "S4"),
    ),
)


# --- combinations ------------------------------------------------------------------------------


def _is_referenced(k: Term) -> Term:
    return exists(REQUEST, lambda q: lg.references.has(k, q))


LEDGER_COMBINATIONS = tuple(
    combination_goals(
        "a hash",
        HASH,
        {
            "freed": lg.freed.has,
            "cached": lg.cached.has,
            "referenced": _is_referenced,
            "held by the worker": lg.worker.has,
        },
    )
)

ENGINE_COMBINATIONS = tuple(
    combination_goals(
        "a hash",
        HASH,
        {
            "freed": lg.freed.has,
            "cached": lg.cached.has,
            "referenced": _is_referenced,
            "scheduled": en.encoded.has,
            "held by the worker": en.worker.has,
        },
    )
)
