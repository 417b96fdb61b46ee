"""The livelocks of real schedulers as variants of `progress`, and the configurations without one.

A livelock is told by its lasso: the calls that lead into it, and those that go on for ever.
"""

from __future__ import annotations

from functools import partial

from ..kernel.system import Axiom
from .chunk import (
    ITEMS_FIT_ALONE,
    ITEMS_FIT_THE_BUDGET,
    LOOKAHEAD_FITS_THE_BUDGET,
    NO_ITEM_AT_THE_END,
    NOTHING_AHEAD,
    ONE_TOKEN_AHEAD,
    Caps,
)
from .progress import ProgressDesign, progress
from .variant import Expected, Variant

__all__ = ["LIVELOCKS", "WITHOUT_LIVELOCK"]

_WHOLE = Caps(alignment="none", items="whole", wishes="stand")
_ALIGNED = Caps(alignment="before_room", items="chunked", wishes="stand")
_RESERVE = Caps(alignment="none", items="chunked", wishes="stand")

_AT_ONCE = Expected(
    ("S7", "S13"),
    ("arrive", "schedule"),
    ("schedule",),
    "S7",
    lasso=(("arrive",), ("schedule",)),
)
"""The head of the queue is asked, gets nothing, and is asked again."""


def _at_once(
    name: str, says: str, caps: Caps, *conditions: Axiom, seen_in: tuple[str, ...] = ()
) -> Variant:
    """The caps of a chunk leave nothing of a whole budget, and no wish gives way."""
    return Variant(
        name, says, (partial(progress, ProgressDesign(caps), conditions),), seen_in, _AT_ONCE
    )


_ONLY_BY_ITS_CALL = "an item that is not split is needed only by the call that computes it"


def _never_gives_way(*conditions: int) -> dict[str, str]:
    """The conditions of S13 that are about wishes which leave nothing of a whole budget."""
    reason = "the configuration is such that the wishes always leave something"
    name = "progress: S13 chunk_is_the_largest_allowed at schedule"
    return {f"{name}: condition {k} holds": reason for k in conditions}


WITHOUT_LIVELOCK = (
    Variant(
        "whole_items_within_the_budget",
        "items are not split; each, with the lookahead, fits the budget, and none begins within "
        "the lookahead of the end of its prompt",
        (
            partial(
                progress,
                ProgressDesign(_WHOLE),
                (ITEMS_FIT_THE_BUDGET, LOOKAHEAD_FITS_THE_BUDGET, NO_ITEM_AT_THE_END),
            ),
        ),
        never={
            "progress: S7 work_falls_when_a_request_that_needs_embeddings_is_asked at schedule: "
            "condition 1 holds": _ONLY_BY_ITS_CALL,
            "progress: S15 needed_from_reach_to_end: condition 1 holds": _ONLY_BY_ITS_CALL,
            **_never_gives_way(5, 6),
        },
    ),
    Variant(
        "aligned_chunks",
        "chunks end at block boundaries, items may be split, and the drafter reads at most one "
        "token ahead",
        (partial(progress, ProgressDesign(_ALIGNED), (ONE_TOKEN_AHEAD,)),),
        never=_never_gives_way(4, 5),
    ),
)
"""Caps that all stand, and what a configuration must keep for them to leave something."""

LIVELOCKS = (
    Variant(
        "waiting_stalls_the_queue",
        "a waiting request keeps what it has hit; the running one can never make room",
        (partial(progress, ProgressDesign(waiting="keeps_references")),),
        ("vllm#31857",),
        Expected(
            ("S7", "S15"),
            ("arrive", "arrive", "schedule", "touch"),
            ("touch",),
            "S7",
            lasso=(("arrive", "arrive", "schedule", "touch"), ("schedule",)),
        ),
    ),
    Variant(
        "skipped_request_keeps_its_hits",
        "a waiting request that gets no tokens keeps what it has hit",
        (partial(progress, ProgressDesign(no_tokens="keeps_hits")),),
        (),
        Expected(
            ("S7", "S15"),
            ("arrive", "arrive", "schedule", "schedule"),
            ("schedule",),
            "S7",
            lasso=(("arrive", "arrive", "schedule", "schedule"), ("schedule",)),
        ),
    ),
    Variant(
        "item_is_needed_past_its_end",
        "an item is needed until the drafter's tokens are computed too; the next one, which "
        "begins there, needs its room",
        (partial(progress, ProgressDesign(release="past_the_lookahead")),),
        ("vllm-ascend#17195",),
        Expected(
            ("S15",),
            ("arrive", "schedule", "schedule"),
            ("schedule", "schedule"),
            "S7",
            lasso=(("arrive", "schedule"), ("schedule",)),
        ),
    ),
    _at_once(
        "chunks_reach_the_next_item",
        "the chunk is cut before an item for which there is no room, and only then made to end "
        "at a block boundary",
        Caps(alignment="after_room", items="chunked", wishes="stand"),
        NOTHING_AHEAD,
        seen_in=("vllm#40707", "vllm#47738", "vllm#45414", "vllm#51603"),
    ),
    _at_once(
        "whole_item_exceeds_the_budget",
        "items are not split, and one is longer than the budget",
        _WHOLE,
        NOTHING_AHEAD,
    ),
    _at_once(
        "whole_item_and_drafter",
        "items are not split, the chunk before one stops short by the drafter's shift, and the "
        "item fits the budget but not with the shift",
        _WHOLE,
        ITEMS_FIT_ALONE,
        ONE_TOKEN_AHEAD,
    ),
    _at_once(
        "reserve_exceeds_the_budget",
        "a chunk may not end within the lookahead of the end of the prompt, and the budget is "
        "smaller than the lookahead",
        _RESERVE,
    ),
    _at_once(
        "reserve_against_room",
        "the same, the budget is large enough, and there is no room for an item there",
        _RESERVE,
        LOOKAHEAD_FITS_THE_BUDGET,
    ),
    _at_once(
        "whole_items_without_room",
        "items are not split, each fits the budget with the lookahead, and there is no room for "
        "one within the lookahead of the end of the prompt",
        _WHOLE,
        ITEMS_FIT_THE_BUDGET,
        LOOKAHEAD_FITS_THE_BUDGET,
    ),
    _at_once(
        "alignment_against_the_reserve",
        "the same, and the last block boundary lies there",
        _ALIGNED,
        LOOKAHEAD_FITS_THE_BUDGET,
    ),
    _at_once(
        "alignment_against_whole_items",
        "items are not split, and a block boundary lies within one",
        Caps(wishes="stand"),
        ITEMS_FIT_THE_BUDGET,
        ONE_TOKEN_AHEAD,
    ),
    Variant(
        "preemption_takes_the_head",
        "the head of the queue may be preempted, and loses what it has computed",
        (partial(progress, ProgressDesign(victim="anyone")),),
        (),
        Expected(
            ("S7",),
            ("arrive", "schedule", "preempt"),
            ("preempt",),
            "S7",
            lasso=(("arrive",), ("schedule", "preempt")),
        ),
    ),
    Variant(
        "progress_is_forgotten",
        "what is computed is never counted, so it is computed again",
        (partial(progress, ProgressDesign(progress="forgotten")),),
        (),
        Expected(
            ("S14",),
            ("arrive", "schedule", "schedule"),
            ("schedule", "schedule"),
            "S7",
            lasso=(("arrive", "schedule"), ("schedule",)),
        ),
    ),
)
