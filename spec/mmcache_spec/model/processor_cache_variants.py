"""The known wrong decisions of processor caches, and what is expected of each.

The counterexamples are the shortest from two empty caches; a processor cache has no passes.
"""

from __future__ import annotations

from functools import partial

from .processor_cache import ProcessorCacheDesign, processor_cache
from .variant import Expected, Variant

__all__ = ["WRONG_PROCESSOR_CACHES"]


def _wrong(
    name: str,
    says: str,
    design: ProcessorCacheDesign,
    breaks: tuple[str, ...],
    clause: str,
    calls: tuple[str, ...],
    seen_in: tuple[str, ...] = (),
) -> Variant:
    """The processor cache that takes this decision; `clause` is what its counterexample breaks."""
    expected = Expected(breaks, calls, target=clause)
    return Variant(
        f"processor_{name}", says, (partial(processor_cache, design),), seen_in, expected
    )


_TWO_TAKEN = ("begin", "take", "take")

WRONG_PROCESSOR_CACHES = (
    _wrong(
        "walk_by_modality",
        "the sender takes the items of a request modality by modality, the receiver in the order "
        "of the prompt",
        ProcessorCacheDesign(walk="by_modality"),
        ("P4",),
        "P2",
        ("begin", "take", "take", "deliver", "deliver"),
    ),
    _wrong(
        "inserts_without_care",
        "an item of a request evicts another of the same request, which the sender has said it has",
        ProcessorCacheDesign(insertion="plain"),
        ("P2", "P4"),
        "P4",
        ("begin", "take", "take", "deliver", "deliver", "begin", "take"),
        ("vllm#28525",),
    ),
    _wrong(
        "touches_before_it_inserts",
        "both sides touch all items of a request before they insert any, which keeps them only if "
        "they all fit",
        ProcessorCacheDesign(insertion="touches_first"),
        ("P2", "P4"),
        "P4",
        ("begin", "take", "take", "deliver", "deliver", "begin", "take"),
    ),
    _wrong(
        "asserts_what_it_evicted",
        "the same, and the sender raises where the item is gone; what it has recorded of the "
        "request is never sent",
        ProcessorCacheDesign(insertion="touches_first", gone="asserted"),
        ("P2", "P4", "P5"),
        "P5",
        ("begin", "take", "take", "deliver", "deliver", "begin", "take", "take"),
    ),
    _wrong(
        "rejected_is_lost",
        "a request that is rejected or cancelled after the recording is not sent",
        ProcessorCacheDesign(rejected="lost"),
        ("P2", "P5"),
        "P1",
        ("begin", "take", "withdraw", "begin", "take", "deliver"),
    ),
    _wrong(
        "rejected_hits_are_lost",
        "a rejected request is not sent if all its items are hits, since it carries no data",
        ProcessorCacheDesign(rejected="lost_if_bare"),
        ("P2", "P5"),
        "P2",
        ("begin", "take", "begin", "take", "deliver", "begin", "take", "withdraw", "deliver"),
    ),
    _wrong(
        "clears_sender_only",
        "a clear empties the sender, and the receiver is not told",
        ProcessorCacheDesign(clear="sender_only"),
        (),
        "P6",
        ("begin", "take", "clear_sender", "begin", "take", "deliver", "deliver"),
    ),
    _wrong(
        "clears_receiver_only",
        "a clear empties the receiver, and the sender is not told",
        ProcessorCacheDesign(clear="receiver_only"),
        ("P2",),
        "P1",
        ("begin", "take", "take", "deliver", "clear_receiver", "deliver"),
    ),
    _wrong(
        "clears_each_by_itself",
        "a clear empties each side when it comes there, before or after what is in flight",
        ProcessorCacheDesign(clear="each_by_itself"),
        ("P2",),
        "P1",
        ("begin", "take", "take", "deliver", "clear_receiver", "deliver"),
    ),
    _wrong(
        "forgets_without_telling",
        "after a miss the sender forgets the hash, and the receiver may hold it again by then",
        ProcessorCacheDesign(miss="forgotten"),
        (),
        "P2",
        ("begin", "take", "invalidate", "begin", "take", "deliver", "deliver"),
    ),
    _wrong(
        "ignores_a_miss",
        "the sender does not hear of a miss",
        ProcessorCacheDesign(miss="ignored"),
        ("P8",),
        "P8",
        ("begin", "take", "invalidate"),
        ("vllm#46747",),
    ),
    _wrong(
        "receiver_hit_is_no_use",
        "the receiver does not count a hit as a use",
        ProcessorCacheDesign(receiver_hit="reads"),
        ("P2",),
        "P2",
        ("begin", "take", "begin", "take", "deliver", "begin", "take", "deliver", "deliver"),
    ),
    _wrong(
        "stale_data_wins",
        "the receiver keeps what it holds where new data arrives",
        ProcessorCacheDesign(miss="forgotten", arrival="keeps"),
        (),
        "P7",
        ("begin", "take", "invalidate", "begin", "take", "deliver", "deliver"),
    ),
    _wrong(
        "absent_key_enters_the_order",
        "the receiver's touch of a key that it does not hold puts it into the order of use",
        ProcessorCacheDesign(insertion="touches_first", absent="enters_the_order"),
        ("P2", "P4", "P10"),
        "P10",
        ("begin", "take", "deliver"),
        ("vllm#43595",),
    ),
    _wrong(
        "delivers_out_of_order",
        "requests are delivered in another order than they were recorded",
        ProcessorCacheDesign(channel="any_order"),
        ("P1", "P6"),
        "P1",
        ("begin", "take", "begin", "take", "deliver"),
    ),
    _wrong(
        "miss_ends_the_engine",
        "a miss at the receiver ends the engine, where the sender is ahead for another reason",
        ProcessorCacheDesign(rejected="lost", fault="ends_the_engine"),
        ("P2", "P5"),
        "P9",
        ("begin", "take", "take", "withdraw", "begin", "take", "take", "deliver"),
        ("vllm#31404",),
    ),
    _wrong(
        "stores_what_does_not_fit",
        "an item that there cannot be room for is stored",
        ProcessorCacheDesign(too_large="stored"),
        ("P2", "P3"),
        "P3",
        ("begin", "take"),
    ),
)
