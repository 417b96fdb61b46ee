"""Listen at the ledger and at the preemptions of a vLLM scheduler; change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..protocol import Place

__all__ = ["Heard", "watch_ledger", "watch_preemptions"]


@dataclass
class Heard:
    """What a pass lets be heard while it is made."""

    allocated: set[Place] = field(default_factory=set)
    hits: set[Place] = field(default_factory=set)
    preempted: list[str] = field(default_factory=list)
    cached: tuple[str, ...] = ()
    """The hashes that are cached when the report is made."""


def watch_ledger(
    manager: Any, heard: Callable[[], Heard], name: Callable[[str], str] = str
) -> None:
    """Note what the ledger is asked. `heard` is that of the pass, `name` our name of a request."""
    allocate, look_up = manager.allocate, manager.check_and_update_cache
    report = manager.get_freed_mm_hashes

    def allocating(request: Any, input_id: int) -> None:
        allocate(request, input_id)
        heard().allocated.add((name(request.request_id), input_id))

    def looking_up(request: Any, input_id: int) -> bool:
        hit = bool(look_up(request, input_id))
        if hit:
            heard().hits.add((name(request.request_id), input_id))
        return hit

    def reporting() -> Any:
        heard().cached = tuple(sorted(manager.cached))
        return report()

    manager.allocate = allocating
    manager.check_and_update_cache = looking_up
    manager.get_freed_mm_hashes = reporting


def watch_preemptions(
    scheduler: Any, heard: Callable[[], Heard], name: Callable[[str], str] = str
) -> None:
    """Note who is preempted."""
    preempt = scheduler._preempt_request

    def preempting(request: Any, *more: Any, **named: Any) -> Any:
        heard().preempted.append(name(request.request_id))
        return preempt(request, *more, **named)

    scheduler._preempt_request = preempting
