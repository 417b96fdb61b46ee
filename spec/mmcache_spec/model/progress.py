"""Progress: can it happen that no request gets a token, pass after pass?

A pass that schedules nothing leaves the state as it was, and the next one decides the same. So a
livelock, a lasso of zero-token passes, is a reachable state in which some request is unfinished and
none can be served: a safety property of a model with just enough of the engine in it. One request
at a time holds the KV blocks; an input is started, which pins its hash, and completed in a later
pass; eviction takes everything that is not pinned. Every item fits into the empty cache, so each
request could be served alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..kernel.lemmas import emptiness, for_every, has_first
from ..kernel.system import Action, Axiom, Invariant, TransitionSystem
from ..kernel.terms import (
    FALSE,
    SetSort,
    Term,
    all_of,
    any_of,
    empty,
    exists,
    forall,
    named,
    parameter,
    setof,
    state,
    total,
)
from .world import HASH, INPUT, REQUEST, WORLD, capacity, hash_of, inputs_of, owner, position, size

__all__ = ["ProgressDesign", "progress"]

EVERY_ITEM_FITS = Axiom("every_item_fits_alone", forall(HASH, lambda h: size(h) <= capacity))

# --- the state ---------------------------------------------------------------------------------

running = state("running", SetSort.of(REQUEST))
"""Who holds the KV blocks."""
begun = state("begun", SetSort.of(INPUT))
"""Inputs that are computed in part: their hash is pinned."""
done = state("done", SetSort.of(INPUT))
cached = state("cached", SetSort.of(HASH))
references = state("references", SetSort.of(HASH, REQUEST))

STATE = (running, begun, done, cached, references)

INIT = (
    running.becomes(empty(REQUEST)),
    begun.becomes(empty(INPUT)),
    done.becomes(empty(INPUT)),
    cached.becomes(empty(HASH)),
    references.becomes(empty(HASH, REQUEST)),
)


@dataclass(frozen=True)
class ProgressDesign:
    """The switches. The first value of each is the right one."""

    waiting: Literal["gives_back", "keeps_references"] = "gives_back"
    chunks: Literal["any_length", "reach_the_next_item"] = "any_length"
    """Whether a request that is within an item may be given fewer tokens than lead to the next
    item. An alignment that rounds such a chunk down to nothing may not."""


# --- what can be served ------------------------------------------------------------------------

i = parameter("input", INPUT)
h = hash_of(i)
r = owner(i)

pinned = named("pinned", setof(HASH, lambda k: exists(REQUEST, lambda q: references.has(k, q))))


def _fits(k: Term) -> Term:
    """There is, or eviction makes, room for the hash."""
    return cached.has(k) | (total(pinned, size) + size(k) <= capacity)


def _is_next(j: Term) -> Term:
    """The first input of its request that is not done."""
    earlier = forall(
        INPUT,
        lambda k: all_of(owner(k) == owner(j), position(k) < position(j)).implies(done.has(k)),
    )
    return ~done.has(j) & earlier


def _may_start(j: Term) -> Term:
    free = running.has(owner(j)) | running.is_empty()
    return all_of(_is_next(j), ~begun.has(j), free, _fits(hash_of(j)))


def _may_complete(design: ProgressDesign, j: Term) -> Term:
    if design.chunks == "any_length":
        return begun.has(j)

    def follows(k: Term) -> Term:
        between = exists(
            INPUT,
            lambda m: all_of(
                owner(m) == owner(j), position(j) < position(m), position(m) < position(k)
            ),
        )
        return all_of(owner(k) == owner(j), position(j) < position(k), ~between)

    return begun.has(j) & forall(INPUT, lambda k: follows(k).implies(_fits(hash_of(k))))


# --- the events --------------------------------------------------------------------------------


def start() -> Action:
    """A request with KV blocks, or with the chance of some, computes into its next input."""

    def kept(k: Term) -> Term:
        return pinned.has(k) | cached.has(h)

    return Action(
        "start",
        (i,),
        guard={"may_start": _may_start(i)},
        effect=(
            running.becomes(running.insert(r)),
            begun.becomes(begun.insert(i)),
            cached.becomes(
                setof(
                    HASH, lambda k: any_of(k == h, cached.has(k) & (pinned.has(k) | cached.has(h)))
                )
            ),
            references.becomes(references.insert(h, r)),
        ),
    )


def complete(design: ProgressDesign) -> Action:
    """The rest of the input is computed; its hash is unpinned."""
    still = exists(INPUT, lambda j: all_of(begun.has(j), ~(j == i), owner(j) == r, hash_of(j) == h))
    return Action(
        "complete",
        (i,),
        guard={"may_complete": _may_complete(design, i)},
        effect=(
            begun.becomes(begun.remove(i)),
            done.becomes(done.insert(i)),
            references.becomes(
                setof(
                    HASH,
                    REQUEST,
                    lambda k, q: references.has(k, q) & ~all_of(k == h, q == r, ~still),
                )
            ),
        ),
    )


def leave() -> Action:
    """A request with nothing begun gives its KV blocks up: it is finished, or preempted."""
    q = parameter("request", REQUEST)
    idle = forall(INPUT, lambda j: ~(begun.has(j) & (owner(j) == q)))
    return Action(
        "leave",
        (q,),
        guard={"running": running.has(q), "nothing_begun": idle},
        effect=(
            running.becomes(running.remove(q)),
            references.becomes(setof(HASH, REQUEST, lambda k, p: references.has(k, p) & ~(p == q))),
        ),
    )


def touch(design: ProgressDesign) -> Action:
    """A waiting request hits its next input, and then gets no KV blocks."""
    kept = design.waiting == "keeps_references"
    return Action(
        "touch",
        (i,),
        guard={"waiting": ~running.has(r), "no_blocks": ~running.is_empty(), "hit": cached.has(h)},
        effect=(references.becomes(references.insert(h, r)),) if kept else (),
    )


# --- the claims --------------------------------------------------------------------------------


def _progress(design: ProgressDesign) -> Term:
    unfinished = exists(INPUT, lambda j: ~done.has(j))
    served = exists(INPUT, lambda j: _may_start(j) | _may_complete(design, j))
    leaves = exists(
        REQUEST,
        lambda q: running.has(q) & forall(INPUT, lambda j: (owner(j) == q).implies(done.has(j))),
    )
    return unfinished.implies(served | leaves)


LEMMAS = (
    emptiness(pinned, size),
    for_every(
        REQUEST,
        lambda q: has_first(INPUT, lambda j: (owner(j) == q) & ~done.has(j), position),
    ),
)

STRENGTHENING = (
    Invariant(
        "one_request_holds_the_blocks",
        forall(REQUEST, REQUEST, lambda p, q: (running.has(p) & running.has(q)).implies(p == q)),
    ),
    Invariant(
        "only_what_is_begun_is_pinned",
        forall(
            HASH,
            REQUEST,
            lambda k, q: references.has(k, q).implies(
                exists(INPUT, lambda j: all_of(begun.has(j), owner(j) == q, hash_of(j) == k))
            ),
        ),
    ),
    Invariant(
        "only_running_requests_pin",
        forall(HASH, REQUEST, lambda k, q: references.has(k, q).implies(running.has(q))),
    ),
    Invariant(
        "only_running_requests_have_begun",
        forall(INPUT, lambda j: begun.has(j).implies(running.has(owner(j)) & ~done.has(j))),
    ),
)


def progress(design: ProgressDesign = ProgressDesign()) -> TransitionSystem:
    """The queue under `design`, and the claim that somebody can always be served."""
    return TransitionSystem(
        name="progress",
        variables=STATE,
        constants=(capacity,),
        functions=(size, hash_of, owner, position, inputs_of),
        axioms=(*WORLD, EVERY_ITEM_FITS),
        init=INIT,
        actions=(start(), complete(design), leave(), touch(design)),
        invariants=(Invariant("progress", _progress(design), "S7", LEMMAS), *STRENGTHENING),
        action_properties=(),
        pass_start=~FALSE,
    )
