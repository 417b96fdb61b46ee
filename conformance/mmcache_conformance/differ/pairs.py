"""Random sequences of calls on a pair of processor caches, beside the specification.

Each world is small: what keeps two mirrors together is the order of uses and the sum of sizes, and
both show with a handful of keys. What is found is made as short as it can be.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import msgspec

from mmcache_spec.kernel.digest import digest
from mmcache_spec.model.processor_cache import processor_cache
from mmcache_spec.model.processor_cache_variants import WRONG_PROCESSOR_CACHES
from mmcache_spec.pair_steps import specified_steps
from mmcache_vectors import pair
from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    PairItem,
    PairParameters,
    PairProvenance,
    PairRequest,
    PairVector,
    ProcessRequest,
    Withdraw,
)

from ..errors import AdapterError
from ..exits import ExitCode
from ..implementation import Implementation
from ..oracle.pair_decisions import PairDecisions, killed_by
from ..pairs.protocol import PairTarget
from ..verdicts.model import PairFailure, TargetReport, Verdict
from ..verdicts.run import run_vector

__all__ = ["PairDifferReport", "PairFinding", "run_pair_campaign"]

_IN_ONE_WORLD = 8
"""Sequences: to make the specification of a world takes as long as two of them."""

_KEYS = "ABCDE"


class PairFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One difference, by a sequence of calls as short as it could be made."""

    vector: PairVector
    """The sequence with what the specification answers; the last step differs."""
    failure: PairFailure
    clauses: tuple[str, ...]
    """What is seen broken; nothing where the answer only differs."""
    decisions: tuple[str, ...]
    """The wrong decisions of the specification's list that show the same."""
    sequence: int
    """Its number in the campaign, from 0: the first that differed in this way."""
    calls_at_first: int
    """How long it was when it was found."""


class PairDifferReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign on a pair found."""

    format: Literal["mmcache/differ-pair"] = "mmcache/differ-pair"
    format_version: Literal[1] = 1
    exit_code: ExitCode
    target: str
    implementation: Implementation
    seed: int
    sequences: int
    """Those that were played and compared."""
    calls: int
    worlds: int
    seconds: float
    left_out: tuple[str, ...]
    """Calls that the target lacks, and which were therefore not made."""
    findings: tuple[PairFinding, ...]


# --- what is played ----------------------------------------------------------------------------


def drawn_world(chance: random.Random) -> PairParameters:
    """Up to five keys, sizes from nothing to more than fits, up to five requests of four items."""
    capacity = chance.randrange(13)
    keys = _KEYS[: chance.randint(1, len(_KEYS))]
    items = [
        PairItem(key, chance.choice(("image", "audio")), chance.randrange(max(2, capacity)))
        for key in keys
    ]
    if chance.random() < 0.2:
        items[0] = msgspec.structs.replace(items[0], size=capacity + 1)
    requests = tuple(
        PairRequest(f"r{n}", tuple(chance.choices(items, k=chance.choice((0, 1, 1, 2, 2, 3, 4)))))
        for n in range(1, chance.randint(1, 5) + 1)
    )
    return PairParameters(capacity, requests)


@dataclass
class _Line:
    """What is on its way, in order, and who of it was withdrawn and may travel all the same."""

    on_its_way: list[str] = field(default_factory=list)
    withdrawn: set[str] = field(default_factory=set)

    @property
    def waiting(self) -> list[str]:
        """Those that are still to be delivered, or withdrawn."""
        return [name for name in self.on_its_way if name not in self.withdrawn]

    def takes(self, call: PairCall) -> bool:
        """Whether the call can come; then it is noted."""
        match call:
            case ProcessRequest(request):
                if request in self.on_its_way:
                    return False
                self.on_its_way.append(request)
            case Deliver(request):
                if self.waiting[:1] != [request]:
                    return False
                behind = self.on_its_way.index(request) + 1
                self.withdrawn -= set(self.on_its_way[:behind])
                self.on_its_way = self.on_its_way[behind:]
            case Withdraw(request):
                if request not in self.waiting:
                    return False
                self.withdrawn.add(request)
        return True


def drawn_calls(
    chance: random.Random, world: PairParameters, offered: Sequence[str], count: int
) -> tuple[PairCall, ...]:
    """Calls that can come in this order; one request is withdrawn at most."""
    keys = sorted({i.identifier for r in world.requests for i in r.items})
    line = _Line()
    calls: list[PairCall] = []
    may_withdraw = True
    to_clear = 0
    while len(calls) < count:
        free = [r.request_id for r in world.requests if r.request_id not in line.on_its_way]
        kinds: list[tuple[float, PairCall]] = []
        if free:
            kinds.append((4, ProcessRequest(chance.choice(free))))
        if line.waiting:
            kinds.append((3, Deliver(line.waiting[0])))
            if may_withdraw:
                kinds.append((0.5, Withdraw(chance.choice(line.waiting))))
        if keys and "invalidate" in offered:
            kinds.append((0.6, Invalidate(chance.choice(keys))))
        kinds.append((2, ClearReceiver()) if to_clear else (0.3, ClearSender()))
        ((_, call),) = chance.choices(kinds, [weight for weight, _ in kinds])
        line.takes(call)
        calls.append(call)
        may_withdraw = may_withdraw and not isinstance(call, Withdraw)
        to_clear += isinstance(call, ClearSender) - isinstance(call, ClearReceiver)
    return tuple(calls)


def can_come(calls: Sequence[PairCall]) -> bool:
    """Whether each can come where it stands."""
    line = _Line()
    return all(map(line.takes, calls))


def vector_of(world: PairParameters, calls: Sequence[PairCall]) -> PairVector:
    """The calls with what the specification answers. Raises `ValueError` if one cannot come."""
    steps = specified_steps(world, calls)
    return PairVector(
        pair.FORMAT,
        pair.FORMAT_VERSION,
        pair.content_id("differ-pair", world, steps),
        "Found by differ.",
        "specified",
        (),
        (),
        PairProvenance(_digest()),
        world,
        steps,
    )


@cache
def _digest() -> str:
    return digest(processor_cache())


# --- a campaign --------------------------------------------------------------------------------


@dataclass
class _Campaign:
    target: PairTarget
    implementation: Implementation

    def wrong(self, vector: PairVector) -> Verdict | None:
        """The verdict on a vector that fails. Raises `AdapterError` if there is none on it."""
        verdict = run_vector(self.target, self.implementation, vector)
        if verdict.outcome == "error":
            raise AdapterError(str(verdict.reason))
        return verdict if isinstance(verdict.failure, PairFailure) else None

    def shrunk(self, vector: PairVector, failure: PairFailure) -> PairVector:
        """The least that fails by the same clauses, as far as dropping and lessening goes."""
        goal = _kind(failure)
        best = _cut(vector, failure)
        while True:
            for world, calls in _lesser(best):
                if not can_come(calls) or not _there(world).issuperset(_named(calls)):
                    continue
                smaller = vector_of(world, calls)
                verdict = self.wrong(smaller)
                if verdict is None or not isinstance(verdict.failure, PairFailure):
                    continue
                if _kind(verdict.failure) == goal:
                    best = _cut(smaller, verdict.failure)
                    break
            else:
                return best


def _kind(failure: PairFailure) -> tuple[object, ...]:
    """What makes two failures one finding: what broke, or how the answer differs."""
    clauses = tuple(sorted({b.clause for b in failure.breaches}))
    return clauses, type(failure.call).__name__, tuple(d.what for d in failure.differences)


def _cut(vector: PairVector, failure: PairFailure) -> PairVector:
    calls = [step.call for step in vector.steps[: failure.step + 1]]
    return vector_of(vector.parameters, calls)


def _lesser(vector: PairVector) -> Iterator[tuple[PairParameters, list[PairCall]]]:
    """The same with less in it: fewer calls, requests, items, or bytes."""
    world, calls = vector.parameters, [step.call for step in vector.steps]
    for k, call in enumerate(calls):
        yield world, [*calls[:k], *calls[k + 1 :]]
        ends = [n for n in range(k + 1, len(calls)) if _ends(calls[n], call)]
        if ends:
            yield world, [c for n, c in enumerate(calls) if n not in (k, ends[0])]
    for k, request in enumerate(world.requests):
        for p in range(len(request.items)):
            items = (*request.items[:p], *request.items[p + 1 :])
            fewer = msgspec.structs.replace(request, items=items)
            requests = (*world.requests[:k], fewer, *world.requests[k + 1 :])
            yield PairParameters(world.capacity, requests), calls
    used = {getattr(call, "request", None) for call in calls}
    if {r.request_id for r in world.requests} - used:
        left = tuple(r for r in world.requests if r.request_id in used)
        yield PairParameters(world.capacity, left), calls
    if world.capacity:
        yield PairParameters(world.capacity - 1, world.requests), calls
    for key in sorted(_there(world)):
        if any(i.identifier == key and i.size for r in world.requests for i in r.items):
            yield _with_less(world, key), calls


def _there(world: PairParameters) -> set[str]:
    return {i.identifier for r in world.requests for i in r.items}


def _named(calls: Sequence[PairCall]) -> set[str]:
    return {call.identifier for call in calls if isinstance(call, Invalidate)}


def _ends(later: PairCall, call: PairCall) -> bool:
    """Whether it takes the request of the call from the line."""
    return (
        isinstance(call, ProcessRequest)
        and isinstance(later, Deliver | Withdraw)
        and later.request == call.request
    )


def _with_less(world: PairParameters, key: str) -> PairParameters:
    def less(item: PairItem) -> PairItem:
        if item.identifier != key:
            return item
        return msgspec.structs.replace(item, size=item.size - 1)

    requests = (msgspec.structs.replace(r, items=tuple(map(less, r.items))) for r in world.requests)
    return PairParameters(world.capacity, tuple(requests))


def run_pair_campaign(
    target: PairTarget,
    *,
    seed: int,
    calls: int | None,
    count: int | None,
    seconds: float | None,
    findings: int,
    on_progress: Callable[[int], None] = lambda sequences: None,
) -> PairDifferReport:
    """Play until the count or the time is over, or enough is found.

    Raises:
        TargetError: The target could not be started.
        AdapterError: What came back was no answer.
    """
    implementation = target.start()
    began = time.perf_counter()
    try:
        campaign = _Campaign(target, implementation)
        offered = implementation.capabilities.get("processor_cache", ())
        found: dict[tuple[object, ...], PairFinding] = {}
        chance = random.Random(seed)
        played = made = worlds = 0

        def is_over() -> bool:
            late = seconds is not None and time.perf_counter() - began >= seconds
            return late or (count is not None and played >= count) or len(found) >= findings

        while not is_over():
            world = drawn_world(chance)
            worlds += 1
            for _ in range(_IN_ONE_WORLD):
                if is_over():
                    break
                length = calls or chance.randint(3, 24)
                vector = vector_of(world, drawn_calls(chance, world, offered, length))
                verdict = campaign.wrong(vector)
                made += length if verdict is None else verdict.failure.step + 1  # type: ignore[union-attr]
                played += 1
                on_progress(1)
                if verdict is None:
                    continue
                assert isinstance(verdict.failure, PairFailure)
                kind = _kind(verdict.failure)
                if kind not in found:
                    least = campaign.shrunk(vector, verdict.failure)
                    found[kind] = _finding(campaign, least, played - 1, length)
    finally:
        target.stop()
    return PairDifferReport(
        exit_code=ExitCode.FAILED if found else ExitCode.OK,
        target=target.name,
        implementation=implementation,
        seed=seed,
        sequences=played,
        calls=made,
        worlds=worlds,
        seconds=round(time.perf_counter() - began, 6),
        left_out=() if "invalidate" in offered else ("invalidate",),
        findings=tuple(found.values()),
    )


def _finding(
    campaign: _Campaign, vector: PairVector, sequence: int, calls_at_first: int
) -> PairFinding:
    """What is told of the least sequence, with the decisions that show the same."""
    names = tuple(v.name for v in WRONG_PROCESSOR_CACHES if killed_by(v.name, vector))
    vector = msgspec.structs.replace(vector, kills=names)
    verdict = campaign.wrong(vector)
    assert verdict is not None
    assert isinstance(verdict.failure, PairFailure)
    report = TargetReport(vector.id, campaign.implementation, None, 0.0, (verdict,))
    decisions = PairDecisions(report, {vector.id: vector}).decisions()
    clauses = tuple(dict.fromkeys(b.clause for b in verdict.failure.breaches))
    return PairFinding(
        vector=msgspec.structs.replace(vector, clauses=clauses),
        failure=verdict.failure,
        clauses=clauses,
        decisions=tuple(n for d in decisions for n in (d.name, *d.alternatives)),
        sequence=sequence,
        calls_at_first=calls_at_first,
    )
