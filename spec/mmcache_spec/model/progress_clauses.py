"""What is claimed of the queue: S7 by a ranking, S13 to S16, and what their proofs rest on.

S13 says how many tokens a pass gives, and does not say how they are found: the caps are conditions
on the *end* of a chunk, and no later end meets them. Each cap but one is met by any fewer tokens
too; the reserve leaves out only what lies within the lookahead of the end of the prompt. So an end
is the last that meets the caps if neither one token more does, nor the whole rest of the prompt.
"""

from __future__ import annotations

from ..kernel.lemmas import has_first
from ..kernel.ranking import Helpful, Measure, Ranking, Walk
from ..kernel.system import ActionProperty, Invariant
from ..kernel.terms import (
    Term,
    all_of,
    any_of,
    defined,
    exists,
    forall,
    ite,
    named,
    number,
    same_value,
    total,
)
from .chunk import (
    Caps,
    budget,
    encoder_budget,
    ends_at,
    lookahead,
    offset,
    prompt,
    stop,
    token_budget,
    whole_budget,
)
from .progress_state import (
    ROOM,
    admitted,
    arrival,
    arrived,
    cached,
    computed,
    counted,
    finished,
    held,
    is_head,
    needed,
    queued,
    r,
    running,
    start,
    stored,
    tokens,
    watched,
)
from .world import INPUT, REQUEST, capacity, hash_of, owner, size

__all__ = [
    "FREEDOMS",
    "LARGEST",
    "SOMEBODY_IS_FIRST",
    "STATE_CLAIMS",
    "STRENGTHENING",
    "WALK",
    "WORK",
    "largest_chunk",
]

# --- S7: the work that is left ------------------------------------------------------------------


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

SOMEBODY_IS_FIRST = has_first(REQUEST, _is_unfinished, arrival)

WALK = Walk(
    action="schedule",
    who=r,
    owed=any_of(is_head(r), running.has(r)),
    whole=whole_budget,
    place=arrival,
    unfair=("preempt",),
    values={"budget": (token_budget, number(1)), "compute": (encoder_budget, number(0))},
)
"""What makes a loop fair.

The head of the queue, and whoever has KV blocks, is asked with the whole budget, unless somebody
before it got tokens; and nobody is preempted for ever unless the head gets tokens.
"""

# --- S13: how many tokens -----------------------------------------------------------------------


def _within_limits(end: Term) -> Term:
    """The chunk ends within the prompt and the budget, and reaches no item without room."""
    return defined(
        "within_limits",
        lambda end: all_of(
            end <= prompt(r),
            end <= start + budget,
            forall(INPUT, lambda j: ROOM.unfit(j).implies(end <= offset(j))),
        ),
        end,
    )


def _would_be_cut(boundary: Term, j: Term) -> Term:
    """An item that can be begun, all before it having room, and that the boundary would cut."""

    def would_be_cut(i: Term) -> Term:
        earlier = exists(INPUT, lambda k: all_of(ROOM.unfit(k), offset(k) < offset(i)))
        return all_of(ROOM.ahead(i), start <= offset(i), boundary < ends_at(i), ~earlier)

    return defined("would_be_cut", would_be_cut, j)


def _within_wishes(caps: Caps, end: Term) -> Term:
    """Within the limits; not past the boundary, no item cut, and enough left for the drafter."""
    aligned, whole = caps.alignment != "none", caps.items == "whole"
    boundary = stop if aligned else ROOM.farthest

    def within_wishes(end: Term) -> Term:
        enough_left = any_of(end == prompt(r), end + lookahead <= prompt(r))
        kept_away = forall(
            INPUT, lambda j: _would_be_cut(boundary, j).implies(end + lookahead <= offset(j))
        )
        within = (_within_limits(end), enough_left)
        return all_of(
            *within, *((end <= stop,) if aligned else ()), *((kept_away,) if whole else ())
        )

    return defined("within_wishes", within_wishes, end)


def largest_chunk(caps: Caps) -> ActionProperty:
    """S13: the chunk meets the caps, and none that ends later does.

    The wishes count, unless they leave nothing of a whole budget. Which caps there are is a matter
    of the configuration; that they give way, and in which order they are looked at, is not.
    """
    something = any_of(_within_wishes(caps, start + 1), _within_wishes(caps, prompt(r)))
    wishes_count = named("wishes_count", any_of(~whole_budget, something))

    def allowed(end: Term) -> Term:
        return ite(wishes_count, _within_wishes(caps, end), _within_limits(end))

    end = start + tokens
    formula = all_of(
        tokens >= 0,
        (tokens > 0).implies(defined("allowed", allowed, end)),
        ~defined("allowed", allowed, end + 1),
        (end < prompt(r)).implies(~defined("allowed", allowed, prompt(r))),
    )
    return ActionProperty(LARGEST, "schedule", formula, "S13")


LARGEST = "chunk_is_the_largest_allowed"

# --- S14 to S16: what is seen is what was answered ------------------------------------------------

STATE_CLAIMS = (
    Invariant(
        "tokens_are_counted",
        all_of(
            arrived.same_elements(queued),
            running.same_elements(admitted),
            forall(REQUEST, lambda q: finished.has(q).iff(counted[q] == prompt(q))),
            same_value(computed, counted),
        ),
        "S14",
    ),
    Invariant("needed_from_reach_to_end", held.same_elements(needed), "S15"),
    Invariant("resident_until_in_the_way", cached.same_elements(stored), "S16"),
    Invariant("what_is_cached_fits", total(cached, size) <= capacity, "L3"),
)

FREEDOMS = {
    "the scheduler's choices": "who comes, who is asked with which budgets, prefix hit and "
    "boundary, and who is preempted",
    "outside the guards": "what a call does whose guards do not hold",
}

# --- what the proofs rest on ---------------------------------------------------------------------

STRENGTHENING = (
    Invariant(
        "who_runs_is_within_its_prompt",
        all_of(
            forall(REQUEST, lambda q: (running.has(q) | finished.has(q)).implies(arrived.has(q))),
            forall(REQUEST, lambda q: counted[q] >= 0),
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
