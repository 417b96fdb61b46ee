"""The header for C++, and its example: right, and wrong exactly as the spec predicts."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mmcache_conformance.targets.command import CommandTarget
from mmcache_conformance.verdicts.model import TargetReport
from mmcache_conformance.verdicts.run import run_target
from mmcache_conformance.verdicts.smoke import smoke
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.oracle import answers_otherwise
from mmcache_vectors.manager import Vector
from tests.support.drivers import CPP, outcomes, run, without

PROGRAMS = Path(__file__).parent / "programs"
Build = Callable[..., Path]


def report_on(program: Path, vectors: tuple[Vector, ...]) -> TargetReport:
    return run(CommandTarget(f"cmd:{program}", shlex.quote(str(program))), vectors)


def test_the_example_passes_everything_that_applies(
    build: Build, vectors: tuple[Vector, ...]
) -> None:
    report = report_on(build(), vectors)
    for vector, verdict in zip(vectors, report.verdicts, strict=True):
        applies = vector.manager == "encoder_cache"
        assert verdict.outcome == ("pass" if applies else "skip"), verdict


@pytest.mark.slow
def test_unfiltered_it_fails_exactly_what_the_spec_predicts(
    build: Build, vectors: tuple[Vector, ...]
) -> None:
    report = report_on(build(CPP / "example.cpp", "-DUNFILTERED_REPORT"), vectors)
    system = VARIANTS["unfiltered_report"].system
    predicted = [
        v.id
        for v in vectors
        if v.manager == "encoder_cache" and answers_otherwise(system, v.parameters, v.steps)
    ]
    assert len(predicted) >= 4
    assert [v.id for v in report.verdicts if v.outcome == "fail"] == predicted
    assert predicted == [v.id for v in vectors if "unfiltered_report" in v.kills]
    assert "error" not in outcomes(report)


def test_it_is_fit_to_be_believed(build: Build) -> None:
    _, checks = smoke(CommandTarget("cmd:x", shlex.quote(str(build()))))
    assert [check.ok for check in checks] == [True] * 5


def test_what_a_class_does_not_have_is_a_capability_that_it_does_not_have(
    build: Build, vectors: tuple[Vector, ...]
) -> None:
    """And without the calls that everything needs, it cannot be driven: no clause is judged."""
    program = str(build(PROGRAMS / "partial.cpp"))
    done = subprocess.run(
        [program], input='{"cmd":"start","protocol":1}\n', capture_output=True, text=True
    )
    started = json.loads(done.stdout)
    assert {m: sorted(names) for m, names in started["capabilities"].items()} == {
        "encoder_cache": ["allocate", "get_freed_mm_hashes"],
        "encoder_decoder": ["allocate", "num_free_slots"],
    }
    assert "version" not in started["implementation"]
    assert started["implementation"]["source"] == "https://example.org/partial"
    report = run_target(CommandTarget("cmd:partial", shlex.quote(program)), vectors, stretch=False)
    assert report.implementation is None
    assert "it has no `check_and_update_cache`, `can_allocate`" in str(report.reason)


LOST = {
    "check_and_update_cache": ("(const Request& r, std::size_t k)", "(Request& r, std::size_t k)"),
    "can_allocate": (
        "can_allocate(const Request& r, std::size_t k, std::int64_t encoder_compute_budget,",
        "can_allocate(const Request& r, std::size_t k,",
    ),
    "free": ("free(const Request& r)", "free(const std::string& r)"),
    "get_freed_mm_hashes": ("get_freed_mm_hashes()", "get_freed_mm_hashes(std::size_t)"),
    "reset": ("    void reset()", "private: void reset()"),
    "freeable": ("freeable() const", "freeable(int) const"),
}
"""By call, what its line says, and what it lost: a const, an argument, a type, access."""


def test_a_call_that_cannot_be_made_does_not_compile(tmp_path: Path) -> None:
    """One lost word made a driver lose a call, and every vector that needs it, in silence."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        without("C++ compiler")
    text = (CPP / "example.cpp").read_text()
    for right, wrong in LOST.values():
        assert right in text
        text = text.replace(right, wrong, 1)
    # Access is lost for one call alone.
    text = text.replace("    std::int64_t num_free_slots", "public: std::int64_t num_free_slots", 1)
    source = tmp_path / "driver.cpp"
    source.write_text(text)
    words = [str(compiler), "-std=c++17", "-fsyntax-only", f"-I{CPP}", str(source)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode != 0
    refused = re.findall(r"`(\w+)` is there and cannot be called as", done.stderr)
    assert set(refused) == set(LOST)


def test_an_exception_is_the_answer_of_its_call(build: Build) -> None:
    def ask(items: int) -> object:
        case = {
            "id": "x",
            "manager": "encoder_cache",
            "parameters": {
                "cache_size": 1,
                "requests": [
                    {
                        "request_id": "r",
                        "items": [{"identifier": "A\u00e9", "num_embeds": 1}] * items,
                    }
                ],
            },
            "calls": [
                {"op": "get_freed_mm_hashes"},
                {"op": "allocate", "request": "r", "input_id": 0},
                {"op": "get_freed_mm_hashes"},
            ],
        }
        request = json.dumps({"cmd": "run", "seq": 1, "case": case}) + "\n"
        program = build(PROGRAMS / "partial.cpp")
        done = subprocess.run([program], input=request, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    first: dict[str, object] = {"returns": [], "observed": {}}
    assert ask(1) == {"seq": 1, "answers": [first, {"error": 'no "room"\n'}]}
    thrown = {"error": "something was thrown that is no std::exception"}
    assert ask(2) == {"seq": 1, "answers": [first, thrown]}


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ("nonsense", 1, "not a request of the adapter protocol"),
        ('{"cmd":"start","protocol":2}', 1, "another protocol"),
        ('{"cmd":"pause"}', 1, "no command pause"),
        ('{"cmd":"stop"}', 0, ""),
        ("", 1, "not a request"),
    ],
)
def test_it_refuses_what_is_no_request(line: str, code: int, says: str, build: Build) -> None:
    done = subprocess.run([build()], input=line + "\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"id": "x", "manager": "other", "parameters": {"cache_size": 1, "requests": []}},
        {"id": "x", "manager": "encoder_cache", "parameters": {"cache_size": "1"}, "calls": []},
        {
            "id": "x",
            "manager": "encoder_cache",
            "parameters": {"cache_size": 1, "requests": []},
            "calls": [{"op": "free", "request": "r"}],
        },
    ],
)
def test_a_case_that_makes_no_sense_is_no_answer(case: object, build: Build) -> None:
    request = json.dumps({"cmd": "run", "seq": 7, "case": case}) + "\n"
    done = subprocess.run([build()], input=request, capture_output=True, text=True, check=True)
    reply = json.loads(done.stdout)
    assert set(reply) == {"seq", "errored"}
    assert reply["seq"] == 7


JSON = [
    "0", "-0", "1", "-1", "12345678901", "9223372036854775807", "-9223372036854775808",
    '"a"', '""', r'"\u0041\u00e9\u20ac\ud83d\ude00"', r'"\"\\\/\b\f\n\r\t"', '"é€😀"',
    "true", "false", "null", "[]", "{}", "[1,[2,{}]]", ' { "a" : [ 1 , null ] } ', "1.5", "1e3",
    "-1.25E-2",
]  # fmt: skip
NOT_JSON = [
    " ", "01", "-01", "+1", "-", "1.", ".5", "1e", "1e+", "0x1", "NaN", "Infinity", "'a'", '"a',
    r'"\x"', r'"\u12"', r'"\u12g4"', r'"\ud83d"', r'"\ud83dx"', r'"\ud83d\u0041"', r'"\ude00"',
    '"\t"', "tru", "nul", "[", "[1", "[1,]", "[,1]", "[1 2]", "{", '{"a"}', '{"a":}', '{"a":1,}',
    "{a:1}", "{1:1}", '{"a":1 "b":2}', '{"a":1,"a":2}', "1 2", "[]]", "{}x", "[" * 100 + "]" * 100,
    "9223372036854775808", "-9223372036854775809", "99999999999999999999",
]  # fmt: skip


def test_its_json_is_strict(build: Build) -> None:
    program = build(PROGRAMS / "json_check.cpp")
    text = "".join(line + "\n" for line in (*JSON, *NOT_JSON))
    done = subprocess.run([program], input=text.encode(), capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    for source, answer in zip(JSON, lines[: len(JSON)], strict=True):
        word, _, said = answer.partition(" ")
        assert word == "ok", source
        if said:
            assert json.loads(said) == json.loads(source)
    assert dict(zip(NOT_JSON, lines[len(JSON) :], strict=True)) == dict.fromkeys(NOT_JSON, "error")
