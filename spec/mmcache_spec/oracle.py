"""A manager made of the spec: vector calls in, the specified answers out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import astuple

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Observed,
    Parameters,
    Request,
    Reset,
    Vector,
)
from mmcache_vectors.manager import Step as VectorStep

from .evaluate.interpreter import ActionCall, Interpreter, State, Step, World
from .kernel.system import TransitionSystem
from .model.releases import RELEASES

__all__ = [
    "Replay",
    "agrees",
    "answers_otherwise",
    "by_age",
    "input_name",
    "observe",
    "parameters_of",
    "predicted_failures",
    "recorded",
    "shown_name",
    "spec_calls",
    "twins_of",
    "vector_call",
    "world_of",
]


def input_name(request: str, input_id: int) -> str:
    """The spec's name for a position of a request."""
    return f"{request}/{input_id}"


def world_of(parameters: Parameters) -> World:
    """The spec's world for the parameters of a vector.

    A hash has one size. Where an identifier is given two, each is a hash of its own, and
    `identifier` says what both are called; see `Replay`.
    """
    inputs = {
        input_name(r.request_id, k): (r.request_id, k, item)
        for r in parameters.requests
        for k, item in enumerate(r.items)
    }
    named = _hash_names(item for _, _, item in inputs.values())
    sizes = {named[item]: item.num_embeds for _, _, item in inputs.values()}
    return World(
        universe={
            "Hash": tuple(sorted(sizes)),
            "Request": tuple(r.request_id for r in parameters.requests),
            "Input": tuple(inputs),
        },
        constants={"capacity": parameters.cache_size},
        functions={
            "size": sizes,
            "hash_of": {i: named[item] for i, (_, _, item) in inputs.items()},
            "identifier": {name: item.identifier for item, name in named.items()},
            "owner": {i: request for i, (request, _, _) in inputs.items()},
            "position": {i: k for i, (_, k, _) in inputs.items()},
            "inputs_of": {r.request_id: len(r.items) for r in parameters.requests},
            "embeds": {i: item.num_embeds for i, (_, _, item) in inputs.items()},
        },
    )


def _hash_names(items: Iterable[Item]) -> dict[Item, str]:
    """What each item's hash is called in the spec: as it is, if it has one size."""
    distinct = dict.fromkeys(items)
    sizes = Counter(item.identifier for item in distinct)
    return {
        item: item.identifier
        if sizes[item.identifier] == 1
        else f"{item.identifier} of {item.num_embeds} embeddings"
        for item in distinct
    }


def parameters_of(world: World) -> tuple[Parameters, dict[str, tuple[str, int]]]:
    """The parameters for a world, and the request and input id of each of its inputs."""
    hash_of, owner = world.functions["hash_of"], world.functions["owner"]
    position, size = world.functions["position"], world.functions["size"]
    requests, places = [], {}
    for r in world.universe["Request"]:
        mine = sorted(
            (i for i in world.universe["Input"] if owner[i] == r), key=position.__getitem__
        )
        places.update({i: (r, k) for k, i in enumerate(mine)})
        items = tuple(Item(hash_of[i], size[hash_of[i]]) for i in mine)
        requests.append(Request(r, items))
    return Parameters(world.constants["capacity"], tuple(requests)), places


def vector_call(call: ActionCall, places: dict[str, tuple[str, int]]) -> Call:
    """The call of the API that an action of the spec stands for."""
    given = call.arguments
    request, input_id = places.get(given.get("input", ""), ("", 0))
    match call.action:
        case "check_and_update_cache":
            return CheckAndUpdateCache(request, input_id)
        case "can_allocate":
            budget, pending = given["encoder_compute_budget"], given["num_embeds_to_schedule"]
            return CanAllocate(request, input_id, budget, pending)
        case "allocate" | "allocate_again":
            return Allocate(request, input_id)
        case "free_encoder_input":
            return FreeEncoderInput(request, input_id)
        case "free":
            return Free(given["request"])
        case "get_freed_mm_hashes":
            return GetFreedMmHashes()
        case "reset":
            return Reset()
    raise ValueError(f"no call for {call.action}")


def spec_calls(system: TransitionSystem, call: Call) -> tuple[ActionCall, ...]:
    """The actions of the spec that a call may be: the guards of at most one of them allow it."""
    known = {action.name for action in system.actions}
    name = str(call.__struct_config__.tag)
    arguments = _arguments(call)
    return tuple(ActionCall(a, arguments) for a in (name, f"{name}_again") if a in known)


def _arguments(call: Call) -> dict[str, Any]:
    match call:
        case CheckAndUpdateCache(r, k) | Allocate(r, k) | FreeEncoderInput(r, k):
            return {"input": input_name(r, k)}
        case CanAllocate(r, k, budget, pending):
            return {
                "input": input_name(r, k),
                "encoder_compute_budget": budget,
                "num_embeds_to_schedule": pending,
            }
        case Free(r):
            return {"request": r}
        case GetFreedMmHashes() | Reset():
            return {}


def recorded(state: State) -> dict[str, Any]:
    """The state of a manager, and the record that an observer of its calls has by now.

    Of a right manager, that is: its record is what its state says. The state of a design that is
    judged must not be given a record in this way.
    """
    if "outstanding" in state:
        record = {
            "needed": state["outstanding"],
            "this_pass": state["allocated"],
            "last_pass": state["to_free"],
        }
    else:
        record = {
            "needed": state["held"],
            "ended": state["since"],
            "now": state["clock"],
            "stored": state["cached"],
            "evicted": state["freed"],
            "worker": state["cached"] | state["freed"],
        }
    return {**state, **record}


def by_age(state: State) -> tuple[str, ...]:
    """The freeable hashes, oldest first; ties, which only mutants have, by name."""
    hashes = (h for (h,) in state["freeable"])
    return tuple(sorted(hashes, key=lambda h: (state["since"][h], h)))


def observe(system: TransitionSystem, world: World, state: State) -> Observed:
    """The state as an implementation would show it."""
    if system.name == "encoder_decoder":
        return Observed(num_free_slots=state["free_slots"])
    called = shown_name(world)
    cached: dict[str, tuple[str, ...]] = {called(h): () for (h,) in sorted(state["cached"])}
    for h, r in sorted(state["references"]):
        cached[called(h)] = (*cached.get(called(h), ()), r)
    held: dict[str, tuple[int, ...]] = {}
    owner, position = world.functions["owner"], world.functions["position"]
    for (i,) in sorted(state["held"], key=lambda i: (owner[i[0]], position[i[0]])):
        held[owner[i]] = (*held.get(owner[i], ()), position[i])
    return Observed(
        num_free_slots=state["free_slots"],
        num_freeable_slots=state["freeable_slots"],
        cached=cached,
        freeable=tuple(map(called, by_age(state))),
        held=held,
    )


def shown_name(world: World) -> Callable[[str], str]:
    """What a hash of the spec is called outside."""
    called = world.functions.get("identifier", {})
    return lambda h: called.get(h, h)


class Replay:
    """One run of a system on the calls of a vector.

    An identifier may come back with another size when all that was known of it is gone: it is not
    cached, and its eviction was reported. The spec then sees a hash that it never saw before, which
    is in the same state. Before that, a call about the other size is refused like one that a guard
    refuses.
    """

    def __init__(
        self, system: TransitionSystem, parameters: Parameters, *, record: bool = True
    ) -> None:
        """Without the `record` it is quicker, and no clause can be asked about its steps."""
        self.system = system
        self.interpreter = Interpreter(system, world_of(parameters), record=record)
        self._twins = twins_of(self.interpreter.world)
        self.state: State = self.interpreter.initial()
        self.steps: list[Step] = []
        """What has been done so far, refused calls left out."""

    def answer(self, call: Call, *, shown: bool = True) -> Expect | None:
        """What the system answers; None where the call is one that its guards refuse.

        Without its state, which takes half of the time, where that need not be `shown`.
        """
        step = self.made(call)
        if step is None:
            return None
        world = self.interpreter.world
        seen = observe(self.system, world, step.after) if shown else Observed()
        return Expect(_returned(step.result, shown_name(world)), seen)

    def made(self, call: Call) -> Step | None:
        """The same for who does not ask what it answers."""
        if self._twins and self._clashes(call):
            return None
        for candidate in spec_calls(self.system, call):
            step = self.interpreter.call(self.state, candidate)
            if not step.refused_by:
                self.state = step.after
                self.steps.append(step)
                return step
        return None

    def _clashes(self, call: Call) -> bool:
        """Whether the identifier is known with another size."""
        if "freed" not in self.state or not hasattr(call, "input_id"):
            return False
        given = _arguments(call)["input"]
        mm_hash = self.interpreter.world.functions["hash_of"][given]
        known = self.state["cached"] | self.state["freed"]
        return any((twin,) in known for twin in self._twins.get(mm_hash, ()))

    @property
    def used(self) -> set[str]:
        """The actions that occurred."""
        return {step.call.action for step in self.steps}

    def answers(self, calls: Sequence[Call]) -> Iterator[Expect | None]:
        for call in calls:
            yield self.answer(call)


def twins_of(world: World) -> dict[str, tuple[str, ...]]:
    """For each hash that shares its identifier, the others."""
    called = world.functions["identifier"]
    if len(set(called.values())) == len(called):
        return {}
    return {
        h: others
        for h, name in called.items()
        if (others := tuple(g for g, other in called.items() if other == name and g != h))
    }


def _returned(value: Any, called: Callable[[str], str]) -> bool | tuple[str, ...] | None:
    if isinstance(value, frozenset):
        return tuple(sorted({called(h) for (h,) in value}))
    assert value is None or isinstance(value, bool)
    return value


def answers_otherwise(
    system: TransitionSystem, parameters: Parameters, steps: Iterable[VectorStep]
) -> bool:
    """Whether the system, asked the same, answers, shows or refuses something else."""
    replay = Replay(system, parameters, record=False)
    return not all(agrees(replay.answer(step.call), step.expect) for step in steps)


def agrees(answer: Expect | None, expected: Expect) -> bool:
    """Whether an answer is as expected, of its state as far as any is expected; None is not."""
    if answer is None or answer.returns != expected.returns:
        return False
    pairs = zip(astuple(answer.observe), astuple(expected.observe), strict=True)
    return all(wanted is None or got == wanted for got, wanted in pairs)


def predicted_failures(release: str, vectors: Iterable[Vector]) -> list[str]:
    """The ids of the vectors that the described release must fail, in order."""
    described = RELEASES[release]
    systems = {
        "encoder_cache": described.ledger,
        "encoder_decoder": described.encoder_decoder,
    }
    return [
        v.id
        for v in vectors
        if not v.requires and answers_otherwise(systems[v.manager], v.parameters, v.steps)
    ]
