"""Trace validation: what is right is allowed, what is wrong is found where it happens."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner, Result

from mmcache_conformance.cli import cli
from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.format import (
    Allocated,
    Asked,
    Created,
    Ended,
    Freed,
    FreedInput,
    LogError,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
    log_schema,
)
from mmcache_conformance.logs.verdict import Checked, check_schema
from mmcache_vectors.manager import Manager
from tests.support.logs import HEADER, lines_of, recorded

A, B = ("r", 0, "A", 4), ("r", 1, "B", 4)


def numbered(
    *events: Any,
    manager: str = "m",
    cache_size: int = 8,
    kind: Manager = "encoder_cache",
    worker: Any = False,
) -> list[LogEvent]:
    """`(class, arguments...)` of one manager, with the numbers that a recorder gives."""
    made: list[LogEvent] = [Created(manager, 0, kind, cache_size, worker)]
    made += [cls(manager, k, *given) for k, (cls, *given) in enumerate(events, start=1)]
    return made


def check(events: Any, **options: Any) -> Checked:
    lines = events if isinstance(events[0], bytes) else lines_of(events)
    return check_log(lambda: lines, "a.jsonl", **options)


def error_of(lines: list[bytes]) -> str:
    with pytest.raises(LogError) as caught:
        check(lines)
    return str(caught.value)


# --- right logs --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_what_the_reference_does_is_allowed_event_by_event(tmp_path: Path, seed: int) -> None:
    lines = recorded(tmp_path, passes=60, seed=seed)
    found = check(lines, audit_every=1)
    assert found.illegal is None
    assert found.managers == 3
    assert found.unfinished == ()
    assert found.events == len(lines) - 1
    assert found.audited == found.calls > 0.9 * found.events


def test_every_line_satisfies_the_schema(tmp_path: Path) -> None:
    schema = jsonschema.Draft202012Validator(log_schema())
    for line in recorded(tmp_path, passes=40):
        schema.validate(json.loads(line))


def test_a_log_may_break_off_between_two_lines(tmp_path: Path) -> None:
    lines = recorded(tmp_path)[:100]
    found = check(lines)
    assert found.illegal is None
    assert len(found.unfinished) == found.managers


def test_pass_boundaries_and_worker_steps() -> None:
    events = numbered(
        (LookedUp, *A, False),
        (Asked, *A, 8, 0, True),
        (Allocated, *A),
        (Reported, ()),
        (PassEnded,),
        (WorkerStepped, (), ("A",), ("A",)),
        (Freed, "r"),
        (Asked, "r", 0, "C", 8, 8, 0, True),
        (Reported, ("A",)),
        (WorkerStepped, ("A",), (), ()),
        (WasReset,),
        (Ended,),
        worker=True,
    )
    assert check(events).illegal is None


# --- wrong logs --------------------------------------------------------------------------------


def evicted_and_back(report: Any) -> list[LogEvent]:
    return numbered(
        (Allocated, *A),
        (Allocated, *B),
        (Freed, "r"),
        (Asked, "q", 0, "C", 4, 8, 0, True),
        (Asked, "q", 1, "A", 4, 8, 4, True),
        (Allocated, "q", 0, "C", 4),
        (Allocated, "q", 1, "A", 4),
        (Reported, report),
    )


def test_the_unfiltered_report_is_illegal_and_explained() -> None:
    found = check(evicted_and_back(("A", "B")))
    wrong = found.illegal
    assert wrong is not None
    assert wrong.line == 10
    assert wrong.clauses == ("L1",)
    assert wrong.reason == "the report wrongly names A"
    assert (wrong.expected, wrong.got) == ("B", "A, B")
    assert list(wrong.history) == ["A"]
    ops = [line.split(": ")[1].split("(")[0] for line in wrong.history["A"]]
    assert ops == ["allocate", "free", "can_allocate", "can_allocate", "allocate"]
    assert "8 embeddings, 0 free" in wrong.ledger[0]
    assert check(evicted_and_back(("B",))).illegal is None


def test_a_report_that_leaves_something_out() -> None:
    wrong = check(evicted_and_back(())).illegal
    assert wrong is not None
    assert wrong.clauses == ("L2",)
    assert wrong.reason == "the report wrongly leaves out B"


@pytest.mark.parametrize(
    ("events", "clauses", "reason"),
    [
        ([(LookedUp, *A, True)], ("L11",), "not the specified one"),
        ([(Allocated, *A), (LookedUp, "q", 0, "A", 4, False)], ("L11",), "not the specified"),
        ([(Asked, *A, 8, 0, False)], ("L7",), "not the specified one"),
        ([(Asked, *A, 3, 0, True)], ("L7",), "not the specified one"),
        ([(Asked, *A, 8, 5, True)], ("L7", ), "not the specified one"),
        ([(Allocated, "r", 0, "A", 9)], (), "only for what fits"),
        ([(Allocated, *A), (Asked, *A, 8, 0, True)], (), "after check_and_update_cache"),
        ([(Asked, *A, -1, 0, False)], (), "encoder_compute_budget is not negative"),
        ([(Asked, *A, 8, -1, True)], (), "num_embeds_to_schedule is not negative"),
        ([(Allocated, *A), (LookedUp, "q", 0, "A", 5, True)], (), "one hash stands for one"),
        ([(Allocated, *A), (Allocated, *B), (LookedUp, "r", 0, "B", 4, True)], (), "until it is"),
        ([(WorkerStepped, (), (), ())], (), "did not say"),
        ([(Created, "encoder_cache", 8)], (), "began before"),
    ],
)  # fmt: skip
def test_what_is_not_allowed(events: Any, clauses: Any, reason: Any) -> None:
    wrong = check(numbered(*events)).illegal
    assert wrong is not None
    assert wrong.line == len(events) + 2
    assert set(clauses) <= set(wrong.clauses)
    assert bool(clauses) == bool(wrong.clauses)
    assert reason in wrong.reason


@pytest.mark.parametrize(
    ("events", "clauses"),
    [
        ([(LookedUp, *A, True)], ("L11",)),
        ([(Asked, *A, 8, 5, True)], ("L7",)),
        ([(Allocated, *A), (Reported, ("A",))], ("E2",)),
        ([(Allocated, *A), (Reported, ()), (Reported, ())], ("E2",)),
        ([(Allocated, *A), (Allocated, *A)], ()),
        ([(Allocated, *A), (Allocated, "r", 1, "B", 5)], ()),
    ],
)
def test_what_is_not_allowed_of_encoder_decoder_models(events: Any, clauses: Any) -> None:
    wrong = check(numbered(*events, kind="encoder_decoder")).illegal
    assert wrong is not None
    assert wrong.line == len(events) + 2
    assert wrong.clauses == clauses


@pytest.mark.parametrize(
    ("step", "clauses", "hashes"),
    [
        (("worker_step", (), (), ("A",)), ("S1",), ["A"]),
        (("worker_step", ("A",), (), ()), (), ["A"]),
    ],
)
def test_a_worker_that_does_otherwise(step: Any, clauses: Any, hashes: Any) -> None:
    events = numbered((Allocated, *A), (Reported, ()), (WorkerStepped, *step[1:]), worker=True)
    wrong = check(events).illegal
    assert wrong is not None
    assert wrong.clauses == clauses
    assert list(wrong.history) == hashes


def test_a_changed_answer_anywhere_is_found_there(tmp_path: Path) -> None:
    """Flip one answer, or change one report: illegal, and on that very line."""
    lines = recorded(tmp_path)
    chance = random.Random(3)
    changeable = [n for n, line in enumerate(lines) if b'"returns":' in line]
    for n in chance.sample(changeable, 10):
        event = json.loads(lines[n])
        kept = event["returns"]
        event["returns"] = (kept[1:] or ["h0", "nowhere"]) if isinstance(kept, list) else not kept
        changed = [*lines[:n], msgspec.json.encode(event) + b"\n", *lines[n + 1 :]]
        wrong = check(changed, can_reread=False).illegal
        assert wrong is not None
        assert wrong.line == n + 1
        assert wrong.clauses


# --- logs that are none ------------------------------------------------------------------------


def test_malformed_logs_are_told_by_line(tmp_path: Path) -> None:
    lines = recorded(tmp_path)
    assert "line 1: no header" in error_of(lines[1:])
    assert "line 50: an empty line" in error_of([*lines[:49], b"\n", *lines[49:]])
    assert "line 50: JSON is malformed" in error_of([*lines[:49], b"{nonsense}\n", *lines[50:]])
    assert "line 50: Object contains unknown field" in error_of(
        [*lines[:49], lines[49].replace(b'"seq"', b'"mood":1,"seq"'), *lines[50:]]
    )
    assert "line 2" in error_of([lines[0], b"[" * 100_000 + b"\n"])
    assert "line 2" in error_of([lines[0], b"\xff\xfe\n"])
    newer = HEADER.replace(b'"format_version":1', b'"format_version":2')
    assert "line 1: version 2" in error_of([newer + b"\n"])
    with pytest.raises(LogError, match="empty; a log begins with its header"):
        check_log(list, "a.jsonl")


def test_how_many_events_are_missing_is_told() -> None:
    """Far from the beginning, too; and what comes twice is not missing."""
    lines = lines_of(numbered(*[(Reported, ()) for _ in range(9)]))
    assert "seq 6 where 3 comes next; 3 events are missing before it" in error_of(
        [*lines[:4], *lines[7:]]
    )
    assert "seq 4 where 3 comes next; 1 event is missing before it" in error_of(
        [*lines[:4], *lines[5:]]
    )
    again = error_of([*lines[:5], *lines[4:]])
    assert "seq 3 where 4 comes next; it comes twice" in again
    assert "missing" not in again


@pytest.mark.parametrize("first", [Created("m", 1, "encoder_cache", 8), Reported("m", 0, ())])
def test_a_log_begins_with_a_manager_that_is_new(first: LogEvent) -> None:
    assert "manager 'm' is not known; its first event is" in error_of(lines_of([first]))


@pytest.mark.parametrize("other", ["a", "z"])
def test_of_two_managers_the_one_that_is_wrong_is_looked_at_again(other: str) -> None:
    """Whichever comes first in the alphabet."""
    mine = evicted_and_back(("A", "B"))
    beside = numbered((Allocated, *A), (Reported, ()), manager=other)
    found = check([*beside, *mine]).illegal
    assert found is not None
    assert (found.line, found.clauses) == (len(beside) + len(mine) + 1, ("L1",))


def without_records(*events: LogEvent) -> str | None:
    """What is in doubt about a log that does not say what it records, and has nothing wrong."""
    found = check([*events])
    assert found.illegal is None
    return found.doubt


def test_what_a_log_may_have_left_out_is_in_doubt() -> None:
    full = [(LookedUp, *A, False), (Asked, *A, 8, 0, True), (Allocated, *A), (Reported, ())]
    assert without_records(*numbered(*full)) is None
    assert without_records(*numbered(*full[1:])) is None, "who does not look up may ask"
    assert without_records(*numbered(full[0], *full[2:])) is None, "who does not ask may look up"
    assert "no `can_allocate` in it" in str(without_records(*numbered(*full[2:])))
    assert "no `get_freed_mm_hashes` in it" in str(without_records(*numbered(*full[:3])))
    assert "no `allocate` and `get_freed_mm_hashes`" in str(without_records(*numbered(*full[:2])))
    assert "none of its calls has an answer" in str(without_records(*numbered((Freed, "r"))))
    assert "no call is in it" in str(without_records(*numbered((Ended,))))


def test_a_missing_event_is_told() -> None:
    lines = lines_of(numbered((Allocated, *A), (FreedInput, "r", 0), (Freed, "r")))
    assert "line 3: manager 'm': seq 2 where 1 comes next; 1 event is missing" in error_of(
        [*lines[:2], *lines[3:]]
    )
    assert "is not known" in error_of([lines[0], *lines[2:]])


def test_reordered_and_repeated_events_are_told() -> None:
    lines = lines_of(numbered((Allocated, *A), (FreedInput, "r", 0), (Freed, "r")))
    swapped = [*lines[:2], lines[3], lines[2], *lines[4:]]
    assert "line 3: " in error_of(swapped)
    assert "line 4: manager 'm': seq 1 where 2 comes next; it comes twice" in error_of(
        [*lines[:3], lines[2], *lines[3:]]
    )


def test_two_logs_in_one_file_are_told() -> None:
    lines = lines_of(numbered((Allocated, *A), (Freed, "r")))
    assert "line 5: a second header; two logs are in it" in error_of([*lines, *lines])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda whole: b"\xef\xbb\xbf" + whole, "begins with a byte order mark"),
        (gzip.compress, "is compressed (gzip); unpack it first"),
        (lambda whole: whole.decode().encode("utf-16"), "is not UTF-8"),
        (lambda whole: whole.decode().encode("utf-16-be"), "is not UTF-8"),
        (lambda whole: whole.replace(b"\n", b" ") + b"\n", "more than the header is on it"),
        (lambda whole: b"[]\n" + whole, "no header; it should say"),
    ],
)
def test_what_the_first_line_is_instead_of_a_header_is_told(
    change: Callable[[bytes], bytes], says: str
) -> None:
    whole = change(b"".join(lines_of(numbered((Allocated, *A), (Freed, "r")))))
    assert says in error_of(whole.splitlines(keepends=True))


@pytest.mark.parametrize(
    "more", [b',"num_embeds":5', b', "num_embeds" : 5', b',"num_\\u0065mbeds":5']
)
def test_a_name_that_an_object_has_twice_is_told(more: bytes) -> None:
    """Of the two values a reader takes one: whoever was accused of it would be innocent."""
    lines = lines_of(numbered((Allocated, *A), (Freed, "r")))
    assert b'"num_embeds":4' in lines[2]
    lines[2] = lines[2].rstrip(b"}\n") + more + b"}\n"
    assert "line 3: 'num_embeds' is there twice in one object" in error_of(lines)


def test_texts_that_are_alike_are_no_name_twice() -> None:
    assert check(numbered((Allocated, "op", 0, "op", 4), (Freed, "op"))).illegal is None


def test_two_writers_of_one_name_are_told() -> None:
    one = numbered((Allocated, *A), (Reported, ()))
    other = numbered((Freed, "x"), (Reported, ()))
    message = error_of(lines_of([one[0], one[1], other[1], one[2], other[2]]))
    assert "line 4" in message
    assert "two writers share the name" in message


def test_several_managers_in_one_file_are_told_apart() -> None:
    one = numbered((Allocated, *A), (Reported, ()), manager="one")
    two = numbered((LookedUp, *A, False), (Reported, ()), manager="two")
    found = check([e for pair in zip(one, two, strict=True) for e in pair])
    assert found.illegal is None
    assert found.managers == 2


def test_an_input_that_changes_its_hash_is_out_of_the_world() -> None:
    """Also where the new hash is not cached, which no answer shows."""
    for event in ((LookedUp, "r", 0, "B", 4, False), (Allocated, "r", 0, "B", 4)):
        wrong = check(numbered((Allocated, *A), event)).illegal
        assert wrong is not None
        assert "an input has one hash until it is released" in wrong.reason


def test_nothing_follows_an_end() -> None:
    assert "ended before" in error_of(lines_of(numbered((Ended,), (Freed, "r"))))


# --- the command -------------------------------------------------------------------------------


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["check", *map(str, arguments)], input=stdin)


def test_verdicts_and_exit_codes(tmp_path: Path) -> None:
    right, wrong, broken = (tmp_path / f"{n}.jsonl" for n in ("right", "wrong", "broken"))
    right.write_bytes(b"".join(lines_of(evicted_and_back(("B",)))))
    wrong.write_bytes(b"".join(lines_of(evicted_and_back(("A", "B")))))
    broken.write_bytes(right.read_bytes()[:-5])
    done = run(right)
    assert (done.exit_code, "allowed; 9 events of 1 manager" in done.output) == (0, True)
    done = run(wrong)
    assert done.exit_code == 1
    assert "ILLEGAL at line 10" in done.output
    assert "L1 report_disjoint_from_cached" in done.output
    assert "what concerned A until then:" in done.output
    done = run(broken)
    assert (done.exit_code, "cut off at line 10; nothing is illegal" in done.output) == (3, True)
    broken.write_bytes(wrong.read_bytes() + b'{"op":')
    assert run(broken).exit_code == 1
    broken.write_bytes(right.read_bytes()[:20])
    assert run(broken).exit_code == 2
    assert run(tmp_path / "absent.jsonl").exit_code == 2
    assert run(tmp_path).exit_code == 2
    assert run("-", stdin=wrong.read_bytes()).exit_code == 1
    assert json.loads(run(wrong, "--json").output)["logs"][0]["illegal"]["line"] == 10


def test_many_logs_at_once(tmp_path: Path) -> None:
    """Each has its verdict, also after one that cannot be read; the worst one counts."""
    made = {
        "right": lines_of(evicted_and_back(("B",))),
        "wrong": lines_of(evicted_and_back(("A", "B"))),
        "empty": lines_of([]),
        "broken": lines_of(evicted_and_back(("B",)))[1:],
    }
    for name, lines in made.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(lines))
    for chosen, code in (
        ("right right", 0),
        ("right empty", 3),
        ("empty wrong right", 1),
        ("broken wrong empty right", 2),
    ):
        paths = [tmp_path / f"{name}.jsonl" for name in chosen.split()]
        done = run(*paths)
        assert done.exit_code == code
        verdicts = {
            "right": "right.jsonl: allowed",
            "wrong": "wrong.jsonl: illegal",
            "empty": "empty.jsonl: nothing checked",
            "broken": "broken.jsonl: line 1: no header",
        }
        for name, verdict in verdicts.items():
            assert done.output.count(verdict) == chosen.split().count(name)
        told = json.loads(run(*paths, "--json").output)
        jsonschema.Draft202012Validator(check_schema()).validate(told)
        assert told["exit_code"] == code
        assert [log["source"] for log in told["logs"]] == list(map(str, paths))


@pytest.mark.parametrize("events", [[], numbered(), numbered((PassEnded,), (Ended,))])
def test_a_log_without_a_call_is_not_allowed_but_unchecked(tmp_path: Path, events: Any) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines_of(events)))
    done = run(path)
    assert (done.exit_code, "nothing checked" in done.output) == (3, True)
    assert "allowed" not in done.output


def test_no_log_at_all_is_a_usage_error() -> None:
    done = run()
    assert (done.exit_code, "Missing argument" in done.output) == (2, True)
