"""A campaign from its first unit to its last: here, in several processes, or on a cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

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
    play = _Play(campaign, until, findings)
    if cluster is None and jobs == 1:
        play.units(_units(count), 1, partial(_Later, on_progress))
    else:
        with workers(cluster, jobs=jobs) as executor:
            play.units(_units(count), 2 * jobs, executor.submit, on_progress)
    total, found = play.total, play.found
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


class _Result(Protocol):
    """What a submitted unit will have done."""

    def result(self) -> Done: ...

    def cancel(self) -> bool: ...


class _Later:
    """A unit that is played here, when its result is wanted."""

    def __init__(self, on_progress: Callable[[int], None], work: Any, *given: Any) -> None:
        self.result: Callable[[], Done] = partial(work, *given, on_progress)

    def cancel(self) -> bool:
        return True


@dataclass
class _Unit:
    number: int
    most: int | None
    result: _Result
    campaign: Campaign
    """With what was known when it was submitted."""


class _Play:
    """The units of a campaign, judged in their order, whoever plays them.

    A unit ends at what it does not know. It is then played again with that known, so that nothing
    of it is lost; and so is one that was on its way meanwhile and ended at the same.
    """

    def __init__(self, campaign: Campaign, until: float | None, findings: int) -> None:
        self._campaign, self._until, self._findings = campaign, until, findings
        self.total = Done(0, 0, 0, 0)
        self.found: list[Finding] = []

    def units(
        self,
        units: Iterator[tuple[int, int | None]],
        at_once: int,
        submit: Callable[..., _Result],
        on_progress: Callable[[int], None] = lambda sequences: None,
    ) -> None:
        """Play them until the budget is spent, or enough is found."""

        def submitted(unit: int, most: int | None) -> _Unit:
            campaign = self._campaign
            return _Unit(unit, most, submit(search, campaign, unit, most, self._until), campaign)

        running: deque[_Unit] = deque()
        while True:
            while len(running) < at_once and not self._over():
                following = next(units, None)
                if following is None:
                    break
                running.append(submitted(*following))
            if not running:
                return
            unit = running.popleft()
            done = unit.result.result()
            on_progress(done.sequences)
            while self._must_be_played_again(done, unit.campaign):
                if len(self.found) >= self._findings:
                    self.total = _sum(self.total, done)
                    for other in running:
                        other.result.cancel()
                    return
                unit = submitted(unit.number, unit.most)
                again = unit.result.result()
                if again.sequences < done.sequences and again.finding is None:
                    break  # there was no time for all of it
                done = again
            self.total = _sum(self.total, done)

    def _over(self) -> bool:
        return self._until is not None and time.time() > self._until

    def _must_be_played_again(self, done: Done, played: Campaign) -> bool:
        """Take in what a unit has brought; whether it would go on with what is known now."""
        finding = done.finding
        if finding is not None:
            kind = kind_of([s.call for s in finding.vector.steps], finding.differences)
            is_new = played is self._campaign or kind not in self._campaign.found
            if is_new and not self._is_decided(finding, played):
                self.found.append(finding)
                self._campaign = _knowing(self._campaign, finding)
            return True
        return not self._learns(done, played)

    def _is_decided(self, finding: Finding, played: Campaign) -> bool:
        """Whether a decision explains it that was found after the unit was submitted."""
        new = self._campaign.known.decisions - played.known.decisions
        return any(choice.intersection(finding.decisions) for choice in new)

    def _learns(self, done: Done, played: Campaign) -> bool:
        """Take in which of several decisions it was; false if another unit has said otherwise."""
        ruled_out = frozenset[str]().union(*played.known.decisions)
        ruled_out = ruled_out.difference(*done.choices)
        known = self._campaign.known
        left = frozenset(choice - ruled_out for choice in known.decisions)
        if frozenset() in left:
            return False
        self._campaign = replace(self._campaign, known=replace(known, decisions=left))
        return True


def _sum(a: Done, b: Done) -> Done:
    return Done(
        a.sequences + b.sequences, a.calls + b.calls, a.worlds + b.worlds, a.known + b.known
    )


def _knowing(campaign: Campaign, finding: Finding) -> Campaign:
    """What was found is known from now on: its decisions, and its kind."""
    known = campaign.known
    taken = {frozenset(finding.decisions)} - {frozenset()}  # one of these, and not all of them
    decisions = known.decisions | taken
    kind = kind_of([s.call for s in finding.vector.steps], finding.differences)
    return replace(
        campaign,
        known=Known(decisions, known.clauses, known.signatures),
        found=campaign.found | {kind},
    )
