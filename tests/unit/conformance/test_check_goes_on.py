"""What `check` judges behind a hole or an illegal event, and that it says what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mmcache_conformance.cli import cli
from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.format import (
    Allocated,
    Ended,
    Freed,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
)
from mmcache_conformance.logs.verdict import Checked
from tests.support.logs import BOTH, REPLACED, A, B, events_of, lines_of

WRONG_HIT = (LookedUp, "x", 0, "X", 1, True)


def check(events: list[LogEvent], **options: Any) -> Checked:
    lines = lines_of(events)
    return check_log(lambda: lines, "a.jsonl", **options)


def order(drop: str | None = "", encode: str | None = "", payload: bool = True) -> Any:
    made = None if encode is None else tuple(encode)
    dropped = None if drop is None else tuple(drop)
    return (PassEnded, dropped, made, (), () if payload else None)


def verdict(events: list[LogEvent], tmp_path: Path) -> tuple[int, list[str]]:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines_of(events)))
    done = CliRunner().invoke(cli, ["check", str(path)])
    return done.exit_code, done.output.splitlines()


# --- passes that do not say it -----------------------------------------------------------------


def test_a_pass_that_does_not_say_what_it_encodes_is_a_hole_and_is_told(tmp_path: Path) -> None:
    events = events_of(*BOTH, order("", "AB"), *REPLACED, order("AB", None), (Ended,))
    found = check(events)
    assert found.illegal is None
    assert len(found.holes) == 1
    assert "what it encodes (at line 11)" in found.holes[0]
    code, lines = verdict(events, tmp_path)
    assert code == 3
    assert len(lines) == 1
    assert "allowed" not in lines[0]
    assert "could not judge S2, S3, S4, S10, S11 of a pass" in lines[0]


def test_behind_it_the_orders_are_judged_again() -> None:
    """The ledger counts on C, which the last pass allocates, and orders nobody to make."""
    found = check(events_of(*BOTH, (PassEnded,), *REPLACED, order("AB", "")))
    assert found.illegal is not None
    assert found.illegal.clauses == ("S2", "S3")
    assert found.illegal.line == 11
    assert check(events_of(*BOTH, (PassEnded,), *REPLACED, order("AB", "C"))).illegal is None


def test_several_holes_are_counted_and_the_first_is_located() -> None:
    quiet = [(Reported, ()), order("", None)]
    found = check(events_of(*BOTH, order("", "AB"), *quiet, *quiet, *quiet))
    assert "(3 times, first at line 8)" in found.holes[0]


@pytest.mark.parametrize(
    ("hole", "clause"),
    [
        (order(None, "C"), "S3, in part, of a pass that does not say what it drops"),
        (order("AB", "C", payload=False), "S8 of a pass"),
    ],
)
def test_each_thing_that_a_pass_may_leave_out(hole: Any, clause: str) -> None:
    found = check(events_of(*BOTH, order("", "AB"), *REPLACED, hole))
    assert found.illegal is None
    assert [clause in told for told in found.holes] == [True]
    assert found.exit_code == 3


def test_a_payload_that_was_never_sent_is_seen_where_the_encoding_is_not_told() -> None:
    found = check(events_of(*BOTH, (PassEnded, None, None, None, ("A",))))
    assert found.illegal is not None
    assert found.illegal.clauses == ("S8",)


def test_what_no_pass_says_is_no_hole_but_in_the_line_of_the_verdict(tmp_path: Path) -> None:
    code, lines = verdict(events_of((LookedUp, *A, False), *BOTH, (PassEnded,), (Ended,)), tmp_path)
    assert code == 0
    assert len(lines) == 1
    assert "allowed" in lines[0]
    assert "not judged: S2, S3, S4, S10, S11: no pass says" in lines[0]


def test_passes_that_stop_are_told() -> None:
    """So many reports without a pass: where passes end, nobody says any more."""
    found = check(events_of(*BOTH, order("", "AB"), *[(Reported, ())] * 9))
    assert any("several reports (at line 15)" in told for told in found.holes)
    assert found.exit_code == 3


def test_several_reports_for_one_pass_accuse_nobody_where_a_pass_may_be_missing() -> None:
    """The output names the last report: either a pass is missing, or the first report was lost."""
    found = check(events_of(*BOTH, order("", "AB"), *REPLACED, (Reported, ()), order("", "")))
    assert found.illegal is None
    assert found.exit_code == 3
    assert "several reports" in found.holes[0]
    # Where it names both reports, it is one pass, and judged.
    found = check(events_of(*BOTH, order("", "AB"), *REPLACED, (Reported, ()), order("AB", "")))
    assert found.illegal is not None
    assert found.illegal.clauses == ("S2", "S3")


def test_a_pass_without_a_report_is_judged_by_what_it_allocated() -> None:
    events = [(Allocated, *A), order("", "A"), (Allocated, *B), (Reported, ()), order("", "B")]
    assert check(events_of(*events)).illegal is None
    found = check(events_of((Allocated, *A), order("", "AB")))
    assert found.illegal is not None
    assert found.illegal.clauses == ("S11",)


def test_a_pass_that_is_not_over_is_told() -> None:
    found = check(events_of(*BOTH, order("", "AB"), *REPLACED))
    assert any("its end is not in the log" in told for told in found.not_judged)


def test_reports_that_no_step_obeys_are_told() -> None:
    step = (WorkerStepped, (), ("A", "B"), ())
    asked = (LookedUp, *A, False)
    late = check(events_of(asked, *BOTH, step, *[(Reported, ())] * 2, worker=True))
    assert any("the last 2 reports" in told for told in late.not_judged)
    assert late.exit_code == 0
    never = check(events_of(*BOTH, step, *[(Reported, ())] * 9, worker=True))
    assert any("the last 9 reports" in told for told in never.holes)
    assert never.exit_code == 3


# --- behind what is illegal --------------------------------------------------------------------


def test_the_other_managers_of_the_file_are_judged_to_the_end(tmp_path: Path) -> None:
    wrong, other = (events_of(WRONG_HIT, (Reported, ()), name=n) for n in ("one", "two"))
    right = events_of(*BOTH, name="three")
    events = [*wrong[:2], *other, *right, *wrong[2:]]
    found = check(events)
    assert found.illegal is not None
    assert [found.illegal.line, *(i.line for i in found.also_illegal)] == [3, 5]
    assert "everything from line 3 on, after what is illegal (manager one)" in found.not_judged
    code, lines = verdict(events, tmp_path)
    assert code == 1
    assert "illegal 2 times" in lines[-1]
    assert "everything from line 5 on, after what is illegal (manager two)" in lines[-1]


def test_nothing_is_guessed_behind_it_and_after_a_reset_it_is_judged_again() -> None:
    between = [(Reported, ("A", "B")), (Freed, "nobody"), (LookedUp, "x", 1, "Y", 1, True)]
    found = check(events_of(WRONG_HIT, *between, (WasReset,), *BOTH, (LookedUp, *A, False)))
    assert found.illegal is not None
    assert [found.illegal.line, *(i.line for i in found.also_illegal)] == [3, 11]
    assert (
        "everything from line 3 to the reset at line 7, after what is illegal" in found.not_judged
    )
    (later,) = found.also_illegal
    assert later.history["A"][0].startswith("line 8: allocate")
    right = check(events_of(WRONG_HIT, *between, (WasReset,), *BOTH))
    assert right.also_illegal == ()


def test_the_ledger_is_judged_behind_a_wrong_order() -> None:
    """What a worker was told changes no answer of the ledger; the orders wait for a reset."""
    wrong = [*BOTH, order("", "A")]
    found = check(events_of(*wrong, (LookedUp, "q", 0, "A", 4, False)))
    assert found.illegal is not None
    assert [i.event["op"] for i in (found.illegal, *found.also_illegal)] == [
        "pass",
        "check_and_update_cache",
    ]
    found = check(events_of(*wrong, *REPLACED, order("AB", ""), (WasReset,), *BOTH, order("", "")))
    assert [i.line for i in found.also_illegal] == [16]


def test_a_step_that_is_wrong_ends_the_judging_of_steps_only() -> None:
    step = (WorkerStepped, (), ("A",), ())
    found = check(events_of(*BOTH, step, step, (LookedUp, "q", 0, "A", 4, False), worker=True))
    assert found.illegal is not None
    assert [found.illegal.line, *(i.line for i in found.also_illegal)] == [6, 8]


def test_what_cannot_be_read_behind_it_takes_nothing_back(tmp_path: Path) -> None:
    lines = [*lines_of(events_of(WRONG_HIT)), b"{nonsense}\n"]
    found = check_log(lambda: lines, "a.jsonl")
    assert found.illegal is not None
    assert found.unread is not None
    assert "line 4" in found.unread
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines))
    done = CliRunner().invoke(cli, ["check", str(path)])
    assert done.exit_code == 1
    assert "nothing is judged from there on" in done.output


def test_of_many_illegal_events_the_first_are_explained_and_all_counted() -> None:
    events: list[Any] = [WRONG_HIT, (WasReset,)] * 13
    found = check(events_of(*events))
    assert len(found.also_illegal) == 9
    assert found.unexplained == 3


# --- several managers --------------------------------------------------------------------------


def test_one_complete_manager_makes_no_log_of_another_complete(tmp_path: Path) -> None:
    """Nothing of the second has an answer, and nobody says that all its calls are recorded."""
    good = events_of(*BOTH, (LookedUp, *A, True), (Ended,), name="one")
    code, lines = verdict([*good, *events_of((Allocated, *A), (Ended,), name="two")], tmp_path)
    assert code == 3
    assert "of manager two: none of its calls has an answer" in lines[-1]
    assert "allowed" not in lines[-1]
    code, lines = verdict([*good, *events_of((Ended,), name="two")], tmp_path)
    assert code == 3
    assert "of manager two: no call is in it" in lines[-1]
