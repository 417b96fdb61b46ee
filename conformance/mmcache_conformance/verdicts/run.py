"""Run vectors against a target and judge the answers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from mmcache_vectors.manager import Expect, Step, Vector

from ..errors import AdapterError, TargetError, describe_exception
from ..suites.load import suite_digest, suite_version
from ..targets.protocol import (
    OBSERVABLES,
    Answer,
    Implementation,
    Target,
    case_of,
    missing_capability,
)
from .model import (
    BAD,
    Difference,
    ExitCode,
    Failure,
    Outcome,
    RunReport,
    Suite,
    TargetReport,
    Verdict,
)

__all__ = [
    "exit_code",
    "nothing_checked",
    "reproduce_command",
    "run_target",
    "run_vector",
    "summarise",
]


def run_target(
    target: Target,
    vectors: Iterable[Vector],
    *,
    fail_fast: bool = False,
    directory: Path | None = None,
) -> TargetReport:
    """All verdicts on one target. `directory` is where the vectors are, if not in the package."""
    started = time.perf_counter()
    implementation: Implementation | None = None
    reason: str | None = None
    verdicts: list[Verdict] = []
    try:
        try:
            implementation = target.start()
        except TargetError as error:
            reason = str(error)
        else:
            for vector in vectors:
                verdicts.append(run_vector(target, implementation, vector, directory))
                if fail_fast and verdicts[-1].outcome in {"fail", "error"}:
                    break
    finally:
        try:
            target.stop()
        except AdapterError as error:
            _distrust_the_last(verdicts, str(error))
    seconds = round(time.perf_counter() - started, 6)
    return TargetReport(target.spec, implementation, reason, seconds, tuple(verdicts))


def run_vector(
    target: Target,
    implementation: Implementation,
    vector: Vector,
    directory: Path | None = None,
) -> Verdict:
    """One vector on a started target. Never raises for what the target does."""

    def verdict(
        outcome: Outcome, reason: str | None = None, failure: Failure | None = None
    ) -> Verdict:
        about = (vector.clauses, vector.variant, vector.manager)
        log = getattr(target, "log", None) if outcome in {"fail", "error"} else None
        return Verdict(
            vector.id, outcome, *about, reason=reason, failure=failure, stderr=log or None
        )

    missing = missing_capability(vector, implementation)
    if missing is not None:
        return verdict("skip", f"needs {missing}, which {implementation.name} does not have")
    try:
        answers = target.run(case_of(vector))
        wrong = _first_difference(vector.steps, answers)
    except AdapterError as error:
        return verdict("error", str(error))
    except Exception as error:
        return verdict("error", f"the harness failed: {describe_exception(error)}")
    if wrong is None:
        return verdict("pass")
    step, differences = wrong
    command = reproduce_command(target.spec, vector.id, directory)
    failure = Failure(step, vector.steps[step].call, tuple(differences), command)
    return verdict("fail", failure=failure)


def reproduce_command(spec: str, vector_id: str, directory: Path | None = None) -> str:
    """The line that runs this vector on this target again."""
    words = ["mmcache-conformance", "run", spec, "-k", vector_id]
    if directory is not None:
        words += ["--vectors", str(directory)]
    return shlex.join(words)


def nothing_checked(report: TargetReport) -> bool:
    """Whether there were vectors, and every one of them was skipped."""
    outcomes = {verdict.outcome for verdict in report.verdicts}
    return outcomes == {"skip"}


def exit_code(reports: Sequence[TargetReport]) -> ExitCode:
    """3 if a target could not be started or checked, else 1 if anything failed, else 0."""
    if any(report.implementation is None or nothing_checked(report) for report in reports):
        return 3
    bad = any(v.outcome in BAD for report in reports for v in report.verdicts)
    return 1 if bad else 0


def summarise(reports: Sequence[TargetReport], vectors: Sequence[Vector]) -> RunReport:
    """The whole run, for machines."""
    return RunReport(
        suite=Suite(suite_version(), len(vectors), suite_digest(vectors)),
        exit_code=exit_code(reports),
        targets=tuple(reports),
    )


def _distrust_the_last(verdicts: list[Verdict], reason: str) -> None:
    """What the adapter said last of all discredits the last vector that it ran."""
    for k in reversed(range(len(verdicts))):
        if verdicts[k].outcome != "skip":
            verdicts[k] = msgspec.structs.replace(
                verdicts[k], outcome="error", reason=reason, failure=None
            )
            return


# --- the comparison ----------------------------------------------------------------------------


class ProtocolError(Exception):
    """The answers do not fit the calls."""


def _first_difference(
    steps: Sequence[Step], answers: Sequence[Answer]
) -> tuple[int, list[Difference]] | None:
    for k, (step, answer) in enumerate(zip(steps, answers, strict=False)):
        differences = _differences(step.expect, answer)
        if differences:
            return k, differences
    if len(answers) != len(steps):
        raise ProtocolError(f"{len(answers)} answers to {len(steps)} calls")
    return None


def _differences(expect: Expect, answer: Answer) -> list[Difference]:
    if answer.error is not None:
        return [Difference("error", None, answer.error)]
    found: list[Difference] = []
    if not _returns_as_expected(expect.returns, answer.returns):
        found.append(Difference("returns", expect.returns, answer.returns))
    for name in OBSERVABLES:
        expected, got = getattr(expect.observe, name), getattr(answer.observed, name)
        if expected is not None and got is not None and expected != got:
            found.append(Difference(name, expected, got))
    return found


def _returns_as_expected(
    expected: bool | tuple[str, ...] | None, got: bool | tuple[str, ...] | str | None
) -> bool:
    """A call without a result may return anything; the order of a report means nothing."""
    if expected is None:
        return True
    if isinstance(expected, bool):
        return got is expected
    return isinstance(got, tuple) and set(got) == set(expected)
