"""Every state that a system reaches in one small world.

The search goes breadth first, over compiled calls, or walks by a seed. What other designs do in
these states is asked in `broken` and `different`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..evaluate.compiled import CompiledClaims, CompiledSystem, CompiledView, Packed
from ..evaluate.interpreter import World
from ..kernel.system import Action, TransitionSystem
from .calls import Prepared, every, prepared_calls
from .times import Times, times_of

__all__ = ["BrokenOriginal", "Explorer", "Graph"]


class BrokenOriginal(Exception):
    """The system that others are compared with breaks a clause of its own."""


@dataclass
class Graph:
    """The states of the original in the order in which they were found, and where they lead."""

    states: list[Packed]
    index: dict[Packed, int]
    after: dict[int, tuple[tuple[int, ...], ...]]
    """For each expanded state and each action, where each call leads; -1 where it is refused."""
    distinct: dict[int, tuple[tuple[int, ...], ...]]
    """The same, each state once."""
    parents: list[int]
    """From which state each was found first; -1 of the first."""


@dataclass
class Explorer:
    """One system in one world. `integers` are what is tried for each integer argument."""

    system: TransitionSystem
    world: World
    integers: Sequence[int] = (0, 1, 2)
    most_states: int = 20_000
    most_gap: int = 2
    seed: int | None = None
    """By which walks are drawn; None: breadth first. A design is then only followed from where it
    does something else than the original."""
    steps_of_a_walk: int = 60
    _parts: dict[str, list[Prepared]] = field(default_factory=dict, repr=False)

    # What is compiled.

    @cached_property
    def compiled(self) -> CompiledSystem:
        return CompiledSystem(self.system, self.world, with_ghosts=True)

    @cached_property
    def _times(self) -> Times:
        return times_of(self.system)

    @cached_property
    def normal(self) -> Any:
        return self._times.near(self.compiled.variables, self.most_gap)

    @cached_property
    def view(self) -> CompiledView:
        return self.compiled.compile_view(tuple(self.system.observables.values()))

    @cached_property
    def state_clauses(self) -> CompiledClaims:
        formulas = [i.formula for i in self.system.invariants if i.clause is not None]
        return self.compiled.compile_claims(formulas, {})

    def compiled_of(self, system: TransitionSystem) -> CompiledSystem:
        """The system in this world, sharing what is already written."""
        if system is self.system:
            return self.compiled
        of = self.compiled
        return CompiledSystem(system, self.world, True, of._written, of.free)

    def _prepared(self, action: Action, compiled: CompiledSystem) -> list[Prepared]:
        """Every call of the action; those of the original are kept, and serve whoever is alike."""
        own = self.system.action(action.name)
        as_before = own is action or _says_the_same(own, action)
        if as_before and action.name in self._parts:
            return self._parts[action.name]
        claimed = self.system.action_properties is compiled.system.action_properties
        known = self._parts.get(action.name, ()) if claimed else ()
        found = prepared_calls(compiled, action, self.integers, known)
        if as_before:
            self._parts[action.name] = found
        return found

    def prepared_of(self, system: TransitionSystem) -> list[list[Prepared]]:
        compiled = self.compiled_of(system)
        return [self._prepared(action, compiled) for action in system.actions]

    # The original.

    @cached_property
    def graph(self) -> Graph:
        """What the original reaches. It must break no clause."""
        actions = self.prepared_of(self.system)
        start = self.normal(self.compiled.initial())
        graph = Graph([start], {start: 0}, {}, {}, [-1])
        if self.state_clauses(start, start, None) >= 0:
            raise BrokenOriginal(f"{self.system.name} breaks a clause in its initial state")
        for k in self._order(graph):
            state = graph.states[k]
            row = []
            for calls in actions:
                seen: list[int] = []
                for prepared, values in every(calls):
                    done = prepared.run(state, *values)
                    if done is None:
                        seen.append(-1)
                        continue
                    result, after = done
                    bad = prepared.claims is not None and (
                        prepared.claims(state, after, result, *values) >= 0
                    )
                    after = self.normal(after)
                    at = graph.index.get(after)
                    if at is None:
                        bad = bad or self.state_clauses(after, after, None) >= 0
                        at = graph.index[after] = len(graph.states)
                        graph.states.append(after)
                        graph.parents.append(k)
                    if bad:
                        raise BrokenOriginal(
                            f"{self.system.name} breaks a clause by {prepared.call(values)}"
                        )
                    seen.append(at)
                row.append(tuple(seen))
            graph.after[k] = tuple(row)
            graph.distinct[k] = tuple(tuple(dict.fromkeys(x for x in r if x >= 0)) for r in row)
        return graph

    def _order(self, graph: Graph) -> Iterator[int]:
        """Which state is looked at next: breadth first, or on a walk that begins again and again.

        A walk goes on to a state that is new, drawn by the seed; where there is none, or after so
        many steps, it begins again anywhere. It comes far in worlds too large to be seen whole.
        """
        if self.seed is None:
            for k in range(self.most_states):
                if k == len(graph.states):
                    return
                yield k
            return
        chance, at, steps = random.Random(self.seed), 0, 0
        while len(graph.after) < self.most_states:
            yield at
            steps += 1
            new = [n for row in graph.distinct[at] for n in row if n not in graph.after]
            if not new or steps % self.steps_of_a_walk == 0:
                new = [n for n in range(len(graph.states)) if n not in graph.after]
            if not new:
                return
            at = chance.choice(new)

    @property
    def reached(self) -> int:
        """How many states the original reaches, as far as was searched."""
        return len(self.graph.states)


def _says_the_same(one: Action, two: Action) -> bool:
    """Whether nothing but what an observer records of it was written anew."""
    return (
        one.guard is two.guard
        and one.returns is two.returns
        and one.parameters is two.parameters
        and _own(one) == _own(two)
    )


def _own(action: Action) -> list[tuple[str, int]]:
    return [(v.name, id(term)) for v, term in action.effect if v.role != "ghost"]
