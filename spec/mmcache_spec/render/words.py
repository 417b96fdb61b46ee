"""The words of each model: how a world of it, and a state, are told in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evaluate.interpreter import State, World
from ..oracle import by_age

__all__ = ["Words", "words_of"]


@dataclass(frozen=True)
class Words:
    """What is said of a model.

    Attributes:
        state: A state, part by part.
        world: A world, part by part: capacity, sizes and requests, in embeddings; where the model
            knows of tokens, in those.
        orders: The function by which the inputs of one request are numbered.
    """

    state: Callable[[State], Iterator[str]]
    world: Callable[[World], Iterator[str]]
    orders: str = "position"

    def state_text(self, state: State) -> str:
        """The state in one line."""
        return "   ".join(self.state(state))

    def world_text(self, world: World) -> str:
        """The world in one line."""
        return "  World: " + "; ".join(self.world(world))

    def inputs_of(self, request: str, world: World) -> list[str]:
        """The inputs of the request, in their order."""
        return _inputs_of(request, world, self.orders)


def words_of(system: str) -> Words:
    """The words of the model of this name; of one that brings none, its variables as they are."""
    return _WORDS.get(system, _PLAIN)


def _world(world: World, item: Callable[[str, World], str]) -> Iterator[str]:
    size = world.functions["size"]
    sizes = ", ".join(f"{h} = {size[h]}" for h in world.universe["Hash"])
    requests = ", ".join(
        f"{r} = [{', '.join(item(i, world) for i in _inputs_of(r, world, 'position'))}]"
        for r in world.universe["Request"]
    )
    yield f"capacity {world.constants['capacity']}"
    yield from [f"sizes {sizes}"] if sizes else []
    yield from [f"requests {requests}"] if requests else []


def _world_of_items(world: World) -> Iterator[str]:
    """A request is a list of hashes."""
    yield from _world(world, _hash_of)


def _engine_world(world: World) -> Iterator[str]:
    """An item lies at tokens of its request."""
    yield from _world(world, _hash_at_tokens)
    if ahead := world.constants["lookahead"]:
        yield f"look-ahead {ahead}"


def _hash_of(i: str, world: World) -> str:
    mm_hash: str = world.functions["hash_of"][i]
    return mm_hash


def _hash_at_tokens(i: str, world: World) -> str:
    first = world.functions["first_token"][i]
    last = first + world.functions["num_tokens"][i] - 1
    return f"{_hash_of(i, world)} at {first} to {last}"


def _progress_world(world: World) -> Iterator[str]:
    """A request is a prompt of so many tokens, with items on some of them."""
    known = world.functions
    names = ("capacity", "token_budget", "encoder_budget", "lookahead")
    yield from (f"{name.replace('_', ' ')} {world.constants[name]}" for name in names)
    yield from (f"{h} has {known['size'][h]} embeddings" for h in world.universe["Hash"])
    for r in world.universe["Request"]:
        items = [
            f"{known['hash_of'][i]} on {known['offset'][i]}-"
            f"{known['offset'][i] + known['length'][i] - 1}"
            for i in _inputs_of(r, world, "offset")
        ]
        number = known["prompt"][r]
        tokens = "1 token" if number == 1 else f"{number} tokens"
        yield f"{r} = {tokens}{': ' if items else ''}{', '.join(items)}"


def _inputs_of(request: str, world: World, orders: str) -> list[str]:
    owner, place = world.functions["owner"], world.functions[orders]
    mine = (i for i in world.universe["Input"] if owner[i] == request)
    return sorted(mine, key=place.__getitem__)


def _ledger(state: State) -> Iterator[str]:
    """What a manager holds, and the worker beside it."""
    references: dict[str, list[str]] = {}
    for h, r in sorted(state["references"]):
        references.setdefault(h, []).append(r)
    cached = (
        f"{h}({', '.join(references[h])})" if h in references else h
        for (h,) in sorted(state["cached"])
    )
    yield f"cached {_listed(cached)}"
    yield f"freeable {_listed(by_age(state))}"
    yield f"evicted {_set(state['freed'])}"
    yield f"free slots {state['free_slots']}"
    yield f"freeable slots {state['freeable_slots']}"
    yield f"worker {_set(state['worker'])}"


def _engine(state: State) -> Iterator[str]:
    """The ledger, and what the pass has decided so far."""
    yield from _ledger(state)
    for name in ("tentative", "scheduled", "encodes", "loads", "promised"):
        members = [x[0] if len(x) == 1 else f"{x[0]} for {x[1]}" for x in sorted(state[name])]
        if members:
            yield f"{name.replace('_', ' ')} {', '.join(members)}"
    yield f"running {_set(state['running'])}"
    if tokens := [f"{r} {n}" for r, n in sorted(state["computed"].items()) if n]:
        yield f"computed {', '.join(tokens)}"


def _encoder_decoder(state: State) -> Iterator[str]:
    yield f"charged {_set(state['outstanding'])}"
    yield f"this pass {_set(state['allocated'])}"
    yield f"to report {_set(state['to_free'])}"
    yield f"free slots {state['free_slots']}"


def _progress(state: State) -> Iterator[str]:
    for name in ("arrived", "running", "finished", "cached"):
        yield f"{name} {_set(state[name])}"
    yield f"needed {_set(state['held'])}"
    yield f"computed {_listed(f'{r} {n}' for r, n in sorted(state['computed'].items()))}"


def _processor_cache(state: State) -> Iterator[str]:
    """The sender, what is on its way, and the receiver; what was used longest ago comes first."""

    def by_use(members: str, used: str) -> str:
        return _listed(sorted((h for (h,) in state[members]), key=lambda h: (state[used][h], h)))

    travelling = sorted((i for (i,) in state["in_flight"]), key=lambda i: (state["sent_at"][i], i))
    yield f"sender {by_use('sender', 'sender_used')}"
    yield f"to be taken {_set(state['waiting'])}"
    yield f"in flight {_listed(f'{i} bare' if (i,) in state['bare'] else i for i in travelling)}"
    yield f"receiver {by_use('receiver', 'receiver_used')}"
    if state["owed"]:
        yield f"to be told as forgotten {_set(state['owed'])}"


def _variables(state: State) -> Iterator[str]:
    """Every variable, as it is called."""
    for name, value in state.items():
        yield f"{name.replace('_', ' ')} {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, frozenset):
        return _listed(" ".join(map(str, x)) for x in sorted(value))
    if isinstance(value, Mapping):
        return _listed(f"{k} {_value(v)}" for k, v in sorted(value.items()))
    return str(value)


def _tables(world: World) -> Iterator[str]:
    """Every constant and function, as it is called."""
    yield from (f"{name.replace('_', ' ')} {value}" for name, value in world.constants.items())
    yield from (f"{name}: {_value(table)}" for name, table in world.functions.items())


def _set(members: frozenset[tuple[str]]) -> str:
    return _listed(sorted(h for (h,) in members))


def _listed(members: Iterable[str]) -> str:
    return ", ".join(members) or "–"


_PLAIN = Words(_variables, _tables)

_WORDS = {
    "ledger": Words(_ledger, _world_of_items),
    "encoder_decoder": Words(_encoder_decoder, _world_of_items),
    "engine": Words(_engine, _engine_world),
    "progress": Words(_progress, _progress_world, orders="offset"),
    "processor_cache": Words(_processor_cache, _world_of_items),
}
