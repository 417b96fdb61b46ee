"""`check` judges S1 to S4 and the orders, at each step and as of the report that the step obeys."""

from __future__ import annotations

from typing import Any

import pytest

from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.explain import Illegal
from mmcache_conformance.logs.format import (
    Allocated,
    Asked,
    Created,
    Freed,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
)
from tests.support.logs import BOTH, REPLACED, A, C, events_of, lines_of

BACK = [
    (Freed, "r"),
    (Asked, "q", 0, "D", 4, 8, 0, True),
    (Allocated, "q", 0, "D", 4),
    (Freed, "q"),
    (Asked, "q", 1, "A", 4, 8, 0, True),
    (Allocated, "q", 1, "A", 4),
]
"""A is evicted for D, and allocated again for B's room: the report leaves A out."""


def illegal(*events: Any, worker: bool = True) -> Illegal | None:
    lines = lines_of(events_of(*events, worker=worker))
    return check_log(lambda: lines, "a.jsonl").illegal


def step(drop: str = "", encode: str = "", gather: str = "") -> Any:
    return (WorkerStepped, tuple(drop), tuple(encode), tuple(gather))


def order(drop: str = "", encode: str = "", load: str | None = "") -> Any:
    return (PassEnded, tuple(drop), tuple(encode), None if load is None else tuple(load))


RIGHT: dict[str, list[Any]] = {
    "made, and replaced": [*BOTH, step("", "AB", "AB"), *REPLACED, step("AB", "C")],
    "a step late": [*BOTH, *REPLACED, step("", "AB"), step("AB", "C", "C")],
    "never": [*BOTH, *REPLACED],
    "evicted and back": [*BOTH, step("", "AB"), *BACK, (Reported, ("B",)), step("B", "DA")],
    "evicted and back, and not made again": [
        *BOTH, step("", "AB"), *BACK, (Reported, ("B",)), step("B", "D", "A")
    ],
    "after a reset": [*BOTH, (WasReset,), (Allocated, *C), (Reported, ()), step("", "C")],
    "ordered, and obeyed": [*BOTH, order("", "AB"), step("", "AB")],
    "a second order": [*BOTH, order("", "AB"), *REPLACED, order("AB", "C")],
    "loaded": [*BOTH, order("", "A", "B")],
    "loaded, perhaps": [*BOTH, order("", "A", None)],
    "an order nobody knows": [*BOTH, (PassEnded,), *REPLACED, order("AB", "C")],
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str) -> None:
    assert illegal(*RIGHT[name]) is None


WRONG: dict[str, tuple[list[Any], tuple[str, ...], str]] = {
    "nobody makes it": ([*BOTH, step("", "A")], ("S2", "S3"), "cached what no step has made: B"),
    "nobody makes anything": ([*BOTH, step()], ("S2", "S3"), "no step has made: A, B"),
    "made too late": (
        [*BOTH, step("", "A"), *REPLACED, step("AB", "C")], ("S2", "S3"), "no step has made: B"
    ),
    "what no pass has allocated": ([*BOTH, step("", "ABX")], ("S11",), "has not allocated"),
    "four against one": (
        [(Allocated, *A), (Reported, ()), step("", "AXYZ")], ("S11",), "has not allocated"
    ),
    "twice": ([*BOTH, step("", "ABA")], ("S10",), "twice in one pass"),
    "made again": (
        [*BOTH, step("", "AB"), (LookedUp, "q", 0, "A", 4, True), (Reported, ()), step("", "A")],
        ("S11",),
        "has not allocated",
    ),
    "a step without a report": ([*BOTH, step("", "AB"), step()], (), "that no report orders"),
    "other than ordered": (
        [*BOTH, order("", "AB"), step("", "A")], ("S2",), "did not encode what it was told to"
    ),
    "gathered and not held": ([*BOTH, step("", "A", "B")], ("S1",), "gathers what it does not"),
    "the phantom entry": ([*BOTH, order("", "A")], ("S2", "S3"), "orders nobody to make: B"),
    "the phantom entry, for ever": (
        [*BOTH, order("", "AB"), *REPLACED, order("AB", "")], ("S2", "S3"), "nobody to make: C"
    ),
    "an order for nothing": ([*BOTH, order("", "ABX")], ("S11",), "has not allocated"),
    "an order twice": ([*BOTH, order("", "ABB")], ("S10",), "twice"),
    "not what is reported": (
        [*BOTH, order("", "AB"), *REPLACED, order("A", "C")], ("S3",), "what the ledger has report"
    ),
    "loaded for nobody": ([*BOTH, order("", "AB", "X")], ("S3",), "has not cached: X"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    events, clauses, reason = WRONG[name]
    found = illegal(*events)
    assert found is not None
    assert found.clauses == clauses
    assert reason in found.reason


def test_the_order_shows_it_without_a_worker_too() -> None:
    found = illegal(*BOTH, order("", "A"), worker=False)
    assert found is not None
    assert (found.line, found.clauses) == (6, ("S2", "S3"))


def test_the_memory_of_the_worker() -> None:
    """What stays of it is too much, not only something else."""
    events = [(Allocated, *A), (Reported, ()), step("", "A"), (Freed, "r")]
    events += [(Asked, *C, 8, 0, True), (Allocated, *C), (Reported, ("A",))]
    assert illegal(*events, step("A", "C")) is None
    found = illegal(*BOTH, order("", "AB", "X"), worker=False)
    assert found is not None
    assert "S4" not in found.clauses  # nobody knows how large X is


def test_it_is_judged_as_of_the_report_that_it_obeys() -> None:
    """The ledger has gone on by the time of the step; that is no fault of the worker."""
    late = [*BOTH, *REPLACED]
    assert illegal(*late, step("", "AB")) is None
    found = illegal(*late, step("", "C"))
    assert found is not None


def test_what_is_not_judged_is_said() -> None:
    def said(*events: Any, kind: Any = "encoder_cache", worker: bool = False) -> str:
        made: list[LogEvent] = [Created("m", 0, kind, 8, worker)]
        made += [cls("m", k, *given) for k, (cls, *given) in enumerate(events, start=1)]
        lines = lines_of(made)
        return "; ".join(check_log(lambda: lines, "x").not_judged)

    assert said(*BOTH, step("", "AB"), worker=True) == ""
    assert "S1" in said(*BOTH)
    assert "S2, S3, S4" in said(*BOTH)
    assert "S2" not in said(*BOTH, order("", "AB"))
    assert "only the ledger" in said((Allocated, *A), (Reported, ()), kind="encoder_decoder")


def test_the_decision_is_named() -> None:
    """L1, and whose decision it was."""
    events = [*BOTH[:2], (Freed, "r"), (Asked, "q", 0, "C", 4, 8, 0, True),
              (Asked, "q", 1, "A", 4, 8, 4, True), (Allocated, "q", 0, "C", 4),
              (Allocated, "q", 1, "A", 4), (Reported, ("A", "B"))]  # fmt: skip
    found = illegal(*events, worker=False)
    assert found is not None
    (decision,) = found.decisions
    assert (decision.name, decision.reports) == ("unfiltered_report", ("vllm#52482",))


def test_the_symptom_is_laid_to_the_decision() -> None:
    """One hash at two positions; what breaks at last is an admission, much later."""
    two: list[Any] = [
        (Allocated, "r", 0, "A", 4),
        (LookedUp, "r", 1, "A", 4, True),
        (Allocated, "r", 2, "B", 4),
    ]
    events: list[Any] = [*two, (Asked, "q", 0, "C", 4, 8, 0, True)]
    found = illegal(*events, worker=False)
    assert found is not None  # nothing is freeable, by any account
    assert "first_occurrence_release" not in {d.name for d in found.decisions}
    from mmcache_conformance.logs.format import FreedInput

    events = [*two, (FreedInput, "r", 0), (Asked, "q", 0, "C", 4, 8, 0, True)]
    found = illegal(*events, worker=False)
    assert found is not None
    assert found.clauses != ("L8",)
    assert "first_occurrence_release" in {d.name for d in found.decisions}


PREEMPTED: dict[str, list[Any]] = {
    "and resumes later": [(Allocated, *A), (Freed, "r"), (Reported, ()), order()],
    "after another has hit it": [
        (Allocated, *A), (LookedUp, "q", 0, "A", 4, True), (Freed, "r"), (Reported, ()), order()
    ],
    "in a later pass": [
        *BOTH, order("", "AB"), *REPLACED[:-1], (Freed, "q"), (Reported, ("A", "B")), order("AB")
    ],
}  # fmt: skip
NOT_PREEMPTED: dict[str, list[Any]] = {
    "nobody was freed": [*BOTH, order("", "A")],
    "one of two was freed": [
        (Allocated, *A), (Freed, "r"), (Allocated, "q", 0, "B", 4), (Reported, ()), order()
    ],
    "freed before it allocated": [(Freed, "r"), (Allocated, *A), (Reported, ()), order()],
    "somebody else was freed": [(Allocated, *A), (Freed, "q"), (Reported, ()), order()],
    "freed in the pass after": [*BOTH, (PassEnded, (), ("A",), ()), (Freed, "r"), (Reported, ())],
}  # fmt: skip


@pytest.mark.parametrize("name", PREEMPTED)
def test_the_decision_of_the_engine_is_named(name: str) -> None:
    found = illegal(*PREEMPTED[name], worker=False)
    assert found is not None
    assert [d.name for d in found.decisions] == ["preemption_keeps_unencoded_entry"]
    assert "S2" in found.clauses


@pytest.mark.parametrize("name", NOT_PREEMPTED)
def test_no_decision_is_named_where_nobody_was_preempted(name: str) -> None:
    found = illegal(*NOT_PREEMPTED[name], worker=False)
    assert found is not None
    assert "S2" in found.clauses
    assert found.decisions == ()
