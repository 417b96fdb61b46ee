"""What may be otherwise in a larger world: names, positions, numbers, and the way back from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

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
from .names import Style, draw_names, style_name

__all__ = [
    "ANY_WIDTH",
    "FACTOR",
    "FAR",
    "GAP",
    "LARGEST_NUMBER",
    "MOST_LETTERS",
    "SAFE_NUMBER",
    "SCALED",
    "WIDTHS",
    "Back",
    "Change",
    "composed",
    "largest_number",
    "of_calls",
    "other_names",
    "other_positions",
    "other_room",
]

FACTOR = 1 << 33
"""What numbers are multiplied by: of the product, 32 bits keep nothing."""

ODD = (1 << 21) + 5
"""In every second vector: of the product, no bit can be spared."""

GAP = 256
"""How far apart two positions of a request that were neighbours come to be."""

FAR = 1 << 16
"""The same for few vectors, since a request then has so many items."""

SAFE_NUMBER = (1 << 53) - 1
"""The largest integer that every reader of JSON has exactly. No number, and no sum of sizes that
can be cached together, is larger in the world of an engine that may keep its numbers in floats."""

LARGEST_NUMBER = (1 << 63) - 1
"""The same for an engine in a language that has integers of 64 bits."""

_EXACT = {"c", "c++", "cpp", "rust", "go", "java", "kotlin", "c#", "swift", "zig", "python"}
"""Languages whose integers have 64 bits or more."""

WIDTHS = (8, 15, 16, 24, 31, 32, 53, 62, 63)
"""Bits of counters, and of integers that floats have exactly; beyond 62, to double overflows."""

ANY_WIDTH = range(7, 64)
"""Fields beside others in one word may have any."""


def largest_number(language: str) -> int:
    """The largest number in the worlds of an engine that is written in this language."""
    return LARGEST_NUMBER if language.lower() in _EXACT else SAFE_NUMBER


Back = Callable[[Answer], Answer]


@dataclass(frozen=True)
class Change:
    """What is otherwise in a larger world. It gives the case, and the way back from an answer."""

    name: str
    make: Callable[[Case], tuple[Case, Back]]
    needs: str | None = None
    """The capability that a manager has to have."""


def of_calls(name: str, needs: str) -> Change:
    """A change of the calls. To make it is left to who knows all the changes of a world."""
    return Change(name, lambda case: (case, lambda answer: answer), needs)


# --- names -------------------------------------------------------------------------------------


def other_names(style: Style, other: Style, number: int, *, roll: bool = False) -> Change:
    def make(case: Case) -> tuple[Case, Back]:
        return _renamed(case, style, other, Random(number), roll)

    return Change(f"hashes: {style_name(style)}, requests: {style_name(other)}", make)


MOST_LETTERS = 10_000_000
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
    if len(case.calls) * letters > MOST_LETTERS:
        return _renamed(case, _short, _short, random, roll)
    return _with_names(case, to_hash, to_request)


def _with_names(
    case: Case, to_hash: dict[str, str], to_request: dict[str, str]
) -> tuple[Case, Back]:
    parameters = case.parameters
    back_to_hash = {long: name for name, long in to_hash.items()}
    back_to_request = {long: name for name, long in to_request.items()}
    renamed = tuple(
        Request(
            to_request[r.request_id],
            tuple(Item(to_hash[i.identifier], i.num_embeds) for i in r.items),
        )
        for r in parameters.requests
    )
    calls = _each_once(case.calls, partial(_replaced, request=to_request.__getitem__))
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


def other_positions(case: Case, number: int) -> Change:
    few = sum(len(r.items) for r in case.parameters.requests) <= 3 and len(case.calls) <= 8
    most = max((len(r.items) for r in case.parameters.requests), default=0)
    if most > 64:
        return Change("positions one later", lambda case: _moved(case, 1, 1))
    if few and most > 1 and number % 32 == 0:
        return Change(f"positions {FAR} apart", lambda case: _moved(case, FAR, 1))
    gap = GAP if most <= 3 else (17, 33)[number % 2]
    return Change(f"positions {gap} apart", lambda case: _moved(case, gap, 1))


def _moved(case: Case, gap: int, first: int) -> tuple[Case, Back]:
    return _placed(case, lambda position: gap * position + first)


def _placed(case: Case, moved: Callable[[int], int]) -> tuple[Case, Back]:
    """Each position where `moved` says, in the same order; between them stands nobody's item."""
    parameters = case.parameters
    nobody = Item("nobody's", 1)
    requests = []
    for request in parameters.requests:
        items = [nobody] * (moved(len(request.items) - 1) + 1 if request.items else 0)
        for place, item in enumerate(request.items):
            items[moved(place)] = item
        requests.append(Request(request.request_id, tuple(items)))
    calls = _each_once(case.calls, partial(_replaced, input_id=moved))
    longer = msgspec.structs.replace(
        case, parameters=Parameters(parameters.cache_size, tuple(requests)), calls=calls
    )
    most = max((len(r.items) for r in parameters.requests), default=0)
    back = {moved(place): place for place in range(most)}

    def undo(answer: Answer) -> Answer:
        held = answer.observed.held
        if held is None:
            return answer
        placed = {r: tuple(back.get(k, -k - 1) for k in ks) for r, ks in held.items()}
        observed = msgspec.structs.replace(answer.observed, held=placed)
        return Answer(answer.returns, observed, answer.error)

    return longer, undo


MOST_FILLED = 1_000
"""The most items of all requests together where positions and ids are chosen for one another."""


def composed(case: Case, number: int) -> Change | None:
    """Ids and positions of which many pairs are one text when the two are written together.

    With the id in front, r1 at 2 is r at 12; in every second vector the position is in front, and
    2 of 1r is 21 of r. Nothing where no request has two items, or there is no room for it.
    """
    requests = case.parameters.requests
    most = max((len(r.items) for r in requests), default=0)
    if not 2 <= most <= 3 * _FIGURES or not 2 <= len(requests) <= _MOST_COMPOSED:
        return None
    for in_front in (True, False) if number % 2 else (False,):
        last = _composed_position(most - 1, most, in_front)
        if (last + 1) * len(requests) <= MOST_FILLED:
            return _composed(most, in_front)
    return None


_FIGURES, _MOST_COMPOSED = 8, 12
"""Positions of one figure, from 2 on; and requests, of which each id has one letter more."""


def _composed_position(at: int, most: int, in_front: bool) -> int:
    """A third of the positions has one figure, a third a 1 beside it, a third two."""
    width = -(-most // 3)
    ones = "1" * (at // width)
    figure = str(2 + at % width)
    return int(figure + ones if in_front else ones + figure)


def _composed(most: int, in_front: bool) -> Change:
    def make(case: Case) -> tuple[Case, Back]:
        hashes = {i.identifier: i.identifier for r in case.parameters.requests for i in r.items}
        ids = {
            r.request_id: "1" * k + "r" if in_front else "r" + "1" * k
            for k, r in enumerate(case.parameters.requests)
        }
        named, undo_names = _with_names(case, hashes, ids)
        longer, undo_positions = _placed(named, lambda k: _composed_position(k, most, in_front))
        return longer, lambda answer: undo_names(undo_positions(answer))

    first, second = ("position", "id") if in_front else ("id", "position")
    return Change(f"requests and positions that are one, the {first} before the {second}", make)


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


def _scaled(by: int, name: str) -> Change:
    def make(case: Case) -> tuple[Case, Back]:
        return _with_numbers(case, lambda n: n * by, lambda n: n * by)

    return Change(f"sizes and capacity times {name}", make)


SCALED = (
    _scaled(FACTOR, f"2**{FACTOR.bit_length() - 1}"),
    _scaled(ODD, f"{ODD:,}"),
)


def other_room(width: int, largest: int, *, exactly: bool = False) -> Change:
    """Capacity just beyond what a counter of so many bits holds, and as much promised.

    If `exactly`, the capacity is the first number that it does not hold, so that what is wanted and
    what there is lie on both sides as soon as one thing is cached; else some are beyond.
    """
    if 1 << width > largest + 1:
        width = 53

    def make(case: Case) -> tuple[Case, Back]:
        sizes = [i.num_embeds for r in case.parameters.requests for i in r.items]
        promised = [c.num_embeds_to_schedule for c in case.calls if isinstance(c, CanAllocate)]
        reach = case.parameters.cache_size + max(sizes, default=0) + max(promised, default=0) + 1
        below = case.parameters.cache_size if exactly else reach // 2 + 1
        more = largest - reach if 1 << width > largest else (1 << width) - below
        return _with_numbers(case, lambda n: n + max(0, more), lambda n: n)

    return Change(f"capacity and what is promised larger by about 2**{width}", make)


# --- calls -------------------------------------------------------------------------------------


def _each_once(calls: Sequence[Call], change: Callable[[Call], Call]) -> tuple[Call, ...]:
    """Every call changed: most of a long case are made again and again."""
    changed = {call: change(call) for call in dict.fromkeys(calls)}
    return tuple([changed[call] for call in calls])


def _replaced(
    call: Call,
    *,
    request: Callable[[str], str] | None = None,
    input_id: Callable[[int], int] | None = None,
) -> Call:
    """The call with another request, or another position."""
    if isinstance(call, (GetFreedMmHashes, Reset)):
        return call
    changed: dict[str, Any] = {}
    if request is not None:
        changed["request"] = request(call.request)
    if input_id is not None and not isinstance(call, Free):
        changed["input_id"] = input_id(call.input_id)
    return msgspec.structs.replace(call, **changed)
