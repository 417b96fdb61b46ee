"""What is claimed of the engine, over its ledger, its orders, and the record.

The clauses of the ledger hold of the decision that makes the call. What is new here speaks of
tokens, of orders, and of the worker, and most of it of the record, which no design can write.
"""

from __future__ import annotations

from ..kernel.system import Action, ActionProperty, Invariant
from ..kernel.terms import (
    INT,
    SetSort,
    Term,
    all_of,
    any_of,
    exists,
    forall,
    parameter,
    result,
    total,
)
from . import ledger as lg
from .encoder_decoder import embeds
from .engine_state import (
    PASS,
    EngineDesign,
    at_risk,
    computed,
    confirmed,
    current,
    encoded,
    encodes,
    hit_of,
    in_pass,
    loads,
    payload,
    pending,
    promised,
    running,
    scheduled,
    tentative,
    to_encode,
    to_load,
    window,
    worker,
    worker_step,
)
from .ledger import cached, free_slots, freed, held, references
from .world import HASH, INPUT, REQUEST, capacity, hash_of, owner, size

__all__ = ["FREEDOMS", "UNIQUENESS", "action_properties", "invariants"]

i = parameter("input", INPUT)
r = parameter("request", REQUEST)
budget = parameter("encoder_compute_budget", INT)
h = hash_of(i)
told = result(SetSort.of(HASH))
promised_before = total(tentative, embeds)
"""Embeddings that were admitted for the current request, by the record, and not allocated yet."""


def _ordered(k: Term, q: Term) -> Term:
    return encodes.has(k, q) | loads.has(k, q)


def _is_new(k: Term) -> Term:
    """This pass encodes or loads the hash, in the name of a request that refers to it."""
    return exists(REQUEST, lambda q: references.has(k, q) & _ordered(k, q))


# --- of every state ----------------------------------------------------------------------------

SYSTEM_CLAIMS = (
    Invariant(
        "hit_is_materialised",
        forall(HASH, lambda k: cached.has(k).implies(worker.has(k) | _is_new(k))),
        "S2",
    ),
    Invariant("mirrors_agree", in_pass | worker.same_elements(cached), "S3"),
    Invariant("worker_memory_bounded", in_pass | (total(worker, size) <= capacity), "S4"),
    Invariant(
        "no_orphan_reference",
        in_pass | forall(HASH, REQUEST, lambda k, q: references.has(k, q).implies(running.has(q))),
        "S5",
    ),
    Invariant(
        "what_tokens_overlap_is_held",
        forall(
            INPUT,
            lambda j: all_of(
                promised.has(j).implies(held.has(j)),
                all_of(running.has(owner(j)), at_risk(owner(j)).has(j)).implies(held.has(j)),
            ),
        ),
        "S9",
    ),
    Invariant(
        "ordered_once",
        all_of(
            forall(
                HASH,
                REQUEST,
                lambda k, q: _ordered(k, q).implies(
                    all_of(
                        references.has(k, q),
                        ~(encodes.has(k, q) & loads.has(k, q)),
                        worker.has(k).implies(freed.has(k)),
                    )
                ),
            ),
            forall(
                HASH,
                REQUEST,
                REQUEST,
                lambda k, p, q: (_ordered(k, p) & _ordered(k, q)).implies(p == q),
            ),
        ),
        "S10",
    ),
    Invariant(
        "pending_is_what_was_admitted",
        forall(
            REQUEST,
            lambda q: all_of(
                current.has(q).implies(pending[q] == promised_before),
                current.has(q) | (pending[q] == 0),
            ),
        ),
        "S12",
    ),
    Invariant(
        "orders_are_what_was_decided",
        encodes.same_elements(to_encode) & loads.same_elements(to_load),
        "S11",
    ),
)

STRENGTHENING = (
    Invariant(
        "between_passes_nothing_is_pending",
        in_pass | all_of(*(v.is_empty() for v in (*PASS, encodes, loads, freed))),
    ),
    Invariant(
        "one_request_is_current",
        forall(REQUEST, REQUEST, lambda p, q: (current.has(p) & current.has(q)).implies(p == q)),
    ),
    Invariant(
        "the_current_request_is_not_scheduled",
        forall(REQUEST, lambda q: ~(current.has(q) & scheduled.has(q))),
    ),
    Invariant(
        "tentative_inputs_are_absent_and_distinct",
        all_of(
            forall(
                INPUT,
                lambda j: tentative.has(j).implies(current.has(owner(j)) & ~cached.has(hash_of(j))),
            ),
            forall(
                INPUT,
                INPUT,
                lambda j, k: all_of(
                    tentative.has(j), tentative.has(k), hash_of(j) == hash_of(k)
                ).implies(j == k),
            ),
        ),
    ),
    Invariant("what_is_pending_fits", promised_before <= free_slots),
    Invariant(
        "in_a_pass_only_running_and_current_requests_refer",
        forall(
            HASH,
            REQUEST,
            lambda k, q: references.has(k, q).implies(running.has(q) | current.has(q)),
        ),
    ),
    Invariant(
        "the_worker_holds_the_cached_and_the_freed",
        forall(HASH, lambda k: worker.has(k).implies(cached.has(k) | freed.has(k))),
    ),
    Invariant(
        "what_was_evicted_is_at_the_worker",
        forall(HASH, lambda k: freed.has(k).implies(worker.has(k))),
    ),
    Invariant(
        "what_came_back_is_new",
        forall(HASH, lambda k: (cached.has(k) & freed.has(k)).implies(_is_new(k))),
    ),
    Invariant(
        "what_is_promised_is_of_the_scheduled",
        forall(
            INPUT,
            lambda j: all_of(
                promised.has(j).implies(scheduled.has(owner(j))),
                window.has(j).implies(
                    current.has(owner(j)) & any_of(held.has(j), tentative.has(j))
                ),
            ),
        ),
    ),
    Invariant(
        "nothing_of_the_waiting_is_in_flight",
        forall(REQUEST, lambda q: running.has(q) | (computed[q] == confirmed[q])),
    ),
    Invariant(
        "scheduled_requests_run",
        forall(REQUEST, lambda q: scheduled.has(q).implies(running.has(q))),
    ),
)

HIDDEN_ENTRIES = Invariant(
    "what_is_hidden_has_one_holder",
    forall(
        HASH,
        REQUEST,
        REQUEST,
        lambda k, p, q: all_of(_ordered(k, p), references.has(k, q)).implies(p == q),
    ),
)


def invariants(design: EngineDesign) -> tuple[Invariant, ...]:
    """Everything that is claimed of every state."""
    # The worker of the ledger's record obeys the ledger; this one obeys the outputs.
    of_the_ledger = (*lg.STATE_CLAIMS, *lg.STRENGTHENING)
    ledger_invariants = (inv for inv in of_the_ledger if "obedient" not in inv.name)
    hidden = (HIDDEN_ENTRIES,) if design.hittable == "when_dispatched" else ()
    return (*ledger_invariants, *SYSTEM_CLAIMS, *STRENGTHENING, *hidden)


# --- of one decision ---------------------------------------------------------------------------


def _dispatch_claims(design: EngineDesign) -> tuple[ActionProperty, ...]:
    step = worker_step(design, told)
    slack = total(told, size)
    room = capacity if design.order == "drop_encode_gather" else capacity + slack
    return (
        *lg.report_claims("dispatch"),
        ActionProperty(
            "gather_never_misses",
            "dispatch",
            forall(INPUT, lambda j: promised.has(j).implies(step.at_gather.has(hash_of(j)))),
            "S1",
        ),
        ActionProperty("worker_memory_peak", "dispatch", total(step.peak, size) <= room, "S4"),
        ActionProperty(
            "worker_order_irrelevant",
            "dispatch",
            worker.minus(told).union(encoded).same_elements(worker.union(encoded).minus(told)),
            "S6",
        ),
        ActionProperty(
            "scheduled_encode_has_payload",
            "dispatch",
            forall(HASH, REQUEST, lambda k, q: encodes.has(k, q).implies(payload.next.has(k, q))),
            "S8",
        ),
    )


def _duty(action: str, call: Action) -> ActionProperty:
    """The engine calls the ledger only as the ledger may be called."""
    return ActionProperty("duties_kept", action, call.enabled)


def action_properties(design: EngineDesign) -> tuple[ActionProperty, ...]:
    """Everything that is claimed of single decisions."""
    return (
        *lg.admission_claims("admit", promised_before),
        *_dispatch_claims(design),
        *lg.reset_claims("reset"),
        *lg.hit_claims("look_up", hit_of(design)),
        _duty("commit", lg.allocate()),
        _duty("commit_load", lg.allocate()),
    )


FREEDOMS = {
    **lg.FREEDOMS,
    "choices of the scheduler": "who is considered when, with how many tokens; who gets blocks, "
    "who is preempted, and when an input that was passed is released: these are the events",
    "raw items": "what travels besides the raw items that are to be encoded",
}
"""What the clauses leave open: everything else about an engine follows from them."""

UNIQUENESS = {"admit": lg.UNIQUENESS["can_allocate"]}
