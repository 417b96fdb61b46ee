"""Whether a changed system breaks a clause in one small world, and by which calls.

Where it has an action in common with the original, what the original did is remembered; so a design
that differs in one action costs the calls of that action, and of the states that only it reaches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ..evaluate.compiled import Packed
from ..evaluate.interpreter import ActionCall
from ..kernel.system import TransitionSystem
from .calls import Prepared, alike, every
from .explore import Explorer
from .findings import Found, Search, confirmed

__all__ = ["first_breach"]

MOST_FOLLOWED, FAR_ENOUGH = 6, 1_500
"""How many of the states that only the design reaches are followed, and into how many others."""

_Node = int | Packed
"""A state of the original by its number, any other as it is."""


def first_breach(explorer: Explorer, design: TransitionSystem) -> Found | Search:
    """Calls by which the design breaks a clause, or how far none was found.

    They are the fewest of those that break it where the design first does anything that the
    original does not, or soon after; if there are none, the fewest of all.
    """
    walk = _Walk(explorer, design)
    answer = walk.at_once()
    if answer is not None:
        return answer
    if explorer.seed is not None:
        return Search(len(explorer.graph.after), complete=False)
    return walk.run()


class _Walk:
    """The states of a changed system, breadth first, until one breaks a clause."""

    def __init__(self, explorer: Explorer, design: TransitionSystem) -> None:
        self.explorer, self.design = explorer, design
        self.graph = explorer.graph
        self.calls = explorer.prepared_of(design)
        self.original = explorer.prepared_of(explorer.system)
        self.same = [
            alike(mine, theirs) for mine, theirs in zip(self.calls, self.original, strict=True)
        ]
        self.guarded_alike = [
            mine.guard is theirs.guard
            for mine, theirs in zip(explorer.system.actions, design.actions, strict=True)
        ]
        """Where the guards are the original's, what they refuse need not be tried again."""
        self.pairs = [
            [(a, b, values) for a, b in zip(mine, theirs, strict=True) for values in b.choices]
            for mine, theirs in zip(self.original, self.calls, strict=True)
        ]
        self.parents: dict[_Node, _Node | None] = {}
        self.queue: deque[_Node] = deque()
        self.unconfirmed = 0
        self.differs = False

    def at_once(self) -> Found | Search | None:
        """What the changed calls do in the states of the original, and what comes of it.

        `None`: they do something else there, and nothing was broken by it.
        """
        if self._start() != self.graph.states[0]:
            return None
        changed = [k for k, same in enumerate(self.same) if not same]
        others: list[tuple[int, ActionCall, Packed]] = []
        differs = False
        for node in self.graph.after:
            for k in changed:
                for prepared, values, done in self._otherwise(node, k):
                    differs = True
                    if done is None:
                        continue
                    call = prepared.call(values)
                    if self._breaks(node, prepared, values, done):
                        found = self._by_way_of(node, [call])
                        if found is not None:
                            return found
                    elif len(others) < MOST_FOLLOWED:
                        others.append((node, call, self.explorer.normal(done[1])))
        states = len(self.graph.after)
        if not differs:
            return Search(states, complete=states == len(self.graph.states), same=True)
        return next(filter(None, (self._followed(*other) for other in others)), None)

    def _by_way_of(self, node: int, calls: list[ActionCall]) -> Found | None:
        path = self._known_path(node)
        return None if path is None else self._confirmed([*path, *calls])

    def _followed(self, node: int, call: ActionCall, state: Packed) -> Found | None:
        """What comes of it, breadth first, in so many states of the design."""
        if state in self.graph.index:
            return None
        paths: dict[Packed, tuple[ActionCall, ...]] = {state: (call,)}
        queue = deque([state])
        while queue and len(paths) < FAR_ENOUGH:
            here = queue.popleft()
            for prepared, values in (x for calls in self.calls for x in every(calls)):
                done = prepared.run(here, *values)
                if done is None:
                    continue
                to = self.explorer.normal(done[1])
                broken = prepared.claims is not None and (
                    prepared.claims(here, done[1], done[0], *values) >= 0
                )
                if not broken and (to in paths or to in self.graph.index):
                    continue
                calls = (*paths[here], prepared.call(values))
                if broken or self.explorer.state_clauses(to, to, None) >= 0:
                    found = self._by_way_of(node, list(calls))
                    if found is not None:
                        return found
                paths[to] = calls
                queue.append(to)
        return None

    def _otherwise(
        self, node: int, k: int
    ) -> Iterator[tuple[Prepared, tuple[int, ...], tuple[Any, Packed] | None]]:
        """The calls of the k-th action that do something else in a state of the original."""
        state = self.graph.states[node]
        pairs = self.pairs[k]
        if self.guarded_alike[k]:
            pairs = [
                pair for pair, to in zip(pairs, self.graph.after[node][k], strict=True) if to >= 0
            ]
        for mine, theirs, values in pairs:
            done = theirs.run(state, *values)
            if done != mine.run(state, *values):
                yield theirs, values, done

    def _breaks(
        self, node: int, call: Prepared, values: tuple[int, ...], done: tuple[Any, Packed]
    ) -> bool:
        result, after = done
        state = self.graph.states[node]
        if call.claims is not None and call.claims(state, after, result, *values) >= 0:
            return True
        to = self.explorer.normal(after)
        return to not in self.graph.index and self.explorer.state_clauses(to, to, None) >= 0

    def _known_path(self, node: int) -> list[ActionCall] | None:
        """The calls of the design over the states by which the original comes there, if any."""
        path: list[int] = []
        while node >= 0:
            path.append(node)
            node = self.graph.parents[node]
        states = [self.graph.states[n] for n in reversed(path)]
        steps = [self._step_or_none(a, b) for a, b in pairwise(states)]
        known = [step for step in steps if step is not None]
        return known if len(known) == len(steps) else None

    def _start(self) -> Packed:
        start: Packed = self.explorer.normal(self.explorer.compiled_of(self.design).initial())
        return start

    def run(self) -> Found | Search:
        explorer = self.explorer
        start = self._start()
        node = self._node(start)
        if node != 0:
            self.differs = True
            if isinstance(node, tuple) and explorer.state_clauses(start, start, None) >= 0:
                found = self._confirmed([])
                if found is not None:
                    return found
        elif all(self.same):
            return Search(len(self.graph.states), complete=True, same=True)
        self._visit(node, None)
        expanded = 0
        while self.queue and expanded < explorer.most_states:
            expanded += 1
            found = self._expand(self.queue.popleft())
            if found is not None:
                return found
        complete = not self.queue and not self.unconfirmed
        return Search(expanded, complete, same=not self.differs)

    def _node(self, state: Packed) -> _Node:
        return self.graph.index.get(state, state)

    def _state(self, node: _Node) -> Packed:
        return self.graph.states[node] if isinstance(node, int) else node

    def _expand(self, node: _Node) -> Found | None:
        known = isinstance(node, int) and node in self.graph.after
        state = self._state(node)
        for k, calls in enumerate(self.calls):
            if known and self.same[k]:
                assert isinstance(node, int)
                for known_to in self.graph.distinct[node][k]:
                    self._visit(known_to, node)
                continue
            row = self.graph.after[node][k] if known and isinstance(node, int) else None
            if row is not None and len(row) != sum(len(p.choices) for p in calls):
                row = None
            j = -1
            for p, prepared in enumerate(calls):
                run, claims = prepared.run, prepared.claims
                usual = self.original[k][p].run if row is not None else None
                for values in prepared.choices:
                    j += 1
                    done = run(state, *values)
                    if usual is not None and row is not None and done == usual(state, *values):
                        if done is not None:
                            self._visit(row[j], node)
                        continue
                    if usual is not None:
                        self.differs = True
                    if done is None:
                        continue
                    result, after = done
                    bad = claims is not None and claims(state, after, result, *values) >= 0
                    to: _Node = self._node(self.explorer.normal(after))
                    if not bad and isinstance(to, tuple) and to not in self.parents:
                        bad = self.explorer.state_clauses(to, to, None) >= 0
                    if bad:
                        found = self._confirmed([*self._path(node), prepared.call(values)])
                        if found is not None:
                            return found
                        self.unconfirmed += 1
                    else:
                        self._visit(to, node)
        return None

    def _visit(self, node: _Node, parent: _Node | None) -> None:
        if node not in self.parents:
            self.parents[node] = parent
            self.queue.append(node)

    def _path(self, node: _Node) -> list[ActionCall]:
        """The calls that lead to the state."""
        path: list[ActionCall] = []
        while (parent := self.parents[node]) is not None:
            path.append(self._step(self._state(parent), self._state(node)))
            node = parent
        return path[::-1]

    def _step(self, before: Packed, to: Packed) -> ActionCall:
        step = self._step_or_none(before, to)
        if step is None:
            raise AssertionError("a state that is reached by no call")
        return step

    def _step_or_none(self, before: Packed, to: Packed) -> ActionCall | None:
        for calls in self.calls:
            for prepared, values in every(calls):
                done = prepared.run(before, *values)
                if done is not None and self.explorer.normal(done[1]) == to:
                    return prepared.call(values)
        return None

    def _confirmed(self, calls: list[ActionCall]) -> Found | None:
        """The same calls, as they are: what the interpreter says that they break."""
        return confirmed(self.design, self.explorer.world, calls)
