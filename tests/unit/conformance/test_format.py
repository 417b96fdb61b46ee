"""What the format accepts, and how it says what is wrong: file, JSON path, reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_vectors.manager import Vector, VectorError, decode, encode, json_schema

Document = dict[str, Any]


def _drop(name: str) -> Callable[[Document], object]:
    return lambda d: d.pop(name)


def _step(k: int, part: str, name: str, value: object) -> Callable[[Document], object]:
    return lambda d: d["steps"][k][part].__setitem__(name, value)


MALFORMED: dict[str, tuple[Callable[[Document], object], str]] = {
    "other format": (lambda d: d.update(format="else"), "$.format"),
    "no format": (_drop("format"), "$.format"),
    "later version": (lambda d: d.update(format_version=2), "$.format_version"),
    "version is a text": (lambda d: d.update(format_version="1"), "$.format_version"),
    "no clauses": (_drop("clauses"), "$"),
    "surplus field": (lambda d: d.update(surplus=1), "$"),
    "unknown manager": (lambda d: d.update(manager="tensor_cache"), "$.manager"),
    "negative capacity": (
        lambda d: d["parameters"].update(cache_size=-1),
        "$.parameters.cache_size",
    ),
    "capacity is a float": (
        lambda d: d["parameters"].update(cache_size=1.5),
        "$.parameters.cache_size",
    ),
    "capacity is a Boolean": (
        lambda d: d["parameters"].update(cache_size=True),
        "$.parameters.cache_size",
    ),
    "empty hash": (
        lambda d: d["parameters"]["requests"][0]["items"][0].update(identifier=""),
        "$.parameters.requests[0].items[0].identifier",
    ),
    "unknown call": (_step(3, "call", "op", "evict"), "$.steps[3].call.op"),
    "call without its argument": (
        lambda d: d["steps"][2]["call"].pop("request"),
        "$.steps[2].call",
    ),
    "surplus argument": (_step(9, "call", "request", "r1"), "$.steps[9].call"),
    "input is a text": (_step(0, "call", "input_id", "0"), "$.steps[0].call.input_id"),
    "returns a number": (_step(3, "expect", "returns", 1), "$.steps[3].expect.returns"),
    "observes something else": (
        lambda d: d["steps"][0]["expect"]["observe"].update(clock=1),
        "$.steps[0].expect.observe",
    ),
}
"""What a schema can see."""

INCONSISTENT: dict[str, tuple[Callable[[Document], object], str]] = {
    "no such request": (_step(2, "call", "request", "r9"), "$.steps[2].call.request"),
    "no such input": (_step(0, "call", "input_id", 2), "$.steps[0].call.input_id"),
    "request twice": (
        lambda d: d["parameters"]["requests"].append(d["parameters"]["requests"][0]),
        "$.parameters.requests",
    ),
    "edited without a new id": (_step(3, "expect", "returns", False), "$.id"),
}


def _mutated(vector: Vector, change: Callable[[Document], object]) -> Document:
    document: Document = json.loads(encode(vector))
    change(document)
    return document


@pytest.fixture
def sample(hand_made: dict[str, Vector]) -> Vector:
    return hand_made["evicted-and-allocated-again"]


def test_bytes_are_canonical(hand_made: dict[str, Vector]) -> None:
    for vector in hand_made.values():
        content = encode(vector)
        assert decode(content, "file") == vector
        assert encode(decode(content, "file")) == content
        assert content.endswith(b"}\n")


@pytest.mark.parametrize("name", [*MALFORMED, *INCONSISTENT])
def test_error_names_file_and_path(name: str, sample: Vector) -> None:
    change, path = (MALFORMED | INCONSISTENT)[name]
    content = json.dumps(_mutated(sample, change)).encode()
    with pytest.raises(VectorError) as caught:
        decode(content, "some/file.json")
    assert str(caught.value).startswith(f"some/file.json: at {path}: ")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"null", b'"mmcache/vector"'])
def test_not_a_vector_at_all(content: bytes) -> None:
    with pytest.raises(VectorError, match=r"^file\.json: "):
        decode(content, "file.json")


def test_schema_is_valid_and_accepts_the_vectors(hand_made: dict[str, Vector]) -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for vector in hand_made.values():
        validator.validate(json.loads(encode(vector)))


@pytest.mark.parametrize("each", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_schema_accepts_the_packaged_vectors(each: int) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for vector in load_suite()[::each]:
        validator.validate(json.loads(encode(vector)))


def test_the_package_is_read_once_and_a_directory_each_time(vector_directory: Path) -> None:
    assert load_suite() is load_suite()
    before = load_suite(vector_directory)
    (vector_directory / f"{before[0].id}.json").unlink()
    assert load_suite(vector_directory) == before[1:]


@pytest.mark.parametrize("name", MALFORMED)
def test_schema_rejects_what_decoding_rejects(name: str, sample: Vector) -> None:
    change, _ = MALFORMED[name]
    validator = jsonschema.Draft202012Validator(json_schema())
    assert not validator.is_valid(_mutated(sample, change))


class TestLoading:
    def test_sorted_by_id(self, vector_directory: Path) -> None:
        ids = [vector.id for vector in load_suite(vector_directory)]
        assert ids == sorted(ids)
        assert len(ids) == 7

    def test_only_json_files(self, vector_directory: Path) -> None:
        (vector_directory / "README.md").write_text("not a vector")
        assert len(load_suite(vector_directory)) == 7

    def test_empty_directory(self, tmp_path: Path) -> None:
        with pytest.raises(VectorError, match="no vectors here"):
            load_suite(tmp_path)

    def test_no_directory(self, tmp_path: Path) -> None:
        with pytest.raises(VectorError, match="No such file"):
            load_suite(tmp_path / "absent")

    def test_an_id_twice(self, vector_directory: Path, sample: Vector) -> None:
        (vector_directory / "copy.json").write_bytes(encode(sample))
        with pytest.raises(VectorError, match="is the id of another file too"):
            load_suite(vector_directory)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b"[" * 200_000, r"at \$\.format: not a vector"),
            (b'{"x":' * 200_000, "not a vector: nested too deeply"),
            (
                b'{"format":"mmcache/vector","format_version":1,"id":' + b"[" * 200_000,
                "not a vector",
            ),
            (
                b'{"format":"mmcache/vector","format_version":1,"id":"\xff"}',
                "not JSON: Invalid UTF-8",
            ),
        ],
        ids=["list", "object", "within", "no text"],
    )
    def test_too_deep_or_no_text(self, content: bytes, says: str, vector_directory: Path) -> None:
        (vector_directory / "wrong.json").write_bytes(content)
        with pytest.raises(VectorError, match=r"wrong\.json: " + says):
            load_suite(vector_directory)

    def test_a_broken_file_is_named(self, vector_directory: Path) -> None:
        (vector_directory / "broken.json").write_text("{")
        with pytest.raises(VectorError, match=r"broken\.json: not JSON"):
            load_suite(vector_directory)


def test_the_id_can_be_computed_from_the_documented_rule(hand_made: dict[str, Vector]) -> None:
    def ordered(value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
        return {key: value[key] for key in keys if key in value}

    arguments = ("op", "request", "input_id", "encoder_compute_budget", "num_embeds_to_schedule")
    observables = ("num_free_slots", "num_freeable_slots", "cached", "freeable", "held")
    for vector in (*hand_made.values(), *load_suite()):
        document = json.loads(encode(vector))
        content = [
            document["manager"],
            {
                "cache_size": document["parameters"]["cache_size"],
                "requests": [
                    {
                        "request_id": request["request_id"],
                        "items": [
                            ordered(i, ("identifier", "num_embeds")) for i in request["items"]
                        ],
                    }
                    for request in document["parameters"]["requests"]
                ],
            },
            [
                {
                    "call": ordered(step["call"], arguments),
                    "expect": {
                        "returns": step["expect"]["returns"],
                        "observe": ordered(step["expect"]["observe"], observables),
                    },
                }
                for step in document["steps"]
            ],
        ]
        compact = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
        assert vector.id.endswith("-" + hashlib.sha256(compact).hexdigest()[:8])
