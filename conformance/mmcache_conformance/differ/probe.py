"""One sequence on the target and on the specification: do they differ, and where?"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from mmcache_spec.oracle import Replay
from mmcache_vectors.manager import Call, Expect, Manager

from ..errors import AdapterError
from ..oracle.systems import specified
from ..targets.command import Posted
from ..targets.protocol import ALLOCATE_AGAIN, Answer, Case, call_name
from ..verdicts.judge import answer_differences
from ..verdicts.model import Difference
from .lanes import Lane
from .shrink import Candidate, Shrunk

__all__ = ["Differing", "Played", "play_through"]


@dataclass(frozen=True)
class Played:
    """A sequence of calls, ready to be sent."""

    case: Case

    @property
    def posted(self) -> Posted:
        return Posted(msgspec.json.encode(self.case), self.case.manager, len(self.case.calls))


@dataclass(frozen=True)
class Differing:
    """What came back up to the first answer that is not as specified, and what should have."""

    expected: tuple[Expect, ...]
    answers: tuple[Answer, ...]
    differences: tuple[Difference, ...]


def play_through(
    lane: Lane,
    manager: Manager,
    capabilities: frozenset[str],
    candidate: Candidate,
) -> Shrunk[Differing] | None:
    """Play a sequence by itself, without the calls that a caller must not make.

    What is expected is the interpreter's answer. Nothing where the target answers as specified; a
    target that breaks down has failed the call after the last that it answered.
    """
    replay = Replay(specified(manager), candidate.parameters)
    calls: list[Call] = []
    expected: list[Expect] = []
    for call in candidate.calls:
        used = len(replay.steps)
        if ALLOCATE_AGAIN not in capabilities and _is_again(replay, call):
            continue
        expect = replay.answer(call)
        if expect is not None and len(replay.steps) > used:
            calls.append(call)
            expected.append(expect)
    if not calls:
        return None
    case = Case("differ", manager, candidate.parameters, tuple(calls))
    lane.send([Played(case)])
    (answers,) = lane.receive()
    if isinstance(answers, AdapterError):
        if lane.gave_up:
            return None  # it was not played at all, and shows nothing
        answers = (Answer(error=f"the adapter broke down: {answers}"),)
        broken = Difference("error", None, answers[0].error)
        kept = Candidate(candidate.parameters, tuple(calls))
        return Shrunk(kept, Differing(tuple(expected), answers, (broken,)))
    for k, answer in enumerate(answers):
        differences = answer_differences(expected[k], answer)
        if differences:
            kept = Candidate(candidate.parameters, tuple(calls[: k + 1]))
            found = Differing(tuple(expected[: k + 1]), answers[: k + 1], differences)
            return Shrunk(kept, found)
    return None


def _is_again(replay: Replay, call: Call) -> bool:
    """Whether the call would be an `allocate` of a hash that is resident already."""
    if call_name(call) != "allocate":
        return False
    before = replay.state, len(replay.steps)
    replay.answer(call)
    again = len(replay.steps) > before[1] and replay.steps[-1].call.action == ALLOCATE_AGAIN
    if len(replay.steps) > before[1]:
        replay.steps.pop()
    replay.state = before[0]
    return again
