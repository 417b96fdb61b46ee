"""Progress: a request that could be served alone finishes, however the caps of a chunk meet.

A queue of requests, each a row of tokens (`chunk`). A pass walks down the queue and asks how many
tokens each request shall compute (`schedule`); a request that gets some runs, and needs the
embeddings of the items that its chunk reaches, until it has computed past them. What nobody needs
is evicted when there is something new. A running request that is not the head of the queue may be
preempted, and loses all that it has computed but for what the prefix cache gives it back. The KV
blocks themselves are not modelled: that the head of the queue gets some, again and again, is what
the claim assumes, and it says of nobody else that he waits for ever.

One call is a decision and the worker's step on it: what is computed past is released with it. The
last token finishes the request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..kernel.lemmas import (
    Lemma,
    emptiness,
    for_every,
    has_first,
    has_greatest,
    insertion,
    monotone,
)
from ..kernel.system import Action, Axiom, TransitionSystem
from ..kernel.terms import (
    FALSE,
    Term,
    all_of,
    any_of,
    empty,
    exists,
    forall,
    ite,
    mapof,
    number,
    setof,
)
from .chunk import (
    RIGHT_CAPS,
    TOKENS,
    Caps,
    budget,
    chunk,
    compute,
    encoder_budget,
    ends_at,
    length,
    lookahead,
    offset,
    prompt,
    stop,
    token_budget,
)
from .progress_clauses import (
    FREEDOMS,
    LARGEST,
    SOMEBODY_IS_FIRST,
    STATE_CLAIMS,
    STRENGTHENING,
    WORK,
    largest_chunk,
)
from .progress_state import (
    INIT,
    OBSERVABLES,
    QUEUE,
    RECORD,
    ROOM,
    STATE,
    arrival,
    arrived,
    cached,
    computed,
    finished,
    held,
    hit,
    i,
    is_head,
    is_in_queue,
    pinned,
    r,
    running,
    start,
    tokens,
    watched,
)
from .world import HASH, INPUT, REQUEST, SIZES, capacity, hash_of, owner, size

__all__ = ["ProgressDesign", "progress"]


@dataclass(frozen=True)
class ProgressDesign:
    """The switches. The first value of each is the right one."""

    caps: Caps = RIGHT_CAPS
    waiting: Literal["gives_back", "keeps_references"] = "gives_back"
    """What a waiting request does with its hits when it gets no KV blocks."""
    no_tokens: Literal["gives_back", "keeps_hits"] = "gives_back"
    """What a waiting request does with its hits when the caps leave it no tokens."""
    release: Literal["when_passed", "past_the_lookahead"] = "when_passed"
    """Whether an item is needed until its own tokens are computed, or the drafter's too."""
    victim: Literal["not_the_head", "anyone"] = "not_the_head"
    """Whom preemption may choose."""
    progress: Literal["kept", "forgotten"] = "kept"
    """Whether the scheduler keeps count of what it has had computed."""


NEEDED_SERVED = "work_falls_when_a_request_that_needs_embeddings_is_asked"
HEAD_SERVED = "work_falls_when_nobody_needs_any_and_the_head_is_asked"

_PREMISES = {
    "work_can_be_brought_down": (
        "a_pass_may_compute_a_token",
        "a_prompt_has_a_token",
        "a_pass_may_encode_nothing",
        "an_item_lies_within_its_prompt",
        "work_is_never_below_zero",
        "tokens_are_counted",
        "who_runs_is_within_its_prompt",
        "only_what_lies_ahead_of_running_requests_is_needed",
    ),
    "what_is_cached_fits": ("what_is_cached_fits", "what_is_needed_is_cached"),
    "what_is_needed_is_needed_in_order": (
        "items_of_a_request_lie_apart",
        "an_item_lies_within_its_prompt",
        "tokens_are_counted",
        "who_runs_is_within_its_prompt",
        "only_what_lies_ahead_of_running_requests_is_needed",
        "what_is_needed_is_needed_in_order",
    ),
    NEEDED_SERVED: (
        "an_item_lies_within_its_prompt",
        "items_of_a_request_lie_apart",
        "a_pass_may_compute_a_token",
        "the_drafter_reads_ahead_or_not",
        "what_is_cached_fits",
        "tokens_are_counted",
        "who_runs_is_within_its_prompt",
        "only_what_lies_ahead_of_running_requests_is_needed",
        "what_is_needed_is_needed_in_order",
        "what_is_needed_is_cached",
    ),
    LARGEST: (
        "an_item_lies_within_its_prompt",
        "items_of_a_request_lie_apart",
        "the_drafter_reads_ahead_or_not",
        "a_pass_may_compute_a_token",
    ),
    HEAD_SERVED: (
        "an_item_lies_within_its_prompt",
        "items_of_a_request_lie_apart",
        "every_item_could_be_served_alone",
        "a_pass_may_compute_a_token",
        "tokens_are_counted",
        "who_runs_is_within_its_prompt",
    ),
}
"""What the proofs of the right design rest on, that would be slow with all there is."""

# --- the events --------------------------------------------------------------------------------


def arrive() -> Action:
    """A request comes, and stands behind all others."""
    last = forall(REQUEST, lambda q: arrived.has(q).implies(arrival(q) < arrival(r)))
    return Action(
        "arrive", (r,), guard={"last": last}, effect=(arrived.becomes(arrived.insert(r)),)
    )


def schedule(design: ProgressDesign) -> Action:
    """A request is asked for, with KV blocks: the answer is the number of tokens it computes."""
    right = design.caps if design.caps.wishes == "give_way" else RIGHT_CAPS
    given = chunk(design.caps, ROOM)
    some = tokens > 0
    end = start + tokens

    def takes(j: Term) -> Term:
        reached = ROOM.taken_by(tokens, j)
        if design.no_tokens == "keeps_hits":
            return any_of(
                reached,
                all_of(~some, ~running.has(r), cached.has(hash_of(j)), given.looked_up(j)),
            )
        return reached

    def passed(j: Term) -> Term:
        computed_past = ends_at(j) <= end
        if design.release == "past_the_lookahead":
            computed_past = any_of(ends_at(j) + lookahead <= end, end == prompt(r))
        return all_of(some, owner(j) == r, computed_past)

    def taken(k: Term) -> Term:
        return exists(INPUT, lambda j: takes(j) & (hash_of(j) == k))

    something_new = exists(INPUT, lambda j: takes(j) & ~cached.has(hash_of(j)))
    kept = setof(HASH, lambda k: any_of(pinned.has(k), taken(k), cached.has(k) & ~something_new))
    boundary = () if design.caps.alignment == "none" else (stop,)
    counted_on = start if design.progress == "forgotten" else end
    return Action(
        "schedule",
        (r, hit, budget, compute, *boundary),
        guard={
            "unfinished": is_in_queue(r),
            "hit_leaves_a_token": all_of(number(0) <= hit, hit < prompt(r)),
            **given.guard,
        },
        effect=(
            running.becomes(
                setof(REQUEST, lambda q: ite(all_of(some, q == r), end < prompt(r), running.has(q)))
            ),
            finished.becomes(ite(all_of(some, end == prompt(r)), finished.insert(r), finished)),
            computed.becomes(ite(some, computed.put(r, counted_on), computed)),
            held.becomes(setof(INPUT, lambda j: any_of(held.has(j), takes(j)) & ~passed(j))),
            cached.becomes(kept),
        ),
        returns=given.tokens,
        lemmas={
            NEEDED_SERVED: _what_is_needed_fits(),
            HEAD_SERVED: _one_item_fits(),
            LARGEST: (has_first(INPUT, given.blocked, offset), *_what_is_before_fits_too()),
            "what_is_needed_is_needed_in_order": _what_is_before_fits_too(),
            "what_is_cached_fits": _what_is_taken_fits(setof(INPUT, takes)),
        },
        premises=_PREMISES if design == ProgressDesign(caps=right) else {},
    )


def _what_is_needed_fits() -> tuple[Lemma, ...]:
    """An item that is needed already is cached, and so is all that is pinned."""
    return (
        for_every(INPUT, lambda j: monotone(ROOM.needed(j), cached, size)),
        for_every(INPUT, lambda j: emptiness(ROOM.new(j), size)),
    )


def _one_item_fits() -> tuple[Lemma, ...]:
    """An item alone is no larger than itself."""
    alone = empty(HASH)
    return (
        for_every(INPUT, lambda j: monotone(ROOM.needed(j), alone.insert(hash_of(j)), size)),
        for_every(INPUT, lambda j: monotone(ROOM.new(j), alone.insert(hash_of(j)), size)),
        for_every(INPUT, lambda j: insertion(alone, hash_of(j), size)),
        emptiness(alone, size),
    )


def _what_is_taken_fits(taken: Term) -> tuple[Lemma, ...]:
    """The last item that is taken fits, with all before it."""
    return (
        has_greatest(
            taken,
            mapof(INPUT, lambda j: offset(j)),
            lambda j: monotone(cached.next, ROOM.needed(j), size),
        ),
        monotone(cached.next, cached, size),
    )


def _what_is_before_fits_too() -> tuple[Lemma, ...]:
    """An item needs no less room than those before it."""
    return (
        for_every(INPUT, INPUT, lambda j, k: monotone(ROOM.needed(j), ROOM.needed(k), size)),
        for_every(INPUT, INPUT, lambda j, k: monotone(ROOM.new(j), ROOM.new(k), size)),
    )


def preempt(design: ProgressDesign) -> Action:
    """A running request loses its KV blocks, what it has computed, and the embeddings it needs."""
    spared = {"not_the_head": ~is_head(r)} if design.victim == "not_the_head" else {}
    return Action(
        "preempt",
        (r,),
        guard={"running": running.has(r), **spared},
        effect=(
            running.becomes(running.remove(r)),
            computed.becomes(computed.put(r, 0)),
            held.becomes(setof(INPUT, lambda j: held.has(j) & ~(owner(j) == r))),
        ),
    )


def touch(design: ProgressDesign) -> Action:
    """A waiting request hits an input, and then gets no KV blocks."""
    kept = design.waiting == "keeps_references"
    return Action(
        "touch",
        (i,),
        guard={
            "waiting": is_in_queue(owner(i)) & ~running.has(owner(i)),
            "hit": cached.has(hash_of(i)),
        },
        effect=(held.becomes(held.insert(i)),) if kept else (),
    )


def progress(
    design: ProgressDesign = ProgressDesign(), conditions: tuple[Axiom, ...] = ()
) -> TransitionSystem:
    """The queue under `design`, where the configuration meets `conditions`, and what is claimed."""
    actions = (arrive(), schedule(design), preempt(design), touch(design))
    first, possible = WORK.invariants(actions)
    return TransitionSystem(
        name="progress",
        variables=STATE,
        constants=(capacity, token_budget, encoder_budget, lookahead, watched),
        functions=(size, hash_of, owner, offset, length, prompt, arrival),
        axioms=(*SIZES, *TOKENS, *QUEUE, *conditions),
        init=INIT,
        actions=actions,
        invariants=(
            first,
            replace(possible, lemmas=(SOMEBODY_IS_FIRST,)),
            *STATE_CLAIMS,
            *STRENGTHENING,
        ),
        action_properties=(*WORK.action_properties(actions), largest_chunk(design.caps)),
        pass_start=~FALSE,
        monitors=RECORD,
        observables=OBSERVABLES,
        freedoms=FREEDOMS,
    )
