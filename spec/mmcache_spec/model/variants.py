"""Named sets of design switches: the protocol as it should be, and each known wrong decision.

Every wrong variant carries what is expected of it: the clauses that stop being provable, and the
actions of its shortest counterexample, from the empty cache and from the start of a pass.
"""

from __future__ import annotations

from functools import partial

from .decisions import DECISIONS, system_of
from .encoder_decoder import encoder_decoder
from .engine import EngineDesign, engine
from .ledger import LedgerDesign, ledger
from .livelocks import LIVELOCKS, WITHOUT_LIVELOCK
from .processor_cache import processor_cache
from .processor_cache_variants import WRONG_PROCESSOR_CACHES
from .progress import progress
from .variant import Expected, Variant

__all__ = ["SPECIFIED", "VARIANTS", "Expected", "Variant"]


SPECIFIED = Variant(
    "specified",
    "the protocol as it should be",
    (ledger, encoder_decoder, engine, progress, processor_cache),
)


def _wrong(name: str, expected: Expected) -> Variant:
    """The manager that takes this decision."""
    decision = DECISIONS[name]
    return Variant(name, decision.says, (partial(system_of, [name]),), decision.seen_in, expected)


_WRONG = (
    _wrong(
        "unfiltered_report",
        Expected(
            ("L1",),
            ("allocate", "free_encoder_input", "can_allocate", "allocate", "get_freed_mm_hashes"),
            ("can_allocate", "allocate", "get_freed_mm_hashes"),
        ),
    ),
    _wrong(
        "report_not_cleared",
        Expected(
            (),
            (
                "allocate",
                "free_encoder_input",
                "can_allocate",
                "get_freed_mm_hashes",
                "get_freed_mm_hashes",
            ),
            ("can_allocate", "get_freed_mm_hashes", "get_freed_mm_hashes"),
            "L2",
        ),
    ),
    _wrong(
        "report_nothing",
        Expected(
            ("L2",),
            ("allocate", "free_encoder_input", "can_allocate", "get_freed_mm_hashes"),
            ("can_allocate", "get_freed_mm_hashes"),
        ),
    ),
    _wrong(
        "first_occurrence_release",
        Expected(("L8", "L15", "L9"), ("allocate", "free_encoder_input"), ("free_encoder_input",)),
    ),
    _wrong(
        "evict_newest_first",
        Expected(("L6",), ("allocate", "allocate", "free", "can_allocate"), ("can_allocate",)),
    ),
    _wrong(
        "evict_referenced",
        Expected(
            ("L4", "L8", "L14", "L6"),
            ("allocate", "allocate", "free_encoder_input", "can_allocate"),
            ("can_allocate",),
        ),
    ),
    _wrong(
        "refusal_evicts",
        Expected(("L7",), ("allocate", "free_encoder_input", "can_allocate"), ("can_allocate",)),
    ),
    _wrong(
        "release_credits_twice",
        Expected(
            ("L4", "L9"),
            ("allocate", "free_encoder_input", "free_encoder_input"),
            ("free_encoder_input",),
        ),
    ),
    _wrong(
        "same_pass_double_charge",
        Expected(("L3",), ("allocate", "allocate_again"), ("allocate_again",)),
    ),
    _wrong(
        "reset_keeps_references",
        Expected(("L12", "L10"), ("allocate", "reset"), ("reset",)),
    ),
    _wrong(
        "encoder_decoder_repeated_credit",
        Expected(("E1",), ("free_encoder_input",), ("free_encoder_input",)),
    ),
    _wrong(
        "encoder_decoder_same_pass_notice",
        Expected(("E2",), ("allocate", "get_freed_mm_hashes"), ("get_freed_mm_hashes",)),
    ),
)

_UNFILTERED = LedgerDesign(report="unfiltered")

_MISS = ("schedule", "dispatch")
_ENCODED = ("admit", "commit", "schedule", "dispatch")
_EVICTED_FOR_NOTHING = ("admit", "give_back")
"""A waiting request was admitted, which evicts, and then got no blocks."""

_RIGHT = (
    Variant(
        "encode_gather_drop",
        "the worker encodes, gathers, and then drops",
        (partial(engine, EngineDesign(order="encode_gather_drop")),),
    ),
    Variant(
        "encode_if_missing_then_drop",
        "the worker does not encode what it still holds, drops, and then gathers",
        (partial(engine, EngineDesign(order="encode_if_missing_then_drop")),),
    ),
    Variant(
        "loads_before_the_drop",
        "a connector's loads arrive before the worker drops",
        (partial(engine, EngineDesign(loads_arrive="before_the_drop")),),
    ),
    Variant(
        "two_phase_entries",
        "an entry cannot be hit before the pass that allocates it is dispatched",
        (partial(engine, EngineDesign(withdrawal="undoes", hittable="when_dispatched")),),
        never={
            "engine: two requests share what one of them encodes": "nobody hits what is not yet "
            "encoded",
            "engine: an encoding is handed over": "there is no other holder to hand it to",
        },
    ),
)

_WRONG_ENGINES = (
    Variant(
        "preemption_keeps_unencoded_entry",
        "preempting a request that this pass has scheduled cancels its encoding, "
        "and keeps the entry",
        (partial(engine, EngineDesign(withdrawal="keeps_entry")),),
        ("vllm#53723",),
        Expected(
            ("L16", "S2", "S11"),
            ("admit", "commit", "schedule", "preempt", "look_up", *_MISS),
            ("admit", "commit", "preempt", "look_up", *_MISS),
            "S1",
        ),
    ),
    Variant(
        "preemption_undoes_shared_entry",
        "the entry is undone even if another request has hit it in the same pass",
        (partial(engine, EngineDesign(withdrawal="undoes")),),
        (),
        Expected(
            ("S2", "S11"),
            ("admit", "commit", "schedule", "look_up", "schedule", "preempt", "dispatch"),
            ("admit", "commit", "schedule", "look_up", "schedule", "preempt", "dispatch"),
            "S1",
        ),
    ),
    Variant(
        "waiting_keeps_references",
        "a waiting request that gets no blocks keeps the references of its hits",
        (partial(engine, EngineDesign(waiting="keeps_references")),),
        ("vllm#31857",),
        Expected(
            ("L12", "L13"),
            ("admit", "commit", "schedule", "look_up", "give_back", "dispatch"),
            ("look_up", "give_back", "dispatch"),
            "S5",
        ),
    ),
    Variant(
        "skipped_keeps_references",
        "a waiting request that no tokens are left for keeps the references of its hits",
        (partial(engine, EngineDesign(skipped="keeps_references")),),
        ("vllm#31857",),
        Expected(
            ("L12", "L13"),
            ("admit", "commit", "schedule", "look_up", "skip_waiting", "dispatch"),
            ("look_up", "skip_waiting", "dispatch"),
            "S5",
        ),
    ),
    Variant(
        "unfiltered_drop_encode_gather",
        "the report is unfiltered; the worker drops, then encodes everything that was allocated",
        (partial(engine, EngineDesign(_UNFILTERED)),),
        ("vllm#52482",),
        Expected(
            ("L1", "S6"),
            (*_ENCODED, "preempt", *_EVICTED_FOR_NOTHING, *_ENCODED),
            (*_EVICTED_FOR_NOTHING, *_ENCODED),
            "L1",
        ),
    ),
    Variant(
        "unfiltered_encode_gather_drop",
        "the report is unfiltered; the worker drops last",
        (partial(engine, EngineDesign(_UNFILTERED, order="encode_gather_drop")),),
        ("vllm#52482",),
        Expected(
            ("S2", "S3", "L1", "S6"),
            (*_ENCODED, "preempt", *_EVICTED_FOR_NOTHING, *_ENCODED, *_MISS),
            (*_EVICTED_FOR_NOTHING, *_ENCODED, *_MISS),
            "S1",
        ),
    ),
    Variant(
        "unfiltered_encode_if_missing_then_drop",
        "the report is unfiltered; the worker does not encode what it still holds, then drops it",
        (partial(engine, EngineDesign(_UNFILTERED, order="encode_if_missing_then_drop")),),
        ("vllm#52482",),
        Expected(
            ("S2", "S3", "L1", "S1", "S6"),
            (*_ENCODED, "preempt", *_EVICTED_FOR_NOTHING, *_ENCODED),
            (*_EVICTED_FOR_NOTHING, *_ENCODED),
            "S1",
        ),
    ),
    Variant(
        "external_load_unfiltered",
        "the report is unfiltered; what a connector has loaded is dropped",
        (partial(engine, EngineDesign(_UNFILTERED, loads_arrive="before_the_drop")),),
        ("vllm#52482",),
        Expected(
            ("S2", "S3", "L1", "S1", "S6"),
            (
                *_ENCODED,
                "preempt",
                *_EVICTED_FOR_NOTHING,
                "admit",
                "commit_load",
                "schedule",
                "dispatch",
            ),
            (*_EVICTED_FOR_NOTHING, "admit", "commit_load", "schedule", "dispatch"),
            "S1",
        ),
    ),
    Variant(
        "retain_everything",
        "the worker is never told to drop anything",
        (partial(engine, EngineDesign(LedgerDesign(report="nothing"))),),
        ("vllm#39544",),
        Expected(
            ("S3", "S4", "L2"),
            (*_ENCODED, "preempt", *_ENCODED),
            _ENCODED,
            "S4",
        ),
    ),
    Variant(
        "reset_only_scheduler",
        "reset clears the ledger and leaves the worker as it is",
        (partial(engine, EngineDesign(reset="only_scheduler")),),
        ("vllm#33452",),
        Expected(("S3",), (*_ENCODED, "accept", "reset"), ("reset",), "S3"),
    ),
    Variant(
        "reset_in_flight",
        "both sides forget everything while drafts are unconfirmed; one is rejected, and its "
        "tokens overlap an input that nobody looks up again",
        (partial(engine, EngineDesign(reset="in_flight")),),
        (),
        Expected(
            ("S9",),
            (*_ENCODED, "reset", *_MISS),
            ("reset", *_MISS),
            "S1",
        ),
    ),
    Variant(
        "payload_stripped_under_prefix_hit",
        "the raw item travels once, with the first output, and not if a prefix hit covers it then",
        (partial(engine, EngineDesign(payload="stripped_under_prefix_hit")),),
        (),
        Expected(
            ("S8",),
            ("prefix_hit", *_MISS, "preempt", *_ENCODED),
            _ENCODED,
            "S8",
        ),
    ),
    Variant(
        "free_on_speculative_progress",
        "an input is released when its tokens are drafted, not when they are accepted",
        (partial(engine, EngineDesign(release="speculative")),),
        ("vllm#45347", "vllm#38551"),
        Expected(
            ("S9",),
            (*_ENCODED, "consume", *_EVICTED_FOR_NOTHING, *_MISS),
            ("consume", *_EVICTED_FOR_NOTHING, *_MISS),
            "S1",
        ),
    ),
    Variant(
        "lookahead_not_scheduled",
        "the drafter reads further than what was looked up",
        (partial(engine, EngineDesign(lookahead="not_covered")),),
        ("vllm#34220",),
        Expected(
            ("S9",),
            ("schedule", "dispatch"),
            ("schedule", "dispatch"),
            "S1",
        ),
    ),
)

_ALL = (
    SPECIFIED,
    *_RIGHT,
    *WITHOUT_LIVELOCK,
    *_WRONG,
    *_WRONG_ENGINES,
    *LIVELOCKS,
    *WRONG_PROCESSOR_CACHES,
)

VARIANTS: dict[str, Variant] = {v.name: v for v in _ALL}
