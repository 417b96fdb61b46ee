"""The whole pass as one system: scheduler, ledger and worker.

One pass decides, request by request, and ends with `dispatch`: the report is read and the worker
makes its step. The worker never answers, and obeys one output after the other; so its step may be
taken at once, even where an engine runs it later.

The actions of the ledger are used as they are. What is abstracted: token counts and KV blocks. A
request may at any time get the blocks it wants, or not; a preemption may hit any running request.
Whatever the policy, chunking and block size of an engine, its passes are among these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ..kernel.lemmas import monotone, non_negative, removal, union_bound
from ..kernel.system import Action, ActionProperty, Invariant, TransitionSystem
from ..kernel.terms import (
    BOOL,
    FALSE,
    INT,
    TRUE,
    SetSort,
    Symbol,
    Term,
    all_of,
    any_of,
    empty,
    exists,
    forall,
    ite,
    named,
    parameter,
    replaced,
    result,
    setof,
    state,
    total,
)
from . import ledger as lg
from .encoder_decoder import INPUTS_HAVE_THE_SIZE_OF_THEIR_HASH, embeds
from .ledger import (
    LedgerDesign,
    cached,
    free_slots,
    freeable,
    freed,
    held,
    references,
    since,
)
from .world import HASH, INPUT, REQUEST, WORLD, capacity, hash_of, inputs_of, owner, position, size

__all__ = ["EngineDesign", "engine"]

# --- the state ---------------------------------------------------------------------------------

running = state("running", SetSort.of(REQUEST))
in_pass = state("in_pass", BOOL)
"""Something has been decided since the last dispatch."""
current = state("current", SetSort.of(REQUEST))
"""The request that is being considered: none or one."""
tentative = state("tentative", SetSort.of(INPUT))
"""Inputs of the current request that were admitted; they are allocated if it gets its blocks."""
window = state("window", SetSort.of(INPUT))
"""Inputs of the current request that its tokens overlap."""
scheduled = state("scheduled", SetSort.of(REQUEST))
encodes = state("encodes", SetSort.of(HASH, REQUEST))
"""`scheduled_encoder_inputs`: what the worker shall encode, and in whose name."""
loads = state("loads", SetSort.of(HASH, REQUEST))
"""What a connector shall load into the worker instead."""
to_gather = state("to_gather", SetSort.of(INPUT))
"""Inputs of the scheduled requests that their tokens overlap: the worker must hold them."""
worker = state("worker", SetSort.of(HASH))
"""The tensors that the worker holds."""
payload = state("payload", SetSort.of(HASH, REQUEST))
"""The raw items that the worker holds, by the request with which they came."""
known = state("known", SetSort.of(REQUEST))
"""The requests that the worker has heard of."""
unconfirmed = state("unconfirmed", SetSort.of(INPUT))
"""Inputs that the scheduler believes computed, but a rejected draft may bring back."""

PASS = (current, tentative, window, scheduled, encodes, loads, to_gather)

STATE = (
    *lg.STATE,
    running,
    in_pass,
    *PASS,
    worker,
    payload,
    known,
    unconfirmed,
)


def _emptied(variable: Symbol) -> tuple[Symbol, Term]:
    assert isinstance(variable.sort, SetSort)
    return variable.becomes(empty(*variable.sort.elements))


INIT = (
    *lg.INIT,
    in_pass.becomes(FALSE),
    *(_emptied(v) for v in (running, *PASS, worker, payload, known, unconfirmed)),
)


# --- the decisions -----------------------------------------------------------------------------


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
    """When the raw item travels: with each output that orders its encoding and finds the worker
    without it; or once, with the first output that schedules the request, and then not if a
    prefix hit covers it."""
    release: Literal["confirmed", "speculative"] = "confirmed"
    """Whether an input is released when its tokens are confirmed, or when they are drafted."""
    lookahead: Literal["covered", "not_scheduled"] = "covered"
    """Whether the drafter's look-ahead of one is among what is looked up."""
    waiting: Literal["gives_back", "keeps_references"] = "gives_back"
    reset: Literal["both_sides", "only_scheduler"] = "both_sides"


# --- the calls ---------------------------------------------------------------------------------

i = parameter("input", INPUT)
r = parameter("request", REQUEST)
budget = parameter("encoder_compute_budget", INT)
h = hash_of(i)
told = result(SetSort.of(HASH))
pending = named("pending", total(tentative, embeds))


def _may_consider(request: Term) -> dict[str, Term]:
    return {
        "not_scheduled_yet": ~scheduled.has(request),
        "one_at_a_time": forall(REQUEST, lambda q: current.has(q).implies(q == request)),
    }


def _calling(call: Action, *lines: tuple[Symbol, Term]) -> tuple[tuple[Symbol, Term], ...]:
    """The effect of a ledger call, and some lines more, which go before it."""
    written = {variable.name for variable, _ in lines}
    kept = (line for line in call.effect if line[0].name not in written)
    return (*kept, *lines)


def _fresh(k: Term) -> Term:
    """To be encoded or loaded by this pass."""
    return exists(REQUEST, lambda q: encodes.has(k, q) | loads.has(k, q))


def _hit(design: EngineDesign) -> Term:
    if design.hittable == "at_once":
        return cached.has(h)
    return cached.has(h) & ~_fresh(h)


def look_up(design: EngineDesign) -> Action:
    """The current request's tokens overlap the input: a hit joins its window."""
    call = lg.check_and_update_cache(_hit(design))
    assert call.returns is not None
    return Action(
        "look_up",
        (i,),
        guard={**_may_consider(owner(i)), "not_in_window": ~window.has(i)},
        effect=_calling(
            call,
            in_pass.becomes(TRUE),
            current.becomes(current.insert(owner(i))),
            window.becomes(ite(call.returns, window.insert(i), window)),
        ),
        returns=call.returns,
    )


def admit(design: EngineDesign) -> Action:
    """After a miss: room is made for the input, on top of what is pending."""
    call = lg.can_allocate(design.ledger, pending, since)
    assert call.returns is not None
    same = exists(INPUT, lambda j: tentative.has(j) & (hash_of(j) == h))
    admitted = call.returns
    return Action(
        "admit",
        (i, budget),
        guard={
            **_may_consider(owner(i)),
            "missed": call.guard["missed"],
            "budget_not_negative": call.guard["budget_not_negative"],
            "not_admitted_yet": ~same,
        },
        effect=_calling(
            call,
            in_pass.becomes(TRUE),
            current.becomes(current.insert(owner(i))),
            tentative.becomes(ite(admitted, tentative.insert(i), tentative)),
            window.becomes(ite(admitted, window.insert(i), window)),
        ),
        returns=admitted,
        lemmas={**call.lemmas, "what_is_pending_fits": call.lemmas["eviction_never_runs_dry"]},
    )


ROOM_FOR_ONE = (
    removal(tentative, i, embeds),
    non_negative(tentative.remove(i), embeds),
)
"""What is pending is no less than any input of it."""

ALLOCATION_LEMMAS = {"free_slots_conserved": ROOM_FOR_ONE, "duties_kept": ROOM_FOR_ONE}


def commit() -> Action:
    """The current request got its blocks: the ledger allocates an input, the worker encodes it."""
    return Action(
        "commit",
        (i,),
        guard={"admitted": tentative.has(i)},
        effect=_calling(
            lg.allocate(),
            tentative.becomes(tentative.remove(i)),
            encodes.becomes(encodes.insert(h, owner(i))),
        ),
        lemmas=ALLOCATION_LEMMAS,
    )


def commit_load() -> Action:
    """The same, but a connector has the item: it is loaded, not encoded."""
    return Action(
        "commit_load",
        (i,),
        guard={"admitted": tentative.has(i)},
        effect=_calling(
            lg.allocate(),
            tentative.becomes(tentative.remove(i)),
            loads.becomes(loads.insert(h, owner(i))),
        ),
        lemmas=ALLOCATION_LEMMAS,
    )


def _again(request: Term) -> Term:
    """The inputs of the request that a rejected draft makes it gather again."""
    return setof(INPUT, lambda j: unconfirmed.has(j) & (owner(j) == request))


def schedule() -> Action:
    """The current request runs in this pass, with the inputs in its window."""
    return Action(
        "schedule",
        (r,),
        guard={**_may_consider(r), "all_allocated": tentative.is_empty()},
        effect=_scheduling(r, window),
    )


def _scheduling(request: Term, inputs: Term) -> tuple[tuple[Symbol, Term], ...]:
    return (
        in_pass.becomes(TRUE),
        running.becomes(running.insert(request)),
        scheduled.becomes(scheduled.insert(request)),
        to_gather.becomes(to_gather.union(inputs).union(_again(request))),
        unconfirmed.becomes(unconfirmed.union(window)),
        _emptied(window),
        _emptied(current),
    )


def schedule_with_drafter(design: EngineDesign) -> Action:
    """The same, and the drafter reads one position further, where the input is."""
    covered = {"covered": window.has(i)} if design.lookahead == "covered" else {}
    return Action(
        "schedule_with_drafter",
        (i,),
        guard={**_may_consider(owner(i)), "all_allocated": tentative.is_empty(), **covered},
        effect=_scheduling(owner(i), window.insert(i)),
    )


def _unencumbered(request: Term) -> Term:
    """Nothing is to be encoded or loaded in the name of this request."""
    return forall(HASH, lambda k: ~encodes.has(k, request) & ~loads.has(k, request))


def defer() -> Action:
    """The current request, which is running, gets no tokens in this pass."""
    return Action(
        "defer",
        (r,),
        guard={
            "current": current.has(r),
            "running": running.has(r),
            "nothing_allocated": _unencumbered(r),
        },
        effect=(_emptied(current), _emptied(tentative), _emptied(window)),
    )


def give_back(design: EngineDesign) -> Action:
    """The current request, which is waiting, gets no blocks, and gives its references back."""
    released = lg.free().effect if design.waiting == "gives_back" else ()
    return Action(
        "give_back",
        (r,),
        guard={
            "current": current.has(r),
            "waiting": ~running.has(r),
            "nothing_allocated": _unencumbered(r),
        },
        effect=(*released, _emptied(current), _emptied(tentative), _emptied(window)),
    )


def preempt(design: EngineDesign) -> Action:
    """A running request, perhaps one that this pass has scheduled, loses its blocks and references.

    What was to be encoded in its name is withdrawn. If another request has taken a reference in
    the meantime, the encoding goes to it; if none has, the allocation is undone.
    """
    call = lg.free()

    def lost(k: Term) -> Term:
        return encodes.has(k, r) | loads.has(k, r)

    def other(k: Term) -> Term:
        return exists(REQUEST, lambda q: references.has(k, q) & ~(q == r))

    if design.withdrawal == "keeps_entry":
        undone = empty(HASH)
    else:
        undone = named("undone", setof(HASH, lambda k: lost(k) & ~other(k)))

    def carried(relation: Symbol) -> Term:
        """Whose name it is done in from now on."""

        def still(k: Term, q: Term) -> Term:
            inherits = FALSE
            if design.withdrawal == "hands_over_or_undoes":
                inherits = relation.has(k, r) & references.has(k, q)
            return all_of(~(q == r), relation.has(k, q) | inherits)

        return setof(HASH, REQUEST, still)

    orphans = call.updates["freeable"]
    was_current = current.has(r)
    mine = setof(INPUT, lambda j: to_gather.has(j) & (owner(j) == r))
    return Action(
        "preempt",
        (r,),
        guard={"running": running.has(r)},
        effect=_calling(
            call,
            in_pass.becomes(TRUE),
            cached.becomes(cached.minus(undone)),
            freeable.becomes(orphans.minus(undone)),
            free_slots.becomes(free_slots + total(undone, size)),
            running.becomes(running.remove(r)),
            scheduled.becomes(scheduled.remove(r)),
            encodes.becomes(carried(encodes)),
            loads.becomes(carried(loads)),
            to_gather.becomes(to_gather.minus(mine)),
            unconfirmed.becomes(unconfirmed.minus(_again(r))),
            current.becomes(current.remove(r)),
            tentative.becomes(ite(was_current, empty(INPUT), tentative)),
            window.becomes(ite(was_current, empty(INPUT), window)),
        ),
    )


def _done(relation: Symbol) -> Term:
    return setof(HASH, lambda k: exists(REQUEST, lambda q: relation.has(k, q)))


encoded = named("encoded", _done(encodes))
loaded = named("loaded", _done(loads))


@dataclass(frozen=True)
class _WorkerStep:
    """What the worker holds at three moments of its step."""

    peak: Term
    at_gather: Term
    after: Term


def _worker_step(design: EngineDesign, report: Term) -> _WorkerStep:
    early = worker.union(loaded) if design.loads_arrive == "before_the_drop" else worker
    late = loaded if design.loads_arrive == "after_the_drop" else empty(HASH)
    if design.order == "drop_encode_gather":
        after = early.minus(report).union(encoded).union(late)
        return _WorkerStep(peak=after, at_gather=after, after=after)
    full = early.union(encoded).union(late)
    if design.order == "encode_gather_drop":
        return _WorkerStep(peak=full, at_gather=full, after=full.minus(report))
    dropped = early.union(encoded).minus(report).union(late)
    return _WorkerStep(peak=full, at_gather=dropped, after=dropped)


covered = parameter("covered", HASH)
"""A hash whose tokens a prefix hit covers."""


def _shipped(design: EngineDesign) -> Term:
    """The raw items that travel with this output."""
    if design.payload == "with_the_encoding":
        return encodes
    return setof(
        HASH,
        REQUEST,
        lambda k, q: all_of(
            scheduled.has(q),
            ~known.has(q),
            exists(INPUT, lambda j: (hash_of(j) == k) & (owner(j) == q)),
            ~(k == covered) | encodes.has(k, q),
        ),
    )


def dispatch(design: EngineDesign) -> Action:
    """The pass ends: the ledger reports, the worker makes its step."""
    call = lg.get_freed_mm_hashes(design.ledger)
    assert call.returns is not None
    step = _worker_step(design, call.returns)
    peak = _worker_step(design, told).peak
    return Action(
        "dispatch",
        (covered,) if design.payload == "stripped_under_prefix_hit" else (),
        guard={"in_pass": in_pass, "nobody_is_current": current.is_empty()},
        effect=_calling(
            call,
            in_pass.becomes(FALSE),
            *(_emptied(v) for v in PASS),
            worker.becomes(step.after),
            payload.becomes(payload.union(_shipped(design))),
            known.becomes(known.union(scheduled)),
        ),
        returns=call.returns,
        lemmas={
            "worker_memory_bounded": (monotone(step.after, cached, size),),
            "worker_memory_peak": (
                monotone(peak, cached, size),
                monotone(peak, cached.union(told), size),
                union_bound(cached, told, size),
            ),
        },
    )


# --- between passes ----------------------------------------------------------------------------

BETWEEN = {"between_passes": ~in_pass}


def consume(design: EngineDesign) -> Action:
    """A running request has computed past an input, and needs it no more."""
    call = lg.free_encoder_input(design.ledger)
    confirmed = {"confirmed": ~unconfirmed.has(i)} if design.release == "confirmed" else {}
    return Action("consume", (i,), guard={**BETWEEN, **confirmed}, effect=_calling(call))


def confirm() -> Action:
    """The tokens of an input are sampled and accepted: it will not be gathered again."""
    return Action(
        "confirm", (i,), guard={**BETWEEN}, effect=(unconfirmed.becomes(unconfirmed.remove(i)),)
    )


def finish() -> Action:
    """A request is finished or aborted, whether it runs or waits."""
    return Action(
        "finish",
        (r,),
        guard={**BETWEEN},
        effect=_calling(
            lg.free(),
            running.becomes(running.remove(r)),
            unconfirmed.becomes(unconfirmed.minus(_again(r))),
            payload.becomes(setof(HASH, REQUEST, lambda k, q: payload.has(k, q) & ~(q == r))),
            known.becomes(known.remove(r)),
        ),
    )


def reset(design: EngineDesign) -> Action:
    """New weights: both sides forget everything. No draft is in flight."""
    clears = (_emptied(worker),) if design.reset == "both_sides" else ()
    return Action(
        "reset",
        guard={**BETWEEN, "nothing_in_flight": unconfirmed.is_empty()},
        effect=_calling(lg.reset(design.ledger), *clears),
    )


# --- the claims --------------------------------------------------------------------------------


def _is_there(k: Term) -> Term:
    """The worker holds the hash, or will before it gathers."""
    promised = exists(REQUEST, lambda q: encodes.has(k, q) | loads.has(k, q))
    return worker.has(k) | promised


SYSTEM_CLAIMS = (
    Invariant(
        "hit_is_materialised", forall(HASH, lambda k: cached.has(k).implies(_is_there(k))), "S2"
    ),
    Invariant("mirrors_agree", in_pass | worker.same_elements(cached), "S3"),
    Invariant("worker_memory_bounded", in_pass | (total(worker, size) <= capacity), "S4"),
    Invariant(
        "no_orphan_reference",
        in_pass | forall(HASH, REQUEST, lambda k, q: references.has(k, q).implies(running.has(q))),
        "S5",
    ),
)

STRENGTHENING = (
    Invariant(
        "between_passes_nothing_is_pending",
        in_pass | all_of(*(v.is_empty() for v in PASS), freed.is_empty()),
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
    Invariant("what_is_pending_fits", total(tentative, embeds) <= free_slots),
    Invariant(
        "only_holders_encode_or_load",
        forall(
            HASH,
            REQUEST,
            lambda k, q: (encodes.has(k, q) | loads.has(k, q)).implies(references.has(k, q)),
        ),
    ),
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
        "what_is_new_is_absent_or_evicted",
        forall(
            HASH,
            REQUEST,
            lambda k, q: all_of(encodes.has(k, q) | loads.has(k, q), worker.has(k)).implies(
                freed.has(k)
            ),
        ),
    ),
    Invariant(
        "what_was_evicted_is_at_the_worker",
        forall(HASH, lambda k: freed.has(k).implies(worker.has(k))),
    ),
    Invariant(
        "what_came_back_is_new",
        forall(
            HASH,
            lambda k: (cached.has(k) & freed.has(k)).implies(
                exists(REQUEST, lambda q: encodes.has(k, q) | loads.has(k, q))
            ),
        ),
    ),
    Invariant(
        "what_will_be_gathered_is_referenced",
        forall(
            INPUT,
            lambda j: all_of(
                to_gather.has(j).implies(
                    references.has(hash_of(j), owner(j)) & scheduled.has(owner(j))
                ),
                window.has(j).implies(
                    current.has(owner(j)) & any_of(held.has(j), tentative.has(j))
                ),
            ),
        ),
    ),
    Invariant(
        "what_may_be_gathered_again_is_held",
        forall(INPUT, lambda j: unconfirmed.has(j).implies(held.has(j) & running.has(owner(j)))),
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
        lambda k, p, q: all_of(encodes.has(k, p) | loads.has(k, p), references.has(k, q)).implies(
            p == q
        ),
    ),
)


def _dispatch_claims(design: EngineDesign) -> tuple[ActionProperty, ...]:
    step = _worker_step(design, told)
    slack = total(told, size)
    room = capacity if design.order == "drop_encode_gather" else capacity + slack
    return (
        *lg.report_claims("dispatch"),
        ActionProperty(
            "gather_never_misses",
            "dispatch",
            forall(INPUT, lambda j: to_gather.has(j).implies(step.at_gather.has(hash_of(j)))),
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


def _ledger_claims() -> Iterator[Invariant]:
    """What is claimed of the ledger, of its state instead of its record."""
    instead = {"needed": held, "ended": since, "now": lg.clock}
    trivial = ("L12", "L15", "L16")
    for claim in (*lg.STATE_CLAIMS, *lg.STRENGTHENING):
        if claim.clause not in trivial and "obedient" not in claim.name:
            formula = replaced(claim.formula, lambda s: instead.get(s.name))
            yield replace(claim, formula=formula)


def engine(design: EngineDesign = EngineDesign()) -> TransitionSystem:
    """The engine under `design`, with everything that is claimed of it."""
    return TransitionSystem(
        name="engine",
        variables=STATE,
        constants=(capacity,),
        functions=(size, hash_of, owner, position, inputs_of, embeds),
        axioms=(*WORLD, INPUTS_HAVE_THE_SIZE_OF_THEIR_HASH),
        init=INIT,
        actions=(
            look_up(design),
            admit(design),
            commit(),
            commit_load(),
            schedule(),
            schedule_with_drafter(design),
            defer(),
            give_back(design),
            preempt(design),
            dispatch(design),
            consume(design),
            confirm(),
            finish(),
            reset(design),
        ),
        invariants=(
            *_ledger_claims(),
            *SYSTEM_CLAIMS,
            *STRENGTHENING,
            *((HIDDEN_ENTRIES,) if design.hittable == "when_dispatched" else ()),
        ),
        action_properties=(
            *lg.hit_claims("look_up", _hit(design)),
            *lg.admission_claims("admit", pending, since),
            *_dispatch_claims(design),
            *lg.reset_claims("reset"),
            _duty("commit", lg.allocate()),
            _duty("commit_load", lg.allocate()),
        ),
        pass_start=~in_pass,
        monitors=(lg.evictions("admit", "dispatch", "reset"),),
        observables={"cached": cached},
    )
