"""From abstract paths to engine vectors.

`python -m mmcache_conformance.engines.generate DIRECTORY` writes them.

A seed of the specification says who is admitted, preempted and looked up in which order. Here a
workload is searched whose passes, on the reference with the seed's wrong decision, contain that
path and break the clause that its end breaks, while the specified reference keeps every clause.
The search is over a small grid in a fixed order, so the vectors are reproducible.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Literal

import msgspec

from mmcache_vectors.engine import (
    Clause,
    Engine,
    Event,
    PassesHold,
    ResetBothSides,
    Situation,
    SystemItem,
    SystemProvenance,
    SystemRequest,
    SystemVector,
    encode_system,
    system_content_id,
)

from .judge import judge, reaches
from .protocol import PassRecord, case_of_system
from .reference import REFERENCE_VARIANTS, ReferenceRun, ReferenceVariant

__all__ = ["Seed", "contains", "generate_system", "load_seeds"]

ALL: tuple[Clause, ...] = ("S1", "L1", "S2", "S3", "S4", "S5", "S7", "S8")
SIZE = 4
"""Embeddings for one unit of size of the abstract path; also the block size."""
STALL_AFTER = 10


class Seed(msgspec.Struct, frozen=True):
    """An abstract path, as the specification prints it."""

    name: str
    variant: str
    breaks: str
    goal: str
    spec_digest: str
    capacity: int
    sizes: dict[str, int]
    requests: dict[str, list[str]]
    warm: list[str]
    actions: tuple[tuple[str, str, int], ...]


def load_seeds() -> tuple[Seed, ...]:
    """The paths that Z3 found, kept beside the vector format."""
    content = (files("mmcache_spec") / "generate" / "engine_seeds.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[Seed, ...])


# --- the grid ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A request: text, perhaps an item, text."""

    before: int = 0
    after: int = 1
    arrival: int = 0
    priority: int = 0
    max_tokens: int = 1
    item: str | None = None
    """A hash; None for the item that the path gives the request, if any."""
    second: str | None = None
    """The hash of another item, directly after that one."""
    text: str | None = None


@dataclass(frozen=True)
class Sketch:
    """Where to look for a workload, and what it is called."""

    name: str
    seed: str
    says: str
    situation: Situation | None
    shapes: Mapping[str, Sequence[Shape]]
    """For every request, the shapes to try. Names that the path does not have are helpers."""
    blocks: Sequence[int]
    policy: Literal["fcfs", "priority"] = "fcfs"
    prefix_caching: bool = False
    chunk: int = 64
    slots: int | None = None
    """The capacity in items; None for the capacity of the path."""
    resets: Sequence[int | None] = (None,)
    engine: Mapping[str, object] = field(default_factory=dict)
    """What else is special about the configuration."""
    proves: str | None = None
    """The clause to break, where it is not the seed's."""
    controls: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Under a name each: changes of the configuration with which the mistake does no harm."""


def _shapes(**ranges: Sequence[int]) -> list[Shape]:
    return [
        Shape(**dict(zip(ranges, values, strict=True)))  # type: ignore[arg-type]
        for values in product(*ranges.values())
    ]


HOG = _shapes(before=(3,), arrival=(0, 1, 2), max_tokens=(2, 4, 8), priority=(0,))
VICTIM = _shapes(before=(0, 4, 8), after=(1, 4), priority=(10,))
EARLIER = _shapes(before=(8, 12), after=(1, 4), priority=(10,))
SHARER = _shapes(before=(4, 8), after=(1, 4), arrival=(0, 1), priority=(5,))
LATER = _shapes(before=(0,), after=(1,), arrival=(2, 3, 4, 5), priority=(0, 1))
COMPANY = [Shape(priority=10)]
"""vLLM cuts no prompt into chunks while there is only one request."""

SKETCHES = (
    Sketch(
        "phantom-entry-later-pass",
        "phantom-entry-later-pass",
        "A request is preempted in the pass that was to encode its item, and resumes later.",
        "encoding_withdrawn",
        {"r1": VICTIM, "company": COMPANY, "high": HOG},
        range(3, 7),
        policy="priority",
        chunk=4,
        slots=2,
        controls={"phantom-entry-fcfs-control": {"policy": "fcfs"}},
    ),
    Sketch(
        "phantom-entry-bystander",
        "phantom-entry-bystander",
        "A request is preempted in the pass that was to encode its item; another request brings "
        "the same item before it resumes.",
        "encoding_withdrawn",
        {"r1": VICTIM, "company": COMPANY, "high": HOG, "r2": LATER},
        range(3, 8),
        policy="priority",
        chunk=4,
        slots=2,
    ),
    Sketch(
        "phantom-entry-same-pass",
        "phantom-entry-same-pass",
        "A request is preempted in the pass that was to encode its item, after another request "
        "has hit the entry in that very pass.",
        "encoding_shared_when_withdrawn",
        {"r1": EARLIER, "r2": SHARER, "company": COMPANY, "high": HOG},
        range(5, 11),
        policy="priority",
        chunk=4,
        slots=2,
    ),
    Sketch(
        "stripped-payload",
        "stripped-payload",
        "A prefix hit covers the item of a request when it first runs; then it is preempted, its "
        "prefix and the item's entry are lost, and the item must be encoded after all.",
        "encoded_after_prefix_hit",
        {
            "donor": [Shape(before=4, after=1, item="A", text="common")],
            "other": [Shape(after=4, arrival=1, max_tokens=n, item="Z") for n in (8, 16)],
            "r1": [
                Shape(before=4, after=after, arrival=arrival, text="common", max_tokens=tokens)
                for arrival in (2, 3)
                for after in (4, 1)
                for tokens in (1, 4, 8)
            ],
        },
        range(4, 8),
        prefix_caching=True,
        slots=1,
        controls={"stripped-payload-no-prefix-caching-control": {"prefix_caching": False}},
    ),
    Sketch(
        "waiting-keeps-references",
        "waiting-keeps-references",
        "A waiting request hits an entry and gets no blocks.",
        "hit_while_waiting",
        {
            "r1": _shapes(before=(0,), after=(1,), max_tokens=(1, 4)),
            "r2": _shapes(before=(0,), after=(1, 4)),
        },
        range(2, 5),
        slots=1,
    ),
    Sketch(
        "waiting-stall",
        "waiting-keeps-references",
        "A waiting request that keeps its hits leaves no room for the item of a running one, and "
        "gets no blocks as long as that one runs.",
        "hit_while_waiting",
        {
            "r1": _shapes(before=(0,), after=(1,), max_tokens=(1,)),
            "long": [
                Shape(before=before, after=1, item="Z", arrival=arrival, max_tokens=2)
                for before in (8, 12)
                for arrival in (0, 1)
            ],
            "r2": _shapes(before=(0,), after=(8, 12), arrival=(1, 2)),
        },
        range(4, 8),
        chunk=4,
        slots=1,
        proves="S7",
    ),
    Sketch(
        "skipped-keeps-references",
        "skipped-keeps-references",
        "A prefix hit of a waiting request ends one token before the end of its first item, which "
        "it hits; the next one would have to be computed whole, and the pass has not the tokens "
        "for that. The look-ahead takes the rest: no token is left, and the request is skipped.",
        "hit_while_waiting",
        {
            "r1": [Shape(before=1, after=1, max_tokens=n, text="common") for n in (4, 8)],
            "r2": [
                Shape(before=1, after=1, arrival=n, second="Z", text="common") for n in (1, 2, 3)
            ],
        },
        range(4, 8),
        prefix_caching=True,
        slots=2,
        engine={"token_budget": 5, "lookahead": 1, "chunked_items": False},
        controls={
            "skipped-chunked-control": {"chunked_items": True},
            "skipped-no-lookahead-control": {"lookahead": 0},
        },
    ),
    Sketch(
        "reallocated-then-dropped",
        "reallocated-then-dropped",
        "One pass evicts an entry and allocates its hash again; the next pass still needs it.",
        "encoded_while_held",
        {
            "r1": _shapes(before=(0,), after=(1,), arrival=(2, 3)),
            "r2": _shapes(before=(0,), after=(1,), arrival=(2, 3)),
        },
        range(6, 9),
        chunk=3,
    ),
    Sketch(
        "reallocated-not-encoded",
        "reallocated-not-encoded",
        "One pass evicts an entry and allocates its hash again, and the worker still holds it.",
        "encoded_while_held",
        {
            "r1": _shapes(before=(0,), after=(1,), arrival=(2, 3)),
            "r2": _shapes(before=(0,), after=(1,), arrival=(2, 3)),
        },
        range(6, 9),
    ),
    Sketch(
        "retain-everything",
        "retain-everything",
        "One item after the other passes through a cache that has room for one.",
        "hash_dropped",
        {"r1": _shapes(before=(0,), after=(1,), arrival=(1, 2))},
        range(4, 6),
    ),
    Sketch(
        "reset-only-scheduler",
        "reset-only-scheduler",
        "The cache is reset between two passes.",
        "reset_while_held",
        {"r1": _shapes(before=(0,), after=(1,), max_tokens=(2, 4))},
        range(4, 6),
        resets=(1, 2),
    ),
)


# --- from a point of the grid to a vector ------------------------------------------------------


def _candidates(sketch: Sketch, seed: Seed) -> Iterator[SystemVector]:
    for blocks, reset in product(sketch.blocks, sketch.resets):
        for chosen in product(*sketch.shapes.values()):
            named = dict(zip(sketch.shapes, chosen, strict=True))
            yield _vector(sketch, seed, blocks, named, reset)


def _vector(
    sketch: Sketch, seed: Seed, blocks: int, shapes: Mapping[str, Shape], reset: int | None
) -> SystemVector:
    warm = [_request(f"warm-{h}", Shape(item=h), seed) for h in seed.warm]
    slots = seed.capacity if sketch.slots is None else sketch.slots
    engine = Engine(
        cache_size=slots * SIZE,
        encoder_budget=64,
        num_blocks=blocks,
        block_size=SIZE,
        chunk_size=sketch.chunk,
        token_budget=64,
        policy=sketch.policy,
        prefix_caching=sketch.prefix_caching,
    )
    engine = msgspec.structs.replace(engine, **sketch.engine)
    requests = (*warm, *(_request(name, shape, seed) for name, shape in shapes.items()))
    events: tuple[Event, ...] = () if reset is None else (ResetBothSides(reset),)
    return SystemVector(
        format="mmcache/system-vector",
        format_version=1,
        id=sketch.name,
        description=sketch.says,
        variant=seed.variant,
        clauses=(sketch.proves or seed.breaks,),
        kills=(),
        situation=sketch.situation,
        provenance=SystemProvenance(seed.spec_digest, "z3", seed.goal, seed.actions),
        engine=engine,
        requests=requests,
        events=events,
        expect=PassesHold(ALL, stall_after=STALL_AFTER, max_passes=100),
    )


def _request(name: str, shape: Shape, seed: Seed) -> SystemRequest:
    of_path = seed.requests.get(name, [])
    hashes = [shape.item] if shape.item is not None else list(of_path)
    hashes += [] if shape.second is None else [shape.second]
    items, position = [], shape.before
    for mm_hash in hashes:
        size = seed.sizes.get(mm_hash, 1) * SIZE
        items.append(SystemItem(mm_hash, position, size))
        position += size
    return SystemRequest(
        request_id=name,
        arrival=shape.arrival,
        priority=shape.priority,
        items=tuple(items),
        num_text_tokens=shape.before + shape.after,
        max_tokens=shape.max_tokens,
        text=shape.text or name,
    )


def _named(vector: SystemVector) -> SystemVector:
    identity = system_content_id(
        vector.id, vector.engine, vector.requests, vector.events, vector.expect
    )
    return msgspec.structs.replace(vector, id=identity)


# --- the search --------------------------------------------------------------------------------


def generate_system() -> list[SystemVector]:
    """All system vectors, sorted by id."""
    seeds = {seed.name: seed for seed in load_seeds()}
    found: list[SystemVector] = []
    for sketch in SKETCHES:
        seed = seeds[sketch.seed]
        vector = next((v for v in _candidates(sketch, seed) if _fits(v, seed)), None)
        if vector is None:
            raise ValueError(f"{sketch.name}: no workload of the grid contains the path")
        found.append(_finished(vector))
        found += (_control(vector, name, change) for name, change in sketch.controls.items())
    return sorted(found, key=lambda vector: vector.id)


def _fits(vector: SystemVector, seed: Seed) -> bool:
    """The wrong decision breaks the clause through the path; the specified one breaks nothing."""
    (clause,) = vector.clauses
    # The clauses that the same mistake breaks sooner are not what this is about.
    only = msgspec.structs.replace(vector.expect, every_pass=vector.clauses)
    aimed = msgspec.structs.replace(vector, expect=only)
    records, decisions = _run(REFERENCE_VARIANTS[vector.variant], aimed)
    broken = [breach.clause for breach in judge(aimed, records)]
    if broken != [clause] or not contains(decisions, seed.actions):
        return False
    records, _ = _run(REFERENCE_VARIANTS["specified"], vector)
    return not judge(vector, records) and reaches(vector, records) is True


def contains(
    decisions: Sequence[tuple[str, str, int]], path: Sequence[tuple[str, str, int]]
) -> bool:
    """Whether the path is among the decisions, in order, whatever their numbers of tokens.

    Acceptance and rejection leave no trace in the decisions.
    """
    remaining = (_untimed(d) for d in decisions)
    return all(any(d == tuple(a) for d in remaining) for a in path if a[0] not in UNTRACED)


UNTRACED = frozenset({"accept", "reject"})


def _untimed(decision: tuple[str, str, int]) -> tuple[str, str, int]:
    name, request, number = decision
    return name, request, -1 if name in ("schedule", "prefix_hit") else number


def _run(
    variant: ReferenceVariant, vector: SystemVector
) -> tuple[list[PassRecord], list[tuple[str, str, int]]]:
    run = ReferenceRun(importlib.import_module("mmcache"), variant, case_of_system(vector))
    records: list[PassRecord] = []
    while run.number < vector.expect.max_passes and not run.over:
        records.append(run.step())
    return records, run.decisions


def _finished(vector: SystemVector) -> SystemVector:
    """With the generous bound on passes, and everything that it kills."""
    records, _ = _run(REFERENCE_VARIANTS["specified"], vector)
    bound = msgspec.structs.replace(vector.expect, max_passes=4 * len(records) + STALL_AFTER)
    vector = msgspec.structs.replace(vector, expect=bound)
    kills = [
        name
        for name, variant in REFERENCE_VARIANTS.items()
        if judge(vector, _run(variant, vector)[0])
    ]
    return _named(msgspec.structs.replace(vector, kills=tuple(sorted(kills))))


def _control(vector: SystemVector, name: str, change: Mapping[str, object]) -> SystemVector:
    """The same workload under a configuration in which the mistake does no harm."""
    says = ", ".join(f"{key} = {value}" for key, value in change.items())
    control = msgspec.structs.replace(
        vector,
        id=name,
        description=f"A control. {vector.description} Here with {says}: no harm is done.",
        variant="specified",
        clauses=(),
        situation=None,
        engine=msgspec.structs.replace(vector.engine, **change),
    )
    finished = _finished(control)
    if vector.variant in finished.kills:
        raise ValueError(f"{name}: not a control, {vector.variant} fails on it")
    return finished


def main() -> None:
    """Write the vectors into the directory that the command line names."""
    (directory,) = map(Path, sys.argv[1:])
    directory.mkdir(exist_ok=True)
    for old in directory.glob("*.json"):
        old.unlink()
    for vector in generate_system():
        (directory / f"{vector.id}.json").write_bytes(encode_system(vector))
        sys.stdout.write(f"{vector.id}  kills {', '.join(vector.kills) or 'nothing'}\n")


if __name__ == "__main__":
    main()
