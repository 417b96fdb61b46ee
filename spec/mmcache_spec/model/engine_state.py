"""What the engine's model remembers: its design, its own state, and the records of an observer.

The **design** is judged: what its actions write is the ledger and the orders of the pass
(`scheduled_encoder_inputs`). The **records** are written by nobody but the events themselves: from
the calls, their arguments and answers, and the outputs that were sent. Which request runs, which
tokens are computed, which inputs these tokens overlap, and what the worker holds, are records: an
action that is wrong can break a clause about them, and cannot mend the clause by writing them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ..kernel.system import Monitor
from ..kernel.terms import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    MapSort,
    SetSort,
    Symbol,
    Term,
    all_of,
    empty,
    exists,
    forall,
    ite,
    mapof,
    named,
    number,
    parameter,
    result,
    setof,
    state,
)
from . import ledger as lg
from .ledger import LedgerDesign, cached
from .world import HASH, INPUT, REQUEST, end_of, hash_of, lookahead, overlaps, owner, rank

__all__ = [
    "DESIGN_STATE",
    "INIT",
    "OBSERVABLES",
    "PASS",
    "EngineDesign",
    "WorkerStep",
    "at_risk",
    "computed",
    "confirmed",
    "current",
    "emptied",
    "encoded",
    "encodes",
    "hit_of",
    "in_pass",
    "known",
    "loaded",
    "loads",
    "m",
    "monitors",
    "n",
    "payload",
    "pending",
    "promised",
    "running",
    "scheduled",
    "tentative",
    "to_encode",
    "to_load",
    "window",
    "worker",
    "worker_step",
]


@dataclass(frozen=True)
class EngineDesign:
    """The switches of the engine. The first value of each is the right one."""

    ledger: LedgerDesign = field(default_factory=LedgerDesign)
    order: Literal["drop_encode_gather", "encode_gather_drop", "encode_if_missing_then_drop"] = (
        "drop_encode_gather"
    )
    """The worker's step. Under the last, an item that is still held is not encoded again, and the
    drop comes before the gather."""
    loads_arrive: Literal["after_the_drop", "before_the_drop"] = "after_the_drop"
    withdrawal: Literal["hands_over_or_undoes", "undoes", "keeps_entry"] = "hands_over_or_undoes"
    """What becomes of an entry whose encoding is withdrawn by a preemption in the same pass."""
    hittable: Literal["at_once", "when_dispatched"] = "at_once"
    """Whether an entry can be shared in the pass that allocates it. Both are right, if the
    withdrawal is: with `undoes`, only the second."""
    payload: Literal["with_the_encoding", "stripped_under_prefix_hit"] = "with_the_encoding"
    """When the raw item travels: with each output that orders its encoding; or once, with the
    first output that schedules the request, and then not if a prefix hit covers it."""
    release: Literal["confirmed", "speculative"] = "confirmed"
    """Whether an input is released when its tokens are confirmed, or when they are drafted."""
    lookahead: Literal["covered", "not_covered"] = "covered"
    """Whether the inputs that the drafter's look-ahead overlaps are among what is looked up."""
    waiting: Literal["gives_back", "keeps_references"] = "gives_back"
    """A waiting request that is refused its blocks."""
    skipped: Literal["gives_back", "keeps_references"] = "gives_back"
    """A waiting request that no tokens are left for."""
    reset: Literal["both_sides", "only_scheduler", "in_flight"] = "both_sides"
    """`in_flight`: both sides, but also while tokens are computed that a rejection may bring
    back."""


i = parameter("input", INPUT)
r = parameter("request", REQUEST)
n = parameter("num_new_tokens", INT)
m = parameter("num_computed_tokens", INT)

# --- what the design writes --------------------------------------------------------------------

encodes = state("encodes", SetSort.of(HASH, REQUEST))
"""`scheduled_encoder_inputs`: what the worker shall encode, and in whose name."""
loads = state("loads", SetSort.of(HASH, REQUEST))
"""What a connector shall load into the worker instead."""

pending = state("pending", MapSort.of(REQUEST, INT))
"""`num_embeds_to_schedule`: embeddings that are promised to a request and not yet charged."""

DESIGN_STATE = (*lg.STATE, pending, encodes, loads)


def hit_of(design: EngineDesign) -> Term:
    """Whether the input is a hit."""
    h = hash_of(i)
    if design.hittable == "at_once":
        return cached.has(h)
    fresh = exists(REQUEST, lambda q: encodes.has(h, q) | loads.has(h, q))
    return cached.has(h) & ~fresh


# --- what is recorded --------------------------------------------------------------------------

in_pass = state("in_pass", BOOL, ghost=True)
"""Something has been decided since the last dispatch."""
running = state("running", SetSort.of(REQUEST), ghost=True)
current = state("current", SetSort.of(REQUEST), ghost=True)
"""The request that is being considered: none or one."""
tentative = state("tentative", SetSort.of(INPUT), ghost=True)
"""Inputs of the current request that were admitted; they are allocated if it gets its blocks."""
window = state("window", SetSort.of(INPUT), ghost=True)
"""Inputs of the current request that were hit or admitted."""
scheduled = state("scheduled", SetSort.of(REQUEST), ghost=True)
promised = state("promised", SetSort.of(INPUT), ghost=True)
"""Inputs that the tokens of this step overlap: the worker will gather them."""
computed = state("computed", MapSort.of(REQUEST, INT), ghost=True)
"""How many tokens of a request are computed; drafts, and steps on their way, count."""
confirmed = state("confirmed", MapSort.of(REQUEST, INT), ghost=True)
"""How many of them no rejection can bring back."""
to_encode = state("to_encode", SetSort.of(HASH, REQUEST), ghost=True)
"""What this pass has decided to encode, and in whose name."""
to_load = state("to_load", SetSort.of(HASH, REQUEST), ghost=True)
worker = state("worker", SetSort.of(HASH), ghost=True)
"""The tensors that the worker holds, by the outputs that were sent to it."""
payload = state("payload", SetSort.of(HASH, REQUEST), ghost=True)
"""The raw items that the worker holds, by the request with which they came."""
known = state("known", SetSort.of(REQUEST), ghost=True)
"""The requests that the worker has heard of."""

OBSERVABLES: dict[str, Term] = {
    **lg.OBSERVABLES,
    "scheduled_encoder_inputs": encodes,
    "loads": loads,
    "num_embeds_to_schedule": pending,
    "worker": worker,
}
"""What can be seen of an engine: ledger, orders, what is pending; and what its worker holds."""

PASS = (current, tentative, window, scheduled, promised, to_encode, to_load)


def emptied(variable: Symbol) -> tuple[Symbol, Term]:
    assert isinstance(variable.sort, SetSort)
    return variable.becomes(empty(*variable.sort.elements))


NOTHING_PENDING = pending.becomes(mapof(REQUEST, lambda q: number(0)))

INIT = (*lg.INIT, NOTHING_PENDING, emptied(encodes), emptied(loads))


# --- the worker's step -------------------------------------------------------------------------


def _done(relation: Symbol) -> Term:
    return setof(HASH, lambda k: exists(REQUEST, lambda q: relation.has(k, q)))


encoded = named("encoded", _done(encodes))
loaded = named("loaded", _done(loads))


@dataclass(frozen=True)
class WorkerStep:
    """What the worker holds at three moments of its step."""

    peak: Term
    at_gather: Term
    after: Term


def worker_step(design: EngineDesign, report: Term) -> WorkerStep:
    """The step under an output that orders `encodes` and `loads` and reports this."""
    early = worker.union(loaded) if design.loads_arrive == "before_the_drop" else worker
    late = loaded if design.loads_arrive == "after_the_drop" else empty(HASH)
    if design.order == "drop_encode_gather":
        after = early.minus(report).union(encoded).union(late)
        return WorkerStep(peak=after, at_gather=after, after=after)
    full = early.union(encoded).union(late)
    if design.order == "encode_gather_drop":
        return WorkerStep(peak=full, at_gather=full, after=full.minus(report))
    dropped = early.union(encoded).minus(report).union(late)
    return WorkerStep(peak=full, at_gather=dropped, after=dropped)


def _shipped(design: EngineDesign) -> Term:
    """The raw items that travel with this output."""
    if design.payload == "with_the_encoding":
        return encodes

    def travels(k: Term, q: Term) -> Term:
        # When a request is scheduled for the first time, what is confirmed is its prefix hit.
        return exists(
            INPUT,
            lambda j: all_of(
                hash_of(j) == k,
                owner(j) == q,
                (confirmed[q] < end_of(j)) | encodes.has(k, q),
            ),
        )

    return setof(HASH, REQUEST, lambda k, q: all_of(scheduled.has(q), ~known.has(q), travels(k, q)))


# --- the records -------------------------------------------------------------------------------

Lines = tuple[tuple[Symbol, Term], ...]


def at_risk(request: Term) -> Term:
    """The inputs of the request whose tokens are computed, and may be computed again."""
    return setof(
        INPUT,
        lambda j: all_of(owner(j) == request, overlaps(j, confirmed[request], computed[request])),
    )


def _is_heir(k: Term, q: Term) -> Term:
    """Whether, of the other requests that need the hash, this is the first."""

    def needs(p: Term) -> Term:
        mine = exists(INPUT, lambda j: all_of(lg.needed.has(j), owner(j) == p, hash_of(j) == k))
        return mine & ~(p == r)

    return needs(q) & forall(REQUEST, lambda p: needs(p).implies(rank(q) <= rank(p)))


def _handed_over(decided: Symbol) -> tuple[Symbol, Term]:
    """The decisions in the name of the request pass to an heir, or are gone."""
    return decided.becomes(
        setof(
            HASH,
            REQUEST,
            lambda k, q: all_of(
                ~(q == r), decided.has(k, q) | all_of(decided.has(k, r), _is_heir(k, q))
            ),
        )
    )


def _overlapped(request: Term, new: Term) -> Term:
    """The inputs that a step of so many new tokens reads, whatever is rejected meanwhile."""
    return setof(
        INPUT,
        lambda j: all_of(
            owner(j) == request,
            overlaps(j, confirmed[request], computed[request] + new + lookahead),
        ),
    )


def _considering(request: Term, *lines: tuple[Symbol, Term]) -> Lines:
    return (in_pass.becomes(TRUE), current.becomes(current.insert(request)), *lines)


NOBODY: Lines = (emptied(current), emptied(tentative), emptied(window))


def _from_the_start(request: Term) -> Lines:
    """Without KV blocks, no token of the request is computed."""
    return (
        computed.becomes(computed.put(request, 0)),
        confirmed.becomes(confirmed.put(request, 0)),
    )


def _of(request: Term, inputs: Symbol) -> Term:
    return setof(INPUT, lambda j: inputs.has(j) & (owner(j) == request))


def _records(design: EngineDesign) -> Mapping[str, Lines]:
    """By event: what an observer writes down. `result` is what the call answered."""
    yes, told = result(BOOL), result(SetSort.of(HASH))
    allocated = tentative.becomes(tentative.remove(i))
    h = hash_of(i)
    left_alone = (*NOBODY, *_from_the_start(r))
    was_current = current.has(r)
    return {
        "prefix_hit": (
            in_pass.becomes(TRUE),
            current.becomes(current.insert(r)),
            computed.becomes(computed.put(r, m)),
            confirmed.becomes(confirmed.put(r, m)),
        ),
        "look_up": _considering(owner(i), window.becomes(ite(yes, window.insert(i), window))),
        "admit": _considering(
            owner(i),
            tentative.becomes(ite(yes, tentative.insert(i), tentative)),
            window.becomes(ite(yes, window.insert(i), window)),
        ),
        "commit": (allocated, to_encode.becomes(to_encode.insert(h, owner(i)))),
        "commit_load": (allocated, to_load.becomes(to_load.insert(h, owner(i)))),
        "schedule": (
            in_pass.becomes(TRUE),
            running.becomes(running.insert(r)),
            scheduled.becomes(scheduled.insert(r)),
            promised.becomes(promised.union(_overlapped(r, n))),
            computed.becomes(computed.put(r, computed[r] + n)),
            *NOBODY,
        ),
        "defer": NOBODY,
        "give_back": left_alone,
        "skip_waiting": left_alone,
        "preempt": (
            in_pass.becomes(TRUE),
            running.becomes(running.remove(r)),
            scheduled.becomes(scheduled.remove(r)),
            promised.becomes(promised.minus(_of(r, promised))),
            current.becomes(current.remove(r)),
            tentative.becomes(ite(was_current, empty(INPUT), tentative)),
            window.becomes(ite(was_current, empty(INPUT), window)),
            _handed_over(to_encode),
            _handed_over(to_load),
            *_from_the_start(r),
        ),
        "dispatch": (
            in_pass.becomes(FALSE),
            *(emptied(v) for v in PASS),
            worker.becomes(worker_step(design, told).after),
            payload.becomes(payload.union(_shipped(design))),
            known.becomes(known.union(scheduled)),
        ),
        "accept": (confirmed.becomes(confirmed.put(r, m)),),
        "reject": (computed.becomes(computed.put(r, m)),),
        "finish": (
            running.becomes(running.remove(r)),
            payload.becomes(setof(HASH, REQUEST, lambda k, q: payload.has(k, q) & ~(q == r))),
            known.becomes(known.remove(r)),
            *_from_the_start(r),
        ),
        "reset": () if design.reset == "only_scheduler" else (emptied(worker),),
    }


def monitors(design: EngineDesign) -> tuple[Monitor, ...]:
    """The record that is kept beside every engine whose worker makes its step like this one's."""
    nowhere = mapof(REQUEST, lambda q: number(0))
    sets = (running, *PASS, worker, payload, known)
    starts = (
        in_pass.becomes(FALSE),
        *(emptied(v) for v in sets),
        computed.becomes(nowhere),
        confirmed.becomes(nowhere),
    )
    noted = _records(design)

    def updates(variable: Symbol) -> dict[str, Term]:
        lines = {action: {v.name: term for v, term in ls} for action, ls in noted.items()}
        return {a: ls[variable.name] for a, ls in lines.items() if variable.name in ls}

    kept = tuple(Monitor(variable, start, updates(variable)) for variable, start in starts)
    return (*_of_the_ledger(), *kept)


CALLS = {
    "look_up": "check_and_update_cache",
    "admit": "can_allocate",
    "commit": "allocate",
    "commit_load": "allocate",
    "consume": "free_encoder_input",
    "give_back": "free",
    "skip_waiting": "free",
    "preempt": "free",
    "finish": "free",
    "dispatch": "get_freed_mm_hashes",
    "reset": "reset",
}
"""The call of the ledger that an event is to make."""


def _of_the_ledger() -> Iterator[Monitor]:
    """The ledger's record, of the calls that the events are to make; the worker is another."""

    def wanted(k: Term) -> Term:
        return exists(INPUT, lambda j: all_of(lg.needed.has(j), hash_of(j) == k, ~(owner(j) == r)))

    def kept(k: Term) -> Term:
        withdrawn = to_encode.has(k, r) | to_load.has(k, r)
        return lg.stored.has(k) & (~withdrawn | wanted(k))

    for monitor in lg.RECORD:
        if monitor.variable.name == worker.name:
            continue
        updates = {e: monitor.updates[c] for e, c in CALLS.items() if c in monitor.updates}
        if monitor.variable.name == lg.stored.name:
            updates["preempt"] = setof(HASH, kept)
        yield replace(monitor, updates=updates)
