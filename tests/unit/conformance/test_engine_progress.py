"""The kit's S7: the first pass without a token in which somebody was owed one."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from mmcache_conformance.engines.clauses import judge
from mmcache_conformance.engines.protocol import PassRecord
from mmcache_vectors.engine import EngineSettings, EngineVector, WorkloadItem, WorkloadRequest
from tests.support.engines import an_engine_vector

FIRST = WorkloadRequest("first", 0, 5, (WorkloadItem("A", 1, 2),), 6, 4, "a")
"""Twelve tokens with those that it generates, and so three blocks."""
SECOND = WorkloadRequest("second", 1, 0, (WorkloadItem("B", 0, 2),), 2, 4, "b")
"""Eight tokens: two blocks. It comes later and has the better priority."""


def vector(**settings: object) -> EngineVector:
    engine = EngineSettings(4, 4, 5, 4, 8, 8, "fcfs", False)
    engine = msgspec.structs.replace(engine, **settings)
    return an_engine_vector(engine, (FIRST, SECOND), stall_after=4)


@dataclass
class Run:
    """The passes of an engine that shows what it is told to show."""

    vector: EngineVector
    records: list[PassRecord]

    def then(
        self,
        running: str = "",
        waiting: str = "",
        needs: str = "",
        preempted: str = "",
        **tokens: tuple[int, int],
    ) -> Run:
        """One pass; `tokens` gives of each request its first token and how many."""
        held = ("A",) if needs else ()
        record = PassRecord(
            number=len(self.records),
            num_scheduled_tokens={r: n for r, (_, n) in tokens.items()},
            starts={r: start for r, (start, _) in tokens.items()},
            scheduled_encoder_inputs={},
            allocated=(),
            hits=(),
            report=(),
            cached=held,
            gathered=(),
            missed=(),
            without_payload=(),
            held_before=held,
            worker=held,
            peak=0,
            preempted=tuple(preempted.split()),
            running=tuple(running.split()),
            waiting=tuple(waiting.split()),
            references={"A": tuple(needs.split())} if needs else {},
        )
        return Run(self.vector, [*self.records, record])

    def stalls(self) -> tuple[int, str] | None:
        """The pass that breaks S7, and of whom it speaks first."""
        done = self.then()
        found = [b for b in judge(self.vector, done.records) if b.clause == "S7"]
        return (found[0].pass_number, found[0].says.split(",")[0]) if found else None


def run(**settings: object) -> Run:
    return Run(vector(**settings), [])


OWED = "no token of a whole budget for "


def test_the_head_of_the_queue_is_owed_a_token_at_once() -> None:
    assert run().then(waiting="first second").stalls() == (0, OWED + "first")


def test_the_head_is_the_first_that_came_or_has_the_better_priority() -> None:
    later = run().then(waiting="second first")
    assert later.stalls() == (0, OWED + "first")
    urgent = run(policy="priority").then(waiting="first second")
    assert urgent.stalls() == (0, OWED + "second")


def test_who_runs_and_needs_embeddings_is_owed_one_before_the_head() -> None:
    begun = run().then(running="second", waiting="first", needs="second", second=(0, 1))
    stalled = begun.then(running="second", waiting="first", needs="second")
    assert stalled.stalls() == (1, OWED + "second")


def test_nothing_is_owed_where_somebody_got_a_token() -> None:
    assert run().then(running="second", waiting="first", second=(0, 2)).stalls() is None


def test_nothing_is_owed_where_nobody_is_unfinished() -> None:
    assert run().then().then().stalls() is None


@pytest.mark.parametrize(("blocks", "pass_number"), [(4, 1), (3, 4)])
def test_blocks_must_certainly_be_there(blocks: int, pass_number: int) -> None:
    """The second holds one block of them; the first needs three. Without, passes are counted."""
    stalled = run(num_blocks=blocks).then(running="second", waiting="first", second=(0, 4))
    for _ in range(4):
        stalled = stalled.then(running="second", waiting="first")
    found = stalled.stalls()
    assert found is not None
    assert found[0] == pass_number


def test_tokens_are_counted_beyond_the_prompt() -> None:
    """After its prompt of four the second generates; its fifth token is in a second block."""
    begun = run(num_blocks=4).then(running="second", waiting="first", second=(0, 4))
    generating = begun.then(running="second", waiting="first", second=(4, 1))
    assert generating.then(running="second", waiting="first").stalls() is None
    assert generating.then(running="second").stalls() == (2, OWED + "second")


def test_a_lookahead_takes_blocks_too() -> None:
    begun = run(num_blocks=4, lookahead=1).then(running="second", waiting="first", second=(0, 3))
    assert begun.then(running="second", waiting="first").stalls() is None


def test_a_preemption_says_that_there_were_no_blocks_and_gives_them_back() -> None:
    begun = run().then(running="first", waiting="second", first=(0, 8))
    preempted = begun.then(waiting="first second", preempted="first")
    assert preempted.stalls() is None
    assert preempted.then(waiting="first second").stalls() == (2, OWED + "first")
