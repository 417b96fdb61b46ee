"""Can the verdicts on an adapter be trusted? Three vectors that must pass, and one that must fail.

The last one expects what is plainly wrong. An adapter that passes it answers without asking its
engine, or the harness does not see what it answers; then no other verdict is worth anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    Expect,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Manager,
    Observed,
    Parameters,
    Provenance,
    Request,
    Step,
    Vector,
    content_id,
)

from ..errors import AdapterError, TargetError
from ..exits import ExitCode
from ..implementation import Implementation, Kind
from ..targets.command import CommandTarget, posted
from ..targets.protocol import MANAGERS, Case, ManagerTarget
from .model import Outcome, TargetReport, Verdict
from .run import run_target

__all__ = ["Check", "SmokeReport", "smoke", "smoke_vectors", "smoked"]

Returns = bool | tuple[str, ...] | None


@dataclass(frozen=True)
class Check:
    """One vector of the smoke test: what it is about, its verdict, and whether it is right."""

    verdict: Verdict
    says: str
    ok: bool


def smoke(target: ManagerTarget) -> tuple[TargetReport, tuple[Check, ...]]:
    """Start the target and run the smoke vectors of every manager that it has.

    No checks mean that it could not be started, which the report explains, or has no manager.
    """
    vectors = [vector for manager in MANAGERS for vector in smoke_vectors(manager)]
    report = run_target(target, vectors)
    if report.implementation is None:
        return report, ()
    says = {vector.id: vector for vector in vectors}
    checks = []
    for verdict in report.verdicts:
        if verdict.kind not in report.implementation.capabilities:
            continue
        wanted = "fail" if says[verdict.id].variant == _WRONG else "pass"
        checks.append(Check(verdict, says[verdict.id].description, verdict.outcome == wanted))
    if checks and isinstance(target, CommandTarget):
        checks += [_restores(target, m) for m in MANAGERS if _keeps(target, report, m)]
    return report, tuple(checks)


# --- snapshots ---------------------------------------------------------------------------------


def _keeps(target: CommandTarget, report: TargetReport, manager: Manager) -> bool:
    found = report.implementation
    return target.keeps_snapshots and found is not None and manager in found.capabilities


def _restores(target: CommandTarget, manager: Manager) -> Check:
    """A manager is full; what is done with a copy of it must be done with the copy only."""
    parameters = Parameters(4, (Request("r1", (Item("A", 2),)), Request("r2", (Item("B", 4),))))
    fills: tuple[Call, ...] = (CanAllocate("r1", 0, 2, 0), Allocate("r1", 0))
    refused: tuple[Call, ...] = (CanAllocate("r2", 0, 4, 0),)
    empties: tuple[Call, ...] = (FreeEncoderInput("r1", 0), *refused)

    def case(calls: tuple[Call, ...]) -> Case:
        return Case("smoke-snapshots", manager, parameters, calls)

    requests = [
        posted(case(fills), snapshot=0),
        posted(case(refused), restore=0),
        posted(case(empties), restore=0, snapshot=1),
        posted(case(refused), restore=0),
        posted(case(refused), restore=1, drop=[0]),
    ]
    wanted = [False, True, False, True]
    outcome: Outcome = "pass"
    reason: str | None = None
    try:
        target.start()
        target.post(requests)
        answers, wrong = target.collect()
        told = [a[-1].returns if a[-1].error is None else a[-1].error for a in answers[1:]]
        if wrong is not None:
            outcome, reason = "error", str(wrong)
        elif told != wanted:
            outcome, reason = "fail", f"it answered {told}, where {wanted} is right"
        target.stop()
    except (TargetError, AdapterError) as error:
        outcome, reason = "error", str(error)
    verdict = Verdict("smoke-snapshots", outcome, (), "specified", manager, reason=reason)
    says = "what is restored from a snapshot is what was kept, whatever was called meanwhile"
    return Check(verdict, says, outcome == "pass")


class SmokeCheck(msgspec.Struct, frozen=True):
    """One vector of the smoke test, for machines."""

    kind: Kind
    says: str
    ok: bool
    outcome: Outcome


class SmokeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The `--json` output of `smoke`."""

    format: Literal["mmcache/smoke"] = "mmcache/smoke"
    format_version: Literal[1] = 1
    exit_code: ExitCode
    target: str
    implementation: Implementation | None
    reason: str | None
    checks: tuple[SmokeCheck, ...]


def smoked(report: TargetReport, checks: Sequence[Check]) -> SmokeReport:
    """3 if it could not be started or driven, 1 if some check is not right or none is, else 0."""
    found = report.implementation
    code = ExitCode.OK
    if found is None or found.undriven:
        code = ExitCode.COULD_NOT
    elif not checks or not all(check.ok for check in checks):
        code = ExitCode.FAILED
    told = (SmokeCheck(c.verdict.kind, c.says, c.ok, c.verdict.outcome) for c in checks)
    return SmokeReport(
        exit_code=code,
        target=report.target,
        implementation=found,
        reason=report.reason,
        checks=tuple(told),
    )


_WRONG = "a deliberately wrong expectation"


def smoke_vectors(manager: Manager) -> tuple[Vector, ...]:
    """Three that any manager passes, and one that none may pass."""
    return (
        _vector(manager, "a new manager has nothing to report", ((GetFreedMmHashes(), ()),)),
        _vector(manager, "an item that fits is admitted", ((CanAllocate("r1", 0, 2, 0), True),)),
        _vector(
            manager,
            "an item that was admitted is allocated",
            ((CanAllocate("r1", 0, 2, 0), True), (Allocate("r1", 0), None)),
        ),
        _vector(
            manager,
            "an item within its budget is refused, which must be reported as failing",
            ((CanAllocate("r1", 0, 2, 0), False),),
            variant=_WRONG,
        ),
    )


def _vector(
    manager: Manager,
    says: str,
    lines: Sequence[tuple[Call, Returns]],
    variant: str = "specified",
) -> Vector:
    parameters = Parameters(4, (Request("r1", (Item("A", 2),)),))
    steps = tuple(Step(call, Expect(returns, Observed())) for call, returns in lines)
    return Vector(
        format="mmcache/vector",
        format_version=1,
        id=content_id("smoke", manager, parameters, steps),
        description=says,
        manager=manager,
        goal="smoke",
        variant=variant,
        clauses=(),
        kills=(),
        requires=(),
        provenance=Provenance("none", "none", 0),
        parameters=parameters,
        steps=steps,
    )
