"""The ledger: what the scheduler believes is resident (`EncoderCacheManager`).

One action is one call of the manager's API. Sizes, capacity, budgets are in embeddings.
An *input* is one multimodal item at one position of one request; several inputs may carry the
same hash. `LedgerDesign` holds the decisions that real engines have taken wrongly at one
time or another; `LedgerDesign()` is the protocol as it should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..kernel.lemmas import for_every, has_greatest, has_least, monotone
from ..kernel.system import Action, ActionProperty, Invariant, Monitor, TransitionSystem
from ..kernel.terms import (
    BOOL,
    INT,
    TRUE,
    MapSort,
    SetSort,
    Symbol,
    Term,
    after,
    all_of,
    empty,
    exists,
    forall,
    ite,
    largest,
    mapof,
    named,
    number,
    parameter,
    result,
    same_value,
    setof,
    state,
    total,
)
from .world import HASH, INPUT, REQUEST, WORLD, capacity, hash_of, inputs_of, owner, position, size

__all__ = ["LedgerDesign", "ledger"]

# --- the state ---------------------------------------------------------------------------------

cached = state("cached", SetSort.of(HASH))
references = state("references", SetSort.of(HASH, REQUEST))
held = state("held", SetSort.of(INPUT))
"""The positions whose embeddings their request still needs."""
freeable = state("freeable", SetSort.of(HASH))
since = state("since", MapSort.of(HASH, INT))
"""When a freeable hash lost its last reference: the order of `freeable`."""
clock = state("clock", INT)
freed = state("freed", SetSort.of(HASH))
free_slots = state("free_slots", INT)
freeable_slots = state("freeable_slots", INT)

# What an observer of the calls notes down; see RECORD.
needed = state("needed", SetSort.of(INPUT), ghost=True)
"""The positions that were allocated or hit, and not released since."""
ended = state("ended", MapSort.of(HASH, INT), ghost=True)
"""When a hash was needed for the last time: the order in which hashes may be evicted."""
now = state("now", INT, ghost=True)
"""The time of the observer, who counts the positions that could have been released."""
stored = state("stored", SetSort.of(HASH), ghost=True)
"""The hashes that were allocated, and not seen to be evicted since."""
evicted = state("evicted", SetSort.of(HASH), ghost=True)
"""The hashes that were seen to be evicted since the last report."""
worker = state("worker", SetSort.of(HASH), ghost=True)
"""What an obedient worker holds: it encodes what is allocated and drops what is reported."""

STATE = (
    cached,
    references,
    held,
    freeable,
    since,
    clock,
    freed,
    free_slots,
    freeable_slots,
)

INIT = (
    cached.becomes(empty(HASH)),
    references.becomes(empty(HASH, REQUEST)),
    held.becomes(empty(INPUT)),
    freeable.becomes(empty(HASH)),
    since.becomes(mapof(HASH, lambda h: number(0))),
    clock.becomes(number(0)),
    freed.becomes(empty(HASH)),
    free_slots.becomes(capacity),
    freeable_slots.becomes(capacity),
)


OBSERVABLES: dict[str, Term] = {
    "cached": cached,
    "references": references,
    "held": held,
    "freeable": freeable,
    "older": setof(
        HASH, HASH, lambda g, k: all_of(freeable.has(g), freeable.has(k), since[g] < since[k])
    ),
    "free_slots": free_slots,
    "freeable_slots": freeable_slots,
}
"""What can be seen of a ledger. Of time, only the order in which the freeable hashes came."""


def unchanged() -> Term:
    """Nothing that can be seen of the ledger has changed."""
    same = all_of(*(same_value(after(term), term) for term in OBSERVABLES.values()))
    return named("unchanged", same)


# --- the decisions -----------------------------------------------------------------------------


@dataclass(frozen=True)
class LedgerDesign:
    """The switches of the ledger. The first value of each is the right one."""

    report: Literal["filtered", "unfiltered", "not_cleared", "nothing"] = "filtered"
    reference_ends_at: Literal["last_occurrence", "first_occurrence"] = "last_occurrence"
    evicts: Literal["oldest", "newest", "referenced"] = "oldest"
    refusal: Literal["changes_nothing", "evicts"] = "changes_nothing"
    repeated_release: Literal["ignored", "credited"] = "ignored"
    repeated_allocation: Literal["attaches", "charged"] = "attaches"
    reset: Literal["everything", "keeps_references"] = "everything"


# --- the calls ---------------------------------------------------------------------------------

i = parameter("input", INPUT)
r = parameter("request", REQUEST)
budget = parameter("encoder_compute_budget", INT)
pending = parameter("num_embeds_to_schedule", INT)
h = hash_of(i)
resident = cached.has(h)


def check_and_update_cache(hit: Term = resident) -> Action:
    """A hit takes a reference; a miss changes nothing."""
    revived = hit & freeable.has(h)
    return Action(
        "check_and_update_cache",
        parameters=(i,),
        effect=(
            references.becomes(ite(hit, references.insert(h, owner(i)), references)),
            held.becomes(ite(hit, held.insert(i), held)),
            freeable.becomes(ite(hit, freeable.remove(h), freeable)),
            freeable_slots.becomes(freeable_slots - ite(revived, size(h), 0)),
        ),
        returns=hit,
    )


def can_allocate(design: LedgerDesign, pending: Term = pending, age: Symbol = ended) -> Action:
    """Admission; makes room by evicting, oldest first, and no more than it must.

    The caller asks only after `check_and_update_cache` has missed. `pending` is what this pass has
    been promised already; `age` the map that L6 speaks of, `ended` where nothing is said.
    """
    need = size(h) + pending
    admitted = named("admitted", all_of(size(h) <= budget, need <= freeable_slots))
    victims = cached if design.evicts == "referenced" else freeable

    def goes_before(g: Term, k: Term) -> Term:
        return since[k] < since[g] if design.evicts == "newest" else since[g] < since[k]

    def ahead_of(k: Term) -> Term:
        return setof(HASH, lambda x: victims.has(x) & goes_before(x, k))

    next_in_line = has_greatest if design.evicts == "newest" else has_least
    evicts = TRUE if design.refusal == "evicts" else admitted
    gone = named(
        "gone",
        setof(
            HASH,
            lambda k: all_of(evicts, victims.has(k), free_slots + total(ahead_of(k), size) < need),
        ),
    )
    return Action(
        "can_allocate",
        parameters=(i, budget, *((pending,) if isinstance(pending, Symbol) else ())),
        guard={
            "missed": ~cached.has(h),
            "budget_not_negative": budget >= 0,
            "pending_not_negative": pending >= 0,
        },
        effect=(
            cached.becomes(cached.minus(gone)),
            references.becomes(
                setof(HASH, REQUEST, lambda k, q: references.has(k, q) & ~gone.has(k))
            ),
            freeable.becomes(freeable.minus(gone)),
            freed.becomes(freed.union(gone)),
            free_slots.becomes(free_slots + total(gone, size)),
        ),
        returns=admitted,
        lemmas={
            "eviction_is_oldest_first_and_minimal": (
                for_every(HASH, HASH, lambda k, g: monotone(ahead_of(g), ahead_of(k), size)),
                for_every(HASH, lambda k: monotone(older_than(k, age), ahead_of(k), size)),
            ),
            "eviction_never_runs_dry": (
                monotone(freeable, gone, size),
                next_in_line(
                    victims.minus(gone), since, lambda k: monotone(ahead_of(k), gone, size)
                ),
            ),
        },
    )


def allocate() -> Action:
    """Charge the item's size and take the first reference. The caller has made room."""
    return Action(
        "allocate",
        parameters=(i,),
        guard={"absent": ~cached.has(h), "room": size(h) <= free_slots},
        effect=(
            cached.becomes(cached.insert(h)),
            references.becomes(references.insert(h, owner(i))),
            held.becomes(held.insert(i)),
            free_slots.becomes(free_slots - size(h)),
            freeable_slots.becomes(freeable_slots - size(h)),
        ),
    )


def allocate_again(design: LedgerDesign) -> Action:
    """`allocate` for a hash that is resident: a reference more, and nothing to pay for it."""
    charged = design.repeated_allocation == "charged"
    paid = freeable_slots - size(h) if charged else freeable_slots
    revived = ite(freeable.has(h), size(h), 0)
    return Action(
        "allocate_again",
        parameters=(i,),
        guard={"resident": resident},
        effect=(
            references.becomes(references.insert(h, owner(i))),
            held.becomes(held.insert(i)),
            freeable.becomes(freeable.remove(h)),
            *((free_slots.becomes(free_slots - size(h)),) if charged else ()),
            freeable_slots.becomes(paid - revived),
        ),
    )


def free_encoder_input(design: LedgerDesign) -> Action:
    """One position is consumed; the reference ends with the request's last position of the hash."""

    def other_use(j: Term) -> Term:
        return all_of(held.has(j), ~(j == i), owner(j) == owner(i), hash_of(j) == h)

    mine = references.has(h, owner(i))
    if design.reference_ends_at == "last_occurrence":
        ends = all_of(held.has(i), mine, ~exists(INPUT, other_use))
    else:
        ends = mine
    shared = exists(REQUEST, lambda q: references.has(h, q) & ~(q == owner(i)))
    ends = named("ends", ends)
    orphaned = ends & ~shared
    if design.repeated_release == "credited":
        orphaned = all_of(cached.has(h), ends | ~mine, ~shared)
    orphaned = named("orphaned", orphaned)
    return Action(
        "free_encoder_input",
        parameters=(i,),
        effect=(
            references.becomes(ite(ends, references.remove(h, owner(i)), references)),
            held.becomes(held.remove(i)),
            freeable.becomes(ite(orphaned, freeable.insert(h), freeable)),
            since.becomes(ite(orphaned & ~freeable.has(h), since.put(h, clock), since)),
            clock.becomes(clock + 1),
            freeable_slots.becomes(freeable_slots + ite(orphaned, size(h), 0)),
        ),
    )


def free(design: LedgerDesign) -> Action:
    """The request ends: every position is consumed, in the order of their positions."""

    def uses(j: Term, k: Term) -> Term:
        return all_of(held.has(j), owner(j) == r, hash_of(j) == k)

    def ends_at(k: Term) -> Term:
        if design.reference_ends_at == "last_occurrence":
            return largest(INPUT, lambda j: uses(j, k), position)
        to_the_end = largest(INPUT, lambda j: uses(j, k), lambda j: inputs_of(r) - position(j))
        return inputs_of(r) - to_the_end

    orphans = setof(
        HASH,
        lambda k: (
            references.has(k, r) & forall(REQUEST, lambda q: references.has(k, q).implies(q == r))
        ),
    )
    orphans = named("orphans", orphans)
    return Action(
        "free",
        parameters=(r,),
        effect=(
            references.becomes(setof(HASH, REQUEST, lambda k, q: references.has(k, q) & ~(q == r))),
            held.becomes(setof(INPUT, lambda j: held.has(j) & ~(owner(j) == r))),
            freeable.becomes(freeable.union(orphans)),
            since.becomes(mapof(HASH, lambda k: ite(orphans.has(k), clock + ends_at(k), since[k]))),
            clock.becomes(clock + inputs_of(r)),
            freeable_slots.becomes(freeable_slots + total(orphans, size)),
        ),
    )


def get_freed_mm_hashes(design: LedgerDesign) -> Action:
    """The report: what the worker shall drop. Reading it clears it."""
    told = {"unfiltered": freed, "nothing": empty(HASH)}.get(design.report, freed.minus(cached))
    return Action(
        "get_freed_mm_hashes",
        effect=(freed.becomes(freed if design.report == "not_cleared" else empty(HASH)),),
        returns=told,
    )


def reset(design: LedgerDesign) -> Action:
    """Forget everything, as new weights demand. The engine clears the worker with it."""
    kept = (held.becomes(held),) if design.reset == "keeps_references" else ()
    emptied = tuple(line for line in INIT if line[0].name not in {v.name for v, _ in kept})
    return Action("reset", effect=(*emptied, *kept))


# --- the record ---------------------------------------------------------------------------------

told = result(SetSort.of(HASH))


def evictions(admits: str, reports: str, resets: str) -> Monitor:
    """What is owed to the worker, by the names of the actions that admit, report and reset."""
    updates = {admits: evicted.union(cached.minus(cached.next))}
    return Monitor(evicted, empty(HASH), {**updates, **dict.fromkeys((reports, resets), _NONE)})


_NONE = empty(HASH)


def _needs(j: Term, k: Term) -> Term:
    return needed.has(j) & (hash_of(j) == k)


def _ends_with_input(k: Term) -> Term:
    """Releasing the input ends the last need of its hash."""
    others = exists(INPUT, lambda j: _needs(j, k) & ~(j == i))
    return all_of(needed.has(i), k == h, ~others)


def _ends_with_request(k: Term) -> Term:
    """Only positions of the request need the hash, and one does."""
    mine = exists(INPUT, lambda j: _needs(j, k) & (owner(j) == r))
    return mine & forall(INPUT, lambda j: _needs(j, k).implies(owner(j) == r))


def _last_need(k: Term) -> Term:
    return largest(INPUT, lambda j: _needs(j, k) & (owner(j) == r), position)


NEVER = mapof(HASH, lambda h: number(0))

RECORD = (
    Monitor(
        needed,
        empty(INPUT),
        {
            "check_and_update_cache": ite(result(BOOL), needed.insert(i), needed),
            "allocate": needed.insert(i),
            "allocate_again": needed.insert(i),
            "free_encoder_input": needed.remove(i),
            "free": setof(INPUT, lambda j: needed.has(j) & ~(owner(j) == r)),
            "reset": empty(INPUT),
        },
    ),
    Monitor(
        ended,
        NEVER,
        {
            "free_encoder_input": mapof(HASH, lambda k: ite(_ends_with_input(k), now, ended[k])),
            "free": mapof(
                HASH, lambda k: ite(_ends_with_request(k), now + _last_need(k), ended[k])
            ),
            "reset": NEVER,
        },
    ),
    Monitor(
        now,
        number(0),
        {"free_encoder_input": now + 1, "free": now + inputs_of(r), "reset": number(0)},
    ),
    Monitor(
        stored,
        empty(HASH),
        {
            "can_allocate": stored.minus(cached.minus(cached.next)),
            "allocate": stored.insert(h),
            "reset": empty(HASH),
        },
    ),
    evictions("can_allocate", "get_freed_mm_hashes", "reset"),
    Monitor(
        worker,
        empty(HASH),
        {
            "allocate": worker.insert(h),
            "get_freed_mm_hashes": worker.minus(told),
            "reset": empty(HASH),
        },
    ),
)


# --- the claims --------------------------------------------------------------------------------

STATE_CLAIMS = (
    Invariant(
        "free_slots_conserved",
        (free_slots == capacity - total(cached, size)) & (free_slots >= 0),
        "L3",
    ),
    Invariant(
        "freeable_slots_conserved",
        freeable_slots == free_slots + total(freeable, size),
        "L4",
    ),
    Invariant(
        "freeable_iff_unreferenced",
        forall(
            HASH,
            lambda h: freeable.has(h).iff(
                cached.has(h) & ~exists(REQUEST, lambda r: references.has(h, r))
            ),
        ),
        "L5",
    ),
    Invariant(
        "reference_until_last_occurrence",
        forall(INPUT, lambda i: needed.has(i).implies(references.has(hash_of(i), owner(i)))),
        "L8",
    ),
    Invariant("held_while_needed", held.same_elements(needed), "L12"),
    Invariant(
        "no_reference_without_need",
        forall(
            HASH,
            REQUEST,
            lambda h, r: references.has(h, r).implies(
                exists(INPUT, lambda i: all_of(needed.has(i), hash_of(i) == h, owner(i) == r))
            ),
        ),
        "L13",
    ),
    Invariant(
        "needed_is_cached",
        forall(INPUT, lambda i: needed.has(i).implies(cached.has(hash_of(i)))),
        "L14",
    ),
    Invariant(
        "age_is_the_order_of_last_need",
        forall(
            HASH,
            HASH,
            lambda g, h: (freeable.has(g) & freeable.has(h)).implies(
                (since[g] < since[h]).iff(ended[g] < ended[h])
            ),
        ),
        "L15",
    ),
    Invariant("cached_from_allocation_to_eviction", cached.same_elements(stored), "L16"),
)

STRENGTHENING = (
    Invariant(
        "freeable_is_ordered_by_time",
        all_of(
            clock >= 0,
            now >= 0,
            forall(
                HASH,
                lambda h: freeable.has(h).implies(
                    all_of(since[h] >= 0, since[h] < clock, ended[h] < now)
                ),
            ),
        ),
    ),
    Invariant(
        "no_two_became_freeable_at_once",
        forall(
            HASH,
            HASH,
            lambda g, h: all_of(freeable.has(g), freeable.has(h), since[g] == since[h]).implies(
                g == h
            ),
        ),
    ),
    Invariant("freed_is_what_was_evicted", freed.same_elements(evicted)),
    Invariant(
        "an_obedient_worker_holds_the_cached_and_the_evicted",
        forall(HASH, lambda h: worker.has(h).iff(cached.has(h) | evicted.has(h))),
    ),
)


def older_than(k: Term, age: Symbol = ended) -> Term:
    """The freeable hashes that were needed for the last time before this one was."""
    return setof(HASH, lambda x: freeable.has(x) & (age[x] < age[k]))


seen_to_go = named("gone", cached.minus(cached.next))


def _eviction(pending: Term, age: Symbol) -> Term:
    need = size(h) + pending
    gone = seen_to_go

    def was_still_needed(k: Term) -> Term:
        return gone.has(k).implies(free_slots + total(older_than(k, age), size) < need)

    def stays_only_if_younger(k: Term, g: Term) -> Term:
        return all_of(gone.has(k), freeable.has(g), ~gone.has(g)).implies(age[k] < age[g])

    return all_of(
        gone.subset_of(freeable),
        forall(HASH, HASH, stays_only_if_younger),
        forall(HASH, was_still_needed),
    )


def _initial_again() -> Term:
    empties = (cached, references, held, freeable)
    slots = (free_slots.next == capacity) & (freeable_slots.next == capacity)
    return all_of(*(v.next.is_empty() for v in empties), slots)


def report_claims(action: str) -> tuple[ActionProperty, ...]:
    """L1 and L2, of the action that reports."""
    return (
        ActionProperty(
            "report_disjoint_from_cached",
            action,
            forall(HASH, lambda h: ~(told.has(h) & cached.has(h))),
            "L1",
        ),
        ActionProperty(
            "report_complete_and_cleared",
            action,
            all_of(
                forall(HASH, lambda h: (evicted.has(h) & ~cached.has(h)).implies(told.has(h))),
                told.subset_of(evicted),
            ),
            "L2",
        ),
    )


def admission_claims(
    action: str, pending: Term = pending, age: Symbol = ended
) -> tuple[ActionProperty, ...]:
    """L6 and L7, of the action that admits."""
    eviction = _eviction(pending, age)
    return (
        ActionProperty("eviction_is_oldest_first_and_minimal", action, eviction, "L6"),
        ActionProperty(
            "eviction_never_runs_dry",
            action,
            result(BOOL).implies(free_slots.next >= size(h) + pending),
            "L6",
        ),
        ActionProperty(
            "admission_is_exact",
            action,
            all_of(
                result(BOOL).iff(all_of(size(h) <= budget, size(h) + pending <= freeable_slots)),
                result(BOOL) | unchanged(),
            ),
            "L7",
        ),
    )


def hit_claims(action: str, hit: Term = resident) -> tuple[ActionProperty, ...]:
    """L11, of the action that looks up."""
    holds = held.next.has(i) & references.next.has(h, owner(i))
    exact = all_of(result(BOOL).iff(hit), ite(result(BOOL), holds, unchanged()))
    return (ActionProperty("hit_is_exact", action, exact, "L11"),)


def reset_claims(action: str) -> tuple[ActionProperty, ...]:
    """L10, of the action that resets."""
    return (ActionProperty("reset_is_initial", action, _initial_again(), "L10"),)


CALL_CLAIMS = (
    *report_claims("get_freed_mm_hashes"),
    *admission_claims("can_allocate"),
    ActionProperty(
        "release_is_idempotent",
        "free_encoder_input",
        needed.has(i) | unchanged(),
        "L9",
    ),
    ActionProperty(
        "release_is_idempotent",
        "free",
        exists(INPUT, lambda j: needed.has(j) & (owner(j) == r)) | unchanged(),
        "L9",
    ),
    *reset_claims("reset"),
    *hit_claims("check_and_update_cache"),
)


FREEDOMS = {
    "representation of time": "only the order in which freeable hashes came can be seen",
    "outside the duties": "what a call does whose guards do not hold",
}

UNIQUENESS = {
    "can_allocate": (for_every(HASH, lambda k: monotone(seen_to_go, older_than(k), size)),),
}
"""Whatever is evicted, all of it older than `k`, is no more than everything that is older."""


def _calls(design: LedgerDesign) -> tuple[Action, ...]:
    return (
        check_and_update_cache(),
        can_allocate(design),
        allocate(),
        allocate_again(design),
        free_encoder_input(design),
        free(design),
        get_freed_mm_hashes(design),
        reset(design),
    )


DUTIES = {call.name: call.guard for call in _calls(LedgerDesign())}
"""What a caller has to see to. A design takes every call of a caller that does."""


def ledger(design: LedgerDesign = LedgerDesign()) -> TransitionSystem:
    """The ledger under `design`, with everything that is claimed of it."""
    return TransitionSystem(
        name="ledger",
        variables=STATE,
        constants=(capacity,),
        functions=(size, hash_of, owner, position, inputs_of),
        axioms=WORLD,
        init=INIT,
        actions=_calls(design),
        invariants=(*STATE_CLAIMS, *STRENGTHENING),
        action_properties=CALL_CLAIMS,
        pass_start=freed.is_empty() & evicted.is_empty(),
        monitors=RECORD,
        observables=OBSERVABLES,
        freedoms=FREEDOMS,
        uniqueness=UNIQUENESS,
        duties=DUTIES,
    )
