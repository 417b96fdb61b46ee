"""From a sequence that shows a difference to a least one that shows one.

Delta debugging: calls are left out in halves, quarters and so on down to single ones, then what the
world does not need, then its numbers and names are made simple, until nothing more can go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from mmcache_vectors.manager import Call, CanAllocate, Item, Parameters, Request

__all__ = ["Candidate", "Shrunk", "shrink", "without_parts"]

MOST_CANDIDATES = 3000
MOST_WORK = 120_000
"""More are not tried: what is the least by then is shown. The work is that of the specified side,
in calls, each of which looks at all pairs of hashes: of a long sequence, or one in a crowded world,
fewer candidates are tried."""

T = TypeVar("T")
F = TypeVar("F")


@dataclass(frozen=True)
class Candidate:
    """A world, and calls in it."""

    parameters: Parameters
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Shrunk(Generic[F]):
    """The least candidate, and what was found of it."""

    candidate: Candidate
    found: F


Probe = Callable[[Candidate], "Shrunk[F] | None"]
"""Plays a candidate: what it shows, with the calls cut off after it, or nothing."""


def shrink(start: Shrunk[F], probe: Probe[F], most: int = MOST_CANDIDATES) -> Shrunk[F]:
    """The least that `probe` still finds something of; what it finds need not stay the same."""
    best, tried, work = start, 0, 0
    seen: set[Candidate] = {start.candidate}
    going = True
    while going:
        going = False
        for simpler in _simpler_ways(best.candidate):
            for candidate in simpler:
                if candidate in seen:
                    continue
                if tried >= most or work >= MOST_WORK:
                    return best
                seen.add(candidate)
                tried, work = tried + 1, work + _work(candidate)
                found = probe(candidate)
                if found is not None and _weight(found.candidate) < _weight(best.candidate):
                    best, going = found, True
                    break
            if going:
                break
    return best


def _work(candidate: Candidate) -> int:
    items = (item for r in candidate.parameters.requests for item in r.items)
    return len(candidate.calls) * (1 + len({item.identifier for item in items}) ** 2 // 16)


def _weight(candidate: Candidate) -> tuple[int, ...]:
    """What is to be least: calls first, then the world, then its numbers, then its names."""
    parameters = candidate.parameters
    items = [item for r in parameters.requests for item in r.items]
    amounts = [
        c.encoder_compute_budget + c.num_embeds_to_schedule
        for c in candidate.calls
        if isinstance(c, CanAllocate)
    ]
    texts = [r.request_id for r in parameters.requests] + [item.identifier for item in items]
    return (
        len(candidate.calls),
        len(items),
        len(parameters.requests),
        len({item.identifier for item in items}),
        parameters.cache_size + sum(item.num_embeds for item in items),
        sum(amounts),
        sum(map(len, texts)),
        sum(ord(letter) for text in texts for letter in text),
    )


def _simpler_ways(candidate: Candidate) -> Iterator[Iterator[Candidate]]:
    parameters, calls = candidate.parameters, candidate.calls
    yield _without_idle_requests(candidate)
    yield (Candidate(parameters, kept) for kept in without_parts(calls))
    yield _without_unused(candidate)
    yield _simpler_names(candidate)
    yield _simpler_numbers(candidate)
    yield _other_items(candidate)


def without_parts(whole: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """The whole without a half, without a quarter, and so on down to one element."""
    size = len(whole) // 2
    while size >= 1:
        for start in range(len(whole) - size, -1, -size):
            yield whole[:start] + whole[start + size :]
        size //= 2


def _without_idle_requests(candidate: Candidate) -> Iterator[Candidate]:
    """Without the requests that no call is about: all goes faster then."""
    requests = candidate.parameters.requests
    used = {getattr(call, "request", None) for call in candidate.calls}
    kept = tuple(r for r in requests if r.request_id in used)
    if len(kept) < len(requests):
        yield _with(candidate, requests=kept)


def _without_unused(candidate: Candidate) -> Iterator[Candidate]:
    """Without items that no call is about."""
    requests = candidate.parameters.requests
    for request in requests:
        for k in range(len(request.items)):
            if (shorter := _without_item(candidate, request, k)) is not None:
                yield shorter


def _without_item(candidate: Candidate, request: Request, k: int) -> Candidate | None:
    """The item is gone and those behind it move up; None if a call is about it."""
    calls = []
    for call in candidate.calls:
        position = getattr(call, "input_id", None)
        if getattr(call, "request", None) == request.request_id and position is not None:
            if position == k:
                return None
            if position > k:
                call = msgspec.structs.replace(call, input_id=position - 1)
        calls.append(call)
    items = request.items[:k] + request.items[k + 1 :]
    shorter = Request(request.request_id, items)
    requests = [shorter if r is request else r for r in candidate.parameters.requests]
    return Candidate(Parameters(candidate.parameters.cache_size, tuple(requests)), tuple(calls))


def _simpler_names(candidate: Candidate) -> Iterator[Candidate]:
    """`A`, `B` and so on for hashes, `r1`, `r2` for requests: all, or one."""
    requests = candidate.parameters.requests
    hashes = list(dict.fromkeys(item.identifier for r in requests for item in r.items))
    plain_hashes = {name: _letter(k) for k, name in enumerate(hashes)}
    plain_requests = {r.request_id: f"r{k + 1}" for k, r in enumerate(requests)}
    yield _renamed(candidate, plain_hashes, plain_requests)
    yield _renamed(candidate, plain_hashes, {})
    yield _renamed(candidate, {}, plain_requests)
    for old, new in plain_hashes.items():
        if new not in hashes:
            yield _renamed(candidate, {old: new}, {})
    # A text that must be long is cut to half of its length, from either end.
    for names, which in ((hashes, 0), ([r.request_id for r in requests], 1)):
        longest = max(map(len, names), default=0)
        for cut in (longest // 2, longest // 4, 8, 1):
            for ways in (
                (
                    {n: n[cut:] for n in names},
                    {n: n[:-cut] for n in names},
                )
                if 0 < cut < longest
                else ()
            ):
                if len(set(ways.values())) == len(names) and all(ways.values()):
                    yield _renamed(candidate, *((ways, {}) if which == 0 else ({}, ways)))


def _letter(k: int) -> str:
    return chr(ord("A") + k) if k < 26 else f"h{k}"


def _renamed(candidate: Candidate, hashes: dict[str, str], ids: dict[str, str]) -> Candidate:
    requests = tuple(
        Request(
            ids.get(r.request_id, r.request_id),
            tuple(Item(hashes.get(i.identifier, i.identifier), i.num_embeds) for i in r.items),
        )
        for r in candidate.parameters.requests
    )
    calls = tuple(
        msgspec.structs.replace(call, request=ids.get(call.request, call.request))
        if hasattr(call, "request")
        else call
        for call in candidate.calls
    )
    return Candidate(Parameters(candidate.parameters.cache_size, requests), calls)


def _simpler_numbers(candidate: Candidate) -> Iterator[Candidate]:
    """Everything divided, then each number by itself made smaller."""
    for divisor in (1 << 30, 1 << 16, 1 << 10, 100, 10, 3, 2):
        yield _divided(candidate, divisor)
    parameters = candidate.parameters
    for smaller in _less(parameters.cache_size):
        yield _with(candidate, cache_size=smaller)
    sizes = {i.identifier: i.num_embeds for r in parameters.requests for i in r.items}
    for name, size in sizes.items():
        for smaller in _less(size):
            yield _resized(candidate, {name: smaller})
    for k, call in enumerate(candidate.calls):
        if not isinstance(call, CanAllocate):
            continue
        for field in ("num_embeds_to_schedule", "encoder_compute_budget"):
            for smaller in _less(getattr(call, field)):
                changed = msgspec.structs.replace(call, **{field: smaller})
                calls = (*candidate.calls[:k], changed, *candidate.calls[k + 1 :])
                yield Candidate(parameters, calls)


def _less(number: int) -> Iterator[int]:
    tried = {0, 1, 2, number // 1024, number // 2, number - number // 8, number - 1}
    yield from sorted(n for n in tried if 0 <= n < number)


def _divided(candidate: Candidate, divisor: int) -> Candidate:
    sizes = {
        i.identifier: i.num_embeds // divisor
        for r in candidate.parameters.requests
        for i in r.items
    }
    calls = tuple(
        msgspec.structs.replace(
            call,
            encoder_compute_budget=call.encoder_compute_budget // divisor,
            num_embeds_to_schedule=call.num_embeds_to_schedule // divisor,
        )
        if isinstance(call, CanAllocate)
        else call
        for call in candidate.calls
    )
    smaller = _with(candidate, cache_size=candidate.parameters.cache_size // divisor)
    return _resized(Candidate(smaller.parameters, calls), sizes)


def _resized(candidate: Candidate, sizes: dict[str, int]) -> Candidate:
    requests = tuple(
        Request(
            r.request_id,
            tuple(Item(i.identifier, sizes.get(i.identifier, i.num_embeds)) for i in r.items),
        )
        for r in candidate.parameters.requests
    )
    return _with(candidate, requests=requests)


def _other_items(candidate: Candidate) -> Iterator[Candidate]:
    """One hash fewer: everywhere another one in its place."""
    sizes = {i.identifier: i for r in candidate.parameters.requests for i in r.items}
    names = sorted(sizes)
    for gone in names[1:]:
        for instead in names:
            if instead < gone:
                requests = tuple(
                    Request(
                        r.request_id,
                        tuple(sizes[instead] if i.identifier == gone else i for i in r.items),
                    )
                    for r in candidate.parameters.requests
                )
                yield _with(candidate, requests=requests)


def _with(
    candidate: Candidate,
    *,
    cache_size: int | None = None,
    requests: Sequence[Request] | None = None,
) -> Candidate:
    old = candidate.parameters
    size = old.cache_size if cache_size is None else cache_size
    carried = old.requests if requests is None else tuple(requests)
    return Candidate(Parameters(size, carried), candidate.calls)
