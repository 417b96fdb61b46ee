"""Whether a changed system can be told from the original in one small world, and by which calls."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..evaluate.compiled import Packed
from ..evaluate.interpreter import ActionCall
from ..kernel.system import TransitionSystem
from .calls import alike
from .explore import Explorer
from .findings import Difference, Search

__all__ = ["first_difference"]


def first_difference(explorer: Explorer, design: TransitionSystem) -> Difference | Search:
    """The shortest calls after which the design answers, shows or refuses something else.

    Nothing but the answers and the observables of the system is looked at.
    """
    return _Pair(explorer, design).run()


class _Pair:
    """Two systems asked the same, breadth first over the pairs of their states."""

    def __init__(self, explorer: Explorer, design: TransitionSystem) -> None:
        self.explorer, self.design = explorer, design
        self.mine = explorer.prepared_of(explorer.system)
        self.theirs = explorer.prepared_of(design)
        self.view, self.names = explorer.view, tuple(explorer.system.observables)
        self.parents: dict[tuple[Packed, Packed], Any] = {}

    def run(self) -> Difference | Search:
        explorer, normal, graph = self.explorer, self.explorer.normal, self.explorer.graph
        first = (
            normal(explorer.compiled.initial()),
            normal(explorer.compiled_of(self.design).initial()),
        )
        if (what := self._otherwise(*first)) is not None:
            return Difference((), what, explorer.world)
        self.parents[first] = None
        queue = deque([first])
        same = [alike(ours, others) for ours, others in zip(self.mine, self.theirs, strict=True)]
        expanded = 0
        while queue:
            if expanded >= explorer.most_states:
                return Search(expanded, complete=False)
            expanded += 1
            pair = queue.popleft()
            mine, theirs = pair
            known = graph.index.get(mine) if mine == theirs else None
            row = None if known is None else graph.distinct.get(known)
            for k, (ours, others) in enumerate(zip(self.mine, self.theirs, strict=True)):
                if row is not None and same[k]:
                    for to in row[k]:
                        state = graph.states[to]
                        if (state, state) not in self.parents:
                            self.parents[state, state] = pair
                            queue.append((state, state))
                    continue
                for a, b in zip(ours, others, strict=True):
                    for values in a.choices:
                        one, two = a.run(mine, *values), b.run(theirs, *values)
                        what = self._differs(one, two)
                        if what is not None:
                            calls = (*self._path(pair), a.call(values))
                            return Difference(calls, f"{a.action}: {what}", explorer.world)
                        if one is not None and two is not None:
                            to_pair = normal(one[1]), normal(two[1])
                            if to_pair not in self.parents:
                                self.parents[to_pair] = pair
                                queue.append(to_pair)
        return Search(expanded, complete=True)

    def _differs(self, one: Any, two: Any) -> str | None:
        if one is None or two is None:
            return None if one is two else "one refuses"
        if one[0] != two[0]:
            return f"answers {two[0]}, not {one[0]}"
        return self._otherwise(one[1], two[1])

    def _otherwise(self, one: Packed, two: Packed) -> str | None:
        if one == two:
            return None
        seen = zip(self.names, self.view(one), self.view(two), strict=True)
        return next((f"{name} differs" for name, a, b in seen if a != b), None)

    def _path(self, pair: tuple[Packed, Packed]) -> list[ActionCall]:
        path: list[ActionCall] = []
        while (parent := self.parents[pair]) is not None:
            path.append(self._step(parent, pair))
            pair = parent
        return path[::-1]

    def _step(self, before: tuple[Packed, Packed], to: tuple[Packed, Packed]) -> ActionCall:
        normal = self.explorer.normal
        for ours, others in zip(self.mine, self.theirs, strict=True):
            for a, b in zip(ours, others, strict=True):
                for values in a.choices:
                    one, two = a.run(before[0], *values), b.run(before[1], *values)
                    if one and two and (normal(one[1]), normal(two[1])) == to:
                        return a.call(values)
        raise AssertionError("a pair that is reached by no call")
