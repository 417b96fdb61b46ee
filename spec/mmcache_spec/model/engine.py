"""The whole pass as one system: scheduler, ledger and worker.

One pass decides, request by request, and ends with `dispatch`: the report is read and the worker
makes its step. The worker never answers, and obeys one output after the other; so its step may be
taken at once, even where an engine runs it later.

The actions of the ledger are used as they are. Inputs have tokens, and `schedule` says how many new
tokens a request gets; which inputs the worker gathers follows from that alone. What is abstracted:
why a number of tokens is chosen, and KV blocks. A request may at any time get the blocks it wants,
or not; a preemption may hit any running request. Whatever the policy, chunking and block size of an
engine, its passes are among these.
"""

from __future__ import annotations

from ..kernel.lemmas import for_every, has_first, monotone, non_negative, removal, union_bound
from ..kernel.system import Action, TransitionSystem
from ..kernel.terms import (
    FALSE,
    INT,
    SetSort,
    Symbol,
    Term,
    all_of,
    empty,
    exists,
    forall,
    ite,
    named,
    parameter,
    result,
    setof,
    total,
)
from . import ledger as lg
from .encoder_decoder import INPUTS_HAVE_THE_SIZE_OF_THEIR_HASH, embeds
from .engine_clauses import FREEDOMS, UNIQUENESS, action_properties, invariants
from .engine_state import (
    DESIGN_STATE,
    INIT,
    OBSERVABLES,
    EngineDesign,
    computed,
    confirmed,
    current,
    emptied,
    encodes,
    hit_of,
    in_pass,
    loads,
    m,
    monitors,
    n,
    pending,
    running,
    scheduled,
    tentative,
    window,
    worker_step,
)
from .ledger import cached, free_slots, references
from .world import (
    HASH,
    INPUT,
    REQUEST,
    TOKENS,
    WORLD,
    capacity,
    end_of,
    first_token,
    hash_of,
    inputs_of,
    lookahead,
    num_tokens,
    overlaps,
    owner,
    position,
    rank,
    size,
    tokens_of,
)

__all__ = ["EngineDesign", "engine"]

i = parameter("input", INPUT)
r = parameter("request", REQUEST)
budget = parameter("encoder_compute_budget", INT)
h = hash_of(i)


# --- the decisions of a pass -------------------------------------------------------------------


def _may_consider(request: Term) -> dict[str, Term]:
    return {
        "not_scheduled_yet": ~scheduled.has(request),
        "one_at_a_time": forall(REQUEST, lambda q: current.has(q).implies(q == request)),
    }


def _calling(call: Action, *lines: tuple[Symbol, Term]) -> tuple[tuple[Symbol, Term], ...]:
    """The effect of a ledger call, and some lines more, which go before it."""
    replaced = {variable.name for variable, _ in lines}
    kept = (line for line in call.effect if line[0].name not in replaced)
    return (*kept, *lines)


def prefix_hit() -> Action:
    """A waiting request begins behind tokens that the KV cache still has."""
    return Action(
        "prefix_hit",
        (r, m),
        guard={
            "waiting": ~running.has(r),
            "nobody_is_current": current.is_empty(),
            "something_hit": m >= 1,
            "a_token_is_left": m < tokens_of(r),
        },
    )


def look_up(design: EngineDesign) -> Action:
    """The current request's tokens may come to overlap the input: is it there?"""
    call = lg.check_and_update_cache(hit_of(design))
    return Action(
        "look_up",
        (i,),
        guard={**_may_consider(owner(i)), "not_in_window": ~window.has(i)},
        effect=_calling(call),
        returns=call.returns,
    )


def admit(design: EngineDesign) -> Action:
    """After a miss: room is made for the input, on top of what is pending."""
    call = lg.can_allocate(design.ledger, pending[owner(i)])
    assert call.returns is not None
    promised = ite(call.returns, embeds(i), 0)
    same = exists(INPUT, lambda j: tentative.has(j) & (hash_of(j) == h))
    return Action(
        "admit",
        (i, budget),
        guard={
            **_may_consider(owner(i)),
            "missed": call.guard["missed"],
            "budget_not_negative": call.guard["budget_not_negative"],
            "not_admitted_yet": ~same,
        },
        effect=_calling(call, pending.becomes(pending.put(owner(i), pending[owner(i)] + promised))),
        returns=call.returns,
        lemmas={**call.lemmas, "what_is_pending_fits": call.lemmas["eviction_never_runs_dry"]},
    )


ROOM_FOR_ONE = (
    removal(tentative, i, embeds),
    non_negative(tentative.remove(i), embeds),
)
"""What is pending is no less than any input of it."""

ALLOCATION_LEMMAS = {"free_slots_conserved": ROOM_FOR_ONE, "duties_kept": ROOM_FOR_ONE}


CHARGED = pending.becomes(pending.put(owner(i), pending[owner(i)] - embeds(i)))


def commit() -> Action:
    """The current request got its blocks: the ledger allocates an input, the worker encodes it."""
    return Action(
        "commit",
        (i,),
        guard={"admitted": tentative.has(i)},
        effect=_calling(lg.allocate(), CHARGED, encodes.becomes(encodes.insert(h, owner(i)))),
        lemmas=ALLOCATION_LEMMAS,
    )


def commit_load() -> Action:
    """The same, but a connector has the item: it is loaded, not encoded."""
    return Action(
        "commit_load",
        (i,),
        guard={"admitted": tentative.has(i)},
        effect=_calling(lg.allocate(), CHARGED, loads.becomes(loads.insert(h, owner(i)))),
        lemmas=ALLOCATION_LEMMAS,
    )


def schedule(design: EngineDesign) -> Action:
    """The current request runs in this pass, with so many new tokens.

    Every input that these tokens overlap, or the look-ahead after them, has been hit or allocated.
    """
    seen = lookahead if design.lookahead == "covered" else 0
    end = computed[r] + n + seen

    def is_there(j: Term) -> Term:
        return all_of(owner(j) == r, overlaps(j, computed[r], end)).implies(window.has(j))

    return Action(
        "schedule",
        (r, n),
        guard={
            **_may_consider(r),
            "all_allocated": tentative.is_empty(),
            "some_tokens": n >= 1,
            "tokens_are_left": computed[r] + n <= tokens_of(r),
            "inputs_are_there": forall(INPUT, is_there),
        },
    )


def _unencumbered(request: Term) -> Term:
    """Nothing is to be encoded or loaded in the name of this request."""
    return forall(HASH, lambda k: ~encodes.has(k, request) & ~loads.has(k, request))


NOTHING_PENDING = pending.becomes(pending.put(r, 0))


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
        effect=(NOTHING_PENDING,),
    )


def _leaving(name: str, decision: str, design: EngineDesign) -> Action:
    call = lg.free(design.ledger)
    return Action(
        name,
        (r,),
        guard={
            "current": current.has(r),
            "waiting": ~running.has(r),
            "nothing_allocated": _unencumbered(r),
        },
        effect=_calling(call, NOTHING_PENDING) if decision == "gives_back" else (NOTHING_PENDING,),
    )


def give_back(design: EngineDesign) -> Action:
    """The current request, which is waiting, gets no blocks, and gives its references back."""
    return _leaving("give_back", design.waiting, design)


def skip_waiting(design: EngineDesign) -> Action:
    """No tokens are left for the current request, which is waiting: it gives back, too."""
    return _leaving("skip_waiting", design.skipped, design)


def preempt(design: EngineDesign) -> Action:
    """A running request, perhaps one that this pass has scheduled, loses its blocks and references.

    What was to be encoded in its name is withdrawn. If other requests have taken a reference in
    the meantime, the encoding goes to the first of them; if none has, the allocation is undone.
    """
    call = lg.free(design.ledger)

    def lost(k: Term) -> Term:
        return encodes.has(k, r) | loads.has(k, r)

    def other(k: Term) -> Term:
        return exists(REQUEST, lambda q: references.has(k, q) & ~(q == r))

    if design.withdrawal == "keeps_entry":
        undone = empty(HASH)
    else:
        undone = named("undone", setof(HASH, lambda k: lost(k) & ~other(k)))

    def is_heir(k: Term, q: Term) -> Term:
        """The first of the others that refer to the hash."""

        def refers(p: Term) -> Term:
            return references.has(k, p) & ~(p == r)

        return refers(q) & forall(REQUEST, lambda p: refers(p).implies(rank(q) <= rank(p)))

    def carried(relation: Symbol) -> Term:
        """Whose name it is done in from now on."""

        def still(k: Term, q: Term) -> Term:
            inherits = FALSE
            if design.withdrawal == "hands_over_or_undoes":
                inherits = relation.has(k, r) & is_heir(k, q)
            return all_of(~(q == r), relation.has(k, q) | inherits)

        return setof(HASH, REQUEST, still)

    orphans = call.updates["freeable"]
    an_heir = for_every(
        HASH, lambda k: has_first(REQUEST, lambda q: references.next.has(k, q), rank)
    )
    return Action(
        "preempt",
        (r,),
        guard={"running": running.has(r)},
        effect=_calling(
            call,
            cached.becomes(cached.minus(undone)),
            lg.freeable.becomes(orphans.minus(undone)),
            free_slots.becomes(free_slots + total(undone, size)),
            NOTHING_PENDING,
            encodes.becomes(carried(encodes)),
            loads.becomes(carried(loads)),
        ),
        lemmas={
            "hit_is_materialised": (an_heir,),
            "what_came_back_is_new": (an_heir,),
        },
    )


def dispatch(design: EngineDesign) -> Action:
    """The pass ends: the ledger reports, the worker makes its step."""
    call = lg.get_freed_mm_hashes(design.ledger)
    assert call.returns is not None
    told = result(SetSort.of(HASH))
    after = worker_step(design, call.returns).after
    peak = worker_step(design, told).peak
    return Action(
        "dispatch",
        guard={"in_pass": in_pass, "nobody_is_current": current.is_empty()},
        effect=_calling(call, emptied(encodes), emptied(loads)),
        returns=call.returns,
        lemmas={
            "worker_memory_bounded": (monotone(after, cached, size),),
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
    passed = confirmed if design.release == "confirmed" else computed
    return Action(
        "consume",
        (i,),
        guard={**BETWEEN, "passed": end_of(i) <= passed[owner(i)]},
        effect=_calling(lg.free_encoder_input(design.ledger)),
    )


def _settles() -> dict[str, Term]:
    return {
        **BETWEEN,
        "running": running.has(r),
        "not_yet_confirmed": confirmed[r] < m,
        "computed": m <= computed[r],
    }


def accept() -> Action:
    """The first so many tokens are sampled and accepted: they will not be computed again."""
    return Action("accept", (r, m), guard=_settles())


def reject() -> Action:
    """The drafts after the first so many tokens are rejected, and will be computed again."""
    return Action(
        "reject",
        (r, m),
        guard={
            **BETWEEN,
            "running": running.has(r),
            "not_confirmed": confirmed[r] <= m,
            "computed": m < computed[r],
        },
    )


def finish(design: EngineDesign) -> Action:
    """A request is finished or aborted, whether it runs or waits."""
    return Action("finish", (r,), guard={**BETWEEN}, effect=_calling(lg.free(design.ledger)))


def reset(design: EngineDesign) -> Action:
    """New weights: both sides forget everything. No token is in flight."""
    settled = forall(REQUEST, lambda q: computed[q] <= confirmed[q])
    landed = {} if design.reset == "in_flight" else {"nothing_in_flight": settled}
    return Action(
        "reset",
        guard={**BETWEEN, **landed},
        effect=_calling(lg.reset(design.ledger)),
    )


# --- the system --------------------------------------------------------------------------------


def _decisions(design: EngineDesign) -> tuple[Action, ...]:
    return (
        prefix_hit(),
        look_up(design),
        admit(design),
        commit(),
        commit_load(),
        schedule(design),
        defer(),
        give_back(design),
        skip_waiting(design),
        preempt(design),
        dispatch(design),
        consume(design),
        accept(),
        reject(),
        finish(design),
        reset(design),
    )


SPECIFIED = EngineDesign()


def _duties() -> dict[str, dict[str, Term]]:
    """When a decision may be taken. A design that waits for more is refused.

    Two wrong designs wait for less, in other words: what they look up ends before the look-ahead,
    and what they release is computed, but not confirmed.
    """
    due = {decision.name: dict(decision.guard) for decision in _decisions(SPECIFIED)}
    careless = EngineDesign(lookahead="not_covered", release="speculative")
    for decision in (schedule(careless), consume(careless)):
        due[decision.name].update({f"{k} (less)": g for k, g in decision.guard.items()})
    return due


DUTIES = _duties()


def engine(design: EngineDesign = SPECIFIED) -> TransitionSystem:
    """The engine under `design`, with everything that is claimed of it."""
    return TransitionSystem(
        name="engine",
        variables=DESIGN_STATE,
        constants=(capacity, lookahead),
        functions=(
            size,
            hash_of,
            owner,
            position,
            inputs_of,
            embeds,
            first_token,
            num_tokens,
            tokens_of,
            rank,
        ),
        axioms=(*WORLD, INPUTS_HAVE_THE_SIZE_OF_THEIR_HASH, *TOKENS),
        init=INIT,
        actions=_decisions(design),
        invariants=invariants(design),
        action_properties=action_properties(design),
        pass_start=~in_pass,
        monitors=monitors(design),
        observables=OBSERVABLES,
        freedoms=FREEDOMS,
        uniqueness=UNIQUENESS,
        duties=DUTIES,
    )
