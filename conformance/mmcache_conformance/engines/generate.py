"""From abstract paths to engine vectors.

`python -m mmcache_conformance.engines.generate [--check] [DIRECTORY]` writes them, into the package
if no directory is given, or says what differs from it.

A seed of the specification says who is admitted, preempted and looked up in which order. Here a
workload is searched whose passes, on the reference with the seed's wrong decision, contain that
path and break the clause that its end breaks, while the specified reference keeps every clause.
The search is over the small grids of `sketches.toml` in a fixed order, so the vectors are
reproducible.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Literal

import msgspec

import mmcache_vectors
from mmcache_vectors.engine import (
    ENGINE_CLAUSES,
    FORMAT,
    FORMAT_VERSION,
    EngineClause,
    EngineSettings,
    EngineVector,
    Event,
    PassesHold,
    PathProvenance,
    ResetBothSides,
    Situation,
    WorkloadItem,
    WorkloadRequest,
    content_id,
    encode,
)

from .clauses import judge
from .protocol import PassRecord, engine_case
from .reference import REFERENCE_VARIANTS, ReferenceRun, ReferenceVariant
from .situations import reaches

__all__ = ["AbstractPath", "Sketch", "contains", "generate", "load_paths", "load_sketches"]

UNIT = 4
"""Embeddings for one unit of size of the abstract path; also the block size."""
STALL_AFTER = 10
BUDGET = 64
"""Of tokens and of embeddings in one pass; more than any of these workloads can use."""
NO_CHUNKS = 64

Decision = tuple[str, str, int]
Choices = dict[str, tuple[int | str, ...]]
"""For members of a `Shape`, the values to try."""


class AbstractPath(msgspec.Struct, frozen=True):
    """A seed of the specification: an abstract path, as Z3 found it."""

    name: str
    variant: str
    breaks: EngineClause
    goal: str
    spec_digest: str
    capacity: int
    sizes: dict[str, int]
    requests: dict[str, list[str]]
    warm: list[str]
    actions: tuple[Decision, ...]


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request: text, perhaps an item, text."""

    before: int = 0
    after: int = 1
    arrival: int = 0
    priority: int = 0
    max_tokens: int = 1
    item: str | None = None
    """A hash; None for the items that the path gives the request, if any."""
    second: str | None = None
    """The hash of another item, directly after that one."""
    text: str | None = None


class Sketch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where to look for a workload, and what it is called; `sketches.toml` says what is what."""

    name: str
    path: str
    says: str
    situation: Situation
    requests: dict[str, dict[str, tuple[int | str, ...] | str]]
    blocks: tuple[int, ...]
    policy: Literal["fcfs", "priority"] = "fcfs"
    prefix_caching: bool = False
    chunk: int = NO_CHUNKS
    slots: int | None = None
    resets: tuple[int | None, ...] = (None,)
    engine: dict[str, bool | int] = {}
    proves: EngineClause | None = None
    controls: dict[str, dict[str, bool | int | str]] = {}


class _Sketches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    grid: dict[str, Choices]
    sketch: tuple[Sketch, ...]


def load_paths() -> tuple[AbstractPath, ...]:
    """The paths that Z3 found, kept beside the specification."""
    content = (files("mmcache_spec") / "generate" / "engine_seeds.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[AbstractPath, ...])


def load_sketches() -> _Sketches:
    """The sketches, and the grids that they share."""
    content = (files(__package__) / "sketches.toml").read_bytes()
    return msgspec.toml.decode(content, type=_Sketches)


# --- from a point of the grid to a vector ------------------------------------------------------


def _candidates(
    sketch: Sketch, path: AbstractPath, grids: Mapping[str, Choices]
) -> Iterator[EngineVector]:
    shapes = [_shapes(choices, grids) for choices in sketch.requests.values()]
    for blocks, reset in product(sketch.blocks, sketch.resets):
        for chosen in product(*shapes):
            named = dict(zip(sketch.requests, chosen, strict=True))
            yield _vector(sketch, path, blocks, named, reset)


def _shapes(
    choices: Mapping[str, tuple[int | str, ...] | str], grids: Mapping[str, Choices]
) -> list[Shape]:
    """All shapes that the choices allow, the last member varying fastest."""
    named = choices.get("shapes")
    ranges = grids[named] if isinstance(named, str) else choices
    return [
        msgspec.convert(dict(zip(ranges, values, strict=True)), Shape)
        for values in product(*ranges.values())
    ]


def _vector(
    sketch: Sketch, path: AbstractPath, blocks: int, shapes: Mapping[str, Shape], reset: int | None
) -> EngineVector:
    warm = [_request(f"warm-{h}", Shape(item=h), path) for h in path.warm]
    slots = path.capacity if sketch.slots is None else sketch.slots
    engine = EngineSettings(
        cache_size=slots * UNIT,
        encoder_budget=BUDGET,
        num_blocks=blocks,
        block_size=UNIT,
        chunk_size=sketch.chunk,
        token_budget=BUDGET,
        policy=sketch.policy,
        prefix_caching=sketch.prefix_caching,
    )
    engine = msgspec.structs.replace(engine, **sketch.engine)
    requests = (*warm, *(_request(name, shape, path) for name, shape in shapes.items()))
    events: tuple[Event, ...] = () if reset is None else (ResetBothSides(reset),)
    return EngineVector(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        id=sketch.name,
        description=sketch.says,
        variant=path.variant,
        clauses=(sketch.proves or path.breaks,),
        kills=(),
        situation=sketch.situation,
        provenance=PathProvenance(path.spec_digest, "z3", path.goal, path.actions),
        engine=engine,
        requests=requests,
        events=events,
        expect=PassesHold(ENGINE_CLAUSES, stall_after=STALL_AFTER, max_passes=100),
    )


def _request(name: str, shape: Shape, path: AbstractPath) -> WorkloadRequest:
    of_path = path.requests.get(name, [])
    hashes = [shape.item] if shape.item is not None else list(of_path)
    hashes += [] if shape.second is None else [shape.second]
    items, position = [], shape.before
    for mm_hash in hashes:
        size = path.sizes.get(mm_hash, 1) * UNIT
        items.append(WorkloadItem(mm_hash, position, size))
        position += size
    return WorkloadRequest(
        request_id=name,
        arrival=shape.arrival,
        priority=shape.priority,
        items=tuple(items),
        num_text_tokens=shape.before + shape.after,
        max_tokens=shape.max_tokens,
        text=shape.text or name,
    )


# --- the search --------------------------------------------------------------------------------


def generate() -> list[EngineVector]:
    """All engine vectors, sorted by id."""
    paths = {path.name: path for path in load_paths()}
    sketches = load_sketches()
    found: list[EngineVector] = []
    for sketch in sketches.sketch:
        path = paths[sketch.path]
        candidates = _candidates(sketch, path, sketches.grid)
        vector = next((v for v in candidates if _fits(v, path)), None)
        if vector is None:
            raise ValueError(f"{sketch.name}: no workload of the grid contains the path")
        found.append(_finished(vector))
        found += (_control(vector, name, change) for name, change in sketch.controls.items())
    return sorted(found, key=lambda vector: vector.id)


def _fits(vector: EngineVector, path: AbstractPath) -> bool:
    """The wrong decision breaks the clause through the path; the specified one breaks nothing."""
    (clause,) = vector.clauses
    # The clauses that the same mistake breaks sooner are not what this is about.
    only = msgspec.structs.replace(vector.expect, every_pass=vector.clauses)
    aimed = msgspec.structs.replace(vector, expect=only)
    records, decisions = _run(REFERENCE_VARIANTS[vector.variant], aimed)
    broken = [breach.clause for breach in judge(aimed, records)]
    if broken != [clause] or not contains(decisions, path.actions):
        return False
    records, _ = _run(REFERENCE_VARIANTS["specified"], vector)
    return not judge(vector, records) and reaches(vector, records) is True


def contains(decisions: Sequence[Decision], path: Sequence[Decision]) -> bool:
    """Whether the path is among the decisions, in order, whatever their numbers of tokens.

    Acceptance and rejection leave no trace in the decisions.
    """
    remaining = (_untimed(d) for d in decisions)
    return all(any(d == tuple(a) for d in remaining) for a in path if a[0] not in UNTRACED)


UNTRACED = frozenset({"accept", "reject"})


def _untimed(decision: Decision) -> Decision:
    name, request, number = decision
    return name, request, -1 if name in ("schedule", "prefix_hit") else number


def _run(
    variant: ReferenceVariant, vector: EngineVector
) -> tuple[list[PassRecord], list[Decision]]:
    run = ReferenceRun(variant, engine_case(vector))
    records: list[PassRecord] = []
    while run.number < vector.expect.max_passes and not run.over:
        records.append(run.step())
    return records, run.decisions


def _finished(vector: EngineVector) -> EngineVector:
    """With the generous bound on passes, everything that it kills, and its id."""
    records, _ = _run(REFERENCE_VARIANTS["specified"], vector)
    bound = msgspec.structs.replace(vector.expect, max_passes=4 * len(records) + STALL_AFTER)
    vector = msgspec.structs.replace(vector, expect=bound)
    kills = [
        name
        for name, variant in REFERENCE_VARIANTS.items()
        if judge(vector, _run(variant, vector)[0])
    ]
    parts = (vector.engine, vector.requests, vector.events, vector.expect)
    identity = content_id(vector.id, *parts)
    return msgspec.structs.replace(vector, id=identity, kills=tuple(sorted(kills)))


def _control(vector: EngineVector, name: str, change: Mapping[str, object]) -> EngineVector:
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


# --- the files ---------------------------------------------------------------------------------


def differences(directory: Path, contents: Mapping[str, bytes]) -> list[str]:
    """What is wrong with the files of the directory, one line each."""
    here = {file.name: file.read_bytes() for file in directory.glob("*.json")}
    told = [f"{name}: missing" for name in contents if name not in here]
    told += [f"{name}: not generated" for name in here if name not in contents]
    told += [f"{n}: differs" for n in contents if n in here and here[n] != contents[n]]
    return sorted(told)


def main(arguments: Sequence[str]) -> int:
    """Write the vectors, or check that they are what would be written. The exit code."""
    check = "--check" in arguments
    named = [Path(word) for word in arguments if word != "--check"]
    packaged = Path(mmcache_vectors.__path__[0]) / "engine_vectors"
    directory = named[0] if named else packaged
    contents = {f"{vector.id}.json": encode(vector) for vector in generate()}
    if check:
        wrong = differences(directory, contents)
        told = wrong or [f"{len(contents)} engine vectors are as generated"]
        sys.stdout.write("".join(f"{line}\n" for line in told))
        return 1 if wrong else 0
    directory.mkdir(exist_ok=True)
    for old in directory.glob("*.json"):
        old.unlink()
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    sys.stdout.write(f"{len(contents)} engine vectors in {directory}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
