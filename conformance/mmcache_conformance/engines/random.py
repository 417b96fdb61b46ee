"""Random workloads for engines: small caches, few hashes, short of blocks, aborts and resets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from mmcache_vectors.engine import (
    Abort,
    Engine,
    Event,
    PassesHold,
    ResetBothSides,
    SystemItem,
    SystemProvenance,
    SystemRequest,
    SystemVector,
)

from .judge import judge
from .protocol import PassRecord, SystemTarget, case_of_system

__all__ = ["Tally", "random_run", "random_workload"]

BLOCK = 4
MAX_PASSES = 1000


def random_workload(seed: int) -> SystemVector:
    """A workload that an engine can finish: every request could be served alone.

    Half of them are under the policy `priority`, and half have prefix caching, independently.
    """
    rng = random.Random(seed)
    sizes = {h: rng.randint(1, 6) for h in "ABCDE"[: rng.randint(2, 5)]}
    urgent = rng.random() < 0.5
    requests = _urgent(rng, sizes) if urgent else _requests(rng, sizes)
    longest = max(r.num_prompt_tokens + r.max_tokens for r in requests)
    engine = Engine(
        cache_size=max(sizes.values()) + rng.choice((0, 0, 1, 3, 8)),
        encoder_budget=rng.choice((max(sizes.values()), 64)),
        num_blocks=-(-longest // BLOCK) + rng.choice((0, 1) if urgent else (0, 1, 2, 4)),
        block_size=BLOCK,
        chunk_size=rng.choice((2, 4, 4, 8, 64)[: 4 if urgent else 5]),
        token_budget=rng.choice((8, 16, 64)),
        policy="priority" if seed % 2 else "fcfs",
        prefix_caching=seed % 4 >= 2,
    )
    return SystemVector(
        format="mmcache/system-vector",
        format_version=1,
        id=f"random-{seed}",
        description="A random workload.",
        variant="specified",
        clauses=(),
        kills=(),
        situation=None,
        provenance=SystemProvenance("", "none", f"random workload {seed}", ()),
        engine=engine,
        requests=requests,
        events=tuple(_events(rng, requests)),
        expect=PassesHold(
            ("S1", "L1", "S2", "S3", "S4", "S5", "S7", "S8"), stall_after=20, max_passes=MAX_PASSES
        ),
    )


def _requests(rng: random.Random, sizes: dict[str, int]) -> tuple[SystemRequest, ...]:
    """Every other one begins like an earlier one; later ones are more urgent, as a rule."""
    found: list[SystemRequest] = []
    for k in range(rng.randint(2, 9)):
        arrival = rng.randint(0, 12)
        earlier = rng.choice(found) if found and rng.random() < 0.5 else None
        items, text = (earlier.items, earlier.text) if earlier else _prompt(rng, sizes)
        gaps = items[-1].position + items[-1].num_embeds if items else 0
        found.append(
            SystemRequest(
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


def _urgent(rng: random.Random, sizes: dict[str, int]) -> tuple[SystemRequest, ...]:
    """A long prompt, and requests that overtake it and take its blocks while it is computed."""
    names = [rng.choice(list(sizes)) for _ in range(rng.randint(2, 4))]
    items, position = [], 0
    for mm_hash in names:
        position += rng.choice((2, 4, 8))
        items.append(SystemItem(mm_hash, position, sizes[mm_hash]))
        position += sizes[mm_hash]
    embeds = sum(item.num_embeds for item in items)
    found = [SystemRequest("r0", 0, 9, tuple(items), position - embeds + 1, 1, "common")]
    for k in range(1, rng.randint(3, 6)):
        shared = tuple(items[: rng.choice((0, 0, 1, 2))])
        end = shared[-1].position + shared[-1].num_embeds if shared else 0
        text = end - sum(item.num_embeds for item in shared) + rng.randint(1, 4)
        tokens = rng.choice((4, 8, 12, 16))
        name = rng.choice(("common", "other"))
        arrival, priority = rng.randint(0, 6), rng.randint(0, 5)
        found.append(SystemRequest(f"r{k}", arrival, priority, shared, text, tokens, name))
    return tuple(found)


def _prompt(rng: random.Random, sizes: dict[str, int]) -> tuple[tuple[SystemItem, ...], str]:
    items, position = [], 0
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        position += rng.choice((0, 4, 8, 12, rng.randint(1, 9)))
        mm_hash = rng.choice(list(sizes))
        items.append(SystemItem(mm_hash, position, sizes[mm_hash]))
        position += sizes[mm_hash]
    return tuple(items), rng.choice(("common", "other"))


def _events(rng: random.Random, requests: tuple[SystemRequest, ...]) -> Iterator[Event]:
    if rng.random() < 0.3:
        victim = rng.choice(requests)
        yield Abort(victim.arrival + rng.randint(1, 6), victim.request_id)
    if rng.random() < 0.2:
        yield ResetBothSides(rng.randint(1, 12))


@dataclass
class Tally:
    """What a run of random workloads found."""

    workloads: int = 0
    passes: int = 0
    preemptions: int = 0
    withdrawals: int = 0
    """Passes that preempted a request for which they had allocated an input."""
    failures: Counter[str] = field(default_factory=Counter)
    """For each clause, the number of workloads that break it."""
    examples: dict[str, int] = field(default_factory=dict)
    """For each of these clauses, the first such workload."""
    differences: list[int] = field(default_factory=list)
    """The seeds whose schedule differs from that of the other target."""


def random_run(
    target: SystemTarget, passes: int, *, first: int = 0, like: SystemTarget | None = None
) -> Tally:
    """Workloads from seed `first` on, until so many passes are made.

    With `like`, the schedules of both targets are compared: tokens, encodings, reports and
    preemptions, pass by pass. Both must be started.
    """
    tally, seed = Tally(), first
    while tally.passes < passes:
        vector = random_workload(seed)
        case = case_of_system(vector)
        records = list(target.run(case))
        tally.workloads += 1
        tally.passes += len(records)
        for record in records:
            tally.preemptions += len(record.preempted)
            tally.withdrawals += any(r in record.preempted for r, _ in record.allocated)
        for breach in judge(vector, records):
            tally.failures[breach.clause] += 1
            tally.examples.setdefault(breach.clause, seed)
        if like is not None and _schedule(records) != _schedule(list(like.run(case))):
            tally.differences.append(seed)
        seed += 1
    return tally


def _schedule(records: list[PassRecord]) -> list[PassRecord]:
    """Without what is not scheduled: the positions in which a set was listed, and who waits."""
    return [
        msgspec.structs.replace(
            r, waiting=(), references={}, hits=(), running=tuple(sorted(r.running))
        )
        for r in records
    ]
