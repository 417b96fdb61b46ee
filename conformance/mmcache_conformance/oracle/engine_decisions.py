"""Which wrong decisions an engine has taken: its symptoms beside those of the reference engine.

Schedulers are free in what they schedule when, so passes cannot be compared call by call, as the
answers of a manager can. What is compared is the first pass that breaks a clause: it breaks the
same ones, of the same hashes and requests, and leaves the ledger and the worker with the same, as
in the reference engine with that decision; and so in every vector that the decision fails, but for
those that another of the engine's decisions explains. An engine that does nothing at all looks like
many of them in some vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from mmcache_spec.model.variants import VARIANTS
from mmcache_vectors.clauses import clause
from mmcache_vectors.engine import EngineVector

from ..engines.clauses import Breach, judge
from ..engines.protocol import PassRecord, engine_case
from ..engines.reference import REFERENCE_VARIANTS, ReferencePass
from ..verdicts.model import Decision, PassFailure, TargetReport
from .cover import covering

__all__ = ["EngineDecisions", "engine_decided"]

_Symptoms = tuple[frozenset[tuple[str, str]], frozenset[str], frozenset[str]]
"""The clauses with what was found, the hashes that are cached, and those at the worker."""


class EngineDecisions:
    """The failures of one engine, and the decisions that show the same."""

    def __init__(self, report: TargetReport, vectors: Mapping[str, EngineVector]) -> None:
        self._vectors = vectors
        self._failures = {
            v.id: v.failure
            for v in report.verdicts
            if v.id in vectors and isinstance(v.failure, PassFailure)
        }
        judged = {"pass", "xpass", "fail", "xfail"}
        self._ran = [v.id for v in report.verdicts if v.id in vectors and v.outcome in judged]

    @property
    def failing(self) -> tuple[str, ...]:
        return tuple(self._failures)

    def decisions(self) -> list[Decision]:
        """Those that explain most first; those that other vectors speak against last."""
        names = [n for n in VARIANTS if n in REFERENCE_VARIANTS and VARIANTS[n].expected]
        alike = {n: [id for id in self._failures if self._same(n, id)] for n in names}
        alike = self._without_chance(alike)
        against = self._all_against({n: ids for n, ids in alike.items() if ids})
        unopposed = {n: alike[n] for n in against if not against[n]}
        found = [self._told(best, ids, others) for best, ids, others in covering(unopposed)]
        left = set(self._failures) - {id for decision in found for id in decision.vectors}
        for name, contradicting in against.items():
            ids = [id for id in alike[name] if id in left]
            # What explains little more than what speaks against it is chance.
            if ids and 0 < 2 * len(contradicting) < len(alike[name]):
                found.append(self._told(name, ids, (), contradicting))
        return found

    def _same(self, name: str, id: str) -> bool:
        vector = self._vectors[id]
        if vector.kills and name not in vector.kills:
            return False
        failure = self._failures[id]
        return _symptoms(failure.breaches, failure.records) == _of_reference(name, vector)

    def _without_chance(self, alike: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Without the decisions that explain fewer failures of a clause than are left unexplained.

        An engine that breaks it everywhere breaks it there as well.
        """
        kept = {name: ids for name, ids in alike.items() if ids}
        while True:
            explained = {id for ids in kept.values() for id in ids}
            open_ = [self._broken(id) for id in self._failures if id not in explained]
            chance = []
            for name, ids in kept.items():
                mine = frozenset[str]().union(*map(self._broken, ids))
                if sum(bool(broken & mine) for broken in open_) >= len(ids):
                    chance.append(name)
            if not chance:
                return {name: kept.get(name, []) for name in alike}
            kept = {name: ids for name, ids in kept.items() if name not in chance}

    def _broken(self, id: str) -> frozenset[str]:
        """The clauses that the first wrong pass breaks."""
        breaches = self._failures[id].breaches
        first = min(b.pass_number for b in breaches)
        return frozenset(b.clause for b in breaches if b.pass_number == first)

    def _all_against(self, alike: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
        """By decision, the vectors that speak against it: it fails them, and this engine does not.

        Or this engine fails them in a way that no decision without such vectors explains.
        """
        passed = [id for id in self._ran if id not in self._failures]
        against = {name: self._failing_among(name, passed) for name in alike}
        while True:
            taken = [name for name in alike if not against[name]]
            explained = {id for name in taken for id in alike[name]}
            open_ = [id for id in self._failures if id not in explained]
            found = {name: self._failing_among(name, open_) for name in taken}
            if not any(found.values()):
                return against
            against |= {name: ids for name, ids in found.items() if ids}

    def _failing_among(self, name: str, ids: Sequence[str]) -> tuple[str, ...]:
        """Those of the vectors that the reference engine with this decision fails."""
        return tuple(
            id
            for id in ids
            if name in self._vectors[id].kills
            and _of_reference(name, self._vectors[id]) is not None
        )

    def _told(
        self, name: str, ids: Sequence[str], others: tuple[str, ...], against: tuple[str, ...] = ()
    ) -> Decision:
        first = self._failures[ids[0]].breaches[0]
        return msgspec.structs.replace(
            engine_decided(name),
            vectors=tuple(ids),
            first=f"pass {first.pass_number} of {ids[0]}",
            alternatives=others,
            contradicted_by=against,
        )


def engine_decided(name: str) -> Decision:
    """What is told of a decision of an engine."""
    variant = VARIANTS[name]
    assert variant.expected is not None
    ought = variant.expected.target or variant.expected.breaks[0]
    return Decision(
        name=name,
        says=variant.says,
        reports=variant.seen_in,
        clause=ought,
        ought=clause(ought).says,
        vectors=(),
        first="",
    )


def _symptoms(breaches: Sequence[Breach], records: Sequence[PassRecord]) -> _Symptoms | None:
    """What the first pass shows that breaks anything; None if none does."""
    if not breaches:
        return None
    first = min(b.pass_number for b in breaches)
    (record,) = (r for r in records if r.number == first)
    found = frozenset((b.clause, b.says) for b in breaches if b.pass_number == first)
    return found, frozenset(record.cached), frozenset(record.worker)


@cache
def _of_reference(name: str, vector: EngineVector) -> _Symptoms | None:
    """The same, of the reference engine that takes the decision."""
    engine = ReferencePass(name)
    engine.start()
    try:
        records = list(engine.passes(engine_case(vector)))
        return _symptoms(judge(vector, records), records)
    finally:
        engine.stop()
