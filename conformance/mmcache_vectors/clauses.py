"""The clauses in English, and the public reports that each would have caught.

A report stands beside a clause only where a wrong design of the specification, or a wrong manager
of the tests, is what was reported, and breaks the clause.

L and E are of the managers, S of the engine, P of the processor cache of two processes. Their
formulas are in the models of `mmcache_spec`. Ids are never reused.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CLAUSES", "Clause", "clause", "report_address"]


@dataclass(frozen=True)
class Clause:
    """One claim of the protocol: its id, its name, and what it says."""

    id: str
    name: str
    says: str
    reports: tuple[str, ...] = ()
    """Public issues and pull requests, as `repository#number`."""


CLAUSES: dict[str, Clause] = {
    clause.id: clause
    for clause in (
        Clause(
            "L1",
            "report_disjoint_from_cached",
            "A hash in the report is not cached when it is reported.",
            ("vllm#52482",),
        ),
        Clause(
            "L2",
            "report_complete_and_cleared",
            "Every hash evicted since the last report and still absent is in the report, and "
            "nothing else is; a second read is empty.",
            ("vllm#39544",),
        ),
        Clause(
            "L3",
            "free_slots_conserved",
            "Free slots are the capacity less the sizes of the cached hashes, and never negative.",
            ("vllm#23544",),
        ),
        Clause(
            "L4",
            "freeable_slots_conserved",
            "Freeable slots are the free slots and the sizes of the freeable hashes.",
        ),
        Clause(
            "L5",
            "freeable_iff_unreferenced",
            "A hash is freeable exactly when it is cached and no request references it.",
        ),
        Clause(
            "L6",
            "eviction_is_oldest_first_and_minimal",
            "Eviction takes the longest-unreferenced hashes, no more than needed, and never fails "
            "for want of one.",
        ),
        Clause(
            "L7",
            "admission_is_exact",
            "can_allocate is true iff the size is within the compute budget and size + pending "
            "fits the freeable slots; a refusal changes nothing.",
        ),
        Clause(
            "L8",
            "reference_until_last_occurrence",
            "A request that uses a hash, perhaps at several positions, references it from the "
            "first allocation or hit until the last of them is released.",
            ("vllm#54284", "vllm-ascend#16781"),
        ),
        Clause(
            "L9",
            "release_is_idempotent",
            "Freeing the same input or request again changes nothing.",
            ("vllm#54284", "TensorRT-LLM#17876"),
        ),
        Clause(
            "L10",
            "reset_is_initial",
            "reset gives the initial ledger, so late releases after it change nothing.",
        ),
        Clause(
            "L11",
            "hit_is_exact",
            "check_and_update_cache is true iff the hash is cached, and then the position holds a "
            "reference; a miss changes nothing.",
            ("TensorRT-LLM#15734",),
        ),
        Clause(
            "L12",
            "held_while_needed",
            "A position is held exactly from its allocation or hit until it is released, or its "
            "request, or everything.",
            ("vllm#31857",),
        ),
        Clause(
            "L13",
            "no_reference_without_need",
            "A request references no hash of which it needs no position: released means released.",
            ("vllm#31857", "vllm#12545", "sglang#20162"),
        ),
        Clause(
            "L14",
            "needed_is_cached",
            "What a request needs is cached, whatever else is evicted.",
        ),
        Clause(
            "L15",
            "age_is_the_order_of_last_need",
            "Of two freeable hashes the older is the one whose last need ended first; the last "
            "needs that end with a request end in the order of its positions.",
            ("vllm#54284",),
        ),
        Clause(
            "L16",
            "cached_from_allocation_to_eviction",
            "A hash is cached exactly from its allocation until can_allocate evicts it, or reset "
            "forgets it: no other call changes what is cached.",
            ("vllm#53723",),
        ),
        Clause(
            "E1",
            "credit_once",
            "Encoder-decoder: an allocation is charged once and credited back exactly once: free "
            "slots are the capacity less the sizes of what is allocated and not released.",
            ("vllm#55733", "vllm#51228"),
        ),
        Clause(
            "E2",
            "notice_after_the_step",
            "Encoder-decoder: a hash is reported one pass after its allocation, exactly once.",
            ("vllm#32789", "vllm#33452"),
        ),
        Clause(
            "E3",
            "charged_while_needed",
            "Encoder-decoder: an input is charged exactly from its allocation until it is "
            "released, or its request, or everything.",
        ),
        Clause(
            "S1",
            "gather_never_misses",
            "The worker holds every hash that its step gathers.",
            ("vllm#52482", "vllm#38551", "vllm#45347", "vllm#34220", "vllm#53723"),
        ),
        Clause(
            "S2",
            "hit_is_materialised",
            "Every cached hash is at the worker, or the pass that is being decided encodes or "
            "loads it: a hit is never of something that nobody has made.",
            ("vllm#53723",),
        ),
        Clause(
            "S3",
            "mirrors_agree",
            "Between passes the worker holds exactly the hashes that the ledger has cached.",
            ("vllm#39544", "vllm#52482"),
        ),
        Clause(
            "S4",
            "worker_memory_bounded",
            "Between passes the worker holds no more than the capacity; within a step, no more "
            "than that if it drops first, and than that and what is reported if it encodes first.",
            ("vllm#39544",),
        ),
        Clause(
            "S5",
            "no_orphan_reference",
            "Between passes only requests that run hold references.",
            ("vllm#31857",),
        ),
        Clause(
            "S6",
            "worker_order_irrelevant",
            "Dropping before or after encoding leaves the worker with the same tensors.",
            ("vllm#52482",),
        ),
        Clause(
            "S7",
            "progress",
            "A request that could be served alone finishes: asked with the whole budget, a request "
            "that needs embeddings gets a token, and where none needs any, the head of the queue "
            "does; only preemption of others and new requests make more work.",
            ("vllm#31857", "vllm#40707", "vllm#51603", "vllm-ascend#17195"),
        ),
        Clause(
            "S8",
            "scheduled_encode_has_payload",
            "The worker has the raw item of everything that it is told to encode.",
        ),
        Clause(
            "S9",
            "what_tokens_overlap_is_held",
            "A request holds every input that its scheduled tokens overlap, and every one whose "
            "tokens a rejection may bring back.",
            ("vllm#34220", "vllm#45347", "vllm#38551"),
        ),
        Clause(
            "S10",
            "ordered_once",
            "A hash is ordered in one name, that of a request which holds it, to be encoded or to "
            "be loaded; and only if the worker has none, or is about to drop it.",
        ),
        Clause(
            "S11",
            "orders_are_what_was_decided",
            "The output orders to encode, or to load, exactly what its pass has allocated for "
            "that; what was allocated for a request that is preempted is ordered for the first "
            "other one that needs it, or not at all.",
            ("vllm#53723",),
        ),
        Clause(
            "S12",
            "pending_is_what_was_admitted",
            "What is pending for the current request are the embeddings that were admitted and "
            "not allocated yet; nothing is pending for anybody else.",
        ),
        Clause(
            "S13",
            "chunk_is_the_largest_allowed",
            "A pass gives a request as many tokens as the caps allow: what it gives meets all of "
            "them, and no chunk that ends later does. The caps: the budget; room for every item "
            "that is reached; the block boundary; no item cut by it; as many tokens left as the "
            "drafter reads ahead, or none. The last three give way where nothing of a whole budget "
            "would be left.",
            ("vllm#40707", "vllm#47738", "vllm#51603"),
        ),
        Clause(
            "S14",
            "tokens_are_counted",
            "What is computed of a request are the tokens that it was given since it last began; "
            "it runs from the first of them to the last of its prompt, or until it is preempted; "
            "then it is finished, or waits and has nothing.",
        ),
        Clause(
            "S15",
            "needed_from_reach_to_end",
            "A request needs an item from the chunk that reaches it, or whose drafter does and "
            "that has room for it, until its last token is computed or the request is preempted; "
            "and no other.",
            ("vllm#31857", "vllm-ascend#17195"),
        ),
        Clause(
            "S16",
            "resident_until_in_the_way",
            "What was taken is cached as long as it is needed, and after that until something new "
            "comes.",
        ),
        Clause(
            "P1",
            "receiver_has_what_sender_withholds",
            "An item is sent without its data only if the receiver has it when it handles it.",
        ),
        Clause(
            "P2",
            "mirrors_agree",
            "With nothing in flight the receiver holds what the sender holds, in the same order of "
            "use, and else only what the sender has forgotten and not told yet.",
        ),
        Clause(
            "P3",
            "each_side_within_capacity",
            "What a side holds is no larger than its capacity.",
        ),
        Clause(
            "P4",
            "hit_survives_its_own_request",
            "What was there when a request began is there when the same request takes it.",
        ),
        Clause(
            "P5",
            "recorded_is_delivered_or_undone",
            "What the sender has recorded is handled by the receiver, or on its way, whatever "
            "becomes of the request.",
        ),
        Clause(
            "P6",
            "clear_is_one_point",
            "What the receiver holds when it has handled an item that was recorded after a clear "
            "was recorded after it.",
        ),
        Clause(
            "P7",
            "payload_wins",
            "Data that arrives replaces what the receiver has stored under the same hash.",
        ),
        Clause(
            "P8",
            "miss_heals",
            "What was reported as missing is sent with its data the next time.",
        ),
        Clause(
            "P9",
            "fault_stays_in_request",
            "Whatever happens to an item, nothing else that is in flight is lost by it.",
        ),
        Clause(
            "P10",
            "receiver_never_wedges",
            "The keys in the receiver's order of use are the keys of its data, so that what is to "
            "be evicted can be.",
        ),
    )
}


_PROJECTS = {
    "vllm": "vllm-project/vllm",
    "vllm-ascend": "vllm-project/vllm-ascend",
    "sglang": "sgl-project/sglang",
    "TensorRT-LLM": "NVIDIA/TensorRT-LLM",
}


def report_address(report: str) -> str | None:
    """Where a public report is, such as `vllm#52482`; None of a project that is not known."""
    project, _, number = report.partition("#")
    found = _PROJECTS.get(project)
    return None if found is None else f"https://github.com/{found}/issues/{number}"


def clause(id: str) -> Clause:
    """The clause; one that this version does not know has only its id."""
    return CLAUSES.get(id, Clause(id, id, ""))
