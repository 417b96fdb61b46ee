"""Which wrong decisions a pair of processor caches has taken: its first wrong call beside theirs.

A decision explains a failure if a pair that is made of the specification with that decision fails
the vector at the same call, with the same answer and the same broken clauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from mmcache_spec.model.processor_cache import ProcessorCacheDesign
from mmcache_spec.model.processor_cache_variants import WRONG_PROCESSOR_CACHES
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.pair import PairSystem
from mmcache_vectors.pair import PairVector, Withdraw

from ..pairs.clauses import judge_pair
from ..pairs.protocol import PairAnswer
from ..verdicts.model import Decision, PairFailure, TargetReport
from .cover import covering
from .engine_decisions import engine_decided

__all__ = ["PairDecisions", "killed_by", "model_answers"]

_Symptom = tuple[int, tuple[str, ...], tuple[object, ...]]
"""The step, the clauses that it breaks, and what was answered."""


class PairDecisions:
    """The failures of one pair, and the decisions that show the same."""

    def __init__(self, report: TargetReport, vectors: Mapping[str, PairVector]) -> None:
        self._vectors = vectors
        self._failures = {
            v.id: v.failure
            for v in report.verdicts
            if v.id in vectors and isinstance(v.failure, PairFailure)
        }
        ran = {"pass", "xpass", "fail", "xfail"}
        self._passed = [
            v.id
            for v in report.verdicts
            if v.id in vectors and v.outcome in ran and v.failure is None
        ]

    @property
    def failing(self) -> tuple[str, ...]:
        return tuple(self._failures)

    def decisions(self) -> list[Decision]:
        """Those that explain most first. One that a passed vector speaks against is not taken."""
        names = [v.name for v in WRONG_PROCESSOR_CACHES if not self._against(v.name)]
        alike = {n: [id for id in self._failures if self._same(n, id)] for n in names}
        return [
            msgspec.structs.replace(
                engine_decided(best),
                vectors=tuple(ids),
                first=f"step {self._failures[ids[0]].step + 1} of {ids[0]}",
                alternatives=others,
            )
            for best, ids, others in covering(alike)
        ]

    def _same(self, name: str, id: str) -> bool:
        vector, failure = self._vectors[id], self._failures[id]
        if name not in vector.kills:
            return False
        clauses = tuple(sorted({b.clause for b in failure.breaches}))
        return (failure.step, clauses, _shown(failure.answers[-1])) == _symptom(name, vector)

    def _against(self, name: str) -> bool:
        """Whether the pair keeps what the decision breaks, in some vector.

        It passes the vector, or comes past the call at which the decision fails, or breaks less
        there.
        """
        kept = [id for id in (*self._passed, *self._failures) if name in self._vectors[id].kills]
        return any(self._keeps(name, id) for id in kept)

    def _keeps(self, name: str, id: str) -> bool:
        symptom = _symptom(name, self._vectors[id])
        if symptom is None:
            return False
        failure = self._failures.get(id)
        if failure is None or failure.step > symptom[0]:
            return True
        broken = {b.clause for b in failure.breaches}
        return failure.step == symptom[0] and not broken.issuperset(symptom[1])


def _shown(answer: PairAnswer) -> tuple[object, ...]:
    failed = answer.error is not None
    return answer.sent, answer.data, answer.missed, failed


@cache
def _symptom(name: str, vector: PairVector) -> _Symptom | None:
    answers = model_answers(_design_of(name), vector)
    wrong = judge_pair(vector, answers)
    if wrong is None:
        return None
    clauses = tuple(sorted({b.clause for b in wrong.breaches}))
    return wrong.step, clauses, _shown(answers[wrong.step])


def killed_by(name: str, vector: PairVector) -> bool:
    """Whether a pair that takes the decision of this name fails the vector."""
    return _symptom(name, vector) is not None


def _design_of(name: str) -> ProcessorCacheDesign:
    (made_of,) = VARIANTS[name].made_of
    design: ProcessorCacheDesign = made_of.args[0]  # type: ignore[attr-defined]
    return design


def model_answers(design: ProcessorCacheDesign, vector: PairVector) -> tuple[PairAnswer, ...]:
    """What a pair of this design answers, with all that its sides hold, up to what fails."""
    system = PairSystem(vector.parameters, design)
    state = system.initial()
    found: list[PairAnswer] = []
    for step in vector.steps:
        answered = system.call(state, step.call)
        if answered is None:  # what does not travel cannot arrive either
            break
        answer, after = answered
        travels: bool | None = None
        if isinstance(step.call, Withdraw):
            travels = (step.call.request, True) in after.line
        view = system.view(after)
        found.append(
            PairAnswer(
                sent=answer.expect.sent,
                data=answer.expect.data,
                travels=travels,
                missed=() if answer.died else answer.missed,
                error="it raised" if answer.raised or answer.died else None,
                ended=answer.died,
                sender=view.sender,
                receiver=view.receiver,
                ordered=tuple(sorted(view.ordered)),
            )
        )
        state = after
        if answer.raised or answer.died or answer.missed:
            break
    return tuple(found)
