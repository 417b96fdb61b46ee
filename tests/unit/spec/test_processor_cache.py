"""The model of the processor cache does what the released classes did, decision by decision.

The orders of use are those that were seen when the two classes of vLLM 0.33.0, with P0's real
request procedure, were run: capacity 3 (or 2), items of one byte.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, State, World
from mmcache_spec.model.processor_cache import ProcessorCacheDesign, processor_cache

RELEASED = ProcessorCacheDesign(
    walk="by_modality",
    insertion="touches_first",
    gone="asserted",
    rejected="lost",
    clear="each_by_itself",
    miss="forgotten",
)
"""What 0.33.0 decides."""


class Pair:
    """Two caches and a channel, driven request by request."""

    def __init__(self, requests: Sequence[str], capacity: int, design: ProcessorCacheDesign):
        inputs = {f"r{n}/{p}": h for n, hs in enumerate(requests) for p, h in enumerate(hs)}
        hashes = sorted(set("".join(requests)))
        self.requests = {f"r{n}": len(hs) for n, hs in enumerate(requests)}
        world = World(
            {"Hash": tuple(hashes), "Request": tuple(self.requests), "Input": tuple(inputs)},
            {"capacity": capacity},
            {
                "size": dict.fromkeys(hashes, 1),
                "hash_of": inputs,
                "owner": {i: i.partition("/")[0] for i in inputs},
                "position": {i: int(i.partition("/")[2]) for i in inputs},
                "inputs_of": self.requests,
            },
        )
        self.interpreter = Interpreter(processor_cache(design), world)
        self.state: State = self.interpreter.initial()
        self.broken: list[str] = []

    def call(self, action: str, **arguments: str) -> object:
        (step,) = self.interpreter.run([ActionCall(action, arguments)], self.state)
        assert not step.refused_by, (action, arguments, step.refused_by)
        self.broken += [p.clause for p in self.interpreter.breaks(step) if p.clause]
        self.state = step.after
        return step.result

    def process(self, request: str, walk: Sequence[int] = ()) -> str:
        """P0's part: which items go bare."""
        self.call("begin", request=request)
        bare = ""
        for place in walk or range(self.requests[request]):
            if (f"{request}/{place}",) in self.state["waiting"]:
                bare += "-+"[bool(self.call("take", input=f"{request}/{place}"))]
        return bare

    def deliver(self, request: str) -> None:
        for place in range(self.requests[request]):
            self.call("deliver", input=f"{request}/{place}")

    @property
    def orders(self) -> tuple[str, str]:
        """What each side holds, the longest unused first."""
        sides = []
        for side in ("sender", "receiver"):
            used = self.state[f"{side}_used"]
            sides.append("".join(sorted((h for (h,) in self.state[side]), key=used.__getitem__)))
        return sides[0], sides[1]


def test_mixed_modalities_drift() -> None:
    """Image a, audio b, image c; P0 takes the images first."""
    pair = Pair(["abc", "d", "de", "b"], 3, RELEASED)
    assert pair.process("r0", [0, 2, 1]) == "---"
    pair.deliver("r0")
    assert pair.orders == ("acb", "abc")
    pair.process("r1")
    pair.deliver("r1")
    assert pair.orders == ("cbd", "bcd")
    pair.process("r2")
    pair.deliver("r2")
    assert pair.orders == ("bde", "cde")
    assert pair.process("r3") == "+"
    pair.deliver("r3")
    assert "P1" in pair.broken


def test_a_request_larger_than_the_cache_never_succeeds() -> None:
    pair = Pair(["a", "bcda"], 3, RELEASED)
    pair.process("r0")
    pair.deliver("r0")
    pair.broken.clear()
    for _ in range(2):
        assert pair.process("r1") == "----"
        assert pair.orders == ("bcd", "a")
        assert "P4" in pair.broken
        assert pair.state["in_flight"] == frozenset()
        assert pair.process("r1") == "+++-"
        pair.broken.clear()
        pair.deliver("r1")
        assert pair.broken.count("P1") == 3
        for missed in "bcd":
            pair.call("invalidate", hash=missed)
        assert pair.orders == ("a", "a")


def test_a_rejected_request_leaves_the_sender_ahead() -> None:
    pair = Pair(["a"], 3, RELEASED)
    pair.process("r0")
    pair.call("withdraw", request="r0")
    assert pair.orders == ("a", "")
    assert pair.process("r0") == "+"
    pair.deliver("r0")
    assert "P1" in pair.broken


def test_a_rejected_request_that_only_hits_changes_the_order() -> None:
    pair = Pair(["a", "b", "c"], 2, RELEASED)
    for request in ("r0", "r1"):
        pair.process(request)
        pair.deliver(request)
    assert pair.orders == ("ab", "ab")
    assert pair.process("r0") == "+"
    pair.call("withdraw", request="r0")
    assert pair.orders == ("ba", "ab")
    pair.process("r2")
    pair.deliver("r2")
    assert pair.orders == ("ac", "bc")


def test_a_message_between_the_two_parts_of_a_clear_is_lost_at_one_side() -> None:
    pair = Pair(["a"], 3, RELEASED)
    pair.process("r0")
    pair.deliver("r0")
    pair.call("clear_sender")
    assert pair.process("r0") == "-"
    pair.deliver("r0")
    pair.call("clear_receiver")
    assert pair.orders == ("a", "")
    assert "P2" in pair.broken


SPECIFIED = ProcessorCacheDesign()


@pytest.mark.parametrize("requests", [["abc", "d", "de", "b"], ["a", "bcda", "bcda", "a"]])
def test_the_specified_pair_does_not_part(requests: list[str]) -> None:
    """The same requests, the second of which is rejected, a clear, and everything in flight."""
    pair = Pair(requests, 3, SPECIFIED)
    for request in pair.requests:
        pair.process(request)
        if request == "r1":
            pair.call("withdraw", request=request)
    pair.call("clear_receiver")
    pair.call("clear_sender")
    for request in pair.requests:
        pair.deliver(request)
    for request in pair.requests:
        pair.process(request)
        pair.deliver(request)
    assert pair.broken == []
    assert pair.orders[0] == pair.orders[1] != ""
