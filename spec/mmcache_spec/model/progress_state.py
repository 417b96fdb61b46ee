"""What the model of progress remembers: the queue, its own state, and the record of an observer.

The record is kept by whoever sees the calls, their answers and the state between them: who came,
who began and was not preempted, how many tokens were given, which items these tokens reached and
have not passed, and what was made room for. No design can write it.
"""

from __future__ import annotations

from ..kernel.system import Axiom, Monitor
from ..kernel.terms import (
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
)
from .chunk import Room, ends_at, prompt
from .world import HASH, INPUT, REQUEST, hash_of, owner

__all__ = [
    "INIT",
    "OBSERVABLES",
    "QUEUE",
    "RECORD",
    "ROOM",
    "STATE",
    "admitted",
    "arrival",
    "arrived",
    "cached",
    "computed",
    "counted",
    "finished",
    "held",
    "hit",
    "i",
    "is_head",
    "is_in_queue",
    "needed",
    "pinned",
    "queued",
    "r",
    "running",
    "start",
    "stored",
    "tokens",
    "watched",
]

# --- the queue ---------------------------------------------------------------------------------

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

OBSERVABLES: dict[str, Term] = {variable.name: variable for variable in STATE}
"""Everything can be seen: a design has nothing else to remember."""

INIT = (
    arrived.becomes(empty(REQUEST)),
    running.becomes(empty(REQUEST)),
    finished.becomes(empty(REQUEST)),
    computed.becomes(mapof(REQUEST, lambda r: number(0))),
    held.becomes(empty(INPUT)),
    cached.becomes(empty(HASH)),
)

# --- who is asked ------------------------------------------------------------------------------

r = parameter("request", REQUEST)
i = parameter("input", INPUT)
hit = parameter("hit", INT)
"""The tokens that the prefix cache has of a request that is not running."""
tokens = result(INT)
"""What the request is given."""

pinned = named(
    "pinned", setof(HASH, lambda k: exists(INPUT, lambda j: held.has(j) & (hash_of(j) == k)))
)
start = named("start", ite(running.has(r), computed[r], hit))

ROOM = Room(r, start, pinned, cached)


def is_in_queue(q: Term) -> Term:
    """It came, and has tokens left."""
    return arrived.has(q) & ~finished.has(q)


def is_head(q: Term) -> Term:
    """Nobody before it in the queue is unfinished."""
    ahead = exists(REQUEST, lambda p: all_of(is_in_queue(p), arrival(p) < arrival(q)))
    return is_in_queue(q) & ~ahead


# --- the record --------------------------------------------------------------------------------

queued = state("queued", SetSort.of(REQUEST), ghost=True)
"""The requests that have come."""
counted = state("counted", MapSort.of(REQUEST, INT), ghost=True)
"""The tokens of which an observer has seen the answers, since the request last began."""
admitted = state("admitted", SetSort.of(REQUEST), ghost=True)
"""The requests that were seen to begin, and not yet to be preempted or to finish."""
needed = state("needed", SetSort.of(INPUT), ghost=True)
"""The inputs that a chunk, or the drafter behind it, has reached, and no chunk has passed."""
stored = state("stored", SetSort.of(HASH), ghost=True)
"""The hashes that were taken, and since then always needed or not in the way."""

_seen = ite(admitted.has(r), counted[r], hit) + tokens
_begins = ite(_seen == prompt(r), admitted.remove(r), admitted.insert(r))


def _is_passed(j: Term) -> Term:
    return all_of(tokens > 0, owner(j) == r, ends_at(j) <= _seen)


def _is_needed(k: Term) -> Term:
    return exists(INPUT, lambda j: needed.has(j) & (hash_of(j) == k))


def _is_taken(k: Term) -> Term:
    return exists(INPUT, lambda j: ROOM.taken_by(tokens, j) & (hash_of(j) == k))


_something_new = exists(INPUT, lambda j: ROOM.taken_by(tokens, j) & ~stored.has(hash_of(j)))

RECORD = (
    Monitor(queued, empty(REQUEST), {"arrive": queued.insert(r)}),
    Monitor(
        counted,
        mapof(REQUEST, lambda q: number(0)),
        {
            "schedule": ite(tokens > 0, counted.put(r, _seen), counted),
            "preempt": counted.put(r, 0),
        },
    ),
    Monitor(
        admitted,
        empty(REQUEST),
        {
            "schedule": ite(tokens > 0, _begins, admitted),
            "preempt": admitted.remove(r),
        },
    ),
    Monitor(
        needed,
        empty(INPUT),
        {
            "schedule": setof(
                INPUT, lambda j: any_of(needed.has(j), ROOM.taken_by(tokens, j)) & ~_is_passed(j)
            ),
            "preempt": setof(INPUT, lambda j: needed.has(j) & ~(owner(j) == r)),
        },
    ),
    Monitor(
        stored,
        empty(HASH),
        {
            "schedule": setof(
                HASH,
                lambda k: any_of(
                    _is_needed(k), _is_taken(k), all_of(stored.has(k), ~_something_new)
                ),
            ),
        },
    ),
)
