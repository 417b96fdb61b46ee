"""Each vector in worlds that are larger, and in which the specification answers the same.

The specification reads of names only whether two are one, of positions only their order, and of
numbers only which of two sums of sizes is larger. So its answers are the same up to names, factors
and addends where every name is replaced by another, positions move and keep their order, sizes,
capacity and budgets are multiplied by one factor, and as much is promised as there is more room.
Whoever holds nothing changes nothing when it ends. It speaks of one manager; another one beside it
changes nothing. An implementation may do otherwise: it truncates names, counts in 32 bits, has
room for so many positions, or shares between managers what each should have by itself.

A *change* is one of these. A larger world has several at a time, so that few worlds show much;
where an answer there is wrong, `by_itself` has each change alone, to say which it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

import msgspec

from mmcache_vectors.manager import (
    Call,
    CanAllocate,
    Free,
    GetFreedMmHashes,
    Item,
    Observed,
    Parameters,
    Request,
    Reset,
)

from ..targets.protocol import Answer, Case
from .names import STYLES, Style, draw_names, style_name

__all__ = [
    "BESIDE",
    "FACTOR",
    "FAR",
    "GAP",
    "LARGEST_NUMBER",
    "SAFE_NUMBER",
    "Stretched",
    "by_itself",
    "companions",
    "largest_number",
    "stretched",
    "world_named",
]

FACTOR = 1 << 33
"""What numbers are multiplied by: of the product, 32 bits keep nothing."""

ODD = (1 << 21) + 5
"""In every second vector: of the product, no bit can be spared."""

GAP = 256
"""How far apart two positions of a request that were neighbours come to be."""

FAR = 1 << 16
"""The same for few vectors, since a request then has so many items."""

BESIDE = "other managers alive in the same process"
"""The name of the one way that is no change of the vector."""

SAFE_NUMBER = (1 << 53) - 1
"""The largest integer that every reader of JSON has exactly. No number, and no sum of sizes that
can be cached together, is larger in the world of an engine that may keep its numbers in floats."""

LARGEST_NUMBER = (1 << 63) - 1
"""The same for an engine in a language that has integers of 64 bits."""

_EXACT = {"c", "c++", "cpp", "rust", "go", "java", "kotlin", "c#", "swift", "zig", "python"}
"""Languages whose integers have 64 bits or more."""

_WIDTHS = (8, 15, 16, 24, 31, 32, 53, 63)
"""Bits of counters, and of integers that floats have exactly."""

_WORLDS = 3
"""Larger worlds of one vector, each with several changes."""

_LONG = 100
"""A case of more calls is not played beside others: that would take as long as all the rest."""

_A_ROLL, _SHORT_ROLL = 24, 200
"""A case with so many hashes and requests, and no more calls, is played under every style of
names."""


def largest_number(language: str) -> int:
    """The largest number in the worlds of an engine that is written in this language."""
    return LARGEST_NUMBER if language.lower() in _EXACT else SAFE_NUMBER


Back = Callable[[Answer], Answer]


@dataclass(frozen=True)
class _Change:
    """What is otherwise in a larger world. It gives the case, and the way back from an answer."""

    name: str
    make: Callable[[Case], tuple[Case, Back]]


@dataclass(frozen=True)
class Stretched:
    """A vector in a larger world, and the way back from its answers."""

    name: str
    case: Case
    back: Back
    """What the answer says, in the names and numbers of the vector; as it is where it says
    something that has no counterpart there."""
    changes: tuple[_Change, ...] = ()
    between: frozenset[int] = field(default=frozenset())
    """The calls that the vector does not have."""

    def answers(self, given: Sequence[Answer]) -> list[Answer]:
        """The answers to the calls of the vector.

        Where a call between two of them fails, so does the one that comes after it.
        """
        told: list[Answer] = []
        for k, answer in enumerate(given):
            if k not in self.between or answer.error is not None:
                told.append(self.back(answer))
        return told


def stretched(case: Case, largest: int = SAFE_NUMBER, *, ends: bool = True) -> Iterator[Stretched]:
    """The case in larger worlds; the same ones for the same id. No number is beyond `largest`.

    `ends`: whether the manager has `free`. If not, no request that holds nothing ends in between.
    """
    for changes in _drawn(case, largest):
        yield _changed(case, tuple(c for c in changes if ends or c is not _BETWEEN))


def by_itself(longer: Stretched, case: Case) -> Iterator[Stretched]:
    """The worlds of the case in which one of the changes is made, if there are several."""
    if len(longer.changes) > 1:
        for change in longer.changes:
            yield _changed(case, (change,))


def world_named(case: Case, name: str | None, largest: int = LARGEST_NUMBER) -> Stretched | None:
    """The world of this name among all of the case, if there is one."""
    for limit in dict.fromkeys((largest, SAFE_NUMBER)):
        for ends in (True, False):
            for longer in stretched(case, limit, ends=ends):
                for one in (longer, *by_itself(longer, case)):
                    if one.name == name:
                        return one
    return None


def companions(case: Case) -> tuple[Case, ...]:
    """The managers to be alive beside the one of the case: one in step with it, one a call behind.

    So the same names are in use everywhere at once. What each should answer is what the vector
    says: the manager that is behind begins with a report, which is empty; a case without reports
    has only the first, and a long one, whose calls are many and of few kinds, none.
    """
    if len(case.calls) > _LONG:
        return ()
    case = msgspec.structs.replace(case, watched=_watched(case))
    if not any(isinstance(call, GetFreedMmHashes) for call in case.calls):
        return (case,)
    behind = msgspec.structs.replace(
        case,
        calls=(GetFreedMmHashes(), *case.calls),
        watched=tuple(k + 1 for k in case.watched or ()),
    )
    return case, behind


# --- which changes -----------------------------------------------------------------------------


def _drawn(case: Case, largest: int) -> Iterator[tuple[_Change, ...]]:
    """For each larger world, the changes that are made. All vectors together have every one."""
    number = crc32(case.id.encode())
    hashes = {item.identifier for r in case.parameters.requests for item in r.items}
    requests = case.parameters.requests
    if min(len(hashes), len(requests)) >= _A_ROLL and len(case.calls) <= _SHORT_ROLL:
        for k, style in enumerate(STYLES):
            yield (_names(style, STYLES[k - 7], number + k, roll=True),)
        return
    positions = _positions(case, number)
    for k in range(_WORLDS):
        # Two worlds of one vector have styles that are far apart in the list, and so in kind.
        style = STYLES[(number + 9 * k) % len(STYLES)]
        other = STYLES[(number // 64 + 5 * k) % len(STYLES)]
        changes = [_names(style, other, number + k)]
        if k == 0:
            changes += [_offset(_WIDTHS[number % len(_WIDTHS)], largest), positions]
        elif k == 1:
            changes.append(_SCALED[number // 4 % 2])
        else:
            # Only where the vector itself ends a request: an engine may lack that call.
            ends = any(isinstance(call, Free) for call in case.calls)
            changes += [
                *([_BETWEEN] if ends else ()),
                _offset(_WIDTHS[number // 8 % len(_WIDTHS)], largest),
            ]
        yield tuple(changes)


def _changed(case: Case, changes: tuple[_Change, ...]) -> Stretched:
    """What is added between calls comes last: no other change need know of it."""
    longer, ways = case, []
    for change in changes:
        longer, back = change.make(longer)
        ways.append(back)

    def undo(answer: Answer) -> Answer:
        for back in reversed(ways):
            answer = back(answer)
        return answer

    longer = msgspec.structs.replace(longer, watched=_watched(case))
    between: frozenset[int] = frozenset()
    if _BETWEEN in changes:
        longer, between = _with_others(longer)
    return Stretched("; ".join(c.name for c in changes), longer, undo, changes, between)


def _watched(case: Case) -> tuple[int, ...]:
    """The last call and every fourth before it: in a larger world, to look takes most of the time.

    What is wrong stays wrong for a while, and what is returned is compared after every call.
    """
    numbers = range(len(case.calls) - 1, -1, -4)
    return tuple(k for k in numbers if case.watched is None or k in case.watched)


# --- names -------------------------------------------------------------------------------------


def _names(style: Style, other: Style, number: int, *, roll: bool = False) -> _Change:
    def make(case: Case) -> tuple[Case, Back]:
        return _renamed(case, style, other, Random(number), roll)

    return _Change(f"hashes: {style_name(style)}, requests: {style_name(other)}", make)


_MOST_LETTERS = 10_000_000
"""Calls times letters of all names: an adapter that shows everything after every call must be able
to say that in one line."""


def _short(random: Random, number: int) -> Iterator[str]:
    return (f"x{k}" for k in range(number))


def _renamed(
    case: Case, style: Style, other: Style, random: Random, roll: bool
) -> tuple[Case, Back]:
    """Every hash under a name of one style, every request under one of another."""
    parameters = case.parameters
    hashes = list(dict.fromkeys(i.identifier for r in parameters.requests for i in r.items))
    requests = [r.request_id for r in parameters.requests]
    to_hash = dict(
        zip(hashes, draw_names(random, len(hashes), style, first_ones=roll), strict=True)
    )
    to_request = dict(
        zip(requests, draw_names(random, len(requests), other, first_ones=roll), strict=True)
    )
    letters = sum(map(len, to_hash.values())) + sum(map(len, to_request.values()))
    if len(case.calls) * letters > _MOST_LETTERS:
        return _renamed(case, _short, _short, random, roll)
    back_to_hash = {long: name for name, long in to_hash.items()}
    back_to_request = {long: name for name, long in to_request.items()}
    renamed = tuple(
        Request(
            to_request[r.request_id],
            tuple(Item(to_hash[i.identifier], i.num_embeds) for i in r.items),
        )
        for r in parameters.requests
    )
    calls = tuple(_replaced(call, request=to_request.__getitem__) for call in case.calls)
    longer = msgspec.structs.replace(
        case, parameters=Parameters(parameters.cache_size, renamed), calls=calls
    )

    def names(longs: tuple[str, ...], back: dict[str, str]) -> tuple[str, ...]:
        return tuple([back.get(long, long) for long in longs])

    def undo(answer: Answer) -> Answer:
        seen = answer.observed
        returns = answer.returns
        if isinstance(returns, tuple):
            returns = tuple(sorted(names(returns, back_to_hash)))
        if seen.cached is None and seen.freeable is None and seen.held is None:
            return Answer(returns, seen, answer.error)
        cached = None
        if seen.cached is not None:
            cached = {
                back_to_hash.get(h, h): tuple(sorted(names(rs, back_to_request)))
                for h, rs in seen.cached.items()
            }
        held = None
        if seen.held is not None:
            held = {back_to_request.get(r, r): ks for r, ks in seen.held.items()}
        freeable = None if seen.freeable is None else names(seen.freeable, back_to_hash)
        numbers = seen.num_free_slots, seen.num_freeable_slots
        return Answer(returns, Observed(*numbers, cached, freeable, held), answer.error)

    return longer, undo


# --- positions ---------------------------------------------------------------------------------


def _positions(case: Case, number: int) -> _Change:
    few = sum(len(r.items) for r in case.parameters.requests) <= 3 and len(case.calls) <= 8
    most = max((len(r.items) for r in case.parameters.requests), default=0)
    if most > 64:
        return _Change("positions one later", lambda case: _moved(case, 1, 1))
    if few and most > 1 and number % 32 == 0:
        return _Change(f"positions {FAR} apart", lambda case: _moved(case, FAR, 1))
    gap = GAP if most <= 3 else (17, 33)[number % 2]
    return _Change(f"positions {gap} apart", lambda case: _moved(case, gap, 1))


def _moved(case: Case, gap: int, first: int) -> tuple[Case, Back]:
    parameters = case.parameters
    nobody = Item("nobody's", 1)

    def moved(position: int) -> int:
        return gap * position + first

    requests = []
    for request in parameters.requests:
        items = [nobody] * (moved(len(request.items) - 1) + 1 if request.items else 0)
        for place, item in enumerate(request.items):
            items[moved(place)] = item
        requests.append(Request(request.request_id, tuple(items)))
    calls = tuple(_replaced(call, input_id=moved) for call in case.calls)
    longer = msgspec.structs.replace(
        case, parameters=Parameters(parameters.cache_size, tuple(requests)), calls=calls
    )

    def position(at: int) -> int:
        return (at - first) // gap if at >= first and (at - first) % gap == 0 else -at - 1

    def undo(answer: Answer) -> Answer:
        held = answer.observed.held
        if held is None:
            return answer
        back = {r: tuple(position(k) for k in ks) for r, ks in held.items()}
        observed = msgspec.structs.replace(answer.observed, held=back)
        return Answer(answer.returns, observed, answer.error)

    return longer, undo


# --- numbers -----------------------------------------------------------------------------------


def _with_numbers(
    case: Case, room: Callable[[int], int], size: Callable[[int], int]
) -> tuple[Case, Back]:
    """Capacity and what is promised through `room`, sizes and budgets through `size`."""
    parameters = case.parameters
    requests = tuple(
        Request(r.request_id, tuple(Item(i.identifier, size(i.num_embeds)) for i in r.items))
        for r in parameters.requests
    )
    calls = tuple(
        CanAllocate(
            call.request,
            call.input_id,
            size(call.encoder_compute_budget),
            room(call.num_embeds_to_schedule),
        )
        if isinstance(call, CanAllocate)
        else call
        for call in case.calls
    )
    capacity = room(parameters.cache_size)
    longer = msgspec.structs.replace(case, parameters=Parameters(capacity, requests), calls=calls)

    def undo(answer: Answer) -> Answer:
        seen = answer.observed
        if seen.num_free_slots is None and seen.num_freeable_slots is None:
            return answer
        slots = back(seen.num_free_slots), back(seen.num_freeable_slots)
        observed = Observed(*slots, seen.cached, seen.freeable, seen.held)
        return Answer(answer.returns, observed, answer.error)

    unit, more = size(1), room(0)

    def back(large: int | None) -> int | None:
        exact = large is not None and (large - more) % unit == 0
        return (large - more) // unit if large is not None and exact else large

    return longer, undo


def _scaled(by: int, name: str) -> _Change:
    def make(case: Case) -> tuple[Case, Back]:
        return _with_numbers(case, lambda n: n * by, lambda n: n * by)

    return _Change(f"sizes and capacity times {name}", make)


_SCALED = (
    _scaled(FACTOR, f"2**{FACTOR.bit_length() - 1}"),
    _scaled(ODD, f"{ODD:,}"),
)


def _offset(width: int, largest: int) -> _Change:
    """Capacity just beyond what a counter of so many bits holds, and as much promised."""
    if 1 << width > largest + 1:
        width = 53

    def make(case: Case) -> tuple[Case, Back]:
        sizes = [i.num_embeds for r in case.parameters.requests for i in r.items]
        promised = [c.num_embeds_to_schedule for c in case.calls if isinstance(c, CanAllocate)]
        reach = case.parameters.cache_size + max(sizes, default=0) + max(promised, default=0) + 1
        at_the_limit = 1 << width > largest // 2
        more = largest - reach if at_the_limit else (1 << width) - 1 - reach // 2
        return _with_numbers(case, lambda n: n + max(0, more), lambda n: n)

    return _Change(f"capacity and what is promised larger by about 2**{width}", make)


# --- calls between -----------------------------------------------------------------------------


def _with_others(case: Case) -> tuple[Case, frozenset[int]]:
    """Between the calls, requests end that hold nothing.

    One without items, and one that carries what others do, under an id that the id of another
    begins with.
    """
    requests = case.parameters.requests
    known = {r.request_id for r in requests}
    # Of an encoder-decoder model's, one that ends without ever having been charged is not in the
    # protocol of every engine: there, only who carries nothing ends.
    cached = case.manager == "encoder_cache"
    items = tuple(item for r in requests for item in r.items)[:8] if cached else ()
    stem = min(known, key=len, default="r")[:1]
    names = [n for n in (stem, f"{stem}'s", "", "nobody", "nobody else") if n and n not in known]
    nobody, idle = Request(names[0], ()), Request(names[1], items)
    calls: list[Call] = []
    between: set[int] = set()
    at: list[int] = []
    for k, call in enumerate(case.calls):
        if k % 3 == 2:
            between.add(len(calls))
            calls.append(Free((nobody, idle)[k % 2].request_id))
        at.append(len(calls))
        calls.append(call)
    watched = None if case.watched is None else tuple(at[k] for k in case.watched)
    parameters = Parameters(case.parameters.cache_size, (nobody, *requests, idle))
    longer = msgspec.structs.replace(
        case, parameters=parameters, calls=tuple(calls), watched=watched
    )
    return longer, frozenset(between)


_BETWEEN = _Change("requests that hold nothing end in between", lambda case: (case, lambda a: a))


def _replaced(
    call: Call,
    *,
    request: Callable[[str], str] | None = None,
    input_id: Callable[[int], int] | None = None,
) -> Call:
    """The call with another request, or another position."""
    if isinstance(call, GetFreedMmHashes | Reset):
        return call
    if request is not None:
        call = msgspec.structs.replace(call, request=request(call.request))
    position: int | None = getattr(call, "input_id", None)
    if input_id is not None and position is not None:
        call = msgspec.structs.replace(call, input_id=input_id(position))
    return call
