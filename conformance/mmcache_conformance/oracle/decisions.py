"""Which wrong decisions a manager has taken: each failure is played again on every known one.

A failure names a symptom: at this call, this came back. The specification has a list of decisions
that real engines took; each is a manager of its own, which can be asked. A manager that answered
and showed, up to the failing call and at it, exactly what such a wrong manager answers, and that
fails every vector which the decision fails, has taken that decision. What no decision explains is
said to be unexplained, and never laid to the nearest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from mmcache_spec.oracle import Replay
from mmcache_vectors.clauses import clause
from mmcache_vectors.engine import EngineVector
from mmcache_vectors.manager import Call, Manager, Observed, Parameters, Step, Vector
from mmcache_vectors.pair import PairVector

from ..suites.load import AnyVector
from ..targets.protocol import OBSERVABLES, Answer, case_of
from ..verdicts.changes import largest_number
from ..verdicts.judge import answer_differences
from ..verdicts.model import (
    CallFailure,
    Decision,
    Difference,
    PairFailure,
    PassFailure,
    TargetReport,
    Verdict,
)
from ..verdicts.signature import Signature, signature_of
from ..verdicts.stretch import Stretched, hits_of, stretched, world_named
from .blame import blamed
from .cover import covering
from .set_order import SET_ORDER, may_be_seen
from .systems import specified
from .taken import (
    KNOWN,
    decisions_about,
    decisions_of,
    excluding,
    fails,
    managers_taking,
    only_shown,
    way_giving,
)

__all__ = [
    "agreeing",
    "decided",
    "explained",
    "taken_by",
    "takes",
]

_MOST_TOGETHER = 3
"""So many decisions may be needed together to explain one failure."""


def explained(report: TargetReport, vectors: Iterable[AnyVector]) -> TargetReport:
    """The report, with what each failure broke, and the decisions that explain the failures."""
    known = {v.id: v for v in vectors}
    failures = {
        v.id: (known[v.id], v.failure)
        for v in report.verdicts
        if v.outcome in {"fail", "xfail"} and isinstance(v.failure, CallFailure) and v.id in known
    }
    played = _Played(report, {id: v for id, v in known.items() if isinstance(v, Vector)})
    by_vector = played.decisions()
    likenesses = played.likenesses([id for id in failures if id not in by_vector])
    engine = [*_of_engine(report, known), *_of_pair(report, known)]
    named = {id: d for d in engine if not d.contradicted_by for id in d.vectors}
    verdicts = []
    for verdict in report.verdicts:
        if isinstance(verdict.failure, PassFailure):
            decision = named.get(verdict.id)
            verdict = msgspec.structs.replace(
                verdict,
                broke=_broken_passes(verdict.failure),
                decision=None if decision is None else _named(decision),
            )
        elif isinstance(verdict.failure, PairFailure):
            decision = named.get(verdict.id)
            told = None if decision is None else _named(decision)
            verdict = msgspec.structs.replace(verdict, decision=told)
        elif verdict.id in failures:
            vector, failure = failures[verdict.id]
            assert isinstance(vector, Vector)
            decided_by = by_vector.get(verdict.id)
            early = None if decided_by is None else played.broken_first(verdict.id, decided_by)
            verdict = msgspec.structs.replace(
                verdict,
                broke=early or _broken(vector, failure),
                decision=decided_by,
                seen_late=decided_by is None and not _shows_all(vector, failure),
            )
        verdicts.append(verdict)
    return msgspec.structs.replace(
        report,
        verdicts=tuple(verdicts),
        decisions=(*_told(by_vector, report.verdicts), *likenesses, *engine),
        unexplained=(
            *(id for id in failures if id not in by_vector),
            *(
                v.id
                for v in report.verdicts
                if isinstance(v.failure, PassFailure | PairFailure) and v.id not in named
            ),
        ),
    )


def _of_engine(report: TargetReport, known: Mapping[str, AnyVector]) -> list[Decision]:
    """The decisions of a whole engine. Its specification is built only where one has failed."""
    if not any(isinstance(v.failure, PassFailure) for v in report.verdicts):
        return []
    from .engine_decisions import EngineDecisions

    vectors = {id: v for id, v in known.items() if isinstance(v, EngineVector)}
    return EngineDecisions(report, vectors).decisions()


def _of_pair(report: TargetReport, known: Mapping[str, AnyVector]) -> list[Decision]:
    """The decisions of a pair of processor caches, where one has failed."""
    if not any(isinstance(v.failure, PairFailure) for v in report.verdicts):
        return []
    from .pair_decisions import PairDecisions

    vectors = {id: v for id, v in known.items() if isinstance(v, PairVector)}
    return PairDecisions(report, vectors).decisions()


def _named(decision: Decision) -> str:
    return " or ".join((decision.name, *decision.alternatives))


def agreeing(
    kind: Manager, parameters: Parameters, calls: Sequence[Call], answers: Sequence[Answer]
) -> tuple[str, ...]:
    """The decisions whose manager answers and shows exactly this, in their order."""
    mine = decisions_about(kind, parameters)
    return tuple(n for n in mine if way_giving((n,), parameters, calls, answers) is not None)


def takes(
    names: Sequence[str],
    kind: Manager,
    parameters: Parameters,
    calls: Sequence[Call],
    answers: Sequence[Answer],
) -> bool:
    """Whether the manager that takes all of these decisions answers and shows exactly this.

    No manager takes decisions of two kinds, or two ways of one switch.
    """
    mine = decisions_about(kind)
    if any(name not in mine for name in names) or excluding(names):
        return False
    return way_giving(names, parameters, calls, answers) is not None


def decided(name: str, vectors: tuple[str, ...] = (), first: str = "") -> Decision:
    """What is told of a decision."""
    known = KNOWN[name]
    ought = clause(known.clause)
    return Decision(
        name=name,
        says=known.says,
        reports=known.seen_in,
        clause=known.clause,
        ought=ought.says,
        vectors=vectors,
        first=first,
    )


def taken_by(
    kind: Manager,
    parameters: Parameters,
    calls: Sequence[Call],
    differences: Sequence[Difference],
    shows: Collection[str] = OBSERVABLES,
) -> tuple[Decision, ...]:
    """The decisions that explain a difference at the last of the calls, all before being right.

    What is not among the differences is taken to be as specified, of the state as much as the
    target `shows`. Several decisions may do.
    """
    replay = Replay(specified(kind), parameters)
    answers: list[Answer] = []
    for call in calls:
        expect = replay.answer(call)
        if expect is None:
            return ()
        answers.append(only_shown(shows, Answer(expect.returns, expect.observe)))
    if not answers:
        return ()
    answers[-1] = only_shown(shows, _with(answers[-1], differences))
    return tuple(decided(name) for name in agreeing(kind, parameters, calls, answers))


# --- one failure -------------------------------------------------------------------------------


def _broken(vector: Vector, failure: CallFailure) -> tuple[str, ...]:
    calls = [step.call for step in vector.steps[: failure.step + 1]]
    system = specified(vector.manager)
    return blamed(system, vector.parameters, calls, failure.differences)


def _shows_all(vector: Vector, failure: CallFailure) -> bool:
    """Whether the vector has the state after each call before the failing one.

    In a larger world as well: where something is wrong there, all is looked at again.
    """
    return all(step.expect.observe != Observed() for step in vector.steps[: failure.step])


def _broken_passes(failure: PassFailure) -> tuple[str, ...]:
    return tuple(dict.fromkeys(b.clause for b in failure.breaches if b.clause != "error"))


def _with(answer: Answer, differences: Iterable[Difference]) -> Answer:
    """The answer with what was got where something else was expected."""
    got = {d.what: d.got for d in differences}
    if "error" in got:
        return Answer(error=str(got["error"]))
    seen = {n: got.get(n, getattr(answer.observed, n)) for n in OBSERVABLES}
    returns = got.get("returns", answer.returns)
    # A number or a mapping is no answer of any call, and no decision gives it.
    plain = returns if isinstance(returns, bool | tuple | str | None) else repr(returns)
    return Answer(plain, Observed(**seen))


# --- a whole report ----------------------------------------------------------------------------


class _Played:
    """The failures of one target, and the decisions that answer as it did."""

    def __init__(self, report: TargetReport, vectors: Mapping[str, Vector]) -> None:
        found = report.implementation
        self._offered = {} if found is None else found.capabilities
        self._largest = largest_number("" if found is None else found.language)
        self._vectors = vectors
        judged = [v for v in report.verdicts if v.id in vectors]
        ran = (v.id for v in judged if v.outcome in {"pass", "xpass", "fail", "xfail"})
        self._ran = dict.fromkeys(ran)
        self._failures = {
            v.id: v.failure
            for v in judged
            if v.id in self._ran and isinstance(v.failure, CallFailure)
        }
        self._spoken_against: dict[str, tuple[str, ...]] = {}
        self._agreeing = {id: self._singly(id) for id in self._failures}

    def decisions(self) -> dict[str, str]:
        """By vector: the decision, or the decisions together, that explain its failure."""
        agreeing = self._agreeing
        found: dict[str, str] = {}
        taken = self._taken()
        explains = {n: [id for id in self._failures if n in agreeing[id]] for n in taken}
        chosen: list[str] = []
        for best, ids, others in covering(explains):
            found |= dict.fromkeys(ids, " or ".join((best, *others)))
            chosen += (best, *others)
        for id in (id for id in self._failures if id not in found):
            together = self._together(id, chosen)
            if together is not None:
                found[id] = together
        return found

    def broken_first(self, id: str, explained_by: str) -> tuple[str, ...] | None:
        """The clauses that the decisions break first, where the vector does not show all states.

        What is wrong there is seen late, by the clause of a call that is innocent. Nothing, if all
        is shown, or the failure is of a larger world, or the protocol ends before it.
        """
        vector, failure = self._vectors[id], self._failures[id]
        steps = vector.steps[: failure.step + 1]
        if _shows_all(vector, failure) or failure.stretched is not None:
            return None
        names = explained_by.partition(" or ")[0].split(" and ")
        right = Replay(specified(vector.manager), vector.parameters, record=False)
        managers = list(managers_taking(names, vector.parameters))
        wrong = managers[self._way(id, names) or 0]
        for k, step in enumerate(steps):
            expect, got = right.answer(step.call), wrong.answer(step.call)
            if expect is None or got is None:
                return None
            told = self._only(vector.manager, Answer(got.returns, got.observe))
            differences = answer_differences(expect, told)
            if differences:
                calls = [s.call for s in steps[: k + 1]]
                system = specified(vector.manager)
                return blamed(system, vector.parameters, calls, differences)
        return None

    def _taken(self) -> list[str]:
        """The decisions that nothing speaks against: not what passes, nor what they leave open."""
        taken = [
            name
            for name in KNOWN
            if any(name in a for a in self._agreeing.values()) and not self._passing(name)
        ]
        while True:
            open_ = [id for id in self._failures if not self._is_explained(id, taken)]
            kept = [
                name
                for name in taken
                if self._explains_most(name, open_) and not self._failing_among(name, open_)
            ]
            if kept == taken:
                return taken
            taken = kept

    def _explains_most(self, name: str, open_: Sequence[str]) -> bool:
        """Whether of each signature that it explains, fewer failures are left unexplained.

        What fails in a larger world only is counted apart: in its own the target does as it ought
        to, which says nothing of how it fails elsewhere.
        """
        mine = Counter(self._signature(id) for id, names in self._agreeing.items() if name in names)
        others = Counter(map(self._signature, open_))
        return all(others[signature] < count for signature, count in mine.items())

    def _signature(self, id: str) -> tuple[Signature, bool]:
        failure = self._failures[id]
        call = self._vectors[id].steps[failure.step].call
        return signature_of(call, failure.differences), failure.stretched is not None

    def _is_explained(self, id: str, taken: Sequence[str]) -> bool:
        alone = any(name in self._agreeing[id] for name in taken)
        return alone or self._together(id, taken) is not None

    def _failing_among(self, name: str, ids: Iterable[str]) -> tuple[str, ...]:
        """Those of the vectors that a manager with this decision fails, in whatever way."""
        return tuple(
            id
            for id in ids
            if name in decisions_of(self._vectors[id])
            and fails((name,), self._vectors[id], self._offered.get(self._vectors[id].manager, ()))
        )

    def likenesses(self, left: Sequence[str]) -> Iterator[Decision]:
        """The decisions that explain some of what is left, though others speak against them.

        One that explains less than half of what it fails itself is not told: so much is chance.
        """
        for name in KNOWN:
            alike = tuple(id for id in left if name in self._agreeing[id])
            against = self._contradicting(name) if alike else ()
            if against and len(against) < len(alike):
                first = min(alike, key=lambda id: self._failures[id].step)
                told = decided(name, alike, _place(first, self._failures[first]))
                yield msgspec.structs.replace(told, contradicted_by=against)

    def _singly(self, id: str) -> tuple[str, ...]:
        vector = self._vectors[id]
        # What a vector tells apart in its own world says nothing of a larger one.
        larger = self._failures[id].stretched is not None
        names = decisions_about(vector.manager) if larger else decisions_of(vector)
        return tuple(n for n in names if self._way(id, (n,)) is not None)

    def _together(self, id: str, chosen: Sequence[str]) -> str | None:
        """Some of the decisions that the manager is known to have taken, together."""
        about = decisions_about(self._vectors[id].manager)
        mine = [n for n in chosen if n in about]
        for count in range(2, _MOST_TOGETHER + 1):
            for names in combinations(mine, count):
                if not excluding(names) and self._way(id, names) is not None:
                    return " and ".join(names)
        return None

    def _way(self, id: str, names: Sequence[str]) -> int | None:
        """The first way to take the decisions in which they answer as the target did, if any."""
        vector, failure = self._vectors[id], self._failures[id]
        steps = vector.steps[: failure.step + 1]
        answers = [self._shown(vector.manager, step) for step in steps]
        answers[-1] = self._only(vector.manager, _with(answers[-1], failure.differences))
        case = case_of(vector)
        name = failure.stretched
        longer = None
        if name is not None:
            longer = world_named(case, name, self._largest, hits_of(vector))
        if longer is None:
            return way_giving(names, vector.parameters, case.calls[: len(steps)], answers)
        return way_giving(names, longer.case.parameters, longer.case.calls, answers, longer)

    def _contradicting(self, name: str) -> tuple[str, ...]:
        """The vectors that the decision fails, and the target passes or fails in another way."""
        unlike = [id for id in self._failures if not self._agreeing[id]]
        return (*self._passing(name), *self._failing_among(name, unlike))

    def _passing(self, name: str) -> tuple[str, ...]:
        """The vectors that the target passes and that the decision fails, as far as it shows."""
        if name not in self._spoken_against:
            self._spoken_against[name] = self._passing_now(name)
        return self._spoken_against[name]

    def _passing_now(self, name: str) -> tuple[str, ...]:
        passed = [id for id in self._ran if id not in self._failures]
        found = self._failing_among(name, passed)
        if name == SET_ORDER.name and self._larger_were_played:
            found += tuple(id for id in passed if id not in found and self._fails_larger(name, id))
        return found

    @property
    def _larger_were_played(self) -> bool:
        """What fails in a larger world only says that such worlds were played."""
        return any(failure.stretched is not None for failure in self._failures.values())

    def _fails_larger(self, name: str, id: str) -> bool:
        """Whether a decision about positions fails the vector where these are far apart."""
        vector = self._vectors[id]
        if name not in decisions_about(vector.manager):
            return False
        case, offered = case_of(vector), self._offered.get(vector.manager, ())
        return any(
            fails((name,), vector, offered, longer)
            for longer in stretched(case, self._largest, offered, hits_of(vector))
            if may_be_seen(longer.case.calls, _hits_in(longer, vector))
        )

    def _shown(self, kind: Manager, step: Step) -> Answer:
        """The right answer, as much of it as the target shows."""
        return self._only(kind, Answer(step.expect.returns, step.expect.observe))

    def _only(self, kind: Manager, answer: Answer) -> Answer:
        return only_shown(self._offered.get(kind, ()), answer)


def _hits_in(longer: Stretched, vector: Vector) -> frozenset[int]:
    """The numbers that the calls have there that find what they look for, in the vector."""
    own = (k for k in range(len(longer.case.calls)) if k not in longer.between)
    hits = frozenset(hits_of(vector))
    return frozenset(k for number, k in enumerate(own) if number in hits)


def _told(by_vector: Mapping[str, str], verdicts: Sequence[Verdict]) -> Iterator[Decision]:
    """The decisions, each with its vectors, those first that explain most."""
    vectors: dict[str, list[str]] = {}
    alternatives: dict[str, tuple[str, ...]] = {}
    for verdict in verdicts:
        for text in by_vector.get(verdict.id, "").split(" and "):
            first, *others = text.split(" or ")
            if first:
                vectors.setdefault(first, []).append(verdict.id)
                alternatives.setdefault(first, tuple(others))
    failures = {v.id: v.failure for v in verdicts if isinstance(v.failure, CallFailure)}
    for name, ids in sorted(vectors.items(), key=lambda item: -len(item[1])):
        first = min(ids, key=lambda id: failures[id].step)
        told = decided(name, tuple(ids), _place(first, failures[first]))
        yield msgspec.structs.replace(told, alternatives=alternatives[name])


def _place(id: str, failure: CallFailure) -> str:
    return f"step {failure.step + 1} of {id}"
