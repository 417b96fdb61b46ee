"""Serve an engine of this kit over the adapter protocol, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import msgspec

from mmcache_vectors.engine import Abort, Event, ResetBothSides, WorkloadRequest

from ..engines.protocol import EngineCase, EngineTarget, PassRecord
from ..errors import describe_exception
from ..targets.wire import (
    DROPS_LAST,
    ENGINE_CAPABILITIES,
    AbortRequest,
    About,
    EnginePass,
    Errored,
    Message,
    Passed,
    ResetCaches,
    Start,
    Started,
    StepEngine,
    Stop,
    Submit,
    Workload,
    WorkloadCase,
)

__all__ = ["serve_engine"]


def serve_engine(target: EngineTarget, requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until `stop` or the end of the input. Raises `TargetError`."""
    decode = msgspec.json.Decoder(Message, strict=True).decode
    encode = msgspec.json.Encoder().encode
    for line in requests:
        request = decode(line)
        if isinstance(request, Stop):
            return
        if isinstance(request, Start):
            found = target.start()
            about = About(found.name, found.language, found.version, found.source)
            last = (DROPS_LAST,) if getattr(target, "drops_last", False) else ()
            reply = encode(Started(1, about, {"engine": (*ENGINE_CAPABILITIES, *last)}))
        elif isinstance(request, Workload):
            try:
                records = list(islice(target.passes(_case(request.case)), _passes(request.case)))
                reply = encode(Passed(request.seq, tuple(map(_shown, records))))
            except Exception as error:
                reply = encode(Errored(request.seq, describe_exception(error)))
        else:
            reply = encode(Errored(request.seq, "it serves no manager"))
        replies.write(reply + b"\n")
        replies.flush()


def _passes(case: WorkloadCase) -> int:
    return sum(
        c.times for c in case.calls if not isinstance(c, Submit | AbortRequest | ResetCaches)
    )


def _case(case: WorkloadCase) -> EngineCase:
    """The calls as the workload that they make."""
    requests: list[WorkloadRequest] = []
    events: list[Event] = []
    for number, call in _numbered(case):
        if isinstance(call, Submit):
            text = call.num_prompt_tokens - sum(item.num_embeds for item in call.items)
            requests.append(
                WorkloadRequest(
                    call.request_id,
                    number,
                    call.priority,
                    call.items,
                    text,
                    call.max_tokens,
                    call.text,
                )
            )
        elif isinstance(call, AbortRequest):
            events.append(Abort(number, call.request))
        else:
            events.append(ResetBothSides(number))
    return EngineCase(case.id, case.engine, tuple(requests), tuple(events), _passes(case))


def _numbered(case: WorkloadCase) -> Iterator[tuple[int, Submit | AbortRequest | ResetCaches]]:
    """What happens, each before the pass of this number."""
    number = 0
    for call in case.calls:
        if isinstance(call, Submit | AbortRequest | ResetCaches):
            yield number, call
        elif isinstance(call, StepEngine):
            number += call.times


def _shown(record: PassRecord) -> EnginePass:
    shared = {name: getattr(record, name) for name in EnginePass.__struct_fields__}
    return EnginePass(**shared)
