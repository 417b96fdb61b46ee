"""The verdict on a system: all its obligations, and the checks that they mean something."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import z3

from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import Term
from . import complete
from .bounded import Trace
from .complete import QuestionOutcome
from .foundations import Unfounded, unfounded
from .hints import NO_HINTS, Hints, about
from .induction import Outcome, Verdict, decide, obligations
from .vacuity import Situations, false_lemmas, reachability

__all__ = ["Proof", "Share", "check_vacuity", "prove", "prove_complete", "solver_version"]


@dataclass(frozen=True)
class Proof:
    """What is known of some systems after all obligations and vacuity checks."""

    outcomes: tuple[Outcome, ...]
    witnesses: dict[str, Trace | None]
    """For each thing that must be able to happen, a path on which it does."""
    false_lemmas: tuple[Term, ...]
    seconds: float
    unfounded: tuple[Unfounded, ...] = ()
    """What the lemmas take for granted of sets and weights, and is not shown."""
    decided: tuple[QuestionOutcome, ...] = ()
    """What the clauses determine: see `checks.complete`."""

    @classmethod
    def merged(cls, proofs: Iterable[Proof], seconds: float) -> Proof:
        """What is known after all of these, which took so many seconds together."""
        parts = list(proofs)
        return cls(
            tuple(o for p in parts for o in p.outcomes),
            {name: trace for p in parts for name, trace in p.witnesses.items()},
            tuple(lemma for p in parts for lemma in p.false_lemmas),
            seconds,
            tuple(thing for p in parts for thing in p.unfounded),
            tuple(answer for p in parts for answer in p.decided),
        )

    @property
    def verdict(self) -> Verdict:
        """Refuted where some obligation is; proved only where nothing at all is in doubt."""
        verdicts = {o.verdict for o in self.outcomes}
        if "refuted" in verdicts:
            return "refuted"
        in_doubt = self.unreachable or self.false_lemmas or self.unfounded or self.undetermined
        if "unknown" in verdicts or in_doubt:
            return "unknown"
        return "proved"

    @property
    def undetermined(self) -> tuple[QuestionOutcome, ...]:
        """What is not shown to be determined by the clauses."""
        return tuple(a for a in self.decided if a.verdict != "proved")

    @property
    def unreachable(self) -> tuple[str, ...]:
        return tuple(name for name, trace in self.witnesses.items() if trace is None)

    @property
    def hollow(self) -> tuple[str, ...]:
        """Of what was not reached: the conditions of clauses."""
        return tuple(name for name in self.unreachable if ": condition " in name)

    @property
    def undecided(self) -> tuple[Outcome, ...]:
        """Unknown obligations of properties of which no other obligation is refuted."""
        refuted = {o.obligation.claim.name for o in self.outcomes if o.verdict == "refuted"}
        unknown = (o for o in self.outcomes if o.verdict == "unknown")
        return tuple(o for o in unknown if o.obligation.claim.name not in refuted)

    @property
    def refuted_clauses(self) -> tuple[str, ...]:
        """Of the obligations with a CTI, those that state a clause."""
        clauses = (o.obligation.claim.clause for o in self.outcomes if o.verdict == "refuted")
        return tuple(dict.fromkeys(c for c in clauses if c is not None))


@dataclass(frozen=True)
class Share:
    """The n-th of several equal parts of the work on a system."""

    part: int = 0
    of: int = 1


WHOLE = Share()


def prove(
    system: TransitionSystem, scope: Scope, share: Share = WHOLE, hints: Hints = NO_HINTS
) -> Proof:
    """Decide the obligations, or a share of them, with CTIs from within the scope."""
    started = time.perf_counter()
    mine = [o for k, o in enumerate(obligations(system)) if k % share.of == share.part]
    outcomes = tuple(decide(o, scope, hints.enough.get(about(o))) for o in mine)
    return Proof(outcomes, {}, (), time.perf_counter() - started)


def prove_complete(
    system: TransitionSystem, scope: Scope, share: Share = WHOLE, hints: Hints = NO_HINTS
) -> Proof:
    """Decide what the clauses determine, or a share, with differences from within the scope."""
    started = time.perf_counter()
    mine = [q for k, q in enumerate(complete.questions(system)) if k % share.of == share.part]
    decided = tuple(complete.decide(q, scope, hints.enough.get(about(q))) for q in mine)
    return Proof((), {}, (), time.perf_counter() - started, decided=decided)


def check_vacuity(
    system: TransitionSystem,
    within: Situations,
    wider: Scope,
    hints: Hints = NO_HINTS,
    unwanted: Collection[str] = (),
) -> Proof:
    """Look for witnesses, for false lemmas in a wider scope, for what lemmas take for granted.

    Decides no obligation. Goals that are unwanted, by name, are not looked for.
    """
    started = time.perf_counter()
    reached = reachability(system, within, known=hints.paths, unwanted=unwanted)
    witnesses = {f"{system.name}: {name}": trace for name, trace in reached.items()}
    wrong = tuple(false_lemmas(system, wider))
    missing = tuple(unfounded(system))
    return Proof((), witnesses, wrong, time.perf_counter() - started, missing)


def solver_version() -> str:
    return str(z3.get_version_string())
