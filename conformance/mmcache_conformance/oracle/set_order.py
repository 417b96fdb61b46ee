"""The order in which Python goes through a set of positions, as a decision of a manager.

vLLM keeps the positions that a request holds in a set of integers, and its `free` releases them in
the order of the set. CPython puts an integer at the place of its table that its lowest bits say:
the table has eight places at first and more when it is more than three fifths full, and never
becomes smaller. So the order is ascending as long as all positions are below eight; beyond, it
depends on the positions, and where two want one place, on what was put in before.

A transition system speaks of positions by their order alone, and cannot say this. So it is no
variant: the specification is asked for single releases, in the order that a set has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mmcache_spec.answering import Answering
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.decisions import Decision
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CheckAndUpdateCache,
    Expect,
    Free,
    FreeEncoderInput,
    Parameters,
    Reset,
)

__all__ = ["SET_ORDER", "WAYS", "SetOrdered", "Way", "may_be_seen", "may_differ"]

SET_ORDER = Decision(
    "free_in_the_order_of_a_set",
    "a request that ends releases its positions in the order in which Python goes through a set of "
    "them, which is not ascending from position 8 on",
    "ledger",
    ("free_releases_in", "set_order"),
    "L15",
)

_TABLE = 8
"""The places of a new set: of positions below it the order is ascending, whatever was before."""

Places = Mapping[str, tuple[int, ...]]
"""For each request the positions that its items have, where they are not the first ones."""


@dataclass(frozen=True)
class Way:
    """How the set comes about.

    It is `kept` from the first position that the request takes on, as in vLLM 0.23.0 and later, or
    built when the request ends, from the lowest position on, as before. Some releases copy it.
    """

    kept: bool
    copied: bool


WAYS = (Way(True, False), Way(False, False), Way(True, True), Way(False, True))


def may_differ(parameters: Parameters) -> bool:
    """Whether some request has so many positions that the order of a set need not be ascending."""
    return any(len(r.items) > _TABLE for r in parameters.requests)


class SetOrdered:
    """A manager of this system whose `free` releases one position after the other."""

    def __init__(
        self,
        system: TransitionSystem,
        parameters: Parameters,
        way: Way,
        places: Places | None = None,
    ) -> None:
        self._manager = Answering(system, parameters)
        self._way = way
        self._places = places or {
            r.request_id: tuple(range(len(r.items))) for r in parameters.requests
        }
        self._held: dict[str, set[int]] = {}

    def answer(self, call: Call, *, shown: bool = True) -> Expect | None:
        """What it answers; None where the call is one that the guards refuse."""
        if isinstance(call, Free):
            for input_id in self._order(call.request):
                if not self._manager.made(FreeEncoderInput(call.request, input_id)):
                    return None
        told = self._manager.answer(call, shown=shown)
        if told is not None:
            self._note(call, told)
        return told

    def _note(self, call: Call, told: Expect) -> None:
        """The positions that are held, in sets that have the history of the manager's."""
        match call:
            case CheckAndUpdateCache(request, k) if told.returns is True:
                self._held.setdefault(request, set()).add(self._places[request][k])
            case Allocate(request, k):
                self._held.setdefault(request, set()).add(self._places[request][k])
            case FreeEncoderInput(request, k):
                mine = self._held.get(request, set())
                mine.discard(self._places[request][k])
                if not mine:
                    self._held.pop(request, None)
            case Free(request):
                self._held.pop(request, None)
            case Reset():
                self._held.clear()
            case _:
                pass

    def _order(self, request: str) -> list[int]:
        """The inputs that the request holds, as the set has them."""
        places = self._places[request]
        positions = self._held.get(request, set()) if self._way.kept else self._built(request)
        if self._way.copied:
            positions = positions.copy()
        return [places.index(position) for position in positions]

    def _built(self, request: str) -> set[int]:
        """Every position whose hash the request references, put in one after the other."""
        positions: set[int] = set()
        for k, position in enumerate(self._places[request]):
            if self._manager.references(request, k):
                positions.add(position)
        return positions


def may_be_seen(calls: Sequence[Call], hits: Collection[int]) -> bool:
    """Whether some request ends when the order of its positions in a set is not ascending.

    Args:
        calls: Calls of a larger world, or of a vector.
        hits: The numbers of those that find what they look for.
    """
    held: dict[str, set[int]] = {}
    for number, call in enumerate(calls):
        match call:
            case CheckAndUpdateCache(request, k) if number in hits:
                held.setdefault(request, set()).add(k)
            case Allocate(request, k):
                held.setdefault(request, set()).add(k)
            case FreeEncoderInput(request, k):
                held.get(request, set()).discard(k)
            case Free(request):
                mine = held.pop(request, set())
                ascending = sorted(mine)
                if list(mine) != ascending or list(set(ascending)) != ascending:
                    return True
            case Reset():
                held.clear()
            case _:
                pass
    return False
