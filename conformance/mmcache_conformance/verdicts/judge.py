"""The comparison: what was expected, what came back, and in what they differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mmcache_vectors.manager import Expect, Observed, Step

from ..targets.protocol import OBSERVABLES, Answer
from .model import Difference, Value

__all__ = ["ProtocolError", "answer_differences", "first_difference", "observed_differences"]


class ProtocolError(Exception):
    """The answers do not fit the calls."""


def first_difference(
    steps: Sequence[Step], answers: Sequence[Answer]
) -> tuple[int, tuple[Difference, ...]] | None:
    """The first step that went wrong, counted from 0, and everything that differs there.

    Raises:
        ProtocolError: as many answers as calls are needed, and there are more or fewer.
    """
    for k, (step, answer) in enumerate(zip(steps, answers, strict=False)):
        expect = step.expect
        returned = answer.error is None and answer.returns == expect.returns
        if returned and answer.observed == expect.observe:
            continue  # nearly always: only what differs is looked at part by part
        differences = answer_differences(step.expect, answer)
        if differences:
            return k, differences
    if len(answers) != len(steps):
        raise ProtocolError(f"{len(answers)} answers to {len(steps)} calls")
    return None


def answer_differences(expect: Expect, answer: Answer) -> tuple[Difference, ...]:
    """What one answer has otherwise than expected; of a failed call, only that it failed."""
    if answer.error is not None:
        return (Difference("error", None, answer.error),)
    returned: tuple[Difference, ...] = ()
    if not _returns_as_expected(expect.returns, answer.returns):
        returned = (Difference("returns", expect.returns, answer.returns),)
    return returned + observed_differences(expect.observe, answer.observed)


def observed_differences(expected: Observed, shown: Observed) -> tuple[Difference, ...]:
    """What both show, and show differently."""
    pairs = ((name, getattr(expected, name), getattr(shown, name)) for name in OBSERVABLES)
    return tuple(
        Difference(name, wanted, got)
        for name, wanted, got in pairs
        if wanted is not None and got is not None and not _same(name, wanted, got)
    )


def _same(name: str, wanted: object, got: object) -> bool:
    """Whether two states are one: only `freeable` has an order.

    Who references a hash and what a request holds are sets, however they are listed; and a request
    that holds nothing may be listed or left out.
    """
    if wanted == got:
        return True
    if isinstance(wanted, dict) and isinstance(got, dict):
        return _sets(name, wanted) == _sets(name, got)
    return False


def _sets(
    name: str, listed: Mapping[str, Collection[int | str]]
) -> dict[str, frozenset[int | str]]:
    sets = {key: frozenset(values) for key, values in listed.items()}
    return {key: s for key, s in sets.items() if s} if name == "held" else sets


def _returns_as_expected(expected: bool | tuple[str, ...] | None, got: Value) -> bool:
    """A call without a result may return anything; the order of a report means nothing."""
    if expected is None:
        return True
    if isinstance(expected, bool):
        return got is expected
    return isinstance(got, tuple) and set(got) == set(expected)
