"""Vectors and failures as plain text, for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from mmcache_vectors.clauses import clause
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

from ..targets.protocol import call_name
from ..verdicts.model import Failure, Value

__all__ = [
    "call_text",
    "clause_lines",
    "difference_lines",
    "failure_story",
    "observed_text",
    "parameter_lines",
    "value_text",
    "vector_story",
]


def vector_story(vector: Vector) -> str:
    """Everything that the vector says, in reading order."""
    lines = [vector.id, *_indented(vector.description.splitlines()), ""]
    lines += clause_lines(vector)
    lines.append(f"manager {vector.manager}, variant {vector.variant}, goal {vector.goal}")
    if vector.kills:
        lines.append(f"kills {', '.join(vector.kills)}")
    if vector.requires:
        lines.append(f"needs {', '.join(vector.requires)}")
    lines += ["", *parameter_lines(vector.parameters), ""]
    for k, step in enumerate(vector.steps, start=1):
        lines.append(_step_line(k, step, vector.parameters))
        lines += _indented(observed_text(step.expect.observe), by=7)
    return "\n".join(lines) + "\n"


def failure_story(vector: Vector, failure: Failure) -> str:
    """What the vector is about, the calls that led to the failing step, and what differs there."""
    before = vector.steps[: failure.step]
    lines = [*vector.description.splitlines(), *clause_lines(vector)]
    lines += parameter_lines(vector.parameters, _requests_used(vector))
    for k, step in enumerate(before, start=1):
        lines.append(_step_line(k, step, vector.parameters))
    lines += [
        f"step {failure.step + 1} of {len(vector.steps)}: "
        + call_text(failure.call, vector.parameters),
        *_indented(difference_lines(failure), by=5),
        f"reproduce: {failure.reproduce}",
    ]
    return "\n".join(lines) + "\n"


def clause_lines(vector: Vector) -> list[str]:
    """The ids and names of the clauses, and the sentence if it is one."""
    known = [clause(id) for id in vector.clauses]
    names = ", ".join(f"{c.id} {c.name}" for c in known)
    return [f"{names}: {known[0].says}" if len(known) == 1 else names]


def difference_lines(failure: Failure) -> list[str]:
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
    for request in parameters.requests:
        if only is not None and request.request_id not in only:
            continue
        items = (
            f"[{k}] {item.identifier} ({item.num_embeds})" for k, item in enumerate(request.items)
        )
        lines.append(f"request {request.request_id}: {', '.join(items)}")
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
