"""What a target is known to do otherwise, so that a campaign can go on past it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mmcache_vectors.manager import Manager, Vector

from ..implementation import Implementation
from ..oracle.blame import blamed
from ..oracle.systems import specified
from ..suites.load import AnyVector
from ..targets.protocol import ManagerTarget, case_of, missing_capability
from ..verdicts.expected import ExpectedFailures
from ..verdicts.judge import first_difference
from .decisions import explained_by
from .probe import Differing, Signature, signature_of
from .shrink import Shrunk

__all__ = ["Known", "known_of", "nothing_known"]


@dataclass(frozen=True)
class Known:
    """A difference is known if a known decision explains all of it, if it breaks known clauses
    only, or if a known failure differs at the same call in the same way."""

    decisions: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()
    signatures: frozenset[Signature] = field(default_factory=frozenset)

    def covers(self, manager: Manager, found: Shrunk[Differing]) -> bool:
        parameters, calls = found.candidate.parameters, found.candidate.calls
        if signature_of(calls[-1], found.found.differences) in self.signatures:
            return True
        if self.clauses:
            broken = blamed(specified(manager), parameters, calls, found.found.differences)
            if broken and self.clauses.issuperset(broken):
                return True
        if not self.decisions:
            return False
        explaining = explained_by(manager, parameters, calls, found.found.answers)
        return bool(self.decisions.intersection(explaining))


nothing_known = Known()


def known_of(
    target: ManagerTarget,
    implementation: Implementation,
    expected: ExpectedFailures,
    suite: Sequence[AnyVector],
) -> Known:
    """What the expected failures of a started target say, as the target shows it now."""
    clauses = frozenset(e.clause for e in expected.expected if e.clause is not None)
    named = {e.vector for e in expected.expected}
    listed = [v for v in suite if v.id in named or clauses.intersection(v.clauses)]
    decisions: set[str] = set()
    signatures: set[Signature] = set()
    for vector in _manager_vectors(listed):
        if missing_capability(vector, implementation) is not None:
            continue
        answers = target.run(case_of(vector))
        wrong = first_difference(vector.steps, answers)
        if wrong is None:
            continue
        step, differences = wrong
        signatures.add(signature_of(vector.steps[step].call, differences))
        calls = [s.call for s in vector.steps[: step + 1]]
        decisions.update(
            explained_by(vector.manager, vector.parameters, calls, answers[: step + 1])
        )
    return Known(frozenset(decisions), clauses, frozenset(signatures))


def _manager_vectors(vectors: Iterable[AnyVector]) -> Iterable[Vector]:
    return (v for v in vectors if isinstance(v, Vector))
