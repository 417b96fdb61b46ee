"""Random workloads on the reference, with every clause checked after every pass."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmcache_conformance.engines import random as random_workloads
from mmcache_conformance.engines.clauses import judge
from mmcache_conformance.engines.protocol import engine_case
from mmcache_conformance.engines.random import random_campaign, random_run, random_workload
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS, ReferencePass
from mmcache_conformance.verdicts.model import PassFailure
from mmcache_conformance.verdicts.run import run_vector
from mmcache_spec.model.variants import VARIANTS
from mmcache_vectors.engine import (
    Abort,
    EngineSettings,
    EngineVector,
    PassesHold,
    PathProvenance,
    ResetBothSides,
    WorkloadItem,
    WorkloadRequest,
)

RIGHT = [name for name in REFERENCE_VARIANTS if VARIANTS[name].expected is None]
WRONG = [name for name in REFERENCE_VARIANTS if name not in RIGHT]


@st.composite
def workloads(draw: Any) -> EngineVector:
    """Requests that share few hashes, a small cache, few blocks; each could be served alone."""
    hashes = "ABC"[: draw(st.integers(1, 3))]
    sizes = {h: draw(st.integers(1, 5)) for h in hashes}
    requests = []
    for k in range(draw(st.integers(1, 5))):
        items, position = [], 0
        for mm_hash in draw(st.lists(st.sampled_from(hashes), max_size=3)):
            position += draw(st.sampled_from((0, 1, 4)))
            items.append(WorkloadItem(mm_hash, position, sizes[mm_hash]))
            position += sizes[mm_hash]
        embeds = sum(item.num_embeds for item in items)
        requests.append(
            WorkloadRequest(
                request_id=f"r{k}",
                arrival=draw(st.integers(0, 4)),
                priority=draw(st.integers(0, 2)),
                items=tuple(items),
                num_text_tokens=position - embeds + draw(st.integers(1, 3)),
                max_tokens=draw(st.sampled_from((1, 2, 8))),
                text=draw(st.sampled_from(("t", "u"))),
            )
        )
    longest = max(r.num_prompt_tokens + r.max_tokens for r in requests)
    engine = EngineSettings(
        cache_size=max(sizes.values()) + draw(st.integers(0, 5)),
        encoder_budget=max(sizes.values()) + draw(st.sampled_from((0, 16))),
        num_blocks=-(-longest // 4) + draw(st.integers(0, 2)),
        block_size=4,
        chunk_size=draw(st.sampled_from((2, 4, 64))),
        token_budget=draw(st.sampled_from((4, 64))),
        policy=draw(st.sampled_from(("priority", "fcfs"))),
        prefix_caching=draw(st.booleans()),
    )
    events = draw(
        st.lists(
            st.one_of(
                st.builds(
                    Abort,
                    st.integers(0, 8),
                    st.sampled_from([r.request_id for r in requests]),
                ),
                st.builds(ResetBothSides, st.integers(0, 8)),
            ),
            max_size=2,
        )
    )
    return EngineVector(
        format="mmcache/engine-vector",
        format_version=1,
        id="hypothesis",
        description="",
        variant="specified",
        clauses=(),
        kills=(),
        situation=None,
        provenance=PathProvenance("", "hypothesis", "", ()),
        engine=engine,
        requests=tuple(requests),
        events=tuple(events),
        expect=PassesHold(("S1", "L1", "S2", "S3", "S4", "S5", "S7", "S8"), 20, 500),
    )


def _broken(variant: str, vector: EngineVector) -> list[tuple[int, str, str]]:
    target = ReferencePass(variant)
    verdict = run_vector(target, target.start(), vector, stretch=False)
    assert verdict.outcome != "error", verdict.reason
    if verdict.failure is None:
        return []
    assert isinstance(verdict.failure, PassFailure)
    return [(b.pass_number, b.clause, b.says) for b in verdict.failure.breaches]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workloads(), st.sampled_from(RIGHT))
def test_every_clause_holds_after_every_pass(vector: EngineVector, variant: str) -> None:
    assert _broken(variant, vector) == []


@pytest.mark.parametrize("variant", RIGHT)
def test_seeded_workloads(variant: str) -> None:
    target = ReferencePass(variant)
    target.start()
    tally = random_run(target, 3000)
    assert not tally.failures, tally.examples
    assert tally.preemptions > 100


FAILS_AT = {
    "preemption_keeps_unencoded_entry": (99, {"S1"}),
    "preemption_undoes_shared_entry": (99, {"S1"}),
    "payload_stripped_under_prefix_hit": (19, {"S1", "S8"}),
    "waiting_keeps_references": (0, {"S5"}),
    "unfiltered_drop_encode_gather": (73, {"L1"}),
    "unfiltered_encode_gather_drop": (73, {"L1"}),
    "unfiltered_encode_if_missing_then_drop": (73, {"S1"}),
    "retain_everything": (0, {"S3"}),
    "reset_only_scheduler": (2, {"S3"}),
}
"""A workload on which random search has found the mistake."""

NOT_FOUND = {"skipped_keeps_references"}
"""Random workloads have no look-ahead and split their items: nobody is skipped for want of tokens.
The engine vector of this variant shows it."""


def test_every_mistake_is_accounted_for() -> None:
    assert set(FAILS_AT) == set(WRONG) - NOT_FOUND


@pytest.mark.parametrize("variant", FAILS_AT)
def test_every_mistake_is_found(variant: str) -> None:
    seed, clauses = FAILS_AT[variant]
    vector = random_workload(seed)
    assert clauses <= {clause for _, clause, _ in _broken(variant, vector)}
    assert _broken("specified", vector) == []


def test_comparing_schedules_sees_a_difference_and_only_then() -> None:
    target, same, other = (ReferencePass(v) for v in ("specified", "specified", WRONG[0]))
    for engine in (target, same, other):
        engine.start()
    assert random_run(target, 500, first=95, like=same).differences == ()
    assert 99 in random_run(target, 500, first=95, like=other).differences


@pytest.mark.parametrize("passes", [1, 99, 400])
def test_many_workers_find_what_one_finds(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shares of three workloads: the last is not needed to its end, and is not counted."""
    monkeypatch.setattr(random_workloads, "SHARE", 3)
    wrong, like = "reference-pass:waiting_keeps_references", "reference-pass:specified"
    targets = [ReferencePass(name.partition(":")[2]) for name in (wrong, like)]
    for target in targets:
        target.start()
    alone = random_run(targets[0], passes, first=90, like=targets[1])
    with ThreadPoolExecutor(4) as executor:
        together = random_campaign(wrong, passes, executor, first=90, like=like)
    assert together == alone
    assert alone.passes >= passes


def test_a_workload_is_a_function_of_its_seed() -> None:
    assert random_workload(7) == random_workload(7)
    assert random_workload(7) != random_workload(8)
    records = list(_started().passes(engine_case(random_workload(7))))
    assert judge(random_workload(7), records) == ()


def _started() -> Any:
    target = ReferencePass()
    target.start()
    return target
