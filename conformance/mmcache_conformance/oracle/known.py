"""What a target is known to do otherwise, so that a search can go on past it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from mmcache_vectors.manager import Call, Manager, Parameters, Vector

from ..errors import AdapterError
from ..implementation import Implementation
from ..suites.load import AnyVector
from ..targets.protocol import OBSERVABLES, Answer, ManagerTarget, case_of, missing_capability
from ..verdicts.expected import ExpectedFailures
from ..verdicts.judge import answer_differences, first_difference
from ..verdicts.model import Difference
from ..verdicts.signature import Signature, signature_of
from .blame import blamed
from .decisions import agreeing, takes
from .systems import specified
from .taken import AnsweringManager, decisions_of, managers_taking, only_shown

__all__ = ["Choice", "Known", "Seen", "Sieve", "known_of", "nothing_known"]

_EXAMINED = 300
"""Differences of one signature that are all compared with what is known. After them one is taken to
be known if a few with the same call and the same answer were."""

_EXAMINED_ALIKE = 10
"""So many are that few."""

_MOST_TOGETHER = 3
"""So many known decisions may explain one difference together."""

Choice = frozenset[str]
"""Decisions of which the target has taken one; nobody knows which, until a difference tells."""


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
    """What is known of a target.

    A difference is known if known decisions explain all of it, if it breaks known clauses only, or
    if a known failure that no decision explains differs at the same call in the same way.
    """

    decisions: frozenset[Choice] = frozenset()
    clauses: frozenset[str] = frozenset()
    signatures: frozenset[Signature] = field(default_factory=frozenset)


nothing_known = Known()

_Exact = tuple[Call, str]


class Sieve:
    """Tells what is known from what is not, in one search, and looks at no more than it must.

    Which of several decisions was taken is learnt on the way: what has shown that it is one of them
    does not pass for the other afterwards.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._choices = set(known.decisions)
        self._examined: dict[Signature, int] = {}
        self._alike: dict[_Exact, int] = {}

    @property
    def choices(self) -> frozenset[Choice]:
        """The known decisions, as far as this search knows by now which were taken."""
        return frozenset(self._choices)

    def passes_over(self, call: Call, differences: Sequence[Difference]) -> bool:
        """Whether so many like this one were known that one more is taken to be."""
        if self._examined.get(signature_of(call, differences), 0) < _EXAMINED:
            return False
        return self._alike.get(_exact(call, differences), 0) >= _EXAMINED_ALIKE

    def covers(self, seen: Seen) -> bool:
        """Whether the difference is known."""
        if self._known == nothing_known or not seen.calls:
            return False
        call, differences = seen.calls[-1], seen.differences
        if self.passes_over(call, differences):
            return True
        if not self.explains(seen):
            return False
        signature, exact = signature_of(call, differences), _exact(call, differences)
        self._examined[signature] = self._examined.get(signature, 0) + 1
        self._alike[exact] = self._alike.get(exact, 0) + 1
        return True

    def explains(self, seen: Seen) -> bool:
        """The same, of this very difference and never by others like it."""
        known = self._known
        if signature_of(seen.calls[-1], seen.differences) in known.signatures:
            return True
        if known.clauses:
            system = specified(seen.manager)
            broken = blamed(system, seen.parameters, seen.calls, seen.differences)
            if broken and known.clauses.issuperset(broken):
                return True
        return self._decided(seen)

    def _decided(self, seen: Seen) -> bool:
        for count in range(1, min(_MOST_TOGETHER, len(self._choices)) + 1):
            for choices in combinations(sorted(self._choices, key=sorted), count):
                working = [names for names in product(*choices) if _taken(names, seen)]
                if working:
                    left = (frozenset(names) for names in zip(*working, strict=True))
                    self._choices -= set(choices)
                    self._choices |= set(left)
                    return True
        return False


def _taken(names: Sequence[str], seen: Seen) -> bool:
    return takes(names, seen.manager, seen.parameters, seen.calls, seen.answers)


def _exact(call: Call, differences: Sequence[Difference]) -> _Exact:
    return call, repr(differences)


# --- what a file of expected failures says ------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    """What the file lists: vectors by name, and whatever breaks some clauses only."""

    vectors: frozenset[str]
    clauses: frozenset[str]

    def has(
        self, vector: Vector, calls: Sequence[Call], differences: tuple[Difference, ...]
    ) -> bool:
        """Whether a failure of the vector, at the last of these calls, is listed."""
        if vector.id in self.vectors:
            return True
        if not self.clauses.intersection(vector.clauses):
            return False  # it may fail for another reason as well
        broken = blamed(specified(vector.manager), vector.parameters, calls, differences)
        return self.clauses.issuperset(broken)


def known_of(
    target: ManagerTarget,
    implementation: Implementation,
    expected: ExpectedFailures,
    suite: Sequence[AnyVector],
) -> Known:
    """What the expected failures of a started target say, as the target shows it now.

    A decision is known if it explains a listed failure and everything else that it would fail is
    listed as well: of two that explain one failure alike, the one that is not taken fails more.
    """
    listed = _Listed(
        frozenset(e.vector for e in expected.expected if e.vector is not None),
        frozenset(e.clause for e in expected.expected if e.clause is not None),
    )
    playable = [
        v for v in suite if isinstance(v, Vector) and missing_capability(v, implementation) is None
    ]
    failures = dict(_failures(target, listed, playable))
    allowed = _Allowed(listed, playable, implementation)
    explaining = {
        id: frozenset(name for name in agreeing(*_asked(seen)) if name in allowed)
        for id, seen in failures.items()
    }
    choices = frozenset(_chosen(explaining))
    known = Known(choices, listed.clauses)
    sieve = Sieve(known)
    left = (s for s in failures.values() if not sieve.explains(s))
    signatures = frozenset(signature_of(s.calls[-1], s.differences) for s in left)
    return Known(choices, listed.clauses, signatures)


def _failures(
    target: ManagerTarget, listed: _Listed, vectors: Iterable[Vector]
) -> Iterator[tuple[str, Seen]]:
    """Those of the listed vectors that fail now, as listed."""
    for vector in vectors:
        if vector.id not in listed.vectors and not listed.clauses.intersection(vector.clauses):
            continue
        try:
            answers = target.run(case_of(vector))
        except AdapterError:
            continue  # it breaks down on this one, as it may: there is no answer to learn from
        wrong = first_difference(vector.steps, answers)
        if wrong is None:
            continue
        step, differences = wrong
        calls = tuple(s.call for s in vector.steps[: step + 1])
        if listed.has(vector, calls, differences):
            given = tuple(answers[: step + 1])
            yield vector.id, Seen(vector.manager, vector.parameters, calls, given, differences)


def _asked(
    seen: Seen,
) -> tuple[Manager, Parameters, tuple[Call, ...], tuple[Answer, ...]]:
    return seen.manager, seen.parameters, seen.calls, seen.answers


class _Allowed:
    """The decisions of which everything that they would fail is listed."""

    def __init__(
        self, listed: _Listed, playable: Sequence[Vector], implementation: Implementation
    ) -> None:
        self._listed, self._playable = listed, playable
        self._offered = implementation.capabilities
        self._looked_at: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, str)
        if name not in self._looked_at:
            self._looked_at[name] = all(self._is_listed(name, v) for v in self._playable)
        return self._looked_at[name]

    def _is_listed(self, name: str, vector: Vector) -> bool:
        """Whether the vector, if a manager with this decision fails it, is listed for that."""
        if name not in decisions_of(vector):
            return True
        managers = managers_taking((name,), vector.parameters)
        return all(self._fails_as_listed(manager, vector) for manager in managers)

    def _fails_as_listed(self, manager: AnsweringManager, vector: Vector) -> bool:
        shows = [n for n in OBSERVABLES if n in self._offered.get(vector.manager, ())]
        for k, step in enumerate(vector.steps):
            wrong = manager.answer(step.call)
            if wrong is None:
                return True  # it may do anything: no protocol is left to follow
            shown = only_shown(shows, Answer(wrong.returns, wrong.observe))
            differences = answer_differences(step.expect, shown)
            if differences:
                calls = [s.call for s in vector.steps[: k + 1]]
                return self._listed.has(vector, calls, differences)
        return True


def _chosen(explaining: Mapping[str, frozenset[str]]) -> Iterator[Choice]:
    """The fewest decisions that explain what can be explained.

    Those that nothing tells apart are one choice.
    """
    left = {id for id, names in explaining.items() if names}
    while left:
        names = frozenset().union(*(explaining[id] for id in left))
        cover = {name: {id for id in left if name in explaining[id]} for name in sorted(names)}
        best = max(cover.values(), key=len)
        yield frozenset(name for name, ids in cover.items() if ids == best)
        left -= best
