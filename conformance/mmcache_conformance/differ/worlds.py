"""Random worlds: what the requests carry, and under which names, sizes and capacity.

A *shape* says which request carries which hash at which position. Compiling the specification for
a shape is dear, so one shape serves many worlds, which differ in names and numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from mmcache_spec.evaluate.compiled import code
from mmcache_spec.evaluate.interpreter import World
from mmcache_spec.oracle import world_of
from mmcache_vectors.manager import Item, Manager, Parameters, Request

__all__ = ["CAPACITY", "LARGEST", "Largest", "Shape", "draw_parameters", "draw_shape", "open_world"]

CAPACITY = "z_capacity"
"""The name of the capacity in an open world; the size of the hash `h3` is `z_h3`."""


@dataclass(frozen=True)
class Largest:
    """How large a world may be. `items` are those of all requests together."""

    hashes: int = 8
    requests: int = 6
    items: int = 12


LARGEST = Largest()


@dataclass(frozen=True)
class Shape:
    """For each request the hashes that it carries, as numbers, by position."""

    manager: Manager
    hashes: int
    requests: tuple[tuple[int, ...], ...]


def draw_shape(random: Random, manager: Manager, largest: Largest = LARGEST) -> Shape:
    """Any shape up to the largest: small and large ones alike, hashes shared and repeated."""
    requests = random.randint(1, largest.requests)
    items = random.randint(requests, max(requests, largest.items))
    hashes = random.randint(1, min(largest.hashes, items + 1))
    carried: list[list[int]] = [[] for _ in range(requests)]
    repeats = random.choice((0.0, 0.2, 0.6))
    for k in range(items):
        mine = carried[k if k < requests else random.randrange(requests)]
        again = mine and random.random() < repeats
        mine.append(random.choice(mine) if again else random.randrange(hashes))
    return Shape(manager, hashes, tuple(map(tuple, carried)))


def open_world(shape: Shape) -> World:
    """The world of the specification in which sizes and capacity are still unknown."""
    names = [f"h{k}" for k in range(shape.hashes)]
    closed = world_of(_parameters(shape, 1, names, [1] * shape.hashes, "r"))
    sizes = {name: code(f"z_{name}") for name in closed.universe["Hash"]}
    hash_of = closed.functions["hash_of"]
    embeds = {i: sizes[h] for i, h in hash_of.items()}
    return World(
        closed.universe,
        {"capacity": code(CAPACITY)},
        {**closed.functions, "size": sizes, "embeds": embeds},
    )


def draw_parameters(random: Random, shape: Shape) -> Parameters:
    """One world of the shape: its names, its sizes, its capacity."""
    sizes = _sizes(random, shape.hashes)
    names, prefix = _names(random, shape.hashes)
    if shape.hashes > 1 and random.random() < 0.15:
        # One identifier with two sizes: it may come back with the other when it is forgotten.
        names[1] = names[0]
        sizes[1] = sizes[0] + random.randint(1, 3)
    total, largest = sum(sizes), max(sizes)
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
    return _parameters(shape, capacity, names, sizes, prefix)


def _sizes(random: Random, count: int) -> list[int]:
    unit = random.choice((1, 1, 1, 1, 3 << 14, (1 << 31) - 1, (1 << 33) + 1, (1 << 45) + 7))
    small = random.choice(((1, 1), (0, 3), (1, 4), (1, 9), (100, 400)))
    sizes = [unit * random.randint(*small) for _ in range(count)]
    if unit > 1 and random.random() < 0.5:
        sizes = [size + random.randint(0, 3) for size in sizes]
    return sizes


_STEM = "image-of-some-length/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/"


def _names(random: Random, hashes: int) -> tuple[list[str], str]:
    """The names of the hashes, and the prefix of those of the requests.

    Beside short ones: long ones that differ only at the end, only at the beginning, or only in the
    middle; numbers; signs that JSON escapes; the names of requests.
    """
    order = random.sample(range(hashes), hashes)
    letters = [chr(ord("A") + k) for k in order]
    style = random.randrange(13)
    if style == 1:
        return [_STEM * 3 + letter for letter in letters], _STEM
    if style == 2:
        return [letter + _STEM for letter in letters], "r"
    if style == 3:
        return [f"{_STEM}{letter}{_STEM}" for letter in letters], _STEM * 2
    if style == 4:
        return [str(10**9 + k) for k in order], "1"
    if style == 5:
        return [f'"\\{letter}\té\u20ac\U0001f600' for letter in letters], 'é"'
    if style == 6:
        return [f"r{k + 1}" for k in order], "r"
    if style == 7:
        return ["a" * (k + 1) for k in order], "a"
    if style == 8:  # the same letters in another order, for checksums that do not see it
        return ["".join(random.sample("abcdefgh", 8)) + f"{k}{9 - k}" for k in order], "r"
    if style == 9:  # pairs that differ in case only
        return [letters[k - k % 2].lower() if k % 2 else letters[k] for k in range(hashes)], "R"
    if style == 10:  # white space around and inside
        return [" " * (k + 1) + "a" + " " * (9 - k) for k in order], " "
    if style == 11:  # a sign that ends a text in C
        return [f"a\0{letter}" for letter in letters], "r\0"
    return letters, "r"


def _parameters(
    shape: Shape, capacity: int, names: list[str], sizes: list[int], prefix: str
) -> Parameters:
    items = [Item(name, size) for name, size in zip(names, sizes, strict=True)]
    requests = tuple(
        Request(f"{prefix}{k + 1}", tuple(items[h] for h in carried))
        for k, carried in enumerate(shape.requests)
    )
    return Parameters(capacity, requests)
