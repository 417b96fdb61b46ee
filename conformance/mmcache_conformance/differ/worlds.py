"""Random worlds: what the requests carry, and under which names, sizes and capacity.

A *shape* says which request carries which hash at which position. A world has names and numbers
besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from mmcache_vectors.manager import Item, Parameters, Request

from ..verdicts.changes import MOST_LETTERS, SAFE_NUMBER
from ..verdicts.names import draw_names

__all__ = ["LARGEST", "Largest", "Shape", "draw_parameters", "draw_shape", "in_one_line"]


@dataclass(frozen=True)
class Largest:
    """How large a world may be. `items` are those of all requests together.

    A world that is `full` has as many of each; of one that is `tall`, one request has most items.
    """

    hashes: int = 8
    requests: int = 6
    items: int = 12
    full: bool = False
    tall: bool = False


LARGEST = Largest()


@dataclass(frozen=True)
class Shape:
    """For each request the hashes that it carries, as numbers, by position."""

    hashes: int
    requests: tuple[tuple[int, ...], ...]


def draw_shape(random: Random, largest: Largest = LARGEST) -> Shape:
    """Any shape up to the largest: small and large ones alike, hashes shared and repeated."""
    full = largest.full
    requests = largest.requests if full else random.randint(1, largest.requests)
    items = largest.items if full else random.randint(requests, max(requests, largest.items))
    hashes = largest.hashes if full else random.randint(1, min(largest.hashes, items + 1))
    carried: list[list[int]] = [[] for _ in range(requests)]
    repeats = 0.0 if full else random.choice((0.0, 0.2, 0.6))
    tall = largest.tall or random.random() < 0.15
    for k in range(items):
        whose = k if k < requests else 0 if tall else random.randrange(requests)
        mine = carried[whose]
        again = mine and random.random() < repeats
        mine.append(
            random.choice(mine) if again else k % hashes if full else random.randrange(hashes)
        )
    if random.random() < 0.3:
        carried.append([])  # of a request without items one can only say that it ends
    return Shape(hashes, tuple(map(tuple, carried)))


def draw_parameters(random: Random, shape: Shape, most: int = SAFE_NUMBER) -> Parameters:
    """One world of the shape: its names, its sizes, its capacity; `most` is the largest number."""
    sizes = _sizes(random, shape.hashes, most)
    names = draw_names(random, shape.hashes)
    requests = _request_ids(random, len(shape.requests))
    if shape.hashes > 1 and random.random() < 0.15:
        # One identifier with two sizes: it may come back with the other when it is forgotten.
        names[1] = names[0]
        sizes[1] = sizes[0] + random.randint(1, 3)
    total, largest = sum(sizes), max(sizes)
    if random.random() < 0.3:  # room for most of them
        capacity = random.randint(max(largest, total // 2), max(largest, total))
        return _parameters(shape, min(capacity, most - 2), names, sizes, requests)
    some = sum(random.sample(sizes, random.randint(1, len(sizes))))
    capacity = random.choice(
        (
            largest,
            max(0, total - 1),
            max(largest, total - min(sizes)),
            max(largest, some),
            max(largest, some),
            random.randint(largest, max(largest, total)),
            random.randint(largest, max(largest, total)),
            random.randint(0, total),
            random.randint(total, 2 * total + 1),
        )
    )
    # A question may be about one more than is free.
    return _parameters(shape, min(capacity, most - 2), names, sizes, requests)


def in_one_line(parameters: Parameters, calls: int) -> Parameters:
    """The same world, under short names if so many calls could not be answered in one line.

    A target that shows all its state after every call writes every name as often.
    """
    hashes = dict.fromkeys(i.identifier for r in parameters.requests for i in r.items)
    letters = sum(map(len, hashes)) + sum(len(r.request_id) for r in parameters.requests)
    if 3 * calls * letters <= MOST_LETTERS:
        return parameters
    short = {name: f"h{k}" for k, name in enumerate(hashes)}
    requests = tuple(
        Request(f"r{k + 1}", tuple(Item(short[i.identifier], i.num_embeds) for i in r.items))
        for k, r in enumerate(parameters.requests)
    )
    return Parameters(parameters.cache_size, requests)


def _request_ids(random: Random, count: int) -> list[str]:
    if random.random() < 0.5:
        return [f"r{k + 1}" for k in range(count)]
    return draw_names(random, count)


def _sizes(random: Random, count: int, most: int) -> list[int]:
    if random.random() < 0.25:
        return _sizes_at_a_boundary(random, count, most)
    unit = random.choice((1, 1, 1, 1, 3 << 14, (1 << 31) - 1, (1 << 33) + 1, (1 << 45) + 7))
    small = random.choice(((1, 1), (0, 3), (1, 4), (1, 9), (100, 400)))
    sizes = [unit * random.randint(*small) for _ in range(count)]
    if unit > 1 and random.random() < 0.5:
        sizes = [size + random.randint(0, 3) for size in sizes]
    return sizes if sum(sizes) < most - 4 else [size // unit for size in sizes]


def _sizes_at_a_boundary(random: Random, count: int, most: int) -> list[int]:
    """Sizes, or sums of them, just below, at and just beyond what a counter of some width holds."""
    width = random.choice((8, 15, 16, 24, 31, 32, 53, 63))
    boundary = min(1 << width, most - 4 * count - 8)
    way = random.randrange(3)
    if way == 0:  # one is as large as all that the counter holds
        sizes = [random.randint(0, 3) for _ in range(count)]
        sizes[random.randrange(count)] = boundary + random.randint(-2, 2)
    elif way == 1:  # some together are
        shares = random.randint(1, count)
        sizes = [boundary // shares + random.randint(-1, 1) for _ in range(count)]
    else:
        sizes = [boundary // 2 - random.randint(0, 2), boundary - boundary // 2]
        sizes += [random.randint(0, 3) for _ in range(count)]
        random.shuffle(sizes)
    return [max(0, size) for size in sizes[:count]]


def _parameters(
    shape: Shape, capacity: int, names: list[str], sizes: list[int], ids: list[str]
) -> Parameters:
    items = [Item(name, size) for name, size in zip(names, sizes, strict=True)]
    requests = tuple(
        Request(request_id, tuple(items[h] for h in carried))
        for request_id, carried in zip(ids, shape.requests, strict=True)
    )
    return Parameters(capacity, requests)
