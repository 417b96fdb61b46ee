"""Ages as ranks: of several moments only the order is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .forms import Form, Signs, Undetermined, coefficients
from .layout import Layout

__all__ = ["Ranks"]


class Ranks(dict[tuple[Form, ...], tuple[Form, ...]]):
    """From the ages of a state, and the sets that tell which are alive, to ranks.

    Those that are not alive become unknowns.
    """

    def __init__(self, layout: Layout, signs: Signs) -> None:
        super().__init__()
        self._layout = layout
        self._signs = signs

    def enter(self, signs: Signs) -> None:
        """Go to a world, and forget the last: an age may have come from one of its numbers."""
        self._signs = signs
        self.clear()

    def __missing__(self, key: tuple[Form, ...]) -> tuple[Form, ...]:
        layout, signs = self._layout, self._signs
        symbols = layout.symbols
        count = len(layout.age_slots)
        values, lives = key[:count], key[count:]
        unknown = {k for k in range(count) if not layout.is_alive(k, lives)}
        unknown |= {k for k in range(count) if symbols.forgotten(coefficients(values[k]))}
        made = [symbols.unknown(k) for k in range(count)]
        for scale in range(len(layout.alive)):
            order: list[list[int]] = []
            for k in range(count):
                if symbols.scales[k] == scale and k not in unknown:
                    self._insert(order, k, values, signs)
            for rank, group in enumerate(order):
                for k in group:
                    made[k] = symbols.age(scale, rank)
        found = tuple(made)
        self[key] = found
        return found

    @staticmethod
    def _insert(
        order: list[list[int]], new: int, values: Sequence[Form], signs: Mapping[Form, bool]
    ) -> None:
        """Put an age where it belongs among those in order."""
        if signs[values[new]]:
            raise Undetermined("a negative age")
        for at, group in enumerate(order):
            if signs[values[new] - values[group[0]]]:
                order.insert(at, [new])
                return
            if not signs[values[group[0]] - values[new]]:
                group.append(new)
                return
        order.append([new])
