"""Every vector names the clauses that it defends, and they are those that it is seen to defend."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from mmcache_conformance.suites.load import defended, load_suite
from mmcache_spec.generate.defends import defends
from mmcache_spec.kernel.mutants import mutants
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.oracle import Replay
from mmcache_vectors.clauses import CLAUSES

VECTORS = load_suite()
MANIFEST = json.loads((files("mmcache_vectors") / "manifest.json").read_text())


def test_every_vector_defends_some_clause_and_what_it_is_about() -> None:
    assert set(MANIFEST["defends"]) == {v.id for v in VECTORS}
    for vector in VECTORS:
        found = defended()[vector.id]
        assert found
        assert set(found) <= set(CLAUSES)
        assert set(vector.clauses) <= set(found)


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(v, marks=[pytest.mark.slow] if len(v.steps) > 100 else [], id=v.id)
        for v in VECTORS[::9]
    ],
)
def test_the_manifest_says_what_is_seen(vector: object) -> None:
    from mmcache_vectors.manager import Vector

    assert isinstance(vector, Vector)
    found = defends(vector, MANIFEST["strengths"][vector.id])
    assert list(found) == MANIFEST["defends"][vector.id]


@pytest.mark.parametrize(
    ("variant", "clause"),
    [
        ("unfiltered_report", "L1"),
        ("evict_newest_first", "L6"),
        ("first_occurrence_release", "L8"),
        ("encoder_decoder_same_pass_notice", "E2"),
    ],
)
def test_what_catches_a_decision_defends_its_clause(variant: str, clause: str) -> None:
    for vector in VECTORS:
        if variant in vector.kills and _first_of(variant, vector):
            assert clause in defends(vector, [variant])


def _first_of(variant: str, vector: object) -> bool:
    """Whether the first difference is in the answer, of which the clause speaks by itself."""
    from mmcache_vectors.manager import Vector

    assert isinstance(vector, Vector)
    replay = Replay(VARIANTS[variant].system, vector.parameters)
    for step in vector.steps:
        answer = replay.answer(step.call)
        if answer != step.expect:
            return answer is not None and answer.returns != step.expect.returns
    return False


def test_nothing_killed_nothing_defended_but_what_it_is_about() -> None:
    """A mutant that it does not kill adds nothing."""
    vector = next(v for v in VECTORS if v.clauses and v.manager == "encoder_cache")
    assert defends(vector, []) == tuple(sorted(vector.clauses, key=lambda c: int(c[1:])))
    system = VARIANTS["specified"].systems[0]
    killed = set(MANIFEST["strengths"][vector.id])
    names = (f"{system.name}: mutant {m.name}" for m in mutants(system))
    alive = [name for name in names if name not in killed][:20]
    assert defends(vector, alive) == defends(vector, [])
