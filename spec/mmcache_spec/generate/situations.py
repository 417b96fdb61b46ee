"""What a call of the ledger is an example of: the words in which deep vectors are chosen.

Every word is about one call and the states around it. Where there may be a limit, the word has the
number: a design that has room for three is told from the right one by the fourth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Reset,
)

from ..evaluate.interpreter import World
from ..oracle import by_age, input_name

__all__ = ["situations"]

State = Mapping[str, Any]


def situations(world: World, call: Call, result: Any, before: State, after: State) -> Iterator[str]:
    """The words for this call, and for how much there is after it."""
    match call:
        case CheckAndUpdateCache(r, k):
            yield f"a lookup {_use(world, input_name(r, k), before)}"
        case Allocate(r, k):
            yield f"an allocation {_use(world, input_name(r, k), before)}"
        case CanAllocate(r, k, budget, pending):
            size = world.functions["embeds"][input_name(r, k)]
            yield from _admission(world, size, budget, pending, result, before, after)
        case FreeEncoderInput(r, k):
            yield f"a release {_release(world, input_name(r, k), before, after)}"
        case Free(r):
            yield from _end(world, r, before, after)
        case GetFreedMmHashes():
            filtered = len(before["freed"] & before["cached"])
            yield f"a report of {len(before['freed'] - before['cached'])}"
            if filtered:
                yield f"a report without {filtered} that are cached again"
        case Reset():
            parts = ("references", "freeable", "freed")
            yield f"a reset with {', '.join(p for p in parts if before[p]) or 'nothing'}"
    yield from _amounts(world, after)


def _use(world: World, given: str, before: State) -> str:
    mm_hash, owner = world.functions["hash_of"][given], world.functions["owner"][given]
    if (mm_hash,) not in before["cached"]:
        return "of what was evicted" if (mm_hash,) in before["freed"] else "of what is absent"
    if (given,) in before["held"]:
        return "of a position that is held"
    users = {r for h, r in before["references"] if h == mm_hash}
    if owner in users:
        return f"at one more position, with {len(users)} users"
    return f"beside {len(users)} users"


def _admission(
    world: World, size: int, budget: int, pending: int, result: Any, before: State, after: State
) -> Iterator[str]:
    if not result:
        yield "a refusal by the budget" if size > budget else "a refusal for want of room"
        return
    gone = before["cached"] - after["cached"]
    yield f"an admission that evicts {len(gone)}"
    yield f"an admission beside {len({h for h, _ in before['references']})} in use"
    if size == budget:
        yield "an admission at the budget"
    if size + pending == before["freeable_slots"]:
        yield "an admission that takes all the room there is"
    if pending and gone:
        yield "an admission that evicts for what is promised as well"
    idle = by_age(before)
    sizes = world.functions["size"]
    orders: dict[str, Callable[[str], Any]] = {
        "largest": lambda h: (-sizes[h], idle.index(h)),
        "smallest": lambda h: (sizes[h], idle.index(h)),
        "first by name": lambda h: h,
        "newest": lambda h: -idle.index(h),
    }
    for name, key in orders.items():
        if gone != _evicted(sorted(idle, key=key), sizes, size + pending - before["free_slots"]):
            yield f"an eviction of other than the {name}"
    if gone and len(idle) > 4:
        yield f"an eviction of {'all' if len(gone) == len(idle) else 'some'} of more than four"


def _evicted(order: Iterable[str], sizes: Mapping[str, int], wanted: int) -> frozenset[Any]:
    """What would go in this order."""
    gone = set()
    for mm_hash in order:
        if wanted <= 0:
            break
        gone.add((mm_hash,))
        wanted -= sizes[mm_hash]
    return frozenset(gone)


def _release(world: World, given: str, before: State, after: State) -> str:
    if (given,) not in before["held"]:
        return "of what is not held"
    mm_hash, owner = world.functions["hash_of"][given], world.functions["owner"][given]
    if (mm_hash, owner) in after["references"]:
        return "with further positions"
    others = sum(h == mm_hash for h, _ in after["references"])
    return f"with {others} other users" if others else "of the last use"


def _end(world: World, request: str, before: State, after: State) -> Iterator[str]:
    new = [h for h in by_age(after) if (h,) not in before["freeable"]]
    yield f"an end that leaves {len(new)} idle"
    mine = [i for (i,) in before["held"] if world.functions["owner"][i] == request]
    position, hash_of = world.functions["position"], world.functions["hash_of"]
    if new != sorted(new):
        yield "an end not in the order of names"
    first = {h: min(position[i] for i in mine if hash_of[i] == h) for h in new}
    if new != sorted(new, key=first.__getitem__):
        yield "an end not in the order of first positions"
    if any(position[i] > 3 and hash_of[i] in new for i in mine):
        yield "an end with a position after the fourth"


def _amounts(world: World, state: State) -> Iterator[str]:
    users = Counter(h for h, _ in state["references"])
    hash_of, owner = world.functions["hash_of"], world.functions["owner"]
    places = Counter((owner[i], hash_of[i]) for (i,) in state["held"])
    position = world.functions["position"]
    yield f"{max(users.values(), default=0)} users of a hash"
    yield f"{max(places.values(), default=0)} positions of a hash in a request"
    yield f"{len(state['freeable'])} idle"
    yield f"{len(users)} in use"
    yield f"{len(state['freed'])} evicted and not reported"
    if any(position[i] > 7 for (i,) in state["held"]):
        yield "a position after the eighth is held"
