"""What is wrong with a log, by the specification's interpreter and nothing of the log checker.

It is slow and simple: the whole log of a manager is one world; of the orders and the steps of a
worker it keeps what an obedient worker would hold.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonschema

from mmcache_conformance.logs.format import log_schema
from mmcache_conformance.oracle.systems import specified
from mmcache_spec.oracle import Replay
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Parameters,
    Request,
    Reset,
)

__all__ = ["Judgement", "judge_log"]

_SCHEMA = jsonschema.Draft202012Validator(log_schema())
_UNUSED = Item("unused", 0)


@dataclass(frozen=True)
class Judgement:
    """The first line that cannot be read, and the first that is a breach, or None."""

    malformed: int | None
    breach: int | None
    about: str = ""


Event = dict[str, Any]
_Carried = tuple[int, str, int]
"""A position of a request with what it carries: input id, identifier, size."""


def judge_log(lines: Sequence[bytes]) -> Judgement:
    """Read the log of one manager, and play it."""
    events, malformed = _read(lines)
    if not events:
        return Judgement(malformed, None)
    manager = _Manager(events)
    for line, event in events[1:]:
        wrong = manager.take(event)
        if wrong:
            return Judgement(malformed, line, wrong)
    return Judgement(malformed, None)


def _read(lines: Sequence[bytes]) -> tuple[list[tuple[int, Event]], int | None]:
    """The events before the first line that is no event of the same manager, in its place."""
    events: list[tuple[int, Event]] = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            event = json.loads(line)
        except ValueError:
            return events, number
        if not isinstance(event, dict) or not _SCHEMA.is_valid(event) or "op" not in event:
            return events, number
        if any(isinstance(v, float) for v in event.values()):  # 1.0 is an integer to the schema
            return events, number
        first = events[0][1] if events else event
        ended = bool(events) and events[-1][1]["op"] == "end"
        if event["seq"] != len(events) or event["manager"] != first["manager"] or ended:
            return events, number
        if not events and event["op"] != "new":
            return events, number
        events.append((number, event))
    return events, None


@dataclass
class _Manager:
    events: list[tuple[int, Event]]
    carried: dict[tuple[str, int], _Carried] = field(default_factory=dict)
    holds: set[str] = field(default_factory=set)
    """What an obedient worker holds, by the orders."""
    worker: set[str] = field(default_factory=set)
    """What the worker holds, by its steps."""
    reports: list[tuple[set[str], set[str], set[str]]] = field(default_factory=list)
    """Reports that no step has obeyed, each with what was cached then, and what was new of it."""
    new: set[str] = field(default_factory=set)
    """What was allocated since the last report."""
    new_in_pass: set[str] = field(default_factory=set)
    """The same since the last pass."""
    ordered: list[set[str]] = field(default_factory=list)
    """The reports since the last pass."""

    def __post_init__(self) -> None:
        self.created = self.events[0][1]
        self.index = self._world()
        requests = []
        for name, places in self.index.items():
            items = [Item(identifier, size) for _, identifier, size in places]
            requests.append(Request(name, tuple(items) or (_UNUSED,)))
        parameters = Parameters(self.created["cache_size"], tuple(requests))
        self.replay = Replay(specified(self.created["kind"]), parameters)

    def _world(self) -> dict[str, list[_Carried]]:
        """Of each request, all that its positions ever carry, in order of positions."""
        found: dict[str, set[_Carried]] = {}
        for _, event in self.events:
            if "request" not in event:
                continue
            mine = found.setdefault(event["request"], set())
            if "identifier" in event:
                mine.add((event["input_id"], event["identifier"], event["num_embeds"]))
            elif "input_id" in event and not any(k == event["input_id"] for k, _, _ in mine):
                mine.add((event["input_id"], "unused", 0))
        return {name: sorted(places) for name, places in found.items()}

    def take(self, event: Event) -> str:
        """What is wrong with the event, if anything is."""
        match event["op"]:
            case "end":
                return ""
            case "new":
                return "it began before"
            case "pass":
                return self._pass(event)
            case "worker_step":
                return self._step(event)
        call = self._call(event)
        if isinstance(call, str):
            return call
        if event["op"] == "allocate" and event["identifier"] not in self.cached:
            self.new.add(event["identifier"])
            self.new_in_pass.add(event["identifier"])
        told = self.replay.answer(call)
        if told is None:
            return "a guard refuses it"
        returned = event.get("returns")
        got = tuple(sorted(set(returned))) if isinstance(returned, list) else returned
        if told.returns != got:
            return f"it returns {got}, and not {told.returns}"
        if event["op"] == "reset":
            self.holds, self.worker, self.reports, self.ordered = set(), set(), [], []
            self.new, self.new_in_pass = set(), set()
            self.carried.clear()
        if event["op"] == "get_freed_mm_hashes":
            self.reports.append((set(event["returns"]), self.cached, self.new))
            self.new = set()
            self.ordered.append(set(event["returns"]))
        return ""

    @property
    def cached(self) -> set[str]:
        state = self.replay.state
        return {h.split(" of ")[0] for (h,) in state.get("cached", ())}

    def _call(self, event: Event) -> Call | str:
        request = event.get("request", "")
        place = request, event.get("input_id", -1)
        if "identifier" in event:
            carries = event["input_id"], event["identifier"], event["num_embeds"]
            held = self.carried.get(place)
            if held is not None and held[1] != carries[1]:
                return "another hash than the input holds"
            k = self.index[request].index(carries)
        match event["op"]:
            case "check_and_update_cache":
                if event["returns"]:
                    self.carried[place] = carries
                return CheckAndUpdateCache(request, k)
            case "can_allocate":
                budget, pending = event["encoder_compute_budget"], event["num_embeds_to_schedule"]
                return CanAllocate(request, k, budget, pending)
            case "allocate":
                self.carried[place] = carries
                return Allocate(request, k)
            case "free_encoder_input":
                freed = self.carried.pop(place, None) or next(
                    c for c in self.index[request] if c[0] == event["input_id"]
                )
                return FreeEncoderInput(request, self.index[request].index(freed))
            case "free":
                for other in [p for p in self.carried if p[0] == request]:
                    del self.carried[other]
                return Free(request)
            case "get_freed_mm_hashes":
                return GetFreedMmHashes()
        return Reset()

    def _pass(self, event: Event) -> str:
        reports, self.ordered = self.ordered, []
        new, self.new_in_pass = self.new_in_pass, set()
        dropped, encode = event.get("drop"), event.get("encode")
        told = set[str]().union(*reports)
        if dropped is not None and set(dropped) != told:
            if len(reports) > 1 and set(dropped) == reports[-1]:
                self.holds = self.cached  # perhaps a pass is missing
                return ""
            return "the order drops something else than was reported"
        if event.get("without_payload"):
            return "an order without its payload"
        if encode is None:
            self.holds = self.cached
            return ""
        if len(reports) < 2 and not set(encode) <= new:
            return "the order encodes what is not new"
        self.holds = (self.holds - told) | set(encode) | set(event.get("load") or ())
        if len(reports) > 1:
            self.holds = self.cached
            return ""
        if event.get("load") is None:
            self.holds |= self.cached
        if self.holds != self.cached or len(encode) != len(set(encode)):
            return f"after the order {self.holds} is held, and {self.cached} cached"
        return ""

    def _step(self, event: Event) -> str:
        if not self.created.get("worker"):
            return "a step that was not announced"
        if not self.reports:
            return "a step without a report"
        told, cached, new = self.reports.pop(0)
        if set(event.get("drop", ())) != told:
            return "it drops something else"
        encode = event.get("encode", ())
        self.worker = (self.worker - told) | set(encode)
        if not set(event.get("gather", ())) <= self.worker:
            return "it gathers what it does not hold"
        if not set(encode) <= new:
            return "it encodes what is not new"
        if self.worker != cached or len(encode) != len(set(encode)):
            return f"the worker holds {self.worker}, and {cached} was cached"
        return ""
