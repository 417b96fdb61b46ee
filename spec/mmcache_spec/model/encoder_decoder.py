"""The ledger of encoder-decoder models (`EncoderDecoderCacheManager`).

Nothing is shared or kept: every input is charged when it is allocated and credited when it is
released. A hash that was allocated in one pass is reported at the end of the next, so that the
worker drops it after the step that used it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..kernel.lemmas import monotone
from ..kernel.system import (
    Action,
    ActionProperty,
    Axiom,
    Invariant,
    Monitor,
    TransitionSystem,
)
from ..kernel.terms import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    SetSort,
    Term,
    after,
    all_of,
    empty,
    exists,
    forall,
    function,
    ite,
    named,
    parameter,
    result,
    same_value,
    setof,
    state,
    total,
)
from .world import HASH, INPUT, REQUEST, WORLD, capacity, hash_of, inputs_of, owner, position, size

__all__ = ["EncoderDecoderDesign", "encoder_decoder"]

embeds = function("embeds", INPUT, INT)

INPUTS_HAVE_THE_SIZE_OF_THEIR_HASH = Axiom(
    "an_input_has_the_size_of_its_hash",
    forall(INPUT, lambda i: embeds(i) == size(hash_of(i))),
)

# --- the state ---------------------------------------------------------------------------------

outstanding = state("outstanding", SetSort.of(INPUT))
"""The inputs that were charged and not yet credited."""
free_slots = state("free_slots", INT)
allocated = state("allocated", SetSort.of(HASH))
"""Allocated since the last report."""
to_free = state("to_free", SetSort.of(HASH))
"""Allocated before the last report: the worker drops them at the next one."""

# What an observer of the calls notes down; see RECORD.
needed = state("needed", SetSort.of(INPUT), ghost=True)
"""The inputs that were allocated and not released since."""
this_pass = state("this_pass", SetSort.of(HASH), ghost=True)
"""The hashes that were allocated since the last report."""
last_pass = state("last_pass", SetSort.of(HASH), ghost=True)
"""The hashes that were allocated between the last two reports."""

STATE = (outstanding, free_slots, allocated, to_free)

INIT = (
    outstanding.becomes(empty(INPUT)),
    free_slots.becomes(capacity),
    allocated.becomes(empty(HASH)),
    to_free.becomes(empty(HASH)),
)


OBSERVABLES: dict[str, Term] = {"charged": outstanding, "free_slots": free_slots}
"""What can be seen of the ledger."""


def unchanged() -> Term:
    """Nothing that can be seen of the ledger has changed."""
    same = all_of(*(same_value(after(term), term) for term in OBSERVABLES.values()))
    return named("unchanged", same)


@dataclass(frozen=True)
class EncoderDecoderDesign:
    """The switches of the encoder-decoder ledger. The first value of each is the right one."""

    credit: Literal["once", "repeated"] = "once"
    notice: Literal["after_the_step", "same_pass"] = "after_the_step"


# --- the calls ---------------------------------------------------------------------------------

i = parameter("input", INPUT)
r = parameter("request", REQUEST)
budget = parameter("encoder_compute_budget", INT)
pending = parameter("num_embeds_to_schedule", INT)


def check_and_update_cache() -> Action:
    """Never a hit."""
    return Action("check_and_update_cache", parameters=(i,), returns=FALSE)


def can_allocate() -> Action:
    """Admission. There is nothing to evict."""
    return Action(
        "can_allocate",
        parameters=(i, budget, pending),
        guard={"budget_not_negative": budget >= 0, "pending_not_negative": pending >= 0},
        returns=all_of(embeds(i) <= budget, embeds(i) + pending <= free_slots),
    )


def allocate() -> Action:
    return Action(
        "allocate",
        parameters=(i,),
        guard={"not_charged_yet": ~outstanding.has(i), "room": embeds(i) <= free_slots},
        effect=(
            outstanding.becomes(outstanding.insert(i)),
            free_slots.becomes(free_slots - embeds(i)),
            allocated.becomes(allocated.insert(hash_of(i))),
        ),
    )


def free_encoder_input(design: EncoderDecoderDesign) -> Action:
    credited = outstanding.has(i) if design.credit == "once" else TRUE
    return Action(
        "free_encoder_input",
        parameters=(i,),
        effect=(
            outstanding.becomes(outstanding.remove(i)),
            free_slots.becomes(free_slots + ite(credited, embeds(i), 0)),
        ),
    )


def _of_the_request(inputs: Term) -> Term:
    return setof(INPUT, lambda j: inputs.has(j) & (owner(j) == r))


def free(design: EncoderDecoderDesign) -> Action:
    mine = _of_the_request(outstanding)
    credited = mine
    if design.credit == "repeated":
        credited = setof(INPUT, lambda j: owner(j) == r)
    return Action(
        "free",
        parameters=(r,),
        effect=(
            outstanding.becomes(outstanding.minus(mine)),
            free_slots.becomes(free_slots + total(credited, embeds)),
        ),
        lemmas={
            "credit_once": (
                monotone(mine, _of_the_request(needed), embeds),
                monotone(_of_the_request(needed), mine, embeds),
            )
        },
    )


def get_freed_mm_hashes(design: EncoderDecoderDesign) -> Action:
    """The report: what was allocated one pass before. Reading it moves on by one pass."""
    at_once = design.notice == "same_pass"
    return Action(
        "get_freed_mm_hashes",
        effect=(
            to_free.becomes(empty(HASH) if at_once else allocated),
            allocated.becomes(empty(HASH)),
        ),
        returns=allocated if at_once else to_free,
    )


def reset() -> Action:
    return Action("reset", effect=INIT)


# --- the record ---------------------------------------------------------------------------------

RECORD = (
    Monitor(
        needed,
        empty(INPUT),
        {
            "allocate": needed.insert(i),
            "free_encoder_input": needed.remove(i),
            "free": needed.minus(_of_the_request(needed)),
            "reset": empty(INPUT),
        },
    ),
    Monitor(
        this_pass,
        empty(HASH),
        {
            "allocate": this_pass.insert(hash_of(i)),
            "get_freed_mm_hashes": empty(HASH),
            "reset": empty(HASH),
        },
    ),
    Monitor(
        last_pass,
        empty(HASH),
        {"get_freed_mm_hashes": this_pass, "reset": empty(HASH)},
    ),
)

# --- the claims --------------------------------------------------------------------------------

INVARIANTS = (
    Invariant(
        "credit_once",
        (free_slots == capacity - total(needed, embeds)) & (free_slots >= 0),
        "E1",
    ),
    Invariant("charged_while_needed", outstanding.same_elements(needed), "E3"),
    Invariant("allocated_is_what_this_pass_allocated", allocated.same_elements(this_pass)),
    Invariant("to_free_is_what_the_last_pass_allocated", to_free.same_elements(last_pass)),
)

told = result(SetSort.of(HASH))

CALL_CLAIMS = (
    ActionProperty(
        "notice_after_the_step",
        "get_freed_mm_hashes",
        told.same_elements(last_pass),
        "E2",
    ),
    ActionProperty(
        "admission_is_exact",
        "can_allocate",
        all_of(
            result(BOOL).iff(all_of(embeds(i) <= budget, embeds(i) + pending <= free_slots)),
            unchanged(),
        ),
        "L7",
    ),
    ActionProperty("credit_once", "free_encoder_input", needed.has(i) | unchanged(), "E1"),
    ActionProperty(
        "credit_once",
        "free",
        exists(INPUT, lambda j: needed.has(j) & (owner(j) == r)) | unchanged(),
        "E1",
    ),
    ActionProperty(
        "reset_is_initial",
        "reset",
        outstanding.next.is_empty() & (free_slots.next == capacity),
        "L10",
    ),
    ActionProperty("hit_is_exact", "check_and_update_cache", ~result(BOOL) & unchanged(), "L11"),
)


FREEDOMS = {"outside the duties": "what a call does whose guards do not hold"}


def _calls(design: EncoderDecoderDesign) -> tuple[Action, ...]:
    return (
        check_and_update_cache(),
        can_allocate(),
        allocate(),
        free_encoder_input(design),
        free(design),
        get_freed_mm_hashes(design),
        reset(),
    )


DUTIES = {call.name: call.guard for call in _calls(EncoderDecoderDesign())}
"""What a caller has to see to. A design takes every call of a caller that does."""


def encoder_decoder(design: EncoderDecoderDesign = EncoderDecoderDesign()) -> TransitionSystem:
    """The encoder-decoder ledger under `design`, with everything that is claimed of it."""
    return TransitionSystem(
        name="encoder_decoder",
        variables=STATE,
        constants=(capacity,),
        functions=(size, hash_of, owner, position, inputs_of, embeds),
        axioms=(*WORLD, INPUTS_HAVE_THE_SIZE_OF_THEIR_HASH),
        init=INIT,
        actions=_calls(design),
        invariants=INVARIANTS,
        action_properties=CALL_CLAIMS,
        pass_start=allocated.is_empty() & this_pass.is_empty(),
        monitors=RECORD,
        observables=OBSERVABLES,
        freedoms=FREEDOMS,
        duties=DUTIES,
    )
