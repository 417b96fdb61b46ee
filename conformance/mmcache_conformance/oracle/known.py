"""What a target is known to do otherwise, so that a search can go on past it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mmcache_vectors.manager import Call, Manager, Parameters, Vector

from ..errors import AdapterError
from ..implementation import Implementation
from ..suites.load import AnyVector
from ..targets.protocol import Answer, ManagerTarget, case_of, missing_capability
from ..verdicts.expected import ExpectedFailures
from ..verdicts.judge import first_difference
from ..verdicts.model import Difference
from ..verdicts.signature import Signature, signature_of
from .blame import blamed
from .decisions import agreeing
from .systems import specified

__all__ = ["Known", "Seen", "Sieve", "known_of", "nothing_known"]

_EXAMINED = 300
"""Differences of one signature that are compared with what is known; of those after that, all are
taken to be known, since those were."""


@dataclass(frozen=True)
class Seen:
    """A difference at the last of the calls, and all that was answered up to it."""

    manager: Manager
    parameters: Parameters
    calls: tuple[Call, ...]
    answers: tuple[Answer, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Known:
    """A difference is known if a known decision explains all of it, if it breaks known clauses
    only, or if a known failure differs at the same call in the same way."""

    decisions: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()
    signatures: frozenset[Signature] = field(default_factory=frozenset)

    def covers(self, seen: Seen) -> bool:
        if signature_of(seen.calls[-1], seen.differences) in self.signatures:
            return True
        if self.clauses:
            system = specified(seen.manager)
            broken = blamed(system, seen.parameters, seen.calls, seen.differences)
            if broken and self.clauses.issuperset(broken):
                return True
        if not self.decisions:
            return False
        explaining = agreeing(seen.manager, seen.parameters, seen.calls, seen.answers)
        return bool(self.decisions.intersection(explaining))


nothing_known = Known()


class Sieve:
    """Tells what is known from what is not, and looks at no more of a kind than it must."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._examined: dict[Signature, int] = {}

    def passes_over(self, call: Call, differences: Sequence[Difference]) -> bool:
        """Whether so many of this signature were known that one more is taken to be."""
        return self._examined.get(signature_of(call, differences), 0) >= _EXAMINED

    def covers(self, seen: Seen) -> bool:
        if self._known == nothing_known or not seen.calls:
            return False
        if self.passes_over(seen.calls[-1], seen.differences):
            return True
        if not self._known.covers(seen):
            return False
        signature = signature_of(seen.calls[-1], seen.differences)
        self._examined[signature] = self._examined.get(signature, 0) + 1
        return True


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
        try:
            answers = target.run(case_of(vector))
        except AdapterError:
            continue  # it breaks down on this one, as it may: there is no answer to learn from
        wrong = first_difference(vector.steps, answers)
        if wrong is None:
            continue
        step, differences = wrong
        calls = [s.call for s in vector.steps[: step + 1]]
        if vector.id not in named:  # listed by its clause: it may fail for another reason as well
            system = specified(vector.manager)
            if not clauses.issuperset(blamed(system, vector.parameters, calls, differences)):
                continue
        signatures.add(signature_of(vector.steps[step].call, differences))
        decisions.update(agreeing(vector.manager, vector.parameters, calls, answers[: step + 1]))
    return Known(frozenset(decisions), clauses, frozenset(signatures))


def _manager_vectors(vectors: Iterable[AnyVector]) -> Iterable[Vector]:
    return (v for v in vectors if isinstance(v, Vector))
