"""The reference engine by hand: small workloads whose passes can be read."""

from __future__ import annotations

from typing import Any

import pytest

from mmcache import EngineItem, EngineParameters, EngineRequest, SchedulingPass
from mmcache.engine.kv_blocks import KvBlocks


def engine(**changes: Any) -> SchedulingPass:
    plain = {
        "cache_size": 8,
        "encoder_budget": 64,
        "num_blocks": 8,
        "block_size": 4,
        "chunk_size": 64,
        "token_budget": 64,
    }
    return SchedulingPass(EngineParameters(**{**plain, **changes}))


def request(name: str, *items: tuple[str, int, int], text: int = 1, **more: Any) -> EngineRequest:
    placed = tuple(EngineItem(h, position, size) for h, position, size in items)
    tokens = text + sum(size for _, _, size in items)
    return EngineRequest(name, placed, tokens, **more)


def turn(scheduler: SchedulingPass) -> Any:
    output = scheduler.schedule()
    return output, scheduler.update(output)


def test_one_request_from_arrival_to_end() -> None:
    """S1, S3, S5."""
    scheduler = engine()
    scheduler.add(request("r", ("A", 0, 4), max_tokens=2))
    output, finished = turn(scheduler)
    assert output.num_scheduled_tokens == {"r": 5}
    assert output.scheduled_encoder_inputs == {"r": (0,)}
    assert output.gathered_inputs == {"r": (0,)}
    assert output.payloads == {("r", 0)}
    assert finished == ()
    output, finished = turn(scheduler)
    assert output.num_scheduled_tokens == {"r": 1}
    assert output.gathered_inputs == {"r": ()}
    assert finished == ("r",)
    assert scheduler.running == scheduler.waiting == ()


def test_a_prompt_stops_before_an_item_that_has_no_room() -> None:
    """S1."""
    scheduler = engine(cache_size=4)
    scheduler.add(request("r", ("A", 0, 4), ("B", 6, 4), text=3))
    assert turn(scheduler)[0].num_scheduled_tokens == {"r": 6}
    output, _ = turn(scheduler)
    assert output.num_scheduled_tokens == {"r": 5}
    assert output.free_encoder_mm_hashes == ("A",)


def test_a_repeated_item_is_encoded_once() -> None:
    """S2, L3."""
    scheduler = engine()
    scheduler.add(request("r", ("A", 0, 4), ("A", 4, 4)))
    output, _ = turn(scheduler)
    assert output.scheduled_encoder_inputs == {"r": (0,)}
    assert output.gathered_inputs == {"r": (0, 1)}


def test_the_encoder_budget_of_a_pass_is_shared() -> None:
    """L7: the budget is what earlier items of the pass have left."""
    scheduler = engine(encoder_budget=4)
    scheduler.add(request("r", ("A", 0, 4)))
    scheduler.add(request("s", ("B", 2, 4), text=3))
    assert turn(scheduler)[0].num_scheduled_tokens == {"r": 5, "s": 2}
    assert turn(scheduler)[0].scheduled_encoder_inputs == {"s": (0,)}


def test_fcfs_preempts_the_last_priority_the_least_urgent() -> None:
    for policy, victim in (("fcfs", "s"), ("priority", "r")):
        scheduler = engine(num_blocks=3, policy=policy)
        scheduler.add(request("r", text=4, max_tokens=9, priority=5))
        turn(scheduler)
        scheduler.add(request("s", text=4, max_tokens=9, priority=1))
        turn(scheduler)
        preempted = [turn(scheduler)[0].preempted for _ in range(4)]
        assert (victim,) in preempted
        assert victim in scheduler.waiting


def test_a_prefix_is_found_again_and_one_token_is_left_to_compute() -> None:
    scheduler = engine(prefix_caching=True)
    scheduler.add(request("r", ("A", 4, 4), text=4))
    turn(scheduler)
    scheduler.add(EngineRequest("s", (EngineItem("A", 4, 4),), 8, text="r"))
    output, _ = turn(scheduler)
    assert output.num_scheduled_tokens == {"s": 4}


def test_an_id_that_is_here_already() -> None:
    scheduler = engine()
    scheduler.add(request("r"))
    with pytest.raises(ValueError, match="is here already"):
        scheduler.add(request("r"))


def test_aborting_who_is_not_here_changes_nothing() -> None:
    engine().abort("nobody")


def test_an_aborted_request_leaves_no_reference() -> None:
    """S5."""
    scheduler = engine(chunk_size=2)
    scheduler.add(request("r", ("A", 0, 4)))
    turn(scheduler)
    assert scheduler.manager.cached == {"A": {"r"}}
    scheduler.abort("r")
    assert scheduler.manager.cached == {"A": set()}
    assert scheduler.schedule().finished == ("r",)


def test_blocks_of_a_cancelled_pass_are_never_found() -> None:
    blocks = KvBlocks(4, 4, prefix_caching=True)
    tokens = list(range(9))
    assert blocks.admit("r", tokens, 9, must_fit=9)
    blocks.free("r")
    assert blocks.prefix(tokens) == 0
    assert blocks.admit("r", tokens, 9, must_fit=9)
    blocks.computed("r", tokens, 9)
    blocks.free("r")
    assert blocks.prefix(tokens) == 8
    assert blocks.admit("s", [9] * 16, 16, must_fit=16)
    assert blocks.prefix(tokens) == 0


def test_blocks_are_given_whole_or_not_at_all() -> None:
    blocks = KvBlocks(3, 4, prefix_caching=False)
    assert blocks.admit("r", [0] * 8, 4, must_fit=8)
    assert not blocks.admit("s", [0] * 12, 4, must_fit=12)
    assert blocks.grow("r", 12)
    assert not blocks.grow("r", 13)
