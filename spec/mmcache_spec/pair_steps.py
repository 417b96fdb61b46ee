"""The steps of a pair vector: the calls of a script with what the specification answers."""

from __future__ import annotations

from collections.abc import Sequence

from mmcache_vectors.pair import (
    PairCall,
    PairExpect,
    PairParameters,
    PairStep,
    ProcessRequest,
    Withdraw,
)

from .pair import PairSystem

__all__ = ["specified_steps"]


def specified_steps(world: PairParameters, calls: Sequence[PairCall]) -> tuple[PairStep, ...]:
    """The calls with the specified answers; after a `withdraw`, those without the request, too.

    Raises:
        ValueError: A call cannot come where it stands, or there is more than one `withdraw`.
    """
    answers = PairSystem(world).answers(calls)
    if answers is None or len(answers) != len(calls):
        raise ValueError("a call cannot come where it stands")
    undone = _without_withdrawn(world, calls)
    return tuple(
        PairStep(call, answer.expect, other if other != answer.expect else None)
        for call, answer, other in zip(calls, answers, undone, strict=True)
    )


def _without_withdrawn(world: PairParameters, calls: Sequence[PairCall]) -> list[PairExpect | None]:
    """What is answered behind a `withdraw` where the request was never processed; else None."""
    places = [k for k, call in enumerate(calls) if isinstance(call, Withdraw)]
    if not places:
        return [None] * len(calls)
    if len(places) > 1:
        raise ValueError("more than one request is withdrawn")
    (at,) = places
    withdrawn = calls[at]
    assert isinstance(withdrawn, Withdraw)
    processed = max(k for k in range(at) if calls[k] == ProcessRequest(withdrawn.request))
    kept = [k for k in range(len(calls)) if k not in (processed, at)]
    answers = PairSystem(world).answers([calls[k] for k in kept])
    assert answers is not None
    told = dict(zip(kept, answers, strict=True))
    return [told[k].expect if k > at else None for k in range(len(calls))]
