"""The system vectors: their format, where they come from, what passes and what fails."""

from __future__ import annotations

import json
import time

import jsonschema
import msgspec
import pytest

from mmcache_conformance.engines.generate import contains, generate_system, load_seeds
from mmcache_conformance.engines.judge import judge
from mmcache_conformance.engines.protocol import PassRecord
from mmcache_conformance.engines.reference import REFERENCE_VARIANTS, ReferencePass
from mmcache_conformance.engines.run import run_system
from mmcache_conformance.suites.load_engine import load_system_suite
from mmcache_spec.generate.managers import digest
from mmcache_spec.model.variants import VARIANTS
from mmcache_vectors.engine import (
    VectorError,
    decode_system,
    encode_system,
    load_system,
    system_schema,
)

VECTORS = load_system_suite()


def test_the_vectors_are_what_their_seeds_generate():
    assert generate_system() == list(VECTORS)


def test_the_seeds_are_paths_of_the_present_specification():
    for seed in load_seeds():
        assert seed.spec_digest == digest(VARIANTS[seed.variant].system), seed.name


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.id)
def test_bytes_are_canonical_and_valid(vector, tmp_path):
    content = encode_system(vector)
    assert decode_system(content, "x") == vector
    jsonschema.validate(json.loads(content), system_schema())
    (tmp_path / "v.json").write_bytes(content)
    assert load_system(tmp_path / "v.json") == vector


@pytest.mark.parametrize("variant", REFERENCE_VARIANTS)
def test_exactly_the_killed_variants_fail(variant):
    report = run_system(ReferencePass(variant), VECTORS)
    failed = {v.id for v in report.verdicts if v.outcome == "fail"}
    assert failed == {v.id for v in VECTORS if variant in v.kills}
    assert all(v.outcome != "error" for v in report.verdicts)


def test_every_wrong_variant_is_killed_and_no_right_one():
    right = {name for name in REFERENCE_VARIANTS if VARIANTS[name].expected is None}
    killed = {name for vector in VECTORS for name in vector.kills}
    assert killed == set(REFERENCE_VARIANTS) - right


def test_a_vector_breaks_the_clause_that_its_variant_breaks_in_the_specification():
    for vector in VECTORS:
        if vector.variant != "specified":
            (verdict,) = run_system(ReferencePass(vector.variant), [vector]).verdicts
            assert set(vector.clauses) <= {b.clause for b in verdict.breaches}


def test_the_reference_comes_to_every_situation_in_two_seconds():
    started = time.perf_counter()
    report = run_system(ReferencePass(), VECTORS)
    assert time.perf_counter() - started < 2
    assert report.ok
    assert [v.reached for v in report.verdicts] == [v.situation and True for v in VECTORS]


def test_containing_a_path():
    log = [("a", "r", 0), ("b", "r", 0), ("a", "s", 0), ("dispatch", "", -1)]
    assert contains(log, [("a", "r", 0), ("accept", "r", -1), ("dispatch", "", -1)])
    assert not contains(log, [("dispatch", "", -1), ("a", "r", 0)])
    assert not contains(log, [("a", "q", 0)])


def _edited(**changes):
    document = msgspec.json.decode(encode_system(VECTORS[0]))
    for path, value in changes.items():
        *way, last = path.split("__")
        at = document
        for key in way:
            at = at[int(key) if key.isdigit() else key]
        at[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "x: not JSON"),
        (b"{}", r"at \$\.format: not a system vector"),
        (b"[" * 5000, "not JSON"),
        (_edited(format_version=2), r"at \$\.format_version: version 2"),
        (_edited(engine__block_size=0), r"at \$\.engine\.block_size"),
        (_edited(engine__policy="lottery"), r"at \$\.engine\.policy"),
        (_edited(more=1), "unknown field"),
        (_edited(requests__0__request_id="r2"), r"\$\.requests: a request_id occurs twice"),
        (_edited(requests__0__items__0__num_embeds=5), "has two sizes"),
        (_edited(requests__0__items__0__position=99), "ends after the prompt"),
        (_edited(events=[{"op": "abort", "before_pass": 1, "request": "no"}]), "no request 'no'"),
        (_edited(engine__num_blocks=99), r"at \$\.id: the content makes it"),
    ],
)
def test_what_is_wrong_is_said(content, says):
    with pytest.raises(VectorError, match=says):
        decode_system(content, "x")


def test_a_directory_without_vectors(tmp_path):
    with pytest.raises(VectorError, match="no system vectors here"):
        load_system_suite(tmp_path)
    with pytest.raises(VectorError):
        load_system_suite(tmp_path / "missing")
    with pytest.raises(VectorError, match=r"v\.json"):
        load_system(tmp_path / "v.json")


def _record(**changes):
    plain = PassRecord(
        number=0,
        num_scheduled_tokens={"r": 1},
        starts={"r": 0},
        scheduled_encoder_inputs={},
        allocated=(),
        hits=(),
        report=(),
        cached=(),
        gathered=(),
        missed=(),
        without_payload=(),
        held_before=(),
        worker=(),
        peak=0,
        preempted=(),
        running=(),
        waiting=(),
        references={},
    )
    return msgspec.structs.replace(plain, **changes)


@pytest.mark.parametrize(
    ("changes", "clauses"),
    [
        ({}, []),
        ({"missed": ("A",)}, ["S1"]),
        ({"report": ("A",), "cached": ("A",), "worker": ("A",)}, ["L1"]),
        ({"cached": ("A",)}, ["S2", "S3"]),
        ({"worker": ("A",)}, ["S3"]),
        ({"references": {"A": ("r",)}}, ["S5"]),
        ({"references": {"A": ("r",)}, "running": ("r",)}, ["S7"]),
        ({"without_payload": ("A",)}, ["S8"]),
        ({"error": "AssertionError"}, ["error"]),
    ],
)
def test_each_clause_can_break_alone(changes, clauses):
    assert [b.clause for b in judge(VECTORS[0], [_record(**changes)])] == clauses


def test_too_much_at_the_worker_and_a_stall():
    vector = VECTORS[0]
    (size,) = {i.num_embeds for r in vector.requests for i in r.items}
    small = msgspec.structs.replace(vector.engine, cache_size=size - 1)
    full = _record(cached=("A",), worker=("A",))
    found = judge(msgspec.structs.replace(vector, engine=small), [full])
    assert [b.clause for b in found] == ["S4"]
    idle = [
        _record(number=k, num_scheduled_tokens={}, waiting=("r",))
        for k in range(vector.expect.stall_after)
    ]
    assert judge(vector, idle)[0].clause == "S7"
