"""A program as a whole engine: `cmd:COMMAND` whose adapter declares itself one.

A workload is one round trip: what arrives, is aborted or reset before which pass is known before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from mmcache_vectors.engine import Abort

from .engines.open import open_engine
from .engines.protocol import EngineCase, EngineTarget, NotSupported, PassRecord
from .errors import AdapterError, TargetError
from .implementation import Implementation
from .targets.command import CommandTarget
from .targets.open import open_manager
from .targets.reply import reply_to
from .targets.wire import (
    DROPS_LAST,
    ENGINE_CAPABILITIES,
    AbortRequest,
    EngineCall,
    EnginePass,
    Finish,
    Passed,
    ResetCaches,
    StepEngine,
    Submit,
    Workload,
    WorkloadCase,
)

__all__ = ["CommandEngine", "calls_of", "open_any_engine"]


def open_any_engine(name: str) -> EngineTarget:
    """The engine of this name, not yet started; a `cmd:` is taken to be one.

    Raises:
        TargetNameError: The text names no engine.
    """
    if not name.startswith("cmd:"):
        return open_engine(name)
    target = open_manager(name)
    assert isinstance(target, CommandTarget)
    return CommandEngine(target)


class CommandEngine:
    """The engine behind a `CommandTarget`, which speaks for it."""

    def __init__(self, command: CommandTarget) -> None:
        self.command = command
        self._offered: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def log(self) -> str:
        """The end of what the program wrote to standard error during the last workload."""
        return self.command.log

    def start(self) -> Implementation:
        """Raises `TargetError`, also where it does not declare itself an engine."""
        found = self.command.start()
        if "engine" not in found.capabilities:
            raise TargetError(
                f"{found.name} says that it is no engine: it has no `engine` among its capabilities"
            )
        self._offered = found.capabilities["engine"]
        for name in self._offered:
            if not name.startswith("x-") and name not in (*ENGINE_CAPABILITIES, DROPS_LAST):
                known = ", ".join((*ENGINE_CAPABILITIES, DROPS_LAST))
                raise TargetError(f"its engine names the capability {name!r}; there are {known}")
        return found

    def passes(self, case: EngineCase) -> Iterator[PassRecord]:
        """Raises `NotSupported`, and `AdapterError` for whatever is no reply."""
        for need in _needs(case):
            if need not in self._offered:
                raise NotSupported(f"needs {need}, which {self.name} does not have")
        asked = WorkloadCase(case.id, case.engine, tuple(calls_of(case)))
        passes = self.command.ask(lambda seq: Workload(seq, asked), _passes)
        if len(passes) > case.max_passes:
            raise AdapterError(f"{len(passes)} passes, where {case.max_passes} were asked for")
        for number, one in enumerate(passes):
            record = _record(number, one, case, drops_first=DROPS_LAST not in self._offered)
            yield record
            if record.missed or record.error is not None:
                return
        _all_served(case, passes)

    def stop(self) -> None:
        """Raises `AdapterError` if the program had said more than it was asked."""
        self.command.stop()


def calls_of(case: EngineCase) -> Iterator[EngineCall]:
    """The workload as the calls that make it, in order."""
    later = {e.before_pass for e in case.events} | {r.arrival for r in case.requests}
    later = {number for number in later if number < case.max_passes}
    number = 0
    for at in sorted(later):
        if at > number:
            yield StepEngine(at - number)
            number = at
        for event in case.events:
            if event.before_pass == at:
                yield AbortRequest(event.request) if isinstance(event, Abort) else ResetCaches()
        for r in case.requests:
            if r.arrival == at:
                yield Submit(
                    r.request_id, r.priority, r.items, r.num_prompt_tokens, r.max_tokens, r.text
                )
    yield Finish(case.max_passes - number)


def _needs(case: EngineCase) -> Iterator[str]:
    """The capabilities without which the workload means something else."""
    engine = case.engine
    if engine.policy == "priority":
        yield "priority"
    if engine.prefix_caching:
        yield "prefix_caching"
    if engine.lookahead:
        yield "lookahead"
    if not engine.chunked_items:
        yield "whole_items"
    for event in case.events:
        yield "abort" if isinstance(event, Abort) else "reset"


def _passes(line: bytes, asked: int) -> tuple[EnginePass, ...]:
    return reply_to(asked, line, _REPLY).passes


_REPLY = msgspec.json.Decoder(Passed, strict=True)


def _record(
    number: int, one: EnginePass, case: EngineCase, *, drops_first: bool = True
) -> PassRecord:
    """The pass as it is judged.

    What is gathered follows from the tokens, and what neither was held nor is encoded is missed,
    whatever the program says; so is what was held and is dropped before the worker gathers. Raises
    `AdapterError`.
    """
    requests = {r.request_id: r for r in case.requests}
    sizes = {i.identifier: i.num_embeds for r in case.requests for i in r.items}
    _check(one, requests.keys(), sizes.keys())
    gathered, encoded = set(), set()
    for request_id, ids in one.scheduled_encoder_inputs.items():
        items = requests[request_id].items
        if any(not 0 <= k < len(items) for k in ids):
            raise AdapterError(f"pass {number}: {request_id} has no input {max(ids)}")
        encoded |= {items[k].identifier for k in ids}
    for request_id, count in one.num_scheduled_tokens.items():
        start = one.starts.get(request_id)
        if start is None:
            raise AdapterError(f"pass {number}: {request_id} is scheduled and has no start")
        end = start + count + case.engine.lookahead
        gathered |= {
            i.identifier
            for i in requests[request_id].items
            if count and i.position < end and start < i.position + i.num_embeds
        }
    payload = encoded - set(one.without_payload)
    there = set(one.held_before) - set(one.report if drops_first else ())
    missed = set(one.missed) | gathered - there - payload
    held = one.peak
    return PassRecord(
        number=number,
        num_scheduled_tokens=one.num_scheduled_tokens,
        starts=one.starts,
        scheduled_encoder_inputs=one.scheduled_encoder_inputs,
        allocated=tuple(sorted(one.allocated)),
        hits=tuple(sorted(one.hits)),
        report=tuple(sorted(one.report)),
        cached=tuple(sorted(one.cached)),
        gathered=tuple(sorted(gathered)),
        missed=tuple(sorted(missed)),
        without_payload=tuple(sorted(one.without_payload)),
        held_before=tuple(sorted(one.held_before)),
        worker=tuple(sorted(one.worker)),
        peak=sum(sizes[h] for h in one.worker) if held is None else held,
        preempted=one.preempted,
        running=one.running,
        waiting=one.waiting,
        references={h: tuple(sorted(r)) for h, r in one.references.items()},
        error=one.error,
    )


def _all_served(case: EngineCase, passes: tuple[EnginePass, ...]) -> None:
    """Who is gone was computed to the end of the prompt, or aborted. Raises `AdapterError`."""
    left = {*passes[-1].running, *passes[-1].waiting} if passes else set()
    left |= {e.request for e in case.events if isinstance(e, Abort)}
    for r in case.requests:
        if r.request_id in left or r.arrival >= len(passes):
            continue
        ends = (
            p.starts.get(r.request_id, 0) + p.num_scheduled_tokens.get(r.request_id, 0)
            for p in passes
        )
        if max(ends, default=0) < r.num_prompt_tokens:
            raise AdapterError(f"{r.request_id} is gone, and its prompt was never computed")


def _check(one: EnginePass, requests: Collection[str], hashes: Collection[str]) -> None:
    """Every name is one of the workload. Raises `AdapterError`."""
    named = {*one.num_scheduled_tokens, *one.starts, *one.scheduled_encoder_inputs}
    named |= {*one.preempted, *one.running, *one.waiting}
    named |= {r for rs in one.references.values() for r in rs}
    named |= {r for r, _ in (*one.allocated, *one.hits)}
    seen = {*one.report, *one.cached, *one.held_before, *one.worker, *one.missed}
    seen |= {*one.without_payload, *one.references}
    for what, wrong in (("request", named - set(requests)), ("hash", seen - set(hashes))):
        if wrong:
            raise AdapterError(f"it names a {what} {min(wrong)!r}, which the workload has not")
