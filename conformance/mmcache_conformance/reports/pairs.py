"""Pair vectors, and what a pair of processor caches made of them, as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmcache_vectors.pair import PairCall, PairExpect, PairParameters, PairStep, PairVector

from ..pairs.protocol import PairAnswer, call_name
from ..verdicts.model import PairFailure

__all__ = ["pair_answer_lines", "pair_failure_lines", "pair_vector_lines", "pair_world_lines"]


def pair_world_lines(parameters: PairParameters) -> Iterator[str]:
    """The capacity of either side, and one line a request."""
    yield f"capacity {parameters.capacity} bytes on either side"
    for request in parameters.requests:
        items = (f"{i.identifier} ({i.modality}, {i.size})" for i in request.items)
        yield f"request {request.request_id}: {', '.join(items) or 'no items'}"


def pair_vector_lines(vector: PairVector) -> Iterator[str]:
    """The world, and each call with what is expected of it."""
    yield from pair_world_lines(vector.parameters)
    for k, step in enumerate(vector.steps, start=1):
        yield f"{k:3}  {_call(step.call)}{_expected(step.expect)}"
        if step.if_undone is not None:
            told = _expected(step.if_undone).strip()
            yield f"       where the withdrawn request does not travel: {told}"


def pair_failure_lines(vector: PairVector, failure: PairFailure) -> Iterator[str]:
    """The world, the calls up to the one that went wrong, and what is wrong there."""
    yield from pair_world_lines(vector.parameters)
    yield from pair_answer_lines(vector.steps, failure.answers)
    yield from (f"     ✗ {b.clause}: {b.says}" for b in failure.breaches)
    for d in failure.differences:
        if d.what == "error":
            yield f"     the call failed: {d.got}"
        elif d.what != "missed":
            yield f"     {d.what}: expected {_listed(d.expected)}, got {_listed(d.got)}"


def pair_answer_lines(steps: Sequence[PairStep], answers: Sequence[PairAnswer]) -> Iterator[str]:
    """Each call that was made, with what was answered, and what the sides held then."""
    for k, (step, answer) in enumerate(zip(steps, answers, strict=False), start=1):
        told = _expected(PairExpect(sent=answer.sent, data=answer.data))
        if answer.missed:
            told = f"  ->  missed {', '.join(answer.missed)}"
        elif answer.error is not None:
            told = "  ->  failed"
        elif answer.travels is not None:
            told = f"  ->  {'travels all the same' if answer.travels else 'is not sent'}"
        yield f"{k:3}  {_call(step.call)}{told}"
        if answer.sender is not None or answer.receiver is not None:
            yield f"       P0 {_keys(answer.sender)}   P1 {_keys(answer.receiver)}"


def _call(call: PairCall) -> str:
    words = [str(getattr(call, name)) for name in call.__struct_fields__]
    return f"{call_name(call)}({', '.join(words)})"


def _expected(expect: PairExpect) -> str:
    if expect.sent is not None:
        words = ("with data" if data else "bare" for data in expect.sent)
        return f"  ->  {', '.join(words) or 'nothing to send'}"
    if expect.data is not None:
        return f"  ->  data of {', '.join(expect.data) or 'nothing'}"
    return ""


def _keys(keys: tuple[str, ...] | None) -> str:
    return "?" if keys is None else " ".join(keys) or "-"


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) or "nothing" if isinstance(value, tuple) else str(value)
