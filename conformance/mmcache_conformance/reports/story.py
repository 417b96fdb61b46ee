"""Vectors and failures as plain text, for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mmcache_vectors.clauses import clause
from mmcache_vectors.engine import EngineVector
from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    GetFreedMmHashes,
    Observed,
    Parameters,
    Reset,
    Step,
    Vector,
)
from mmcache_vectors.pair import PairVector

from ..suites.load import AnyVector, defended
from ..targets.protocol import call_name
from ..verdicts.model import CallFailure, Failure, PairFailure, PassFailure, Value, Verdict
from .pairs import pair_failure_lines, pair_vector_lines
from .passes import breach_lines, workload_lines

__all__ = [
    "broken_lines",
    "call_text",
    "clause_lines",
    "difference_lines",
    "failure_story",
    "observed_text",
    "parameter_lines",
    "value_text",
    "vector_story",
    "verdict_story",
]


def vector_story(vector: AnyVector) -> str:
    """Everything that the vector says, in reading order."""
    lines = [vector.id, *_indented(vector.description.splitlines()), ""]
    lines += clause_lines(vector)
    if vector.id in defended():
        lines.append(f"defends {', '.join(defended()[vector.id])}")
    if isinstance(vector, EngineVector):
        lines += _about(vector, f"engine, variant {vector.variant}", ())
        lines += ["", *workload_lines(vector), "", *_expectations(vector)]
    elif isinstance(vector, PairVector):
        lines += _about(vector, f"processor_cache, variant {vector.variant}", ())
        lines += ["", *pair_vector_lines(vector)]
    else:
        what = f"manager {vector.manager}, variant {vector.variant}, goal {vector.goal}"
        lines += [*_about(vector, what, vector.requires), ""]
        lines += [*parameter_lines(vector.parameters), ""]
        for k, step in enumerate(vector.steps, start=1):
            lines.append(_step_line(k, step, vector.parameters))
            lines += _indented(observed_text(step.expect.observe), by=7)
    return "\n".join(lines) + "\n"


def _about(vector: AnyVector, what: str, needs: Collection[str]) -> list[str]:
    lines = [what]
    if vector.kills:
        lines.append(f"kills {', '.join(vector.kills)}")
    if needs:
        lines.append(f"needs {', '.join(needs)}")
    return lines


def _expectations(vector: EngineVector) -> list[str]:
    expect = vector.expect
    lines = [f"after every pass: {', '.join(expect.every_pass)}"]
    lines.append(f"everything is finished within {expect.max_passes} passes")
    lines.append(f"no {expect.stall_after} passes in a row without a token")
    if vector.situation is not None:
        lines.append(f"it is about this situation: {vector.situation}")
    return lines


def verdict_story(vector: AnyVector, verdict: Verdict) -> str:
    """Why the verdict is what it is: the failure, or the reason."""
    if verdict.failure is not None:
        return failure_story(vector, verdict.failure, verdict)
    return f"{verdict.reason}\n"


def failure_story(vector: AnyVector, failure: Failure, verdict: Verdict | None = None) -> str:
    """What the vector is about, what led to the failing step or pass, and what is wrong there."""
    lines = [*vector.description.splitlines(), *broken_lines(vector, verdict)]
    if isinstance(failure, PassFailure):
        assert isinstance(vector, EngineVector)
        lines += [*workload_lines(vector), *breach_lines(failure)]
    elif isinstance(failure, PairFailure):
        assert isinstance(vector, PairVector)
        lines += pair_failure_lines(vector, failure)
    else:
        assert isinstance(vector, Vector)
        lines += _calls_to_failure(vector, failure)
    return "\n".join([*lines, f"reproduce: {failure.reproduce}"]) + "\n"


_CALLS_SHOWN = 40
_ITEMS_SHOWN = 20
_REQUESTS_SHOWN = 20
"""Of long vectors, no more than that is printed."""


def _calls_to_failure(vector: Vector, failure: CallFailure) -> list[str]:
    """The calls that led to the failing step, and what differs there."""
    lines = parameter_lines(vector.parameters, _requests_used(vector))
    first = max(0, failure.step - _CALLS_SHOWN)
    if first:
        lines.append(
            f"(after {first} calls that are left out here; the file of the vector has them)"
        )
    for k, step in enumerate(vector.steps[first : failure.step], start=first + 1):
        lines.append(_step_line(k, step, vector.parameters))
    call = call_text(failure.call, vector.parameters)
    lines.append(f"step {failure.step + 1} of {len(vector.steps)}: {call}")
    if failure.stretched is not None:
        lines.append(f"only when it is stretched: {failure.stretched}")
    return [*lines, *_indented(difference_lines(failure), by=5)]


def broken_lines(vector: AnyVector, verdict: Verdict | None) -> list[str]:
    """The clauses that the failure broke, and the decision; unasked, those of the vector."""
    if verdict is None or verdict.broke is None:
        return clause_lines(vector)
    verb = "is seen at" if verdict.seen_late else "breaks"
    lines = [f"{verb} {c.id} {c.name}: {c.says}" for c in map(clause, verdict.broke)]
    if lines and verdict.seen_late:
        lines.append("an earlier call may be what is wrong: not every state is compared here")
    if not verdict.broke:
        lines = ["breaks no clause by itself: it only differs from the specified answer"]
    if verdict.decision is not None:
        lines.append(f"as {verdict.decision} does")
    return lines


def clause_lines(vector: AnyVector) -> list[str]:
    """The ids and names of the clauses, and the sentence if it is one."""
    if not vector.clauses:
        return []
    known = [clause(id) for id in vector.clauses]
    names = ", ".join(f"{c.id} {c.name}" for c in known)
    return [f"{names}: {known[0].says}" if len(known) == 1 else names]


def difference_lines(failure: CallFailure) -> list[str]:
    """A small table: what, expected, got."""
    rows = [("", "expected", "got")]
    for d in failure.differences:
        if d.what == "error":
            return [f"the call failed: {d.got}"]
        rows.append((d.what, value_text(d.expected), value_text(d.got)))
    first, second = (max(len(row[i]) for row in rows) for i in (0, 1))
    return [f"{a:{first}}  {b:{second}} | {c}" for a, b, c in rows]


def parameter_lines(parameters: Parameters, only: Collection[str] | None = None) -> list[str]:
    """The capacity, and one line a request with its items and their sizes in embeddings."""
    lines = [f"capacity {parameters.cache_size} embeddings"]
    chosen = [r for r in parameters.requests if only is None or r.request_id in only]
    for request in chosen[:_REQUESTS_SHOWN]:
        items = [
            f"[{k}] {item.identifier} ({item.num_embeds})"
            for k, item in enumerate(request.items[:_ITEMS_SHOWN])
        ]
        if (more := len(request.items) - _ITEMS_SHOWN) > 0:
            items.append(f"and {more} more")
        lines.append(f"request {request.request_id}: {', '.join(items)}")
    if (more := len(chosen) - _REQUESTS_SHOWN) > 0:
        lines.append(f"and {more} more requests")
    return lines


def call_text(call: Call, parameters: Parameters) -> str:
    """The call, and the hash and size of the item that it is about."""
    fields = {name: getattr(call, name) for name in call.__struct_fields__}
    words = [str(fields[name]) for name in ("request", "input_id") if name in fields]
    if isinstance(call, CanAllocate):
        words += [f"{name}={fields[name]}" for name in call.__struct_fields__[2:]]
    text = f"{call_name(call)}({', '.join(words)})"
    if "input_id" in fields:
        request = next(r for r in parameters.requests if r.request_id == fields["request"])
        item = request.items[fields["input_id"]]
        text += f"  # {item.identifier}, {item.num_embeds}"
    return text


def observed_text(observed: Observed) -> Iterator[str]:
    """One line an observable that the vector looks at."""
    for name in observed.__struct_fields__:
        value = getattr(observed, name)
        if value is not None:
            yield f"{name} {value_text(value)}"


def value_text(value: Value) -> str:
    """A value as people write it, on one line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {_joined(v)}" for k, v in value.items()) or "(empty)"
    return _joined(value) if isinstance(value, tuple) else str(value)


def _joined(values: tuple[int | str, ...] | tuple[str, ...]) -> str:
    return ", ".join(map(str, values)) or "(empty)"


def _requests_used(vector: Vector) -> set[str]:
    calls = (step.call for step in vector.steps)
    return {call.request for call in calls if not isinstance(call, GetFreedMmHashes | Reset)}


def _step_line(number: int, step: Step, parameters: Parameters) -> str:
    returns = step.expect.returns
    arrow = "" if returns is None else f"  ->  {value_text(returns)}"
    return f"{number:3}  {call_text(step.call, parameters)}{arrow}"


def _indented(lines: Iterator[str] | list[str], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]
