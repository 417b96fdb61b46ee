"""How many tokens of a request one pass computes: the caps on a chunk, in tokens.

A request is a row of tokens; an item lies on some of them. A chunk starts where the last one ended,
or where a prefix hit ends, and may be as long as the token budget. Two caps are **limits**: the
budget, and the room for the embeddings of the items that the chunk reaches. The others are
**wishes**: to end at a block boundary (`alignment`), not to split an item (`items`, vLLM's
`disable_chunked_mm_input`), and not to end so close to the end of the prompt that the drafter has
fewer tokens left than it reads ahead (the reserve). The encoder looks `lookahead` tokens further
than the chunk, since the drafter reads them.

Where the wishes leave nothing of a whole budget, a wish must give way: nothing will be different
in the next pass. That, and nothing else, is what the livelocks of real schedulers have in common.
Read after vLLM 0.33.0, `v1/core/sched/scheduler.py`: `_mamba_block_aligned_split`,
`_try_schedule_encoder_inputs` and `_reserve_prefill_lookahead`, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..kernel.system import Axiom
from ..kernel.terms import (
    FALSE,
    INT,
    Term,
    all_of,
    any_of,
    constant,
    exists,
    forall,
    function,
    ite,
    largest,
    number,
    parameter,
    setof,
    total,
)
from .world import HASH, INPUT, REQUEST, capacity, hash_of, owner, size

__all__ = [
    "ITEMS_FIT_ALONE",
    "ITEMS_FIT_THE_BUDGET",
    "LOOKAHEAD_FITS_THE_BUDGET",
    "NOTHING_AHEAD",
    "NO_ITEM_AT_THE_END",
    "ONE_TOKEN_AHEAD",
    "RIGHT_CAPS",
    "TOKENS",
    "Caps",
    "Chunk",
    "chunk",
    "encoder_budget",
    "ends_at",
    "length",
    "lookahead",
    "offset",
    "prompt",
    "token_budget",
    "whole_budget",
]

# --- the world, in tokens ----------------------------------------------------------------------

offset = function("offset", INPUT, INT)
"""The first token of an item."""
length = function("length", INPUT, INT)
"""How many tokens it lies on."""
prompt = function("prompt", REQUEST, INT)
"""How many tokens a request has to compute."""

token_budget = constant("token_budget", INT)
"""Tokens that one pass may compute (`max_num_batched_tokens`)."""
encoder_budget = constant("encoder_budget", INT)
"""Embeddings that one pass may encode."""
lookahead = constant("lookahead", INT)
"""Tokens that the drafter reads ahead (`num_prefill_lookahead`)."""


def ends_at(i: Term) -> Term:
    """The token after the last of an item."""
    return offset(i) + length(i)


def _apart(i: Term, j: Term) -> Term:
    return any_of(i == j, ends_at(i) <= offset(j), ends_at(j) <= offset(i))


TOKENS = (
    Axiom("a_pass_may_compute_a_token", token_budget >= 1),
    Axiom("a_pass_may_encode_nothing", encoder_budget >= 0),
    Axiom("the_drafter_reads_ahead_or_not", lookahead >= 0),
    Axiom("a_prompt_has_a_token", forall(REQUEST, lambda r: prompt(r) >= 1)),
    Axiom(
        "an_item_lies_within_its_prompt",
        forall(
            INPUT,
            lambda i: all_of(offset(i) >= 0, length(i) >= 1, ends_at(i) <= prompt(owner(i))),
        ),
    ),
    Axiom(
        "items_of_a_request_lie_apart",
        forall(INPUT, INPUT, lambda i, j: (owner(i) == owner(j)).implies(_apart(i, j))),
    ),
    Axiom(
        "every_item_could_be_served_alone",
        forall(HASH, lambda h: all_of(size(h) <= capacity, size(h) <= encoder_budget)),
    ),
)

ITEMS_FIT_THE_BUDGET = Axiom(
    "an_item_and_the_lookahead_fit_the_budget",
    forall(INPUT, lambda i: length(i) + lookahead <= token_budget),
)
LOOKAHEAD_FITS_THE_BUDGET = Axiom("the_lookahead_fits_the_budget", lookahead <= token_budget)
ONE_TOKEN_AHEAD = Axiom("the_drafter_reads_one_token_ahead", lookahead <= 1)
NOTHING_AHEAD = Axiom("there_is_no_drafter", lookahead == 0)
NO_ITEM_AT_THE_END = Axiom(
    "no_item_begins_within_the_lookahead_of_the_end",
    any_of(lookahead <= 1, forall(INPUT, lambda i: offset(i) + lookahead <= prompt(owner(i)))),
)
"""Or the drafter reads but one token ahead: then no chunk ends too near to the end."""
ITEMS_FIT_ALONE = Axiom(
    "an_item_fits_the_budget", forall(INPUT, lambda i: length(i) <= token_budget)
)
"""What vLLM asks of the configuration where items are not split."""

# --- the caps ----------------------------------------------------------------------------------

stop = parameter("stop", INT)
"""The block boundary at which the alignment wants the chunk to end: any, within the budget."""
budget = parameter("budget", INT)
"""The tokens that the pass still has."""
compute = parameter("compute", INT)
"""The embeddings that the encoder may still compute in this pass."""

whole_budget = (budget == token_budget) & (compute == encoder_budget)
"""Nobody has had anything of this pass yet."""


@dataclass(frozen=True)
class Caps:
    """Which caps there are, and what a wish does that cannot be had. The first value is right."""

    alignment: Literal["before_room", "none", "after_room"] = "before_room"
    """When the chunk is made to end at a block boundary: before or after it is cut for room."""
    items: Literal["whole", "chunked"] = "whole"
    """Whether the end of a chunk may lie within an item."""
    wishes: Literal["give_way", "stand"] = "give_way"
    """What becomes of the wishes where they leave nothing of a whole budget."""


RIGHT_CAPS = Caps()


@dataclass(frozen=True)
class Chunk:
    """What one request gets: the parts of a decision, as terms."""

    tokens: Term
    """How many tokens it computes; 0 where it gets none."""
    guard: dict[str, Term]
    """What is true of the budgets and the boundary."""
    looks_up: Term
    """Whether the items are looked up at all: the alignment leaves something."""
    takes: Callable[[Term], Term]
    """Of an input: whether it is in reach, and may be hit or allocated."""
    needed: Callable[[Term], Term]
    """Of an input: the hashes for which there must be room if it is taken."""
    new: Callable[[Term], Term]
    """Of an input: the hashes that must be encoded if it is taken."""


def chunk(caps: Caps, request: Term, start: Term, pinned: Term, cached: Term) -> Chunk:
    """The chunk of a request that starts at a token, as `caps` have it.

    Args:
        caps: The design.
        request: Who is asked.
        start: The first token to compute.
        pinned: The hashes that somebody needs and that cannot be evicted.
        cached: The hashes that need not be encoded.
    """

    def ahead(i: Term) -> Term:
        return all_of(owner(i) == request, start < ends_at(i))

    def until(i: Term, k: Term) -> Term:
        """The hash of this item, or of one of the request before it."""
        return exists(INPUT, lambda j: all_of(ahead(j), offset(j) <= offset(i), hash_of(j) == k))

    def needed(i: Term) -> Term:
        return setof(HASH, lambda k: pinned.has(k) | until(i, k))

    def new(i: Term) -> Term:
        return setof(HASH, lambda k: ~cached.has(k) & until(i, k))

    def fits(i: Term) -> Term:
        """There is, or eviction makes, room for this item and those of the request before it."""
        return all_of(total(needed(i), size) <= capacity, total(new(i), size) <= compute)

    farthest = _least(prompt(request), start + budget)
    aligned = stop if caps.alignment == "before_room" else farthest

    def unfit(i: Term) -> Term:
        return ahead(i) & ~fits(i)

    def split(i: Term) -> Term:
        if caps.items == "chunked":
            return FALSE
        return all_of(ahead(i), start <= offset(i), aligned < ends_at(i))

    limit = _cut_for_room(farthest, unfit)
    wish = _reserve(request, _align(caps, request, start, _cut(aligned, unfit, split)))

    def taken_within_limits(i: Term) -> Term:
        return all_of(ahead(i), offset(i) < farthest + lookahead, fits(i))

    def taken_with_wishes(i: Term) -> Term:
        return all_of(ahead(i), offset(i) < aligned + lookahead, fits(i), ~split(i))

    gives_way = whole_budget & (wish <= start) if caps.wishes == "give_way" else FALSE
    end = ite(gives_way, limit, wish) if caps.wishes == "give_way" else wish
    boundary = all_of(start <= stop, stop <= farthest, whole_budget.implies(start < stop))
    return Chunk(
        tokens=end - start,
        guard={
            "budgets": all_of(
                number(1) <= budget,
                budget <= token_budget,
                number(0) <= compute,
                compute <= encoder_budget,
            ),
            **({} if caps.alignment == "none" else {"boundary": boundary}),
        },
        looks_up=start < aligned,
        takes=lambda i: ite(gives_way, taken_within_limits(i), taken_with_wishes(i)),
        needed=needed,
        new=new,
    )


def _cut_for_room(end: Term, unfit: Callable[[Term], Term]) -> Term:
    """The end of the chunk, or the first item before it for which there is no room."""
    return end - largest(INPUT, lambda i: unfit(i) & (offset(i) < end), lambda i: end - offset(i))


def _cut(end: Term, unfit: Callable[[Term], Term], split: Callable[[Term], Term]) -> Term:
    """The same; but before the first item that would be split, the drafter is kept away from it.

    What is behind an item that is split is split too, and what is behind one that does not fit
    does not fit: so the first of either kind decides.
    """

    def before(i: Term) -> Term:
        return ite(split(i), offset(i) - lookahead, offset(i))

    def is_first(i: Term) -> Term:
        inside = ite(split(i), offset(i) < end + lookahead, unfit(i) & (offset(i) < end))
        earlier = exists(
            INPUT,
            lambda j: all_of(unfit(j) | split(j), owner(j) == owner(i), offset(j) < offset(i)),
        )
        return inside & ~earlier

    return end - largest(INPUT, is_first, lambda i: end - before(i))


def _align(caps: Caps, request: Term, start: Term, end: Term) -> Term:
    """Where the alignment comes last, back to the boundary, or to the start if it lies beyond."""
    if caps.alignment != "after_room":
        return end
    return ite(end == prompt(request), end, ite(stop <= end, stop, start))


def _reserve(request: Term, end: Term) -> Term:
    """Not so near to the end of the prompt that the drafter reads beyond it."""
    near = (end < prompt(request)) & (prompt(request) - lookahead < end)
    return ite(near, prompt(request) - lookahead, end)


def _least(a: Term, b: Term) -> Term:
    return ite(a <= b, a, b)
