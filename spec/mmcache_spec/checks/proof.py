"""The verdict on a system: all its obligations, and the checks that they mean something."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import z3

from ..kernel.system import Scope, TransitionSystem
from ..kernel.terms import Term
from .bounded import Trace
from .induction import Obligation, Outcome, Verdict, decide, obligations
from .vacuity import false_lemmas, reachability

__all__ = ["Proof", "prove", "solver_version"]


@dataclass(frozen=True)
class Proof:
    """What is known of some systems after all obligations and vacuity checks."""

    outcomes: tuple[Outcome, ...]
    witnesses: dict[str, Trace | None]
    """For each thing that must be able to happen, a path on which it does."""
    false_lemmas: tuple[Term, ...]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """Refuted where some obligation is; proved only where nothing at all is in doubt."""
        verdicts = {o.verdict for o in self.outcomes}
        if "refuted" in verdicts:
            return "refuted"
        if "unknown" in verdicts or self.unreachable or self.false_lemmas:
            return "unknown"
        return "proved"

    @property
    def unreachable(self) -> tuple[str, ...]:
        return tuple(name for name, trace in self.witnesses.items() if trace is None)

    @property
    def refuted_clauses(self) -> tuple[str, ...]:
        """Of the obligations with a CTI, those that state a clause."""
        clauses = (o.obligation.claim.clause for o in self.outcomes if o.verdict == "refuted")
        return tuple(dict.fromkeys(c for c in clauses if c is not None))


def prove(
    systems: Iterable[TransitionSystem],
    scope: Scope,
    on_each: Callable[[Obligation], None] = lambda _: None,
) -> Proof:
    """Decide every obligation; look for CTIs, witnesses and false lemmas within the scope."""
    started = time.perf_counter()
    outcomes: list[Outcome] = []
    witnesses: dict[str, Trace | None] = {}
    wrong: list[Term] = []
    for system in systems:
        for obligation in obligations(system):
            on_each(obligation)
            outcomes.append(decide(obligation, scope))
        reached = reachability(system, scope)
        witnesses.update({f"{system.name}: {name}": trace for name, trace in reached.items()})
        wrong += false_lemmas(system, scope)
    seconds = time.perf_counter() - started
    return Proof(tuple(outcomes), witnesses, tuple(wrong), seconds)


def solver_version() -> str:
    return str(z3.get_version_string())
