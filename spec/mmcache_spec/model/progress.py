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
from ..kernel.ranking import Helpful, Measure, Ranking, Walk
from ..kernel.system import Action, Axiom, Invariant, Monitor, TransitionSystem
from ..kernel.terms import (
    FALSE,
    INT,
    MapSort,
    SetSort,
    Term,
    all_of,
    any_of,
    constant,
    empty,
    exists,
    forall,
    function,
    ite,
    mapof,
    named,
    number,
    parameter,
    result,
    setof,
    state,
    total,
)
from .chunk import (
    RIGHT_CAPS,
    TOKENS,
    Caps,
    Chunk,
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
    whole_budget,
)
from .world import HASH, INPUT, REQUEST, SIZES, capacity, hash_of, owner, size

__all__ = ["WALK", "WORK", "ProgressDesign", "progress"]

arrival = function("arrival", REQUEST, INT)
"""The place of a request in the queue."""
watched = constant("watched", INT)
"""A place in the queue, whichever: up to there everybody finishes, though others keep coming."""

QUEUE = (
    Axiom("the_queue_begins_somewhere", forall(REQUEST, lambda r: arrival(r) >= 0)),
    Axiom(
        "no_two_requests_have_one_place",
        forall(REQUEST, REQUEST, lambda r, q: (arrival(r) == arrival(q)).implies(r == q)),
    ),
)

# --- the state ---------------------------------------------------------------------------------

arrived = state("arrived", SetSort.of(REQUEST))
running = state("running", SetSort.of(REQUEST))
"""Who holds KV blocks."""
finished = state("finished", SetSort.of(REQUEST))
computed = state("computed", MapSort.of(REQUEST, INT))
"""The tokens whose KV is there (`num_computed_tokens`)."""
held = state("held", SetSort.of(INPUT))
"""The inputs whose embeddings their request still needs."""
cached = state("cached", SetSort.of(HASH))

STATE = (arrived, running, finished, computed, held, cached)

INIT = (
    arrived.becomes(empty(REQUEST)),
    running.becomes(empty(REQUEST)),
    finished.becomes(empty(REQUEST)),
    computed.becomes(mapof(REQUEST, lambda r: number(0))),
    held.becomes(empty(INPUT)),
    cached.becomes(empty(HASH)),
)


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
        "work_is_never_below_zero",
        "the_record_agrees",
        "only_what_lies_ahead_of_running_requests_is_needed",
    ),
    "what_is_cached_fits": ("what_is_cached_fits", "what_is_needed_is_cached"),
    "what_is_needed_is_needed_in_order": (
        "items_of_a_request_lie_apart",
        "an_item_lies_within_its_prompt",
        "the_record_agrees",
        "only_what_lies_ahead_of_running_requests_is_needed",
        "what_is_needed_is_needed_in_order",
    ),
    NEEDED_SERVED: (
        "an_item_lies_within_its_prompt",
        "items_of_a_request_lie_apart",
        "a_pass_may_compute_a_token",
        "the_drafter_reads_ahead_or_not",
        "what_is_cached_fits",
        "the_record_agrees",
        "only_what_lies_ahead_of_running_requests_is_needed",
        "what_is_needed_is_needed_in_order",
        "what_is_needed_is_cached",
    ),
    HEAD_SERVED: (
        "an_item_lies_within_its_prompt",
        "items_of_a_request_lie_apart",
        "every_item_could_be_served_alone",
        "a_pass_may_compute_a_token",
        "the_record_agrees",
    ),
}
"""What the proofs of the right design rest on, that would be slow with all there is."""

# --- the events --------------------------------------------------------------------------------

r = parameter("request", REQUEST)
i = parameter("input", INPUT)
hit = parameter("hit", INT)
"""The tokens that the prefix cache has of a request that is not running."""

pinned = named(
    "pinned", setof(HASH, lambda k: exists(INPUT, lambda j: held.has(j) & (hash_of(j) == k)))
)
start = named("start", ite(running.has(r), computed[r], hit))


def _is_in_queue(q: Term) -> Term:
    return arrived.has(q) & ~finished.has(q)


def _is_head(q: Term) -> Term:
    """Nobody before it in the queue is unfinished."""
    ahead = exists(REQUEST, lambda p: all_of(_is_in_queue(p), arrival(p) < arrival(q)))
    return _is_in_queue(q) & ~ahead


def arrive() -> Action:
    """A request comes, and stands behind all others."""
    last = forall(REQUEST, lambda q: arrived.has(q).implies(arrival(q) < arrival(r)))
    return Action(
        "arrive", (r,), guard={"last": last}, effect=(arrived.becomes(arrived.insert(r)),)
    )


def schedule(design: ProgressDesign) -> Action:
    """A request is asked for, with KV blocks: the answer is the number of tokens it computes."""
    given = chunk(design.caps, r, start, pinned, cached)
    tokens = result(INT)
    some = tokens > 0
    end = start + tokens
    over = end == prompt(r)
    past = lookahead if design.release == "past_the_lookahead" else number(0)

    def takes(j: Term) -> Term:
        if design.no_tokens == "keeps_hits":
            kept = all_of(given.looks_up, ~running.has(r), cached.has(hash_of(j)))
            return given.takes(j) & any_of(some, kept)
        return some & given.takes(j)

    def needed(j: Term) -> Term:
        passed = some & any_of(ends_at(j) + past <= end, over)
        return any_of(held.has(j), takes(j)) & ~((owner(j) == r) & passed)

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
            "unfinished": _is_in_queue(r),
            "hit_leaves_a_token": all_of(number(0) <= hit, hit < prompt(r)),
            **given.guard,
        },
        effect=(
            running.becomes(
                setof(
                    REQUEST,
                    lambda q: ite(q == r, some & ~over | running.has(r) & ~some, running.has(q)),
                )
            ),
            finished.becomes(
                setof(REQUEST, lambda q: finished.has(q) | all_of(q == r, some, over))
            ),
            computed.becomes(computed.put(r, ite(some, counted_on, computed[r]))),
            held.becomes(setof(INPUT, needed)),
            cached.becomes(kept),
        ),
        returns=given.tokens,
        lemmas={
            NEEDED_SERVED: _what_is_needed_fits(given),
            HEAD_SERVED: _one_item_fits(given),
            "what_is_needed_is_needed_in_order": _what_is_before_fits_too(given),
            "what_is_cached_fits": _what_is_taken_fits(setof(INPUT, takes), given),
        },
        premises=_PREMISES if design == ProgressDesign() else {},
    )


def _what_is_needed_fits(given: Chunk) -> tuple[Lemma, ...]:
    """An item that is needed already is cached, and so is all that is pinned."""
    return (
        for_every(INPUT, lambda j: monotone(given.needed(j), cached, size)),
        for_every(INPUT, lambda j: emptiness(given.new(j), size)),
    )


def _one_item_fits(given: Chunk) -> tuple[Lemma, ...]:
    """An item alone is no larger than itself."""
    alone = empty(HASH)
    return (
        for_every(INPUT, lambda j: monotone(given.needed(j), alone.insert(hash_of(j)), size)),
        for_every(INPUT, lambda j: monotone(given.new(j), alone.insert(hash_of(j)), size)),
        for_every(INPUT, lambda j: insertion(alone, hash_of(j), size)),
        emptiness(alone, size),
    )


def _what_is_taken_fits(taken: Term, given: Chunk) -> tuple[Lemma, ...]:
    """The last item that is taken fits, with all before it."""
    return (
        has_greatest(
            taken,
            mapof(INPUT, lambda j: offset(j)),
            lambda j: monotone(cached.next, given.needed(j), size),
        ),
        monotone(cached.next, cached, size),
    )


def _what_is_before_fits_too(given: Chunk) -> tuple[Lemma, ...]:
    """An item needs no less room than those before it."""
    return (
        for_every(INPUT, INPUT, lambda j, k: monotone(given.needed(j), given.needed(k), size)),
        for_every(INPUT, INPUT, lambda j, k: monotone(given.new(j), given.new(k), size)),
    )


def preempt(design: ProgressDesign) -> Action:
    """A running request loses its KV blocks, what it has computed, and the embeddings it needs."""
    spared = {"not_the_head": ~_is_head(r)} if design.victim == "not_the_head" else {}
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
            "waiting": _is_in_queue(owner(i)) & ~running.has(owner(i)),
            "hit": cached.has(hash_of(i)),
        },
        effect=(held.becomes(held.insert(i)),) if kept else (),
    )


WALK = Walk(
    action="schedule",
    who=r,
    owed=any_of(_is_head(r), running.has(r)),
    whole=whole_budget,
    place=arrival,
    unfair=("preempt",),
    values={"budget": (token_budget, number(1)), "compute": (encoder_budget, number(0))},
)
"""What makes a loop fair.

The head of the queue, and whoever has KV blocks, is asked with the whole budget, unless somebody
before it got tokens; and nobody is preempted for ever unless the head gets tokens.
"""

# --- the record --------------------------------------------------------------------------------

queued = state("queued", SetSort.of(REQUEST), ghost=True)
"""The requests that have come."""
counted = state("counted", MapSort.of(REQUEST, INT), ghost=True)
"""The tokens of which an observer has seen the answers, since the request last began."""
admitted = state("admitted", SetSort.of(REQUEST), ghost=True)
"""The requests that were seen to begin, and not yet to be preempted or to finish."""

_answer = result(INT)
_seen = ite(admitted.has(r), counted[r], hit) + _answer

RECORD = (
    Monitor(queued, empty(REQUEST), {"arrive": queued.insert(r)}),
    Monitor(
        counted,
        mapof(REQUEST, lambda q: number(0)),
        {
            "schedule": ite(_answer > 0, counted.put(r, _seen), counted),
            "preempt": counted.put(r, 0),
        },
    ),
    Monitor(
        admitted,
        empty(REQUEST),
        {
            "schedule": ite(
                _answer > 0,
                ite(_seen == prompt(r), admitted.remove(r), admitted.insert(r)),
                admitted,
            ),
            "preempt": admitted.remove(r),
        },
    ),
)

# --- the claims --------------------------------------------------------------------------------


def _left(q: Term) -> Term:
    return prompt(q) - counted[q]


def _is_unfinished(q: Term) -> Term:
    return queued.has(q) & (counted[q] < prompt(q))


def _is_first(q: Term) -> Term:
    """The head of the queue, as an observer knows it."""
    ahead = exists(REQUEST, lambda p: _is_unfinished(p) & (arrival(p) < arrival(q)))
    return _is_unfinished(q) & ~ahead


def _is_watched(q: Term) -> Term:
    return arrival(q) <= watched


def _needs_something(q: Term) -> Term:
    return exists(INPUT, lambda j: held.has(j) & (owner(j) == q))


_nobody_needs_anything = held.is_empty()

_WITNESS = {
    "hit": number(0),
    "stop": start + 1,
    "budget": token_budget,
    "compute": encoder_budget,
}

WORK = Ranking(
    name="work",
    clause="S7",
    unfinished=exists(REQUEST, _is_unfinished),
    measures=(
        Measure(
            "requests up to the watched place that have not come",
            REQUEST,
            lambda q: ~queued.has(q) & _is_watched(q),
        ),
        Measure(
            "unfinished requests up to the watched place",
            REQUEST,
            lambda q: _is_unfinished(q) & _is_watched(q),
        ),
        Measure(
            "tokens left of the first of them",
            REQUEST,
            lambda q: ite(_is_first(q) & _is_watched(q), _left(q), 0),
        ),
        Measure("tokens left", REQUEST, lambda q: ite(queued.has(q), _left(q), 0)),
    ),
    helpful=(
        Helpful(
            "a_request_that_needs_embeddings_is_asked",
            "schedule",
            all_of(admitted.has(r), _needs_something(r), whole_budget),
            _WITNESS,
        ),
        Helpful(
            "nobody_needs_any_and_the_head_is_asked",
            "schedule",
            all_of(_is_first(r), _nobody_needs_anything, whole_budget),
            _WITNESS,
        ),
    ),
    unfair={"preempt": 3, "arrive": 3},
)
"""The head of the queue is helped where nobody needs anything, and else whoever does.

Preemption raises the work of others than the head, and whoever comes brings work for later. That
neither goes on for ever without a token for the head is assumed.
"""

STRENGTHENING = (
    Invariant(
        "the_record_agrees",
        all_of(
            arrived.same_elements(queued),
            forall(REQUEST, lambda q: (running.has(q) | finished.has(q)).implies(arrived.has(q))),
            running.same_elements(admitted),
            forall(REQUEST, lambda q: finished.has(q).iff(counted[q] == prompt(q))),
            forall(REQUEST, lambda q: (counted[q] >= 0) & (computed[q] >= 0)),
            forall(REQUEST, lambda q: running.has(q).implies(computed[q] == counted[q])),
            forall(
                REQUEST,
                lambda q: (~any_of(running.has(q), finished.has(q))).implies(counted[q] == 0),
            ),
            forall(REQUEST, lambda q: running.has(q).implies(counted[q] < prompt(q))),
        ),
    ),
    Invariant(
        "only_what_lies_ahead_of_running_requests_is_needed",
        forall(
            INPUT,
            lambda j: held.has(j).implies(
                all_of(running.has(owner(j)), computed[owner(j)] < ends_at(j))
            ),
        ),
    ),
    Invariant(
        "what_is_needed_is_needed_in_order",
        forall(
            INPUT,
            INPUT,
            lambda j, k: all_of(
                held.has(k),
                owner(j) == owner(k),
                offset(j) < offset(k),
                computed[owner(j)] < ends_at(j),
            ).implies(held.has(j)),
        ),
    ),
    Invariant(
        "what_is_needed_is_cached",
        forall(INPUT, lambda j: held.has(j).implies(cached.has(hash_of(j)))),
    ),
)

FITS = Invariant("what_is_cached_fits", total(cached, size) <= capacity, "L3")

SOMEBODY_IS_FIRST = has_first(REQUEST, _is_unfinished, arrival)


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
            FITS,
            *STRENGTHENING,
        ),
        action_properties=tuple(WORK.action_properties(actions)),
        pass_start=~FALSE,
        monitors=RECORD,
    )
