"""Vectors that turn: the same few calls a thousand times, and every answer matters each time.

What happens at every hundredth report only, or when a count of releases no longer fits its bits,
shows where no release, eviction and report can be left out without a change of what is answered.
The worlds are small, so that it is the length of the life alone that is put to the test.
"""

from __future__ import annotations

from collections.abc import Iterator

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Observed,
    Parameters,
    Request,
    Reset,
    Vector,
)

from ..model.variants import SPECIFIED
from .draft import CLOSING, answered
from .managers import specified

__all__ = ["wheels"]

_HASHES, _ROOM = "ABCD", 3
"""Of four hashes one is always absent, so that each goes and comes in every fourth round."""

_REQUESTS = ("r1", "r2")

_WIDTH = 10
"""A count of so many bits begins again within the rounds with a report, whatever is counted."""

_REPORTED = (1 << _WIDTH) + 2 * len(_HASHES)
"""Every round moves each count that a manager may keep: of hits, releases, admissions, allocations,
evictions, reports and of all calls. So each of 8 to 10 bits begins again where the report of the
round tells at once. Counts of what one hash or one request does move slower, and come to 8 bits."""

_REFUSED_EVERY = 4
"""Rounds from one refusal and one look-up in vain to the next: counts of these come to 8 bits."""

_UNREPORTED, _LOST = 260, 40
"""Rounds without a report, and before a reset: more evictions are told at once than 8 bits hold."""

_SHOWN_EVERY = 197
"""The state is shown after so many calls: no round has so many, and no number of rounds either."""


def wheels() -> dict[str, Vector]:
    """One for the ledger and one for the manager of encoder-decoder models, by id."""
    parameters = tuple(Request(r, tuple(Item(h, 1) for h in _HASHES)) for r in _REQUESTS)
    made = (
        _vector("ledger", Parameters(_ROOM, parameters), _turns()),
        _vector("encoder_decoder", Parameters(1, parameters), _charges()),
    )
    return {vector.id: vector for vector in made}


def _turns() -> Iterator[Call]:
    """In each round one of three idle hashes makes room for another, and is reported.

    Then the reports stay away, until one tells all; and at last until a reset, after which there is
    nothing to tell. A few rounds of both kinds come first, so that what is always wrong shows soon.
    """
    wheel = _Wheel()
    few = 2 * len(_HASHES)
    for rounds, reported in ((few, False), (_REPORTED, True), (_UNREPORTED, False)):
        for _ in range(rounds):
            yield from wheel.turn(reported)
        yield GetFreedMmHashes()
    for _ in range(_LOST):
        yield from wheel.turn(reported=False)
    yield Reset()
    yield GetFreedMmHashes()
    wheel = _Wheel()
    for _ in range(_ROOM + 2):
        yield from wheel.turn(reported=True)


class _Wheel:
    """The hashes that are idle, oldest first, and those that are not cached."""

    def __init__(self) -> None:
        self._round = 0
        self._idle: list[int] = []
        self._gone = list(range(len(_HASHES)))

    def turn(self, reported: bool) -> Iterator[Call]:
        """The oldest is hit and released first, so that it is the next one that goes."""
        self._round += 1
        request = _REQUESTS[self._round // len(_HASHES) % 2]
        if self._idle:
            self._idle.append(oldest := self._idle.pop(0))
            yield CheckAndUpdateCache(request, oldest)
            yield FreeEncoderInput(request, oldest)
        mine = self._gone.pop(0)
        if self._round % _REFUSED_EVERY == 0:
            yield CheckAndUpdateCache(request, mine)
            yield CanAllocate(request, mine, 1, _ROOM)
        yield CanAllocate(request, mine, 1, 0)
        if len(self._idle) == _ROOM:
            self._gone.append(self._idle.pop(0))
        yield Allocate(request, mine)
        yield FreeEncoderInput(request, mine)
        self._idle.append(mine)
        if reported:
            yield GetFreedMmHashes()


def _charges() -> Iterator[Call]:
    """In each round one input is charged and given back; it is reported a report later."""
    for turn in range(_REPORTED):
        at = _REQUESTS[turn % 2], turn % len(_HASHES)
        if turn % _REFUSED_EVERY == 0:
            yield CanAllocate(*at, 1, 1)
        yield CanAllocate(*at, 1, 0)
        yield Allocate(*at)
        yield FreeEncoderInput(*at)
        yield GetFreedMmHashes()


def _vector(system: str, parameters: Parameters, calls: Iterator[Call]) -> Vector:
    return answered(
        f"wheel-{system.replace('_', '-')}",
        "The same few calls a thousand times, and every answer matters each time.",
        f"counts of calls in up to {_WIDTH} bits",
        SPECIFIED.name,
        (),
        specified(system),
        parameters,
        [*calls, *CLOSING],
        shown=_shown,
    )


def _shown(number: int, answer: Expect) -> Expect:
    return answer if number % _SHOWN_EVERY == 0 else Expect(answer.returns, Observed())
