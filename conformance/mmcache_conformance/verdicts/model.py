"""What a run found: the typed model of the verdicts and of the `--json` output."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import msgspec

from mmcache_vectors.document import Count, schema_of
from mmcache_vectors.manager import Call
from mmcache_vectors.pair import PairCall

from ..engines.clauses import Breach
from ..engines.protocol import PassRecord
from ..exits import ExitCode
from ..implementation import Implementation, Kind
from ..pairs.clauses import PairBreach
from ..pairs.protocol import PairAnswer

__all__ = [
    "BAD",
    "Breach",
    "CallFailure",
    "Decision",
    "Difference",
    "Failure",
    "Outcome",
    "PairBreach",
    "PairFailure",
    "PassFailure",
    "RunReport",
    "SuiteSelection",
    "TargetReport",
    "Value",
    "Verdict",
    "run_schema",
]

Outcome = Literal["pass", "fail", "skip", "error", "xfail", "xpass"]
BAD: frozenset[Outcome] = frozenset({"fail", "error", "xpass"})
"""The outcomes that fail a run."""

Value = bool | int | str | tuple[str, ...] | dict[str, tuple[int | str, ...]] | None


class Difference(msgspec.Struct, frozen=True):
    """One thing that is not as expected: `returns`, an observable, or `error`."""

    what: str
    expected: Value
    got: Value


class CallFailure(msgspec.Struct, frozen=True, tag_field="of", tag="call"):
    """The first step that went wrong, everything that differs there, and how to see it again."""

    step: Count
    """Counted from 0, as in `$.steps`."""
    call: Call
    differences: tuple[Difference, ...]
    reproduce: str
    stretched: str | None = None
    """The larger world in which it fails, where it passes in its own; the differences are told in
    the names and numbers of the vector."""


class PassFailure(msgspec.Struct, frozen=True, tag_field="of", tag="pass"):
    """The clauses that an engine's passes broke.

    With the passes up to the last of them, and how to see it again.
    """

    breaches: tuple[Breach, ...]
    """The first breach of each clause, in the order of the passes."""
    records: tuple[PassRecord, ...]
    reproduce: str


class PairFailure(msgspec.Struct, frozen=True, tag_field="of", tag="pair"):
    """The first call to a pair of processor caches that went wrong, and how to see it again."""

    step: Count
    """Counted from 0, as in `$.steps`."""
    call: PairCall
    breaches: tuple[PairBreach, ...]
    differences: tuple[Difference, ...]
    answers: tuple[PairAnswer, ...]
    reproduce: str


Failure = CallFailure | PassFailure | PairFailure


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one vector.

    `error`: the adapter broke down, or the harness; nothing is known about the implementation.
    `xfail` and `xpass`: it failed as a file of expected failures says, or passed in spite of it.
    """

    id: str
    outcome: Outcome
    clauses: tuple[str, ...]
    """Those that the vector defends."""
    variant: str
    kind: Kind
    """What the vector tests."""
    reason: str | None = None
    """Why it was skipped, what went wrong, or why the failure is expected."""
    failure: Failure | None = None
    link: str | None = None
    """Where the expected failure is dealt with."""
    stderr: str | None = None
    """The end of what the adapter wrote to standard error meanwhile, if it did not pass."""
    passes: int | None = None
    """How many passes the engine made; None for a manager."""
    reached: bool | None = None
    """Whether the engine came to the situation that the vector is about; None if it has none.
    A pass without it says little, and is no failure: what is scheduled when is the engine's."""
    broke: tuple[str, ...] | None = None
    """The clauses that the failing step or passes broke; empty where it is no clause, but only the
    equality with the specification. None where that was not asked."""
    decision: str | None = None
    """The known wrong decision, or several together, whose manager does exactly the same."""
    seen_late: bool = False
    """Whether an earlier call may be what is wrong: the vector does not show the state after each,
    and no decision says which. What `broke` is then that of the call at which it was seen."""

    @property
    def charged(self) -> tuple[str, ...]:
        """The clauses that a failure counts against: what it broke, if that was asked."""
        return self.clauses if self.broke is None else self.broke


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A wrong decision that a target has taken: it does what whoever takes it would do."""

    name: str
    says: str
    reports: tuple[str, ...]
    """Public reports of it."""
    clause: str
    ought: str
    """How it ought to be: what the clause says."""
    vectors: tuple[str, ...]
    """Those whose failures it explains."""
    first: str
    """Where it was seen first."""
    alternatives: tuple[str, ...] = ()
    """Decisions that explain the same failures, and cannot be told from it by these vectors."""
    contradicted_by: tuple[str, ...] = ()
    """Vectors that whoever takes the decision fails, and the target passes. If there are any, the
    target has not taken it, though it does the same in `vectors`."""


class TargetReport(msgspec.Struct, frozen=True):
    """All verdicts on one target.

    Without an `implementation` it could not be started; the `reason` says why. A `reason` beside
    an implementation says what was demanded of the target and not given.
    """

    target: str
    implementation: Implementation | None
    reason: str | None
    seconds: float
    verdicts: tuple[Verdict, ...]
    decisions: tuple[Decision, ...] = ()
    """What explains the failures, as far as known decisions do; those that explain them only in
    part come last."""
    unexplained: tuple[str, ...] = ()
    """The vectors whose failures no known decision explains."""

    def count(self) -> Counter[Outcome]:
        return Counter(verdict.outcome for verdict in self.verdicts)


class SuiteSelection(msgspec.Struct, frozen=True):
    """Which vectors were run: of which version of the suite, and how many after selection."""

    version: str
    vectors: int
    digest: str
    """Of the vectors that were run: two runs with one digest ran the same."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The `--json` output."""

    format: Literal["mmcache/run"] = "mmcache/run"
    format_version: Literal[3] = 3
    suite: SuiteSelection
    exit_code: ExitCode
    targets: tuple[TargetReport, ...]


def run_schema() -> dict[str, Any]:
    """The JSON Schema of the `--json` output (draft 2020-12)."""
    return schema_of(RunReport, "mmcache conformance run, version 3")
