"""The campaign: every wrong design of some kinds, judged by the clauses alone.

The work is cut into parts, by system and kind, that any executor can do in any order; what comes
back is data. The same arguments give the same report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from ..checks.judging import Fate, judge
from ..evaluate.interpreter import ActionCall
from ..kernel.system import TransitionSystem
from ..kernel.wrong_designs import count, wrong_designs
from ..model.equivalents import ACCEPTED
from ..model.variants import SPECIFIED
from .arenas import arena

__all__ = ["Judged", "Report", "Row", "campaign"]

A_PART = 40
"""Designs in one part of the work."""


@dataclass(frozen=True)
class Judged:
    """What became of one wrong design."""

    system: str
    kind: str
    name: str
    fate: Fate
    clauses: tuple[str, ...] = ()
    """Those that the last call breaks, of a design that is condemned."""
    calls: tuple[str, ...] = ()
    """Those by which a clause is broken, or by which a survivor is told from the original."""
    reason: str = ""

    @property
    def accepted(self) -> str | None:
        """Why a design that no clause condemns is none the worse, where that is written down."""
        return ACCEPTED.get(self.system, {}).get(self.name)


@dataclass(frozen=True)
class Row:
    """The designs of one kind, of one system."""

    system: str
    kind: str
    judged: tuple[Judged, ...]
    of: int
    """How many there are; judged are all, or as many as were drawn."""

    def count(self, fate: Fate) -> int:
        return sum(j.fate == fate for j in self.judged)

    @property
    def by_clause(self) -> Counter[str]:
        """How many designs break each clause first."""
        return Counter(j.clauses[0] for j in self.judged if j.clauses)

    @property
    def alive(self) -> tuple[Judged, ...]:
        """Survivors of which no reason is written down."""
        return tuple(j for j in self.judged if j.fate == "survives" and j.accepted is None)


@dataclass(frozen=True)
class Report:
    """What became of every wrong design that was judged."""

    rows: tuple[Row, ...]

    @property
    def alive(self) -> tuple[Judged, ...]:
        return tuple(j for row in self.rows for j in row.alive)


def campaign(
    systems: Sequence[str], kinds: Sequence[str], most: int | None, seed: int, executor: Executor
) -> Report:
    """Judge the wrong designs of these kinds; of each kind at most so many, drawn by the seed.

    Raises:
        ValueError: no such system, or no such kind.
    """
    known = [s.name for s in SPECIFIED.systems]
    for name in systems:
        if name not in known:
            raise ValueError(f"no model {name!r}; there are: {', '.join(known)}")
    work = [(name, kind) for name in systems for kind in kinds]
    sizes = list(executor.map(_size, *zip(*work, strict=True)))
    jobs = []
    for (name, kind), of in zip(work, sizes, strict=True):
        chosen = of if most is None else min(of, most)
        parts = [
            executor.submit(_judge_part, name, kind, most, seed, start)
            for start in range(0, chosen, A_PART)
        ]
        jobs.append((name, kind, of, parts))
    rows = [
        Row(name, kind, tuple(j for part in parts for j in part.result()), of)
        for name, kind, of, parts in jobs
    ]
    return Report(tuple(rows))


def _size(name: str, kind: str) -> int:
    return count(_system(name), kind)


def _judge_part(name: str, kind: str, most: int | None, seed: int, start: int) -> list[Judged]:
    system = _system(name)
    designs = wrong_designs(system, [kind], most, seed, slice(start, start + A_PART))
    within = arena(system)
    within.begin()
    found = []
    for design in designs:
        judgement = judge(within, design.system)
        calls: tuple[ActionCall, ...] = ()
        reason = judgement.reason
        if judgement.found is not None:
            calls = judgement.found.calls
        elif judgement.difference is not None:
            calls, reason = judgement.difference.calls, judgement.difference.what
        found.append(
            Judged(
                name,
                kind,
                design.name,
                judgement.fate,
                judgement.clauses,
                tuple(map(_words, calls)),
                reason,
            )
        )
    return found


def _words(call: ActionCall) -> str:
    return f"{call.action}({', '.join(str(v) for v in call.arguments.values())})"


def _system(name: str) -> TransitionSystem:
    (found,) = (s for s in SPECIFIED.systems if s.name == name)
    return found
