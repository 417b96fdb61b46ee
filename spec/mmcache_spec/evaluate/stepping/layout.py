"""Which part of a packed state is what: one for each variable, and all ages at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from ...kernel.system import Action, ActionProperty, Property
from ...kernel.terms import INT, MapSort, SetSort, Symbol, subterms
from ..compiled import CompiledSystem, text_of
from .forms import Symbols
from .writing import local

__all__ = ["Layout", "Packed", "Places", "is_integer"]

Packed = tuple[Any, ...]
"""A state. A set is bits, an integer a form, a map a tuple; the ages of all variables are one tuple
at the end."""


def is_integer(variable: Symbol) -> bool:
    """Whether the variable is an integer, or a map to integers."""
    sort = variable.sort.value if isinstance(variable.sort, MapSort) else variable.sort
    return sort == INT


@dataclass(frozen=True)
class Layout:
    """The parts of a state of one kind of worlds."""

    of: CompiledSystem
    variables: tuple[Symbol, ...]
    """In their order; the ages come last."""
    ages: Mapping[str, int]
    """The variables of which only the order counts, with their time scales."""
    alive: tuple[Symbol | None, ...]
    """For each scale, the set outside of which ages are forgotten."""
    symbols: Symbols

    @cached_property
    def integer_places(self) -> list[int]:
        """Where in a state there are integers, or tuples of them."""
        plain = [v for v in self.variables if v.name not in self.ages]
        found = [k for k, v in enumerate(plain) if is_integer(v)]
        return [*found, len(plain)] if self.ages else found

    @cached_property
    def age_slots(self) -> list[tuple[str, str | None]]:
        """The variable and the key of each age, in the order of the last part of a state."""
        slots: list[tuple[str, str | None]] = []
        for v in self.variables:
            if v.name in self.ages:
                if isinstance(v.sort, MapSort):
                    slots += [(v.name, k) for k in self.of.elements(v.sort.key)]
                else:
                    slots.append((v.name, None))
        return slots

    def is_alive(self, slot: int, lives: Sequence[int]) -> bool:
        """Whether the age matters, where the sets that tell have these elements."""
        name, element = self.age_slots[slot]
        scale = self.ages[name]
        teller = self.alive[scale]
        if element is None or teller is None:
            return True
        assert isinstance(teller.sort, SetSort)
        return bool(lives[scale] & self.of.bit(teller.sort, (element,)))

    def lives_in(self, values: Mapping[str, Any]) -> list[int]:
        """The sets that tell which ages matter; -1 where all do."""
        return [-1 if v is None else values[v.name] for v in self.alive]

    def width(self, sort: SetSort) -> int:
        """The number of elements that a set of this sort may have."""
        return prod(len(self.of.elements(e)) for e in sort.elements)

    # The same in code: `s` is a state, `N` gives the ranks of ages.

    def unpacking(self) -> str:
        """The statement that gives each part of a state its name."""
        names = []
        for v in self.variables:
            if v.name not in self.ages:
                names.append(self._parts(v) if isinstance(v.sort, MapSort) else local(v.name))
        if self.ages:
            slots = [
                local(name) if key is None else f"{local(name)}_{self._key(name, key)}"
                for name, key in self.age_slots
            ]
            names.append("(" + "".join(f"{x}, " for x in slots) + ")")
        return f"{', '.join(names)}, = s" if names else "pass"

    def entries(self, names: Iterable[str]) -> list[str]:
        """The statements that give each entry of these maps its name."""
        maps = (v for v in self.variables if v.name in names and isinstance(v.sort, MapSort))
        return [f"{self._parts(v)} = {local(v.name)}" for v in maps]

    def packing(self, after: Mapping[str, Any]) -> str:
        """The expression for the state with these values."""
        parts = [text_of(after[v.name]) for v in self.variables if v.name not in self.ages]
        if self.ages:
            aged: list[str] = []
            for v in self.variables:
                if v.name in self.ages:
                    value = after[v.name]
                    aged += map(text_of, value) if isinstance(value, tuple) else [text_of(value)]
            lives = ["-1" if v is None else text_of(after[v.name]) for v in self.alive]
            parts.append(f"N[({', '.join([*aged, *lives])},)]")
        return "(" + "".join(f"{p}, " for p in parts) + ")"

    def _parts(self, variable: Symbol) -> str:
        assert isinstance(variable.sort, MapSort)
        keys = range(len(self.of.elements(variable.sort.key)))
        return "(" + "".join(f"{local(variable.name)}_{k}, " for k in keys) + ")"

    def _key(self, name: str, key: str) -> int:
        (sort,) = (v.sort for v in self.variables if v.name == name)
        assert isinstance(sort, MapSort)
        return list(self.of.elements(sort.key)).index(key)


class Places:
    """Which parts of a state a call reads, and which it changes."""

    def __init__(self, layout: Layout, action: Action, wanted: Sequence[Property]) -> None:
        self.layout = layout
        plain = [v.name for v in layout.variables if v.name not in layout.ages]
        aged = len(plain)
        claims = [p for p in wanted if isinstance(p, ActionProperty)]
        terms = [*action.guard.values(), *(t for _, t in action.effect)]
        terms += [p.formula for p in claims if p.action == action.name]
        terms += [] if action.returns is None else [action.returns]
        names = {s.name for t in terms for s in subterms(t) if isinstance(s, Symbol)}
        kept = {v.name for v in layout.variables}
        moved = {v.name for v, _ in action.effect} & kept
        ordering = {*layout.ages, *(v.name for v in layout.alive if v is not None)}
        if moved & ordering:
            names |= ordering
        read = {aged if n in layout.ages else plain.index(n) for n in names & kept}
        written = {aged if n in layout.ages else plain.index(n) for n in moved}
        if moved & ordering and layout.ages:
            written.add(aged)
        self._read = sorted(read)
        self._written = sorted(written)

    def read_in(self, state: Packed) -> Packed:
        """What the call reads."""
        return tuple(state[k] for k in self._read)

    def changed_in(self, state: Packed) -> Packed:
        """What the call has written, of the state after it."""
        return tuple(state[k] for k in self._written)

    def changed(self, state: Packed, new: Packed) -> Packed:
        """The state with these values where the call writes."""
        after = list(state)
        for k, value in zip(self._written, new, strict=True):
            after[k] = value
        return tuple(after)
