"""A design judged by the clauses alone, and what becomes of one that no clause condemns.

A clause condemns a design where some calls from the initial state lead to a step that breaks it:
found breadth first in small worlds, and executed again by the interpreter. A strengthening
invariant condemns nothing. Of a design that is not condemned it is asked whether anybody could
tell it from the original: a proof for any number of elements that it takes the same steps
(`checks.equivalence`), or that it satisfies every clause, which leave no choice
(`checks.satisfaction`); or else a search, in the same worlds, that finds no other answer. What is
left are the survivors: each shows something that no clause says.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..evaluate.interpreter import ActionCall, World
from ..kernel.system import TransitionSystem
from .broken import first_breach
from .different import first_difference
from .equivalence import EQUAL, Coupling, same_steps
from .explore import Explorer
from .findings import Difference, Found, Search, along
from .satisfaction import SAYS, satisfies_the_clauses

__all__ = ["Arena", "Fate", "Judgement", "judge"]

Fate = Literal["condemned", "equivalent, proved", "equivalent, searched", "survives"]


@dataclass(frozen=True)
class Judgement:
    """What became of a design, and what shows it."""

    fate: Fate
    found: Found | None = None
    """The calls that break a clause, of a design that is condemned."""
    difference: Difference | None = None
    """The calls that tell a survivor from the original."""
    reason: str = ""
    """How an equivalent one was proved to be one, or how far was searched."""
    seconds: float = 0.0

    @property
    def clauses(self) -> tuple[str, ...]:
        return () if self.found is None else self.found.clauses


@dataclass
class Arena:
    """A system, the small worlds in which designs are compared with it, and what they show.

    What an observer sees are the answers and the system's observables; `couplings` are the ways in
    which a proof of equivalence may relate the two states, the plainest first. The `quick` first
    worlds are tried before anything is proved.
    """

    system: TransitionSystem
    worlds: Sequence[World]
    couplings: Sequence[Coupling] = ()
    quick: int = 2
    integers: Sequence[int] = (0, 1, 2)
    most_states: int = 20_000
    deep: Sequence[World] = ()
    """Worlds for what the others and the proofs leave open: too rich to be seen whole, they are
    searched breadth first as far as `most_deep` states."""
    most_deep: int = 12_000
    runs: Sequence[tuple[World, Sequence[ActionCall]]] = ()
    """Calls of the original that lead where no search comes: each design is asked them as well."""
    _explorers: dict[int, Explorer] = field(default_factory=dict, repr=False)
    _condemned: dict[frozenset[str], Counter[int]] = field(default_factory=dict, repr=False)
    """For each set of changed actions, how many designs each world condemned."""

    def explorer(self, k: int) -> Explorer:
        """That of the k-th world, with all that the original does there, made when it is needed."""
        if k not in self._explorers:
            world = (*self.worlds, *self.deep)[k]
            per_request = max(world.functions.get("inputs_of", {"": 1}).values(), default=1)
            most = self.most_states if k < len(self.worlds) else self.most_deep
            self._explorers[k] = Explorer(self.system, world, self.integers, most, per_request)
        return self._explorers[k]

    def begin(self) -> None:
        """Forget which worlds condemned most: what is judged next depends on nothing before."""
        self._condemned.clear()

    def condemned_by(self, changed: frozenset[str]) -> Counter[int]:
        """How many designs that change these actions each world condemned, since it began."""
        return self._condemned.setdefault(changed, Counter())


def judge(arena: Arena, design: TransitionSystem) -> Judgement:
    """What becomes of the design.

    Raises:
        ValueError: its record is not that of the system, so the two cannot be compared.
    """
    if design.monitors is not arena.system.monitors:
        raise ValueError(f"{design.name}: an observer keeps another record of this design")
    started = time.perf_counter()
    judgement = _judged(arena, design)
    return Judgement(
        judgement.fate,
        judgement.found,
        judgement.difference,
        judgement.reason,
        time.perf_counter() - started,
    )


def _judged(arena: Arena, design: TransitionSystem) -> Judgement:
    """First what is cheap: the small worlds, a plain proof; then what settles the rest."""
    searches: dict[int, Search] = {}
    condemned_by = arena.condemned_by(_changed(arena.system, design))
    for most, proof in (
        (arena.quick, _plainly),
        (len(arena.worlds), _otherwise),
        (len(arena.worlds) + len(arena.deep), None),
    ):
        # The worlds in which designs of the same actions were condemned come first.
        for k in sorted(range(len(searches), most), key=lambda k: (-condemned_by[k], k)):
            answer = first_breach(arena.explorer(k), design)
            if isinstance(answer, Found):
                condemned_by[k] += 1
                return Judgement("condemned", found=answer)
            searches[k] = answer
        if proof is not None and (why := proof(arena, design)):
            return Judgement("equivalent, proved", reason=why)
        if most == arena.quick:
            found = next(filter(None, (along(design, *run) for run in arena.runs)), None)
            if found is not None:
                return Judgement("condemned", found=found)
    difference = _difference(arena, design, searches)
    if difference is not None:
        return Judgement("survives", difference=difference)
    return Judgement("equivalent, searched", reason=_words(searches.values()))


def _changed(system: TransitionSystem, design: TransitionSystem) -> frozenset[str]:
    pairs = zip(system.actions, design.actions, strict=True)
    return frozenset(mine.name for mine, theirs in pairs if mine is not theirs)


def _plainly(arena: Arena, design: TransitionSystem) -> str | None:
    return same_steps(arena.system, design, EQUAL)


def _otherwise(arena: Arena, design: TransitionSystem) -> str | None:
    """A proof that needs more than that the steps are the same."""
    for coupling in arena.couplings:
        if proof := same_steps(arena.system, design, coupling):
            return proof
    return SAYS if satisfies_the_clauses(arena.system, design) else None


def _difference(
    arena: Arena, design: TransitionSystem, searches: dict[int, Search]
) -> Difference | None:
    """What tells the design from the original in the worlds that were searched so far."""
    for k in sorted(searches):
        if not searches[k].same:
            answer = first_difference(arena.explorer(k), design)
            if isinstance(answer, Difference):
                return answer
            searches[k] = answer
    return None


def _words(searches: Iterable[Search]) -> str:
    found = list(searches)
    pairs = sum(s.states for s in found)
    cut = sum(not s.complete for s in found)
    short = f", {cut} of them in part" if cut else ""
    return f"no difference in {pairs} pairs of states of {len(found)} worlds{short}"
