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
    defined,
    exists,
    forall,
    function,
    ite,
    largest,
    named,
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
    "Room",
    "budget",
    "chunk",
    "compute",
    "encoder_budget",
    "ends_at",
    "length",
    "lookahead",
    "offset",
    "prompt",
    "stop",
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
class Room:
    """One request that is asked for from a token on, and the room there is for its items.

    Attributes:
        request: Who is asked.
        start: The first token to compute.
        pinned: The hashes that somebody needs and that cannot be evicted.
        cached: The hashes that need not be encoded.
    """

    request: Term
    start: Term
    pinned: Term
    cached: Term

    @property
    def farthest(self) -> Term:
        """Where the chunk ends if nothing is in its way but the budget."""
        within = self.start + budget
        least = ite(prompt(self.request) <= within, prompt(self.request), within)
        return named("farthest", least)

    def ahead(self, i: Term) -> Term:
        """An item of the request of which some token is not computed yet."""
        return defined(
            "ahead", lambda i: all_of(owner(i) == self.request, self.start < ends_at(i)), i
        )

    def _until(self, i: Term, k: Term) -> Term:
        """The hash of this item, or of one of the request before it."""
        return exists(
            INPUT, lambda j: all_of(self.ahead(j), offset(j) <= offset(i), hash_of(j) == k)
        )

    def needed(self, i: Term) -> Term:
        """The hashes for which there must be room if the item is taken."""
        return setof(HASH, lambda k: self.pinned.has(k) | self._until(i, k))

    def new(self, i: Term) -> Term:
        """The hashes that must be encoded if the item is taken."""
        return setof(HASH, lambda k: ~self.cached.has(k) & self._until(i, k))

    def fits(self, i: Term) -> Term:
        """There is, or eviction makes, room for this item and those of the request before it."""
        return all_of(total(self.needed(i), size) <= capacity, total(self.new(i), size) <= compute)

    def unfit(self, i: Term) -> Term:
        """An item that is ahead and finds no room."""
        return defined("unfit", lambda i: self.ahead(i) & ~self.fits(i), i)

    def taken_by(self, tokens: Term, i: Term) -> Term:
        """A chunk of so many tokens, or the drafter behind it, reaches the item, and it fits."""
        reads_to = self.start + tokens + lookahead
        return defined(
            "taken",
            lambda i: all_of(tokens > 0, self.ahead(i), offset(i) < reads_to, self.fits(i)),
            i,
        )


@dataclass(frozen=True)
class Chunk:
    """What one request gets: the parts of a decision, as terms."""

    tokens: Term
    """How many tokens it computes; 0 where it gets none."""
    guard: dict[str, Term]
    """What is true of the budgets and the boundary."""
    looked_up: Callable[[Term], Term]
    """Of an input: whether it was looked up and found to fit, though there may be no tokens."""
    blocked: Callable[[Term], Term]
    """Of an input: whether there is no room for it, or the boundary would split it."""


def chunk(caps: Caps, room: Room) -> Chunk:
    """The chunk of a request, as `caps` have it."""
    request, start, farthest = room.request, room.start, room.farthest
    aligned = stop if caps.alignment == "before_room" else farthest

    def split(i: Term) -> Term:
        if caps.items == "chunked":
            return FALSE
        return defined(
            "split", lambda i: all_of(room.ahead(i), start <= offset(i), aligned < ends_at(i)), i
        )

    cut = named("cut", _cut(aligned, room.unfit, split))
    before_reserve = cut
    if caps.alignment == "after_room":
        before_reserve = named("aligned", _align(request, start, cut))
    limit = named("limit", _cut_for_room(farthest, room.unfit))
    wish = named("wish", _reserve(request, before_reserve))
    end = ite(whole_budget & (wish <= start), limit, wish) if caps.wishes == "give_way" else wish
    end = named("end", end)
    boundary = all_of(start <= stop, stop <= farthest, whole_budget.implies(start < stop))
    return Chunk(
        tokens=ite(start < end, end - start, 0),
        guard={
            "budgets": all_of(
                number(1) <= budget,
                budget <= token_budget,
                number(0) <= compute,
                compute <= encoder_budget,
            ),
            **({} if caps.alignment == "none" else {"boundary": boundary}),
        },
        looked_up=lambda i: all_of(
            start < aligned,
            room.ahead(i),
            offset(i) < aligned + lookahead,
            room.fits(i),
            ~split(i),
        ),
        blocked=lambda i: any_of(room.unfit(i), split(i)),
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


def _align(request: Term, start: Term, end: Term) -> Term:
    """Where the alignment comes last, back to the boundary, or to the start if it lies beyond."""
    return ite(end == prompt(request), end, ite(stop <= end, stop, start))


def _reserve(request: Term, end: Term) -> Term:
    """Not so near to the end of the prompt that the drafter reads beyond it."""
    near = (end < prompt(request)) & (prompt(request) - lookahead < end)
    return ite(near, prompt(request) - lookahead, end)
