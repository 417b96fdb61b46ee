"""The deep size of the suite: long seeded walks through larger worlds.

A walk makes calls that the specification allows, one after the other. Its seed fixes everything, so
the vectors are the same, byte for byte, wherever they are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from random import Random

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Parameters,
    Provenance,
    Request,
    Reset,
    Step,
    Vector,
    content_id,
)

from ..kernel.system import TransitionSystem
from ..oracle import Replay
from .managers import MANAGERS, digest, specified

__all__ = ["WALKS", "walks"]

WALKS = 50
"""Walks for each manager."""

LENGTH = 40
"""Calls of a walk."""


def walks(executor: Executor) -> Iterator[Vector]:
    """Every vector of the deep size."""
    names = [name for name in MANAGERS for _ in range(WALKS)]
    seeds = [seed for _ in MANAGERS for seed in range(WALKS)]
    yield from executor.map(_walk, names, seeds, chunksize=5)


def _walk(system_name: str, seed: int) -> Vector:
    random = Random(f"{system_name} {seed}")
    system = specified(system_name)
    parameters = _parameters(random)
    replay = Replay(system, parameters)
    steps: list[Step] = []
    while len(steps) < LENGTH:
        call = _call(random, parameters)
        if isinstance(call, Allocate) and not _made_room(replay, steps, random, parameters, call):
            continue
        answer = replay.answer(call)
        if answer is not None:
            steps.append(Step(call, answer))
    steps = steps[:LENGTH]
    return _vector(system, seed, parameters, tuple(steps), replay)


def _made_room(
    replay: Replay, steps: list[Step], random: Random, parameters: Parameters, call: Allocate
) -> bool:
    """Ask for admission first, as a scheduler does, with a budget that mostly suffices."""
    size = _item(parameters, call).num_embeds
    ask = CanAllocate(call.request, call.input_id, size + random.choice((0, 0, 3)), 0)
    answer = replay.answer(ask)
    if answer is None:
        return True
    steps.append(Step(ask, answer))
    return answer.returns is True


def _item(parameters: Parameters, call: Allocate) -> Item:
    (request,) = (r for r in parameters.requests if r.request_id == call.request)
    return request.items[call.input_id]


def _parameters(random: Random) -> Parameters:
    sizes = {name: random.randint(1, 6) for name in "ABCDEF"}
    requests = []
    for number in range(1, 5):
        names = random.choices(sorted(sizes), k=random.randint(1, 4))
        items = tuple(Item(name, sizes[name]) for name in names)
        requests.append(Request(f"r{number}", items))
    return Parameters(random.randint(6, 12), tuple(requests))


def _call(random: Random, parameters: Parameters) -> Call:
    request = random.choice(parameters.requests)
    r, k = request.request_id, random.randrange(len(request.items))
    size = request.items[k].num_embeds
    kind = random.choices(range(7), weights=(5, 2, 6, 5, 1, 2, 0.2))[0]
    budget = size + random.randint(-1, 4)
    choices: tuple[Call, ...] = (
        CheckAndUpdateCache(r, k),
        CanAllocate(r, k, budget, random.randint(0, 3)),
        Allocate(r, k),
        FreeEncoderInput(r, k),
        Free(r),
        GetFreedMmHashes(),
        Reset(),
    )
    return choices[kind]


def _vector(
    system: TransitionSystem,
    seed: int,
    parameters: Parameters,
    steps: tuple[Step, ...],
    replay: Replay,
) -> Vector:
    manager = MANAGERS[system.name]
    return Vector(
        format="mmcache/vector",
        format_version=1,
        id=content_id(f"{system.name.replace('_', '-')}-walk-{seed}", manager, parameters, steps),
        description=f"A random walk of {len(steps)} calls.",
        manager=manager,
        goal=f"walk {seed}",
        variant="specified",
        clauses=(),
        kills=(),
        requires=("allocate_again",) if "allocate_again" in replay.used else (),
        provenance=Provenance(spec_digest=digest(system), solver="none", seed=seed),
        parameters=parameters,
        steps=steps,
    )
