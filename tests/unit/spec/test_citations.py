"""A clause cites the reports that it would have caught, each shown by a wrong design or manager."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmcache_spec.model.decisions import DECISIONS
from mmcache_spec.model.variants import VARIANTS
from mmcache_vectors.clauses import CLAUSES, report_address
from tests.known_bad.managers import HISTORIC

ROOT = Path(__file__).parents[3]


def shown() -> dict[str, set[str]]:
    """By report: the clauses that what was reported breaks, in a design or in a manager."""
    found: dict[str, set[str]] = {}
    for variant in VARIANTS.values():
        if variant.expected is not None:
            broken = {*variant.expected.breaks, variant.expected.target} - {None}
            for report in variant.seen_in:
                found.setdefault(report, set()).update(map(str, broken))
    for cls in HISTORIC:
        found.setdefault(str(cls.report), set()).update(cls.clauses)
    return found


SHOWN = shown()


@pytest.mark.parametrize("id", CLAUSES)
def test_what_is_cited_is_shown(id: str) -> None:
    for report in CLAUSES[id].reports:
        assert id in SHOWN.get(report, set()), f"{id} beside {report}, which nothing shows"
        assert report_address(report) is not None


def test_what_a_manager_has_decided_is_cited_beside_its_clause() -> None:
    for decision in DECISIONS.values():
        assert set(decision.seen_in) <= set(CLAUSES[decision.clause].reports) | {
            report for report in decision.seen_in if decision.clause not in SHOWN[report]
        }


def test_the_readme_cites_the_same() -> None:
    text = (ROOT / "README.md").read_text()
    for id, clause in CLAUSES.items():
        row = re.search(rf"(?m)^\| \[{id}\]\(.*$", text)
        assert row is not None
        cited = re.findall(r"\[([\w-]+#\d+)\]\((\S+?)\)", row[0])
        assert cited == [(r, report_address(r)) for r in clause.reports]
