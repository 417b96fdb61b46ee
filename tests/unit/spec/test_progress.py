"""S7: how many tokens a pass gives, where that is nothing for ever, and where it is not.

The tokens of each pass under "stand" are those that the scheduler of vLLM gave (0.32.0 and 0.33.0,
run on their own functions), not those that this model gives.
"""

from dataclasses import dataclass, field

import pytest

from mmcache_spec.checks import lasso
from mmcache_spec.checks.bounded import Disagreement
from mmcache_spec.checks.lasso import shortest_lasso
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, Step, World
from mmcache_spec.model.chunk import Caps
from mmcache_spec.model.progress import ProgressDesign, progress
from mmcache_spec.model.progress_clauses import WALK

CHUNKED = Caps(alignment="none", items="chunked", wishes="stand")
WHOLE = Caps(alignment="none", items="whole", wishes="stand")
ALIGNED = Caps(alignment="before_room", items="chunked", wishes="stand")
ALIGNED_LAST = Caps(alignment="after_room", items="chunked", wishes="stand")
BOTH = Caps(alignment="before_room", items="whole", wishes="stand")


@dataclass(frozen=True)
class Queue:
    """Requests and budgets, in tokens; every item has a hash of its own."""

    prompts: tuple[int, ...]
    items: tuple[tuple[int, int, int], ...] = ()
    """Of which request, its first token, its length; as many embeddings as tokens."""
    budget: int = 16
    lookahead: int = 0
    capacity: int = 64
    block: int = 1
    names: tuple[str, ...] = field(default=("A", "B", "C"))

    @property
    def world(self) -> World:
        requests = [f"r{k + 1}" for k in range(len(self.prompts))]
        inputs = {f"{requests[r]}/{o}": (r, o, n) for r, o, n in self.items}
        hashes = dict(zip(inputs, self.names, strict=False))
        lengths = {i: n for i, (_, _, n) in inputs.items()}
        return World(
            {"Hash": sorted(set(hashes.values())), "Request": requests, "Input": list(inputs)},
            {
                "capacity": self.capacity,
                "token_budget": self.budget,
                "encoder_budget": self.capacity,
                "lookahead": self.lookahead,
                "watched": len(requests),
            },
            {
                "size": {hashes[i]: n for i, n in lengths.items()},
                "hash_of": hashes,
                "owner": {i: requests[r] for i, (r, _, _) in inputs.items()},
                "offset": {i: o for i, (_, o, _) in inputs.items()},
                "length": lengths,
                "prompt": dict(zip(requests, self.prompts, strict=True)),
                "arrival": {r: k for k, r in enumerate(requests)},
            },
        )

    def boundary(self, start: int, prompt: int) -> int:
        """Where a scheduler that aligns ends a chunk: at a block, or at the last one, or before."""
        end, block = min(prompt, start + self.budget), self.block
        last = (prompt - 1) // block * block
        if start % block:
            return min(end, (start // block + 1) * block)
        if end < prompt:
            end = end // block * block
        return last if start < last < end else end


def ask(design: ProgressDesign, queue: Queue, request: str, start: int, hit: int = 0) -> ActionCall:
    """With the whole budget."""
    given = {"request": request, "hit": hit, "budget": queue.budget, "compute": queue.capacity}
    if design.caps.alignment != "none":
        given["stop"] = queue.boundary(start, queue.world.functions["prompt"][request])
    return ActionCall("schedule", given)


def tokens(caps: Caps, queue: Queue, hit: int = 0, passes: int = 4) -> list[int]:
    """What the first request is given in each pass, alone; the prefix cache has `hit` of it."""
    design = ProgressDesign(caps)
    interpreter = Interpreter(progress(design), queue.world)
    (step,) = interpreter.run([ActionCall("arrive", {"request": "r1"})])
    found = []
    for _ in range(passes):
        state = step.after
        if ("r1",) in state["finished"]:
            break
        start = state["computed"]["r1"] if ("r1",) in state["running"] else hit
        step = interpreter.call(state, ask(design, queue, "r1", start, hit))
        assert step.refused_by == ()
        found.append(step.result)
    return found


IMAGE_OF_16 = Queue((30,), ((0, 5, 16),), lookahead=1)
TEXT_OF_9 = Queue((9,), budget=8, lookahead=2, block=8)
PREFIX_ONE_SHORT = Queue((40,), ((0, 1, 8), (0, 9, 16)), lookahead=1)
TWO_IMAGES = Queue((16,), ((0, 0, 5), (0, 6, 5)), budget=8, capacity=6, block=8)


@pytest.mark.parametrize(
    ("caps", "queue", "hit", "expected"),
    [
        (WHOLE, IMAGE_OF_16, 0, [4, 0, 0, 0]),
        (WHOLE, Queue((30,), ((0, 5, 16),)), 0, [5, 16, 9]),
        (CHUNKED, IMAGE_OF_16, 0, [16, 14]),
        (WHOLE, Queue((30,), ((0, 5, 16),), budget=17, lookahead=1), 0, [4, 17, 9]),
        (ALIGNED, TEXT_OF_9, 0, [7, 0, 0, 0]),
        (ALIGNED, Queue((9,), budget=9, lookahead=2, block=8), 0, [7, 0, 0, 0]),
        (WHOLE, PREFIX_ONE_SHORT, 8, [0, 0, 0, 0]),
        (WHOLE, Queue((40,), ((0, 1, 8), (0, 9, 16))), 8, [1, 16, 15]),
        (ALIGNED_LAST, TWO_IMAGES, 0, [0, 0, 0, 0]),
        (ALIGNED, TWO_IMAGES, 0, [6, 2, 8]),
    ],
)
def test_a_pass_gives_the_tokens_that_a_real_scheduler_gives(
    caps: Caps, queue: Queue, hit: int, expected: list[int]
) -> None:
    assert tokens(caps, queue, hit) == expected


@pytest.mark.parametrize(
    ("caps", "queue", "hit", "expected"),
    [
        (Caps(alignment="none"), IMAGE_OF_16, 0, [4, 16, 10]),
        (Caps(alignment="none"), Queue((30,), ((0, 5, 16),)), 0, [5, 16, 9]),
        (Caps(items="chunked"), TEXT_OF_9, 0, [7, 2]),
        (Caps(alignment="none"), PREFIX_ONE_SHORT, 8, [16, 16]),
        (Caps(alignment="after_room", items="chunked"), TWO_IMAGES, 0, [6, 2, 8]),
        (Caps(), Queue((6,), ((0, 1, 4),), budget=5, block=4), 0, [1, 5]),
    ],
)
def test_wishes_that_give_way_leave_something(
    caps: Caps, queue: Queue, hit: int, expected: list[int]
) -> None:
    assert tokens(caps, queue, hit) == expected


def test_an_item_across_a_block_boundary_is_never_whole_and_aligned() -> None:
    """Found with this model: both wishes stand, and the item fits the budget."""
    queue = Queue((12,), ((0, 2, 4),), budget=5, block=4)
    assert tokens(BOTH, queue) == [2, 0, 0, 0]


def test_a_reserve_is_not_kept_where_the_room_ends() -> None:
    """Found with this model: two images at the end, and room for one at a time."""
    queue = Queue((8,), ((0, 4, 2), (0, 6, 2)), lookahead=3, capacity=2)
    assert tokens(CHUNKED, queue) == [5, 0, 0, 0]


# --- lassos ------------------------------------------------------------------------------------


def lasso_of(caps: Caps, queue: Queue, **switches: str) -> tuple[list[object], list[object]] | None:
    """The answers of the stem and of the loop, where blocks lie as the queue says."""
    design = ProgressDesign(caps, **switches)  # type: ignore[arg-type]
    boundaries = sorted({queue.boundary(s, p) for p in queue.prompts for s in range(p)})
    found = shortest_lasso(
        progress(design),
        WALK,
        queue.world,
        {"hit": [0], "stop": boundaries, "budget": [queue.budget], "compute": [queue.capacity]},
    )
    if found is None:
        return None
    return [s.result for s in found.stem], [s.result for s in found.loop]


def test_the_shortest_lasso_of_the_image_of_16() -> None:
    assert lasso_of(WHOLE, IMAGE_OF_16) == ([None, 4], [0])
    assert lasso_of(CHUNKED, IMAGE_OF_16) is None
    assert lasso_of(Caps(alignment="none"), IMAGE_OF_16) is None


def test_the_shortest_lasso_of_the_text_of_9() -> None:
    assert lasso_of(ALIGNED, TEXT_OF_9) == ([None, 7], [0])
    assert lasso_of(Caps(items="chunked"), TEXT_OF_9) is None


def test_a_waiting_request_that_keeps_its_hits_stalls_the_queue() -> None:
    queue = Queue((2, 1), ((0, 0, 1), (0, 1, 1), (1, 0, 1)), capacity=1, names=("A", "B", "A"))
    found = lasso_of(CHUNKED, queue, waiting="keeps_references")
    assert found is not None
    assert found[1] == [0]
    assert lasso_of(CHUNKED, queue) is None


def test_who_waits_for_another_that_can_go_on_is_in_no_livelock() -> None:
    """The head has no room while the other is within an image; asked, the other finishes it."""
    queue = Queue((1, 2), ((0, 0, 1), (1, 0, 2)), budget=1, capacity=2)
    design = ProgressDesign(CHUNKED)
    interpreter = Interpreter(progress(design), queue.world)
    calls = [ActionCall("arrive", {"request": r}) for r in ("r1", "r2")]
    calls += [ask(design, queue, "r2", 0), ask(design, queue, "r1", 0), ask(design, queue, "r2", 1)]
    calls += [ask(design, queue, "r1", 0)]
    steps = list(interpreter.run(calls))
    assert [s.result for s in steps] == [None, None, 1, 0, 1, 1]
    assert lasso_of(CHUNKED, queue) is None


def test_a_lasso_is_executed_again_with_the_record() -> None:
    found = shortest_lasso(
        progress(ProgressDesign(progress="forgotten")), WALK, Queue((2,), budget=1).world
    )
    assert found is not None
    (again,) = found.loop
    assert isinstance(again, Step)
    assert again.result == 1
    assert again.after["counted"]["r1"] > again.before["counted"]["r1"]
    assert again.after["computed"] == again.before["computed"]


def test_a_loop_that_does_not_come_back_is_no_lasso() -> None:
    design = ProgressDesign(CHUNKED)
    arrive = ActionCall("arrive", {"request": "r1"})
    chunk = ask(design, IMAGE_OF_16, "r1", 0)
    with pytest.raises(Disagreement, match="does not come back"):
        lasso._executed(progress(design), IMAGE_OF_16.world, [arrive], [chunk])
    with pytest.raises(Disagreement, match="refuses"):
        lasso._executed(progress(design), IMAGE_OF_16.world, [], [chunk])
