from __future__ import annotations

from mmcache_conformance.clauses import CLAUSES, clause
from mmcache_conformance.suite import load_suite
from mmcache_spec.model import clauses as specified


def test_they_are_those_of_the_specification() -> None:
    ours = {c.id: (c.name, c.says) for c in CLAUSES.values()}
    theirs = {c.id: (c.name, c.says) for c in specified.CLAUSES.values()}
    assert ours == theirs


def test_every_packaged_vector_has_known_clauses() -> None:
    assert {id for vector in load_suite() for id in vector.clauses} <= set(CLAUSES)


def test_an_unknown_clause_has_only_its_id() -> None:
    assert clause("Z9") == ("Z9", "Z9", "")
