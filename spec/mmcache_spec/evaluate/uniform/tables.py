"""What the code reads of a world: its functions as tables, and what was worked out about sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...kernel.system import TransitionSystem
from ...kernel.terms import BOOL, INT, Function, Sort
from ..meaning import World

__all__ = ["all_of_sort", "bits_in", "element_of", "names_of", "number_of", "tables_of"]


class _Worked(dict[int, int]):
    """From bits to a number, worked out when it is asked for first."""

    def __init__(self, work: Callable[[int], int]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, bits: int) -> int:
        found = self[bits] = self._work(bits)
        return found


def bits_in(bits: int) -> Iterable[int]:
    """The numbers of the bits that are set, from the lowest on."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def all_of_sort(sort: Sort) -> str:
    """The name under which the code has the bits of all elements; their number is `n_` and so on.

    The other names: `f_` a function as a tuple by element, `of_` the bits of the elements that it
    takes to a value, `from_` the bits of those that it takes into a set, `sum_` its sum over a set.
    Of the pairs of two sorts, whose bits are in the order of the first: `first_` has for each pair
    of a set of first elements the bits, `ones_` times a set of second elements those of its pairs,
    and `firsts_` the first elements of pairs that were shifted to the second element 0.
    """
    return f"all_{sort.name}"


def names_of(sorts: Sequence[Sort]) -> str:
    """Two sorts as they occur in the names of tables."""
    return "_".join(sort.name for sort in sorts)


def tables_of(
    system: TransitionSystem, world: World, pairs: Iterable[tuple[Sort, Sort]]
) -> dict[str, Any]:
    """All that the code of a system may read of a world, by name."""
    tables: dict[str, Any] = {f"c_{c.name}": world.constants[c.name] for c in system.constants}
    for name, elements in world.universe.items():
        tables[f"n_{name}"] = len(elements)
        tables[f"all_{name}"] = (1 << len(elements)) - 1
    for f in system.functions:
        tables |= _of_function(f, world)
    for first, second in pairs:
        tables |= _of_pairs(first, second, world.universe)
    return tables


def _of_function(f: Function, world: World) -> dict[str, Any]:
    given = world.functions[f.name]
    values = [given[x] for x in world.universe[f.domain.name]]
    if f.range == INT:
        weights = tuple(values)
        total = _Worked(lambda bits: sum(weights[k] for k in bits_in(bits)))
        return {f"f_{f.name}": weights, f"sum_{f.name}": total}
    if f.range == BOOL:
        return {f"f_{f.name}": tuple(values)}
    numbers = {x: k for k, x in enumerate(world.universe[f.range.name])}
    indexes = tuple(numbers[value] for value in values)
    sources = [0] * len(numbers)
    for k, at in enumerate(indexes):
        sources[at] |= 1 << k

    def into(bits: int) -> int:
        return _union(sources[k] for k in bits_in(bits))

    return {
        f"f_{f.name}": indexes,
        f"of_{f.name}": tuple(sources),
        f"from_{f.name}": _Worked(into),
    }


def _of_pairs(first: Sort, second: Sort, universe: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    name = names_of((first, second))
    width = len(universe[second.name])
    row = (1 << width) - 1
    count = len(universe[first.name])

    def pairs(bits: int) -> int:
        return _union(row << k * width for k in bits_in(bits))

    def firsts(bits: int) -> int:
        return _union(1 << k // width for k in bits_in(bits))

    return {
        f"first_{name}": _Worked(pairs),
        f"firsts_{name}": _Worked(firsts),
        f"ones_{name}": sum(1 << k * width for k in range(count)),
        f"all_{name}": (1 << width * count) - 1,
    }


def _union(parts: Iterable[int]) -> int:
    found = 0
    for part in parts:
        found |= part
    return found


def number_of(elements: Sequence[Sequence[str]], element: Sequence[str]) -> int:
    """Which bit an element, or a pair of elements, has."""
    index = 0
    for part, value in zip(elements, element, strict=True):
        index = index * len(part) + part.index(value)
    return index


def element_of(elements: Sequence[Sequence[str]], number: int) -> tuple[str, ...]:
    """The element, or pair of elements, of a bit."""
    found: tuple[str, ...] = ()
    for part in reversed(elements):
        number, index = divmod(number, len(part))
        found = (part[index], *found)
    return found
