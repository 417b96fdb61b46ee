"""A report is a set: a name that it has twice means nothing, to whoever judges it."""

from __future__ import annotations

from typing import Any

import pytest

from mmcache import EncoderCacheManager
from mmcache_conformance.differ.search import Campaign, search
from mmcache_conformance.exhaust.search import exhaust
from mmcache_conformance.exhaust.world import SearchScope
from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.format import Allocated, Asked, Created, Freed, LogEvent, Reported
from mmcache_conformance.open import open_target
from mmcache_conformance.suites.load import load_suite
from mmcache_conformance.verdicts.run import run_target
from tests.support.logs import lines_of


class NamesTwice(EncoderCacheManager):
    """Each name of a report comes twice, the second times behind the first ones."""

    def get_freed_mm_hashes(self) -> list[str]:
        return super().get_freed_mm_hashes() * 2


class OnceTooMany(EncoderCacheManager):
    """The same, and the last name is missing: so each judge is seen to look."""

    def get_freed_mm_hashes(self) -> list[str]:
        told = super().get_freed_mm_hashes()
        return told[:-1] * 2


def by_run(target: str) -> bool:
    report = run_target(
        open_target(target, in_process=True), load_suite(), fail_fast=True, stretch=False
    )
    assert any(v.outcome == "pass" for v in report.verdicts)
    return any(v.failure is not None for v in report.verdicts)


def by_differ(target: str) -> bool:
    done = [
        search(Campaign(target, shrinks=False, in_process=True), unit, 256) for unit in range(2)
    ]
    return any(one.finding is not None for one in done)


def by_exhaust(target: str) -> bool:
    scope = SearchScope(hashes=2, requests=2, inputs=2, capacity=3)
    return exhaust(target, scope, max_states=10**5).disagreement is not None


JUDGES = pytest.mark.parametrize("judge", [by_run, by_differ, by_exhaust], ids=lambda j: j.__name__)


@JUDGES
def test_a_name_twice_is_a_name(judge: Any) -> None:
    assert not judge(f"{__name__}:NamesTwice")


@JUDGES
def test_a_name_that_is_missing_is_not(judge: Any) -> None:
    assert judge(f"{__name__}:OnceTooMany")


@pytest.mark.parametrize(
    ("told", "allowed"), [(("A",), True), (("A", "A"), True), ((), False), (("A", "B", "A"), False)]
)
def test_so_does_check(told: tuple[str, ...], allowed: bool) -> None:
    events: list[LogEvent] = [
        Created("m", 0, "encoder_cache", 4),
        Allocated("m", 1, "r", 0, "A", 4),
        Freed("m", 2, "r"),
        Asked("m", 3, "r", 1, "B", 4, 4, 0, returns=True),
        Reported("m", 4, told),
    ]
    lines = lines_of(events)
    assert (check_log(lambda: lines, "a.jsonl").illegal is None) is allowed
