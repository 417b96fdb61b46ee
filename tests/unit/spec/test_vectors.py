"""The packaged vectors expect what the specification answers, and kill what they say."""

import re

import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_spec.generate.managers import MANAGERS, wrong_ledgers
from mmcache_spec.model.variants import SPECIFIED
from mmcache_spec.oracle import Replay, answers_otherwise
from mmcache_vectors.clauses import CLAUSES
from mmcache_vectors.manager import VectorError, decode, encode

VECTORS = load_suite()
SYSTEMS = {MANAGERS[s.name]: s for s in SPECIFIED.systems if s.name in MANAGERS}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.id)
def test_it_expects_what_the_specification_answers(vector):
    replay = Replay(SYSTEMS[vector.manager], vector.parameters)
    assert [step.expect for step in vector.steps] == list(
        replay.answers([step.call for step in vector.steps])
    )


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v.id)
def test_it_kills_what_it_says_it_kills(vector):
    system = SYSTEMS[vector.manager]
    killed = {
        v.name
        for v in wrong_ledgers()
        if v.system.name == system.name
        and answers_otherwise(v.system, vector.parameters, vector.steps)
    }
    assert killed == set(vector.kills)


def test_every_wrong_variant_is_killed():
    killed = {name for vector in VECTORS for name in vector.kills}
    assert killed == {v.name for v in wrong_ledgers()}


def test_the_counterexample_of_a_variant_kills_it():
    for vector in VECTORS:
        if vector.variant != "specified":
            assert vector.variant in vector.kills, vector.id


def test_every_clause_has_vectors():
    about_managers = {c for c in CLAUSES if not c.startswith("S")}
    assert {clause for vector in VECTORS for clause in vector.clauses} == about_managers


def test_the_bytes_are_canonical():
    for vector in VECTORS:
        assert decode(encode(vector), vector.id) == vector
        assert encode(vector).endswith(b"}\n")


def test_an_edited_vector_is_noticed():
    edited = re.sub(rb'"cache_size": \d+', b'"cache_size": 99', encode(VECTORS[0]))
    with pytest.raises(VectorError, match=r"edited.json: at \$.id: .* needs its new id"):
        decode(edited, "edited.json")
