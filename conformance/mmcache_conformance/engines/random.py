"""Random workloads for engines: small caches, few hashes, short of blocks, aborts and resets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import msgspec

from mmcache_vectors.document import schema_of
from mmcache_vectors.engine import (
    ENGINE_CLAUSES,
    FORMAT,
    FORMAT_VERSION,
    Abort,
    EngineSettings,
    EngineVector,
    Event,
    PassesHold,
    PathProvenance,
    ResetBothSides,
    WorkloadItem,
    WorkloadRequest,
)

from ..errors import TargetError
from .clauses import judge, unplayed
from .open import open_engine
from .protocol import EngineTarget, PassRecord, engine_case

__all__ = ["RandomRun", "random_campaign", "random_run", "random_workload", "workloads_schema"]

BLOCK = 4
MAX_PASSES = 1000
SHARE = 50
"""Workloads that a worker plays at a time."""


def random_workload(seed: int) -> EngineVector:
    """A workload that an engine can finish: every request could be served alone.

    Half of them are under the policy `priority`, and half have prefix caching, independently.
    """
    rng = random.Random(seed)
    sizes = {h: rng.randint(1, 6) for h in "ABCDE"[: rng.randint(2, 5)]}
    urgent = rng.random() < 0.5
    requests = _urgent(rng, sizes) if urgent else _requests(rng, sizes)
    longest = max(r.num_prompt_tokens + r.max_tokens for r in requests)
    engine = EngineSettings(
        cache_size=max(sizes.values()) + rng.choice((0, 0, 1, 3, 8)),
        encoder_budget=rng.choice((max(sizes.values()), 64)),
        num_blocks=-(-longest // BLOCK) + rng.choice((0, 1) if urgent else (0, 1, 2, 4)),
        block_size=BLOCK,
        chunk_size=rng.choice((2, 4, 4, 8, 64)[: 4 if urgent else 5]),
        token_budget=rng.choice((8, 16, 64)),
        policy="priority" if seed % 2 else "fcfs",
        prefix_caching=seed % 4 >= 2,
    )
    return EngineVector(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        id=f"random-{seed}",
        description="A random workload.",
        variant="specified",
        clauses=(),
        kills=(),
        situation=None,
        provenance=PathProvenance("", "none", f"random workload {seed}", ()),
        engine=engine,
        requests=requests,
        events=tuple(_events(rng, requests)),
        expect=PassesHold(ENGINE_CLAUSES, stall_after=20, max_passes=MAX_PASSES),
    )


def _requests(rng: random.Random, sizes: dict[str, int]) -> tuple[WorkloadRequest, ...]:
    """Every other one begins like an earlier one; later ones are more urgent, as a rule."""
    found: list[WorkloadRequest] = []
    for k in range(rng.randint(2, 9)):
        arrival = rng.randint(0, 12)
        earlier = rng.choice(found) if found and rng.random() < 0.5 else None
        items, text = (earlier.items, earlier.text) if earlier else _prompt(rng, sizes)
        gaps = items[-1].position + items[-1].num_embeds if items else 0
        found.append(
            WorkloadRequest(
                request_id=f"r{k}",
                arrival=arrival,
                priority=3 - arrival // 4 if rng.random() < 0.7 else rng.randint(0, 3),
                items=items,
                num_text_tokens=gaps - sum(i.num_embeds for i in items) + rng.randint(1, 6),
                max_tokens=rng.choice((1, 2, 4, 12, 24)),
                text=text,
            )
        )
    return tuple(found)


def _urgent(rng: random.Random, sizes: dict[str, int]) -> tuple[WorkloadRequest, ...]:
    """A long prompt, and requests that overtake it and take its blocks while it is computed."""
    names = [rng.choice(list(sizes)) for _ in range(rng.randint(2, 4))]
    items, position = [], 0
    for mm_hash in names:
        position += rng.choice((2, 4, 8))
        items.append(WorkloadItem(mm_hash, position, sizes[mm_hash]))
        position += sizes[mm_hash]
    embeds = sum(item.num_embeds for item in items)
    found = [WorkloadRequest("r0", 0, 9, tuple(items), position - embeds + 1, 1, "common")]
    for k in range(1, rng.randint(3, 6)):
        shared = tuple(items[: rng.choice((0, 0, 1, 2))])
        end = shared[-1].position + shared[-1].num_embeds if shared else 0
        text = end - sum(item.num_embeds for item in shared) + rng.randint(1, 4)
        tokens = rng.choice((4, 8, 12, 16))
        name = rng.choice(("common", "other"))
        arrival, priority = rng.randint(0, 6), rng.randint(0, 5)
        found.append(WorkloadRequest(f"r{k}", arrival, priority, shared, text, tokens, name))
    return tuple(found)


def _prompt(rng: random.Random, sizes: dict[str, int]) -> tuple[tuple[WorkloadItem, ...], str]:
    items, position = [], 0
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        position += rng.choice((0, 4, 8, 12, rng.randint(1, 9)))
        mm_hash = rng.choice(list(sizes))
        items.append(WorkloadItem(mm_hash, position, sizes[mm_hash]))
        position += sizes[mm_hash]
    return tuple(items), rng.choice(("common", "other"))


def _events(rng: random.Random, requests: tuple[WorkloadRequest, ...]) -> Iterator[Event]:
    if rng.random() < 0.3:
        victim = rng.choice(requests)
        yield Abort(victim.arrival + rng.randint(1, 6), victim.request_id)
    if rng.random() < 0.2:
        yield ResetBothSides(rng.randint(1, 12))


class RandomRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of random workloads found."""

    format: Literal["mmcache/workloads"] = "mmcache/workloads"
    format_version: Literal[1] = 1
    target: str
    like: str | None
    """The target with whose schedules they were compared."""
    first_seed: int
    workloads: int
    passes: int
    preemptions: int
    withdrawals: int
    """Passes that preempted a request for which they had allocated an input."""
    failures: dict[str, int]
    """For each clause, the number of workloads that break it."""
    examples: dict[str, int]
    """For each of these clauses, the first such workload."""
    differences: tuple[int, ...]
    """The seeds whose schedule differs from that of the other target."""


def workloads_schema() -> dict[str, Any]:
    """The JSON Schema of a `RandomRun` (draft 2020-12)."""
    return schema_of(RandomRun, "mmcache random workloads, version 1")


@dataclass(frozen=True)
class _Outcome:
    """What one workload showed.

    Attributes:
        passes: How many the engine made.
        preemptions: Of requests, in all passes.
        withdrawals: Passes that preempted a request for which they had allocated an input.
        broken: The clauses, in the order in which the judge tells them.
        differs: Whether the schedule is another than that of the target to compare with.
    """

    passes: int
    preemptions: int
    withdrawals: int
    broken: tuple[str, ...]
    differs: bool


def random_run(
    target: EngineTarget, passes: int, *, first: int = 0, like: EngineTarget | None = None
) -> RandomRun:
    """Workloads from seed `first` on, until so many passes are made.

    With `like`, the schedules of both targets are compared: tokens, encodings, reports and
    preemptions, pass by pass. Both must be started.

    Raises:
        TargetError: A target leaves out a part of a workload, so that nothing can be said of it.
    """
    names = target.name, None if like is None else like.name
    outcomes = (_outcome(target, like, seed) for seed in count(first))
    return _summed(names, passes, first, outcomes)


Opener = Callable[[str], EngineTarget]
"""From the name of an engine to the engine; a worker must be able to import it."""


def random_campaign(
    target: str,
    passes: int,
    executor: Executor,
    *,
    first: int = 0,
    like: str | None = None,
    opener: Opener = open_engine,
) -> RandomRun:
    """What `random_run` finds on the engines of these names, by the workers of an executor.

    The answer does not depend on how many workers there are: outcomes are counted in the order of
    their seeds, and what was played beyond the last pass asked for is not counted.

    Raises:
        TargetNameError: No engine has this name.
        TargetError: As `random_run`, or an engine cannot be started at a worker.
    """
    names = opener(target).name, None if like is None else opener(like).name
    outcomes = _outcomes(executor, opener, target, like, passes, first)
    return _summed(names, passes, first, outcomes)


def _outcomes(
    executor: Executor, opener: Opener, target: str, like: str | None, passes: int, first: int
) -> Iterator[_Outcome]:
    """Those of the seeds from `first` on, without end.

    Nobody knows before how many workloads make so many passes. So one share tells how long they
    are, then as many shares as that makes are handed out at once, and so on.
    """
    played, made, shares = 0, 0, 1
    while True:
        starts = [first + played + k * SHARE for k in range(shares)]
        jobs = [executor.submit(_share, opener, target, like, range(s, s + SHARE)) for s in starts]
        for job in jobs:
            for outcome in job.result():
                played, made = played + 1, made + outcome.passes
                yield outcome
        shares = max(1, -(-(passes - made) * played // (max(made, 1) * SHARE)))


def _share(opener: Opener, target: str, like: str | None, seeds: range) -> list[_Outcome]:
    """The outcomes of these seeds, on engines that are started for them."""
    engines = [opener(name) for name in (target, like) if name is not None]
    try:
        for engine in engines:
            engine.start()
        other = engines[1] if like is not None else None
        return [_outcome(engines[0], other, seed) for seed in seeds]
    finally:
        for engine in engines:
            engine.stop()


def _outcome(target: EngineTarget, like: EngineTarget | None, seed: int) -> _Outcome:
    vector = random_workload(seed)
    records = _played(target, vector)
    return _Outcome(
        passes=len(records),
        preemptions=sum(len(record.preempted) for record in records),
        withdrawals=sum(
            any(r in record.preempted for r, _ in record.allocated) for record in records
        ),
        broken=tuple(breach.clause for breach in judge(vector, records)),
        differs=like is not None and _schedule(records) != _schedule(_played(like, vector)),
    )


def _summed(
    names: tuple[str, str | None], passes: int, first: int, outcomes: Iterator[_Outcome]
) -> RandomRun:
    """The outcomes of the seeds from `first` on, up to the workload that makes the last pass."""
    counts: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    examples: dict[str, int] = {}
    differences: list[int] = []
    for seed, outcome in zip(count(first), outcomes, strict=False):
        counts["workloads"] += 1
        counts["passes"] += outcome.passes
        counts["preemptions"] += outcome.preemptions
        counts["withdrawals"] += outcome.withdrawals
        for clause in outcome.broken:
            failures[clause] += 1
            examples.setdefault(clause, seed)
        if outcome.differs:
            differences.append(seed)
        if counts["passes"] >= passes:
            break
    target, like = names
    return RandomRun(
        target=target,
        like=like,
        first_seed=first,
        workloads=counts["workloads"],
        passes=counts["passes"],
        preemptions=counts["preemptions"],
        withdrawals=counts["withdrawals"],
        failures=dict(failures),
        examples=examples,
        differences=tuple(differences),
    )


def _played(target: EngineTarget, vector: EngineVector) -> list[PassRecord]:
    records = list(target.passes(engine_case(vector)))
    left_out = unplayed(vector, records)
    if left_out is not None:
        raise TargetError(f"{target.name} on {vector.id}: {left_out}")
    return records


def _schedule(records: list[PassRecord]) -> list[PassRecord]:
    """Without what is not scheduled: the positions in which a set was listed, and who waits."""
    return [
        msgspec.structs.replace(
            r, waiting=(), references={}, hits=(), running=tuple(sorted(r.running))
        )
        for r in records
    ]
