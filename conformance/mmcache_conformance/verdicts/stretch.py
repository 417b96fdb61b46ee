"""Each vector in worlds that are larger, and in which the specification answers the same.

The specification reads of names only whether two are one, of positions only their order, and of
numbers only which of two sums of sizes is larger. So its answers are the same up to names, factors
and addends where every name is replaced by another, positions move and keep their order, sizes,
capacity and budgets are multiplied by one factor, and as much is promised as there is more room.
Whoever holds nothing changes nothing when it ends. After a reset all is as at first. To allocate
what is cached does what a hit does. It speaks of one manager; another one beside it changes
nothing. An implementation may do otherwise: it truncates names, counts in 32 bits, has
room for so many positions, or shares between managers what each should have by itself.

A *change* is one of these. A larger world has several at a time, so that few worlds show much;
where an answer there is wrong, `by_itself` has each change alone, to say which it takes.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import msgspec

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CheckAndUpdateCache,
    Free,
    GetFreedMmHashes,
    Observed,
    Parameters,
    Request,
    Reset,
    Vector,
)

from ..targets.protocol import ALLOCATE_AGAIN, Answer, Case
from .changes import (
    ANY_WIDTH,
    SCALED,
    WIDTHS,
    Back,
    Change,
    composed,
    of_calls,
    other_names,
    other_positions,
    other_room,
)
from .names import BY_SIGN, JOINED, STYLES

__all__ = [
    "BESIDE",
    "Stretched",
    "by_itself",
    "companions",
    "hits_of",
    "stretched",
    "world_named",
]

BESIDE = "other managers alive in the same process"
"""The name of the one way that is no change of the vector."""

_AND = "; "
"""Between the changes in the name of a world."""

_WORLDS = 3
"""Larger worlds of one vector, each with several changes."""

_LONG = 100
"""A case of more calls is not played beside others: that would take as long as all the rest."""

_LONGEST = 600
"""A case of more calls is in a world of few hashes, and is not played in larger ones: it is about
its length alone."""

_A_ROLL, _SHORT_ROLL = 24, 200
"""A case with so many hashes and requests, and no more calls, is played under every style of
names."""


_NOTHING = Observed()


@dataclass(frozen=True)
class Stretched:
    """A vector in a larger world, and the way back from its answers."""

    name: str
    case: Case
    back: Back
    """What the answer says, in the names and numbers of the vector; as it is where it says
    something that has no counterpart there."""
    changes: tuple[Change, ...] = ()
    between: frozenset[int] = field(default=frozenset())
    """The calls that the vector does not have."""
    allocated: frozenset[int] = field(default=frozenset())
    """The calls that are an allocation there, and a hit in the vector."""

    def answer(self, number: int, given: Answer) -> Answer:
        """The answer to the call of this number, as the vector has it."""
        if number in self.allocated and given.error is None:
            given = Answer(True, given.observed)
        if not isinstance(given.returns, tuple) and given.observed == _NOTHING:
            return given  # no name and no number is in it
        return self.back(given)

    def answers(self, given: Sequence[Answer]) -> list[Answer]:
        """The answers to the calls of the vector.

        Where a call between two of them fails, so does the one that comes after it.
        """
        told: list[Answer] = []
        for k, answer in enumerate(given):
            if k not in self.between or answer.error is not None:
                told.append(self.answer(k, answer))
        return told


def stretched(
    case: Case, largest: int, offered: Container[str], hits: Collection[int] = ()
) -> Iterator[Stretched]:
    """The case in larger worlds; the same ones for the same id. No number is beyond `largest`.

    Args:
        case: The case.
        largest: The largest number that the manager has to have exactly.
        offered: The capabilities of the manager: what it lacks is not asked of it.
        hits: The numbers of the calls that find what they look for.
    """
    for changes in _drawn(case, largest):
        able = tuple(
            c
            for c in changes
            if (c.needs is None or c.needs in offered) and (hits or c is not _ALLOCATED)
        )
        yield _changed(case, able, hits)


def hits_of(vector: Vector) -> tuple[int, ...]:
    """The numbers of the calls of the vector that find what they look for."""
    return tuple(
        k
        for k, step in enumerate(vector.steps)
        if isinstance(step.call, CheckAndUpdateCache) and step.expect.returns is True
    )


def by_itself(longer: Stretched, case: Case, hits: Collection[int] = ()) -> Iterator[Stretched]:
    """The worlds of the case in which one of the changes is made, if there are several."""
    if len(longer.changes) > 1:
        for change in longer.changes:
            yield _changed(case, (change,), hits)


def world_named(
    case: Case, name: str, largest: int, hits: Collection[int] = ()
) -> Stretched | None:
    """The world of this name among all of the case, if there is one."""
    wanted = set(name.split(_AND))
    for changes in _drawn(case, largest):
        chosen = tuple(c for c in changes if c.name in wanted)
        if _AND.join(c.name for c in chosen) == name:
            return _changed(case, chosen, hits)
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


def _drawn(case: Case, largest: int) -> Iterator[tuple[Change, ...]]:
    """For each larger world, the changes that are made. All vectors together have every one."""
    if len(case.calls) > _LONGEST:
        return
    number = crc32(case.id.encode())
    hashes = {item.identifier for r in case.parameters.requests for item in r.items}
    requests = case.parameters.requests
    if min(len(hashes), len(requests)) >= _A_ROLL and len(case.calls) <= _SHORT_ROLL:
        for k, style in enumerate(STYLES):
            yield (other_names(style, STYLES[k - 7], number + k, roll=True),)
        for style in JOINED + BY_SIGN:
            yield (other_names(style, style, number, roll=True),)
        return
    positions = other_positions(case, number)
    for k in range(_WORLDS):
        # Two worlds of one vector have styles that are far apart in the list, and so in kind.
        style = STYLES[(number + 9 * k) % len(STYLES)]
        other = STYLES[(number // 64 + 5 * k) % len(STYLES)]
        changes = [other_names(style, other, number + k)]
        if k == 1 and min(len(hashes), len(requests)) > 1 and number // 5 % 2 == 0:
            joined = JOINED[number // 16 % len(JOINED)]
            changes = [other_names(joined, joined, number, roll=True)]
        if k == 0:
            changes += [
                other_room(WIDTHS[number % len(WIDTHS)], largest, exactly=number // 11 % 2 == 0),
                positions,
            ]
        elif k == 1:
            changes += [SCALED[number // 4 % 2], _ALLOCATED]
        else:
            # Only where the vector itself ends a request: an engine may lack that call.
            ends = any(isinstance(call, Free) for call in case.calls)
            changes += [
                *([_BETWEEN] if ends else ()),
                *([_AFTER_A_LIFE] if len(case.calls) <= _LONG else ()),
                other_room(ANY_WIDTH[number // 8 % len(ANY_WIDTH)], largest, exactly=True),
                *([one] if (one := composed(case, number)) is not None else ()),
            ]
        yield tuple(changes)


def _changed(case: Case, changes: tuple[Change, ...], hits: Collection[int] = ()) -> Stretched:
    """The case with all of these changes.

    Other calls, and what is added between and before them, come last: no other change need know.
    """
    longer, ways = case, []
    for change in changes:
        longer, back = change.make(longer)
        ways.append(back)

    def undo(answer: Answer) -> Answer:
        for back in reversed(ways):
            answer = back(answer)
        return answer

    longer = msgspec.structs.replace(longer, watched=_watched(case))
    taken = frozenset(hits) if _ALLOCATED in changes else frozenset()
    if _ALLOCATED in changes:
        longer = _with_allocations(longer, hits)
    name = _AND.join(c.name for c in changes)
    if _BETWEEN not in changes and _AFTER_A_LIFE not in changes:
        looked_at = tuple(sorted(longer.watched or ()))
        longer = msgspec.structs.replace(longer, watched=looked_at)
        return Stretched(name, longer, undo, changes, allocated=taken)
    # Of each call, the number of the one of the vector that it is, if it is one of them.
    numbers: list[int | None] = list(range(len(longer.calls)))
    if _BETWEEN in changes:
        longer, numbers = _with_others(longer)
    if _AFTER_A_LIFE in changes:
        longer, numbers = _after_a_life(longer, numbers)
    watched = set(longer.watched or ())
    return Stretched(
        name,
        msgspec.structs.replace(
            longer, watched=tuple(k for k, number in enumerate(numbers) if number in watched)
        ),
        undo,
        changes,
        frozenset(k for k, number in enumerate(numbers) if number is None),
        frozenset(k for k, number in enumerate(numbers) if number in taken),
    )


def _watched(case: Case) -> tuple[int, ...]:
    """The last call and every fourth before it: in a larger world, to look takes most of the time.

    What is wrong stays wrong for a while, and what is returned is compared after every call.
    """
    numbers = range(len(case.calls) - 1, -1, -4)
    return tuple(k for k in numbers if case.watched is None or k in case.watched)


# --- calls between -----------------------------------------------------------------------------


def _with_others(case: Case) -> tuple[Case, list[int | None]]:
    """Between the calls, requests end that hold nothing.

    One without items, and one that carries what others do, under an id that the id of another
    begins with.
    """
    requests = case.parameters.requests
    known = dict.fromkeys(r.request_id for r in requests)
    # Of an encoder-decoder model's, one that ends without ever having been charged is not in the
    # protocol of every engine: there, only who carries nothing ends.
    cached = case.manager == "encoder_cache"
    items = tuple(item for r in requests for item in r.items)[:8] if cached else ()
    stem = min(known, key=len, default="r")[:1]
    names = [n for n in (stem, f"{stem}'s", "", "nobody", "nobody else") if n and n not in known]
    nobody, idle = Request(names[0], ()), Request(names[1], items)
    calls: list[Call] = []
    numbers: list[int | None] = []
    for k, call in enumerate(case.calls):
        if k % 3 == 2:
            calls.append(Free((nobody, idle)[k % 2].request_id))
            numbers.append(None)
        calls.append(call)
        numbers.append(k)
    parameters = Parameters(case.parameters.cache_size, (nobody, *requests, idle))
    return msgspec.structs.replace(case, parameters=parameters, calls=tuple(calls)), numbers


def _after_a_life(case: Case, numbers: Sequence[int | None]) -> tuple[Case, list[int | None]]:
    """First, the calls up to some call, and a reset: what is left over then shows."""
    life = case.calls[: 1 + crc32(case.id.encode()) // 7 % len(case.calls)]
    before = (*life, Reset())
    later: list[int | None] = [*[None] * len(before), *numbers]
    return msgspec.structs.replace(case, calls=(*before, *case.calls)), later


def _with_allocations(case: Case, hits: Collection[int]) -> Case:
    """In the place of a hit, an allocation of what is cached."""
    calls = list(case.calls)
    for k in hits:
        call = calls[k]
        assert isinstance(call, CheckAndUpdateCache)
        calls[k] = Allocate(call.request, call.input_id)
    return msgspec.structs.replace(case, calls=tuple(calls))


_BETWEEN = of_calls("requests that hold nothing end in between", "free")
_AFTER_A_LIFE = of_calls("after another life and a reset", "reset")
_ALLOCATED = of_calls("what is cached is allocated instead of looked up", ALLOCATE_AGAIN)
