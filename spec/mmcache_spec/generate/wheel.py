"""Vectors that turn: the same few calls some hundred times, and every answer matters each time.

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

_HASHES, _ROOM = "ABCDE", 3
_REQUESTS = ("r1", "r2")

_REPORTED, _UNREPORTED, _LOST = 270, 260, 40
"""Rounds with a report each, without one, and before a reset: beyond 256 of each kind, and 512
releases in one life."""

_SHOWN_EVERY = 97
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
    nothing to tell.
    """
    wheel = _Wheel()
    for rounds, reported in ((_REPORTED, True), (_UNREPORTED, False)):
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
        """In every third round, the oldest is hit and released first: so another one goes."""
        self._round += 1
        request = _REQUESTS[self._round % 2]
        if self._round % 3 == 0 and self._idle:
            self._idle.append(oldest := self._idle.pop(0))
            yield CheckAndUpdateCache(request, oldest)
            yield FreeEncoderInput(request, oldest)
        mine = self._gone.pop(0)
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
        yield CanAllocate(*at, 1, 0)
        yield Allocate(*at)
        yield FreeEncoderInput(*at)
        yield GetFreedMmHashes()


def _vector(system: str, parameters: Parameters, calls: Iterator[Call]) -> Vector:
    return answered(
        f"wheel-{system.replace('_', '-')}",
        "The same few calls some hundred times, and every answer matters each time.",
        "counts of calls beyond 256 and 512",
        SPECIFIED.name,
        (),
        specified(system),
        parameters,
        [*calls, *CLOSING],
        shown=_shown,
    )


def _shown(number: int, answer: Expect) -> Expect:
    return answer if number % _SHOWN_EVERY == 0 else Expect(answer.returns, Observed())
