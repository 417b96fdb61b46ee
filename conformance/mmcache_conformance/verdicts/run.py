"""Run vectors on a target, manager, engine or pair, and judge what comes back."""

from __future__ import annotations

import shlex
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from mmcache_vectors.engine import EngineVector
from mmcache_vectors.manager import Vector
from mmcache_vectors.pair import PairExpect, PairVector

from ..engines.clauses import judge, unplayed
from ..engines.protocol import EngineTarget, NotSupported, PassRecord, engine_case
from ..engines.situations import reaches
from ..errors import AdapterError, TargetError, describe_exception
from ..exits import ExitCode
from ..implementation import Implementation
from ..open import Target
from ..pairs.clauses import judge_pair
from ..pairs.protocol import PairAnswer, PairTarget, pair_case
from ..suites.load import AnyVector, defended, suite_digest, suite_version
from ..targets.api import CANNOT, is_api_error
from ..targets.protocol import (
    Case,
    ManagerTarget,
    TogetherTarget,
    call_name,
    case_of,
    missing_capability,
)
from .changes import largest_number
from .judge import first_difference
from .model import (
    BAD,
    CallFailure,
    Difference,
    Outcome,
    PairFailure,
    PassFailure,
    RunReport,
    SuiteSelection,
    TargetReport,
    Verdict,
)
from .stretch import BESIDE, Stretched, by_itself, companions, hits_of, stretched

__all__ = [
    "could_not",
    "exit_code",
    "nothing_checked",
    "reproduce_command",
    "run_target",
    "run_vector",
    "summarise",
]


def run_target(
    target: Target,
    vectors: Iterable[AnyVector],
    *,
    fail_fast: bool = False,
    directory: Path | None = None,
    stretch: bool = True,
) -> TargetReport:
    """All verdicts on one target.

    `directory` is where the vectors are, if not in the package. A vector that passes is also
    played in larger worlds, and fails if it fails in one of them; not without `stretch`.
    """
    started = time.perf_counter()
    implementation: Implementation | None = None
    reason: str | None = None
    verdicts: list[Verdict] = []
    try:
        try:
            implementation = target.start()
        except TargetError as error:
            reason = str(error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a SystemExit of the target is not ours
            reason = describe_exception(error)
        else:
            for vector in vectors:
                verdicts.append(
                    run_vector(target, implementation, vector, directory, stretch=stretch)
                )
                if fail_fast and verdicts[-1].outcome in {"fail", "error"}:
                    break
    finally:
        try:
            target.stop()
        except AdapterError as error:
            _distrust_the_last(verdicts, str(error))
    seconds = round(time.perf_counter() - started, 6)
    return TargetReport(target.name, implementation, reason, seconds, tuple(verdicts))


def run_vector(
    target: Target,
    implementation: Implementation,
    vector: AnyVector,
    directory: Path | None = None,
    *,
    stretch: bool = True,
) -> Verdict:
    """One vector on a started target, as `run_target` does it. Never raises for what that does."""
    clauses = defended().get(vector.id, vector.clauses)
    plain = Verdict(vector.id, "pass", clauses, vector.variant, vector.kind)
    again = reproduce_command(target.name, vector.id, directory)
    try:
        if isinstance(vector, EngineVector):
            return _run_workload(target, vector, plain, again)
        if isinstance(vector, PairVector):
            return _run_pair(target, vector, plain, again)
        if isinstance(target, EngineTarget):
            return _skipped(plain, f"needs a manager, and {target.name} is an engine")
        if isinstance(target, PairTarget):
            return _skipped(plain, f"needs a manager, and {target.name} is a pair")
        undriven = implementation.undriven.get(vector.manager)
        if undriven is not None:
            return _skipped(plain, undriven)
        missing = missing_capability(vector, implementation)
        if missing is not None:
            return _skipped(plain, f"needs {missing}, which {implementation.name} does not have")
        largest = largest_number(implementation.language) if stretch else None
        offered = implementation.capabilities.get(vector.manager, ())
        found = _run_calls(target, vector, plain, again, largest, offered)
    except AdapterError as error:
        found = _errored(plain, str(error))
    except KeyboardInterrupt:
        raise
    except SystemExit as error:
        found = _errored(plain, f"the target asks to end the process: {describe_exception(error)}")
    except BaseException as error:
        found = _errored(plain, f"the harness failed: {describe_exception(error)}")
    if found.outcome == "pass":
        return found
    return msgspec.structs.replace(found, stderr=getattr(target, "log", None) or None)


def _skipped(plain: Verdict, reason: str) -> Verdict:
    return msgspec.structs.replace(plain, outcome="skip", reason=reason)


def _errored(plain: Verdict, reason: str) -> Verdict:
    return msgspec.structs.replace(plain, outcome="error", reason=reason)


def _run_calls(
    target: ManagerTarget,
    vector: Vector,
    plain: Verdict,
    again: str,
    largest: int | None,
    offered: Container[str],
) -> Verdict:
    """The calls of the vector, and the first answer that is not as expected.

    Also in larger worlds, if there is a `largest` number.
    """
    case = case_of(vector)
    name: str | None = None
    wrong = first_difference(vector.steps, target.run(case))
    if wrong is None and largest is not None:
        name, wrong = _stretched_difference(target, vector, case, largest, offered)
    if wrong is None:
        return plain
    step, differences = wrong
    error = next((d.got for d in differences if d.what == "error"), None)
    if isinstance(error, str) and is_api_error(error):
        name = call_name(vector.steps[step].call)
        return _errored(plain, f"{CANNOT}`{name}`: {error.removeprefix(CANNOT)}")
    failure = CallFailure(step, vector.steps[step].call, differences, again, name)
    return msgspec.structs.replace(plain, outcome="fail", failure=failure)


def _stretched_difference(
    target: ManagerTarget, vector: Vector, case: Case, largest: int, offered: Container[str]
) -> tuple[str | None, tuple[int, tuple[Difference, ...]] | None]:
    """The first larger world in which an answer is not as expected, and where it is not."""
    hits = hits_of(vector)
    for longer in stretched(case, largest, offered, hits):
        wrong = _in_world(target, vector, longer)
        if wrong is not None:
            for smaller in by_itself(longer, case, hits):
                alone = _in_world(target, vector, smaller)
                if alone is not None:
                    return smaller.name, alone
            return longer.name, wrong
    beside = companions(case)
    if beside and isinstance(target, TogetherTarget) and target.runs_together:
        together = target.run_together((case, *beside))
        for part in (*together[:2], *(behind[1:] for behind in together[2:])):
            wrong = first_difference(vector.steps, part)
            if wrong is not None:
                return BESIDE, wrong
        for empty, *_ in together[2:]:
            told = empty.error or empty.returns
            if told not in ((), None):
                return BESIDE, (0, (Difference("returns", (), told),))
    return None, None


def _in_world(
    target: ManagerTarget, vector: Vector, longer: Stretched
) -> tuple[int, tuple[Difference, ...]] | None:
    """What differs in this world, and at which call; looked at after each, once something does."""
    wrong = first_difference(vector.steps, longer.answers(target.run(longer.case)))
    if wrong is None or longer.case.watched is None:
        return wrong
    looked_at = msgspec.structs.replace(longer.case, watched=None)
    return first_difference(vector.steps, longer.answers(target.run(looked_at))) or wrong


def _run_workload(target: Target, vector: EngineVector, plain: Verdict, again: str) -> Verdict:
    """The passes of the workload, and the clauses that they break."""
    if not isinstance(target, EngineTarget):
        return _skipped(plain, f"needs an engine, and {target.name} is a manager")
    records: list[PassRecord] = []
    try:
        records += target.passes(engine_case(vector))
    except NotSupported as error:
        return _skipped(plain, str(error))
    if (left_out := unplayed(vector, records)) is not None:
        return _errored(plain, left_out)
    broken = judge(vector, records)
    outcome: Outcome = "pass"
    failure: PassFailure | None = None
    if broken:
        outcome = "fail"
        failure = PassFailure(broken, tuple(records[: broken[-1].pass_number + 1]), again)
    return msgspec.structs.replace(
        plain,
        outcome=outcome,
        failure=failure,
        passes=len(records),
        reached=reaches(vector, records),
    )


def _run_pair(target: Target, vector: PairVector, plain: Verdict, again: str) -> Verdict:
    """The calls of the vector on the two sides, and the first that is not answered as it should."""
    if not isinstance(target, PairTarget):
        return _skipped(plain, f"needs a pair of processor caches, and {target.name} is none")
    answers = target.play(pair_case(vector))
    if answers and (lacks := answers[-1].not_offered) is not None:
        if judge_pair(vector, answers[:-1]) is None:
            return _skipped(plain, f"needs {lacks}, which {target.name} does not have")
        answers = answers[:-1]
    wrong = judge_pair(vector, answers)
    if wrong is None:
        if len(answers) != len(vector.steps):
            return _errored(plain, f"{len(answers)} answers to {len(vector.steps)} calls")
        return plain
    call, answer = vector.steps[wrong.step].call, answers[wrong.step]
    if answer.error is not None and is_api_error(answer.error):
        return _errored(plain, f"{CANNOT}`{call.__struct_config__.tag}`: {answer.error}")
    differences = tuple(_pair_differences(wrong.due, answer))
    failure = PairFailure(
        wrong.step, call, wrong.breaches, differences, answers[: wrong.step + 1], again
    )
    return msgspec.structs.replace(
        plain,
        outcome="fail",
        failure=failure,
        broke=tuple(dict.fromkeys(b.clause for b in wrong.breaches)),
    )


def _pair_differences(due: PairExpect, answer: PairAnswer) -> Iterator[Difference]:
    if answer.error is not None:
        yield Difference("error", None, answer.error)
    if answer.missed:
        yield Difference("missed", (), answer.missed)
    if answer.sent is not None and answer.sent != due.sent:
        wanted, got = ((("bare", "with data")[x] for x in s or ()) for s in (due.sent, answer.sent))
        yield Difference("sent", tuple(wanted), tuple(got))
    if answer.data is not None and answer.data != due.data:
        yield Difference("data", due.data, answer.data)


def reproduce_command(name: str, vector_id: str, directory: Path | None = None) -> str:
    """The line that runs this vector on this target again."""
    words = ["mmcache-conformance", "run", name, "-k", vector_id]
    if directory is not None:
        words += ["--vectors", str(directory)]
    return shlex.join(words)


def nothing_checked(report: TargetReport) -> bool:
    """Whether there were vectors, and every one of them was skipped."""
    outcomes = {verdict.outcome for verdict in report.verdicts}
    return outcomes == {"skip"}


def could_not(report: TargetReport) -> bool:
    """Whether the target, or a manager of it, could not be driven, or nothing of it was checked."""
    found = report.implementation
    if found is None or found.undriven or report.reason is not None or nothing_checked(report):
        return True
    return any(
        v.outcome == "error" and (v.reason or "").startswith(CANNOT) for v in report.verdicts
    )


def exit_code(reports: Sequence[TargetReport]) -> ExitCode:
    """`COULD_NOT` if a target could not be started or checked, else `FAILED` if anything failed."""
    if any(could_not(report) for report in reports):
        return ExitCode.COULD_NOT
    bad = any(v.outcome in BAD for report in reports for v in report.verdicts)
    return ExitCode.FAILED if bad else ExitCode.OK


def summarise(reports: Sequence[TargetReport], vectors: Sequence[AnyVector]) -> RunReport:
    """The whole run, for machines."""
    return RunReport(
        suite=SuiteSelection(suite_version(), len(vectors), suite_digest(vectors)),
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
