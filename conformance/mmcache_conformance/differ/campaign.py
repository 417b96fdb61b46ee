"""A campaign from its first unit to its last: here, in several processes, or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace

from mmcache_spec.campaign import workers

from ..exits import ExitCode
from ..implementation import Implementation
from ..oracle.known import Known
from .kinds import kind_of
from .report import DifferReport, Finding
from .search import Campaign, Done, left_out, search
from .units import plan_of

__all__ = ["run_campaign"]


def run_campaign(
    campaign: Campaign,
    implementation: Implementation,
    *,
    count: int | None,
    seconds: float | None,
    findings: int = 1,
    jobs: int = 1,
    cluster: str | None = None,
    on_progress: Callable[[int], None] = lambda sequences: None,
) -> DifferReport:
    """Play until the budget is spent or so many different findings were made.

    Args:
        campaign: What is to be played.
        implementation: What the target said of itself.
        count: So many sequences; None for as many as there is time for.
        seconds: So long; None for as long as it takes. One of the two must be given.
        findings: Go on after a difference, until so many kinds of difference are found.
        jobs: Units at a time, each with a target of its own.
        cluster: The address of a Dask scheduler instead.
        on_progress: Called with the number of further sequences.

    Raises:
        TargetError: The target cannot be started.
        ClusterError: The cluster cannot be used.
    """
    assert count is not None or seconds is not None
    started = time.perf_counter()
    until = None if seconds is None else time.time() + seconds
    total = Done(0, 0, 0, 0)
    found: list[Finding] = []
    units = _units(count)
    while (done := _until_new(campaign, units, until, jobs, cluster, on_progress)) is not None:
        finding, done_now = done
        total = _sum(total, done_now)
        if finding is None:
            break
        found.append(finding)
        if len(found) >= findings:
            break
        campaign = _knowing(campaign, finding)
    return DifferReport(
        exit_code=_exit_code(total, found),
        target=campaign.target,
        implementation=implementation,
        seed=campaign.seed,
        sequences=total.sequences,
        calls=total.calls,
        worlds=total.worlds,
        seconds=round(time.perf_counter() - started, 3),
        known=total.known,
        left_out=left_out(implementation),
        findings=tuple(found),
    )


def _exit_code(total: Done, found: list[Finding]) -> ExitCode:
    """A campaign that has played nothing has found nothing out."""
    if found:
        return ExitCode.FAILED
    return ExitCode.OK if total.calls else ExitCode.COULD_NOT


def _units(count: int | None) -> Iterator[tuple[int, int | None]]:
    """The units with the most sequences of each; without a count, for ever."""
    unit = 0
    while count is None or count > 0:
        most = plan_of(unit).sequences
        if count is not None:
            most = min(most, count)
            count -= most
        yield unit, most
        unit += 1


def _until_new(
    campaign: Campaign,
    units: Iterator[tuple[int, int | None]],
    until: float | None,
    jobs: int,
    cluster: str | None,
    on_progress: Callable[[int], None],
) -> tuple[Finding | None, Done] | None:
    """Units in their order, up to the first with a finding."""
    total = Done(0, 0, 0, 0)
    if cluster is None and jobs == 1:
        for unit, most in units:
            if until is not None and time.time() > until:
                break
            done = search(campaign, unit, most, until, on_progress)
            total = _sum(total, done)
            if done.finding is not None:
                return done.finding, total
        return None, total
    with workers(cluster, jobs=jobs) as executor:
        running: list[Future[Done]] = []
        exhausted = False
        while True:
            while not exhausted and len(running) < 2 * jobs:
                following = next(units, None)
                if following is None or (until is not None and time.time() > until):
                    exhausted = True
                    break
                running.append(executor.submit(search, campaign, *following, until))
            if not running:
                return None, total
            done = running.pop(0).result()
            on_progress(done.sequences)
            total = _sum(total, done)
            if done.finding is not None:
                for job in running:
                    job.cancel()
                return done.finding, total


def _sum(a: Done, b: Done) -> Done:
    return Done(
        a.sequences + b.sequences, a.calls + b.calls, a.worlds + b.worlds, a.known + b.known
    )


def _knowing(campaign: Campaign, finding: Finding) -> Campaign:
    """What was found is known from now on: its decisions, and its kind."""
    known = campaign.known
    decisions = known.decisions.union(finding.decisions)
    kind = kind_of([s.call for s in finding.vector.steps], finding.differences)
    return replace(
        campaign,
        known=Known(decisions, known.clauses, known.signatures),
        found=campaign.found | {kind},
    )
