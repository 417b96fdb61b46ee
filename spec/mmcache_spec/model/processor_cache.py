"""The processor cache: what the API process (P0) believes that the engine's process (P1) holds.

Two sides keep a cache of processed items, of the same capacity, in bytes. The *sender* (P0) keeps
keys and sizes, the *receiver* (P1) the data. An item that the sender holds is sent *bare*, without
its data. Each side evicts by itself, the longest unused first, so the two agree only if both see
the same uses in the same order. They meet in a channel, from which one item after another is
delivered, some time after it was taken.

One action is one step of a request on one side, or something that befalls a side. An *input* is one
item at one position of one request. `ProcessorCacheDesign` holds the decisions that real engines
have taken wrongly; `ProcessorCacheDesign()` is the protocol as it should be. It differs from what
engines do in four places, each of which is a repair:

* P0 takes the items of a request in the order in which P1 handles them, that of the prompt;
* an insertion spares what later items of the same request are, and stores nothing where that leaves
  no room. The cost: an item that does not fit beside its own request is sent each time;
* the items of a request travel as soon as they are recorded, whatever becomes of the request. The
  cost: the data of a request that is rejected crosses to the other process, and stays there;
* what the sender forgets, by a clear or after a miss, is told with the next item, on the same
  channel. The cost: some keys on a message, and the receiver keeps the data until it comes.
"""

from __future__ import annotations

from dataclasses import replace

from ..kernel.system import Action, TransitionSystem
from ..kernel.terms import (
    Term,
    all_of,
    any_of,
    empty,
    exists,
    forall,
    ite,
    named,
    setof,
)
from .processor_cache_clauses import CALL_CLAIMS, RECORD
from .processor_cache_proof import (
    DELIVER_PREMISES,
    INVARIANTS,
    TAKE_PREMISES,
    WITHDRAW_PREMISES,
    deliver_lemmas,
    take_lemmas,
    withdraw_lemmas,
)
from .processor_cache_state import (
    DESIGN_STATE,
    INIT,
    OBSERVABLES,
    ProcessorCacheDesign,
    Side,
    bare,
    data_of,
    i,
    in_flight,
    is_first_of_its_request,
    k,
    looked_up,
    next_in_line,
    none_was_taken,
    ordered,
    owed,
    r,
    receiver,
    receiver_now,
    receiver_side,
    receiver_used,
    sender,
    sender_now,
    sender_side,
    sender_used,
    sent_at,
    told,
    touched,
    waiting,
)
from .world import HASH, INPUT, WORLD, capacity, hash_of, inputs_of, owner, position, size

__all__ = ["ProcessorCacheDesign", "processor_cache"]

h = hash_of(i)


def _of(inputs: Term, request: Term) -> Term:
    return setof(INPUT, lambda j: inputs.has(j) & (owner(j) == request))


def _on(side: Side, design: ProcessorCacheDesign) -> Side:
    """The side as the design has it."""
    return replace(
        side,
        spares=design.insertion == "spares_the_request",
        always=design.too_large == "stored",
    )


# --- P0 ----------------------------------------------------------------------------------------


def begin() -> Action:
    """P0 begins with a request: it looks up what it has of it, and processes only the rest.

    A request comes again when its answer has come, so nothing of it is in flight.
    """
    return Action(
        "begin",
        (r,),
        guard={
            "one_at_a_time": waiting.is_empty(),
            "nothing_of_it_in_flight": _of(in_flight, r).is_empty(),
        },
        effect=(
            waiting.becomes(setof(INPUT, lambda j: owner(j) == r)),
            looked_up.becomes(setof(INPUT, lambda j: (owner(j) == r) & sender.has(hash_of(j)))),
        ),
    )


def take(design: ProcessorCacheDesign) -> Action:
    """P0 takes the next item of its request: records it, and says whether it goes bare."""

    def is_ahead(j: Term) -> Term:
        return all_of(waiting.has(j), owner(j) == owner(i), position(j) < position(i))

    order = {
        "prompt_order": {"in_the_order_of_the_prompt": ~exists(INPUT, is_ahead)},
        "by_modality": {
            "in_order_of_one_hash": ~exists(
                INPUT, lambda j: is_ahead(j) & (hash_of(j) == hash_of(i))
            )
        },
    }[design.walk]
    side = _on(sender_side(i), design)
    used: Term = sender_used
    now: Term = sender_now
    if design.insertion == "touches_first":
        used = touched(sender.has, used, now, none_was_taken(i), i)
        now = now + inputs_of(owner(i))
        side = Side(sender.has, lambda g, x: used[g] < used[x], i, False, sender, side.always)
    hit = sender.has(h)
    fits = named("fits", side.fits)
    stored = named("stored", hit | fits)
    asserts = design.gone == "asserted"
    raises = looked_up.has(i) & ~hit
    rest, sent = waiting.remove(i), in_flight.insert(i)
    failed = in_flight.minus(_of(in_flight, owner(i)))
    recorded = ite(hit, sender, ite(fits, sender.minus(side.gone).insert(h), sender))
    return Action(
        "take",
        (i,),
        guard={"waiting": waiting.has(i), **order},
        effect=(
            sender.becomes(ite(raises, sender, recorded) if asserts else recorded),
            sender_used.becomes(ite(stored, used.put(h, now), used)),
            sender_now.becomes(now + 1),
            waiting.becomes(ite(raises, empty(INPUT), rest) if asserts else rest),
            in_flight.becomes(ite(raises, failed, sent) if asserts else sent),
            sent_at.becomes(sent_at.put(i, sender_now)),
            bare.becomes(ite(hit, bare.insert(i), bare.remove(i))),
            owed.becomes(empty(HASH)),
            told.becomes(setof(INPUT, HASH, lambda j, x: ite(j == i, owed.has(x), told.has(j, x)))),
        ),
        returns=hit,
        lemmas=take_lemmas(side, used),
        premises=TAKE_PREMISES,
    )


def withdraw(design: ProcessorCacheDesign) -> Action:
    """A request is rejected, or cancelled, after P0 has recorded all of it."""
    mine = _of(in_flight, r)
    lost: Term = empty(INPUT)
    bare_are_lost = design.rejected == "lost_if_bare"
    if design.rejected == "lost":
        lost = mine
    elif bare_are_lost:
        all_bare = forall(INPUT, lambda j: mine.has(j).implies(bare.has(j)))
        lost = setof(INPUT, lambda j: mine.has(j) & all_bare)
    all_there = forall(INPUT, lambda j: (owner(j) == r).implies(in_flight.has(j)))
    return Action(
        "withdraw",
        (r,),
        guard={"nothing_of_it_was_delivered": all_there},
        effect=() if design.rejected == "travels" else (in_flight.becomes(in_flight.minus(lost)),),
        lemmas=withdraw_lemmas() if bare_are_lost else {},
        premises=WITHDRAW_PREMISES if bare_are_lost else {},
    )


BETWEEN = {"between_requests": waiting.is_empty()}


def invalidate(design: ProcessorCacheDesign) -> Action:
    """P0 hears that P1 has missed a hash. It hears late, so P1 may hold it again."""
    forgets = () if design.miss == "ignored" else (sender.becomes(sender.remove(k)),)
    tells = (owed.becomes(ite(sender.has(k), owed.insert(k), owed)),)
    return Action(
        "invalidate",
        (k,),
        guard=BETWEEN,
        effect=(*forgets, *(tells if design.miss == "forgotten_and_told" else ())),
    )


def clear_sender(design: ProcessorCacheDesign) -> Action:
    """An operator clears the cache: the part of P0."""
    forgets = () if design.clear == "receiver_only" else (sender.becomes(empty(HASH)),)
    tells = (owed.becomes(owed.union(sender)),) if design.clear == "told" else ()
    return Action("clear_sender", guard=BETWEEN, effect=(*forgets, *tells))


# --- P1 ----------------------------------------------------------------------------------------


def clear_receiver(design: ProcessorCacheDesign) -> Action:
    """An operator clears the cache: the part of P1, which waits until it is told."""
    at_once = design.clear in ("receiver_only", "each_by_itself")
    empties = (receiver.becomes(empty(HASH)), ordered.becomes(empty(HASH)))
    return Action("clear_receiver", effect=empties if at_once else ())


def deliver(design: ProcessorCacheDesign) -> Action:
    """P1 handles the item that is next in line: it forgets, and then takes or stores the data."""
    unsent = exists(INPUT, lambda j: waiting.has(j) & (owner(j) == owner(i)))
    first_of_mine = forall(
        INPUT,
        lambda j: all_of(in_flight.has(j), owner(j) == owner(i)).implies(
            position(i) <= position(j)
        ),
    )
    line = {
        "in_order": {"next_in_line": next_in_line(i)},
        "any_order": {"first_of_its_request": first_of_mine},
    }[design.channel]
    side = _on(receiver_side(i), design)
    used: Term = receiver_used
    now: Term = receiver_now
    if design.insertion == "touches_first":
        first = is_first_of_its_request(i)
        used = touched(side.members, used, now, first, i)
        now = now + inputs_of(owner(i))
        side = Side(side.members, lambda g, x: used[g] < used[x], i, False, None, side.always)
    left = setof(HASH, side.members)
    hit = side.members(h)
    data = ~bare.has(i)
    stores = named("stores", all_of(data, ~hit, side.fits))
    after = ite(stores, left.minus(side.gone).insert(h), left)
    is_used = any_of(stores, hit) if design.receiver_hit == "uses" else any_of(stores, hit & data)
    fresh = data if design.arrival == "replaces" else data & ~hit
    entered: Term = empty(HASH)
    if design.absent == "enters_the_order":
        entered = setof(
            HASH,
            lambda x: (
                exists(INPUT, lambda j: all_of(owner(j) == owner(i), hash_of(j) == x))
                & ~receiver.has(x)
            ),
        )
    missed = bare.has(i) & ~hit
    rest = in_flight.remove(i)
    if design.fault == "ends_the_engine":
        rest = ite(missed, empty(INPUT), rest)
    return Action(
        "deliver",
        (i,),
        guard={"in_flight": in_flight.has(i), "sent": ~unsent, **line},
        effect=(
            receiver.becomes(after),
            ordered.becomes(after.union(entered) if design.absent != "stays_out" else after),
            receiver_used.becomes(ite(is_used, used.put(h, now), used)),
            receiver_now.becomes(now + 1),
            data_of.becomes(
                setof(
                    HASH,
                    INPUT,
                    lambda x, j: ite(fresh & (x == h), j == i, data_of.has(x, j)),
                )
            ),
            in_flight.becomes(rest),
        ),
        lemmas=deliver_lemmas(side, used),
        premises=DELIVER_PREMISES,
    )


# --- the system --------------------------------------------------------------------------------


def _steps(design: ProcessorCacheDesign) -> tuple[Action, ...]:
    return (
        begin(),
        take(design),
        withdraw(design),
        invalidate(design),
        clear_sender(design),
        deliver(design),
        clear_receiver(design),
    )


SPECIFIED = ProcessorCacheDesign()


def _duties() -> dict[str, dict[str, Term]]:
    """When a step may be taken. Without an order there are more."""
    due = {step.name: dict(step.guard) for step in _steps(SPECIFIED)}
    due["take"].update(take(ProcessorCacheDesign(walk="by_modality")).guard)
    due["deliver"].update(deliver(ProcessorCacheDesign(channel="any_order")).guard)
    return due


DUTIES = _duties()


def processor_cache(design: ProcessorCacheDesign = SPECIFIED) -> TransitionSystem:
    """The processor cache under `design`, with everything that is claimed of it."""
    return TransitionSystem(
        name="processor_cache",
        variables=DESIGN_STATE,
        constants=(capacity,),
        functions=(size, hash_of, owner, position, inputs_of),
        axioms=WORLD,
        init=INIT,
        actions=_steps(design),
        invariants=INVARIANTS,
        action_properties=CALL_CLAIMS,
        pass_start=waiting.is_empty() & in_flight.is_empty(),
        monitors=RECORD,
        observables=OBSERVABLES,
        duties=DUTIES,
    )
