"""States under other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from ...evaluate.stepping import Form, Layout, Packed, coefficients, packed
from ...kernel.terms import BOOL, INT, MapSort, SetSort, Sort
from .patterns import Renaming

__all__ = ["Image"]


def _key_of(sort: Sort) -> str:
    """The sort of the keys of a map."""
    assert isinstance(sort, MapSort)
    return sort.key.name


class Image:
    """A renaming, applied to packed states."""

    def __init__(self, layout: Layout, renaming: Renaming, moved: Sequence[int]) -> None:
        """`moved` says of each digit of a form, up to the last number, where it goes."""
        self._renaming, self._universe = renaming, layout.of.world.universe
        self._moved = moved
        self._forms = _Memo(self._form)
        self._aged = _Memo(self._ages)
        slots = layout.age_slots
        sorts = {v.name: v.sort for v in layout.variables}
        self._slots = [
            slots.index((n, None if k is None else renaming[_key_of(sorts[n])][k]))
            for n, k in slots
        ]
        self._symbols = layout.symbols
        parts = [self._part(v.sort) for v in layout.variables if v.name not in layout.ages]
        names = {f"f{k}": f for k, f in enumerate(parts)}
        if layout.ages:
            names[f"f{len(parts)}"] = self._aged.__getitem__
        listed = "".join(f"f{k}(s[{k}]), " for k in range(len(names)))
        self.of: Callable[[Packed], Packed] = eval(f"lambda s: ({listed})", dict(names))

    def _part(self, sort: Sort) -> Callable[[Any], Any]:
        if isinstance(sort, SetSort):
            return _Memo(self._bits_of(sort)).__getitem__
        if isinstance(sort, MapSort):
            keys = self._universe[sort.key.name]
            order = [keys.index(self._renaming[sort.key.name][k]) for k in keys]
            inner = self._part(sort.value)

            def moved(values: tuple[Any, ...]) -> tuple[Any, ...]:
                made = [None] * len(values)
                for at, value in zip(order, values, strict=True):
                    made[at] = inner(value)
                return tuple(made)

            return _Memo(moved).__getitem__
        if sort == INT:
            return self._forms.__getitem__
        if sort == BOOL:
            return lambda value: value
        return self._renaming[sort.name].__getitem__

    def _bits_of(self, sort: SetSort) -> Callable[[int], int]:
        elements = [self._universe[e.name] for e in sort.elements]
        every = list(product(*elements))
        at = {x: k for k, x in enumerate(every)}
        moved = [
            at[tuple(self._renaming[e.name][y] for e, y in zip(sort.elements, x, strict=True))]
            for x in every
        ]
        return lambda bits: sum(1 << moved[k] for k in range(len(every)) if bits >> k & 1)

    def _form(self, form: Form) -> Form:
        known = len(self._moved)
        return packed((self._moved[s] if s < known else s, c) for s, c in coefficients(form))

    def _ages(self, values: tuple[Form, ...]) -> tuple[Form, ...]:
        made = [0] * len(values)
        for k, value in enumerate(values):
            unknown = value == self._symbols.unknown(k)
            made[self._slots[k]] = self._symbols.unknown(self._slots[k]) if unknown else value
        return tuple(made)


class _Memo(dict[Any, Any]):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._function(key)
        return value
