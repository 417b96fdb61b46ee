"""What a target is known to do otherwise, so that a campaign can go on past it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mmcache_vectors.manager import Manager, Vector

from ..implementation import Implementation
from ..oracle.blame import blamed
from ..oracle.systems import specified
from ..suites.load import AnyVector
from ..targets.protocol import ManagerTarget, case_of, missing_capability
from ..verdicts.expected import ExpectedFailures
from ..verdicts.judge import first_difference
from ..verdicts.signature import signature_of
from .decisions import explained_by
from .kinds import Kind, kind_of
from .lanes import lane_to
from .probe import Differing, play_through
from .shrink import Candidate, Shrunk, shrink

__all__ = ["Known", "known_of", "nothing_known"]


@dataclass(frozen=True)
class Known:
    """A difference is known if a known decision explains all of it, if it breaks known clauses
    only, or if its least sequence is of a known kind."""

    decisions: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = field(default_factory=frozenset)

    def may_have(self, found: Shrunk[Differing]) -> bool:
        """Whether a difference may be of a known kind, once its sequence is made short."""
        calls = found.candidate.calls
        signature = signature_of(calls[-1], found.found.differences)
        return any(kind.signature == signature and kind.may_be(calls) for kind in self.kinds)

    def covers(self, manager: Manager, found: Shrunk[Differing]) -> bool:
        """Whether what breaks, or a known decision, says that the difference is known."""
        parameters, calls = found.candidate.parameters, found.candidate.calls
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
    kinds: set[Kind] = set()
    lane = lane_to(target)
    for vector in _manager_vectors(listed):
        if missing_capability(vector, implementation) is not None:
            continue
        answers = target.run(case_of(vector))
        wrong = first_difference(vector.steps, answers)
        if wrong is None:
            continue
        step, differences = wrong
        calls = tuple(s.call for s in vector.steps[: step + 1])
        given = answers[: step + 1]
        decisions.update(explained_by(vector.manager, vector.parameters, calls, given))
        expected_answers = tuple(s.expect for s in vector.steps[: step + 1])
        found = Shrunk(
            Candidate(vector.parameters, calls), Differing(expected_answers, given, differences)
        )
        if Known(kinds=frozenset(kinds)).may_have(found):
            continue
        offered = frozenset(implementation.capabilities[vector.manager])
        probe = partial(play_through, lane, vector.manager, offered)
        least = shrink(found, probe)
        kinds.add(kind_of(least.candidate.calls, least.found.differences))
    return Known(frozenset(decisions), clauses, frozenset(kinds))


def _manager_vectors(vectors: Iterable[AnyVector]) -> Iterable[Vector]:
    return (v for v in vectors if isinstance(v, Vector))
