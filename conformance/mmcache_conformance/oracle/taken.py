"""Managers that take known decisions, made of the specification: what they would have answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from mmcache_spec.answering import Answering
from mmcache_spec.model.decisions import DECISIONS, Decision, system_of
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    FreeEncoderInput,
    Manager,
    Observed,
    Parameters,
    Request,
    Vector,
)

from ..targets.protocol import OBSERVABLES, Answer, case_of
from ..verdicts.judge import answer_differences
from ..verdicts.stretch import Stretched
from .set_order import SET_ORDER, WAYS, SetOrdered, may_differ
from .systems import specified

__all__ = [
    "KNOWN",
    "AnsweringManager",
    "decisions_about",
    "decisions_of",
    "excluding",
    "fails",
    "managers_taking",
    "only_shown",
    "way_giving",
]

KNOWN: Mapping[str, Decision] = {**DECISIONS, SET_ORDER.name: SET_ORDER}
"""The decisions of the specification's list, and the one that a transition system cannot say."""

_SYSTEM_NAME: dict[Manager, str] = {"encoder_cache": "ledger", "encoder_decoder": "encoder_decoder"}

_MOST_INPUTS = 1_100
"""In a world with more of them nothing is asked: it would take long."""


class AnsweringManager(Protocol):
    """A manager that can be asked call by call."""

    def answer(self, call: Call, *, shown: bool = True) -> Expect | None: ...


def decisions_about(kind: Manager, parameters: Parameters | None = None) -> tuple[str, ...]:
    """The decisions that a manager of this kind can take, in the order of the list.

    Of those that no call in this world can show, none.
    """
    shown = parameters is None or may_differ(parameters)
    return tuple(
        n
        for n, d in KNOWN.items()
        if d.system == _SYSTEM_NAME[kind] and (shown or d is not SET_ORDER)
    )


def decisions_of(vector: Vector) -> tuple[str, ...]:
    """Those that the vector tells from what is specified; of a vector that says none, any may."""
    mine = decisions_about(vector.manager, vector.parameters)
    if not vector.kills:
        return mine
    return tuple(n for n in mine if n in vector.kills or n == SET_ORDER.name)


def excluding(names: Sequence[str]) -> bool:
    """Whether two of the decisions are two ways of one switch, or of two kinds of manager."""
    chosen = [KNOWN[name] for name in names]
    return len({d.switch[0] for d in chosen}) < len(chosen) or len({d.system for d in chosen}) != 1


def managers_taking(
    names: Sequence[str],
    parameters: Parameters,
    places: Mapping[str, tuple[int, ...]] | None = None,
) -> Iterator[AnsweringManager]:
    """A manager that takes all of these decisions, new; one for each way to take them.

    `places` are the positions that the items have, where some between them were left out.
    """
    switches = [name for name in names if name != SET_ORDER.name]
    system = system_of(switches) if switches else specified("encoder_cache")
    if len(switches) == len(names):
        yield Answering(system, parameters)
        return
    for way in WAYS:
        yield SetOrdered(system, parameters, way, places)


def way_giving(
    names: Sequence[str],
    parameters: Parameters,
    calls: Sequence[Call],
    answers: Sequence[Answer],
    longer: Stretched | None = None,
) -> int | None:
    """The first way to take these decisions in which a manager gives all of these answers.

    By its number among `managers_taking`; None if there is none.

    If the world is a larger one, `longer` puts what it says into the names and numbers of the
    answers; the calls are then all that are made there.
    To a call that the protocol does not allow in its state it may give any, and so raise: an error
    there is its doing, where the caller has only done what is allowed of a manager that is right.
    """
    if not calls or not answers:
        return None
    if longer is None and len(answers) != len(calls):
        return None  # of some calls nothing came back: the target broke down
    if any(answer.error is not None for answer in answers[:-1]):
        return None
    world = _World(names, parameters, calls, longer is not None)
    if world.inputs > _MOST_INPUTS:
        return None
    managers = managers_taking(names, world.parameters, world.places)
    ways = (k for k, manager in enumerate(managers) if world.is_given(manager, answers, longer))
    return next(ways, None)


def fails(
    names: Sequence[str], vector: Vector, shows: Collection[str], longer: Stretched | None = None
) -> bool:
    """Whether a manager that takes these decisions is seen to be wrong, in whatever way.

    However it takes them, and as far as it shows its state; in a larger world, also as far as it is
    looked at there.
    """
    case = case_of(vector) if longer is None else longer.case
    world = _World(names, case.parameters, case.calls, longer is not None)
    watched = frozenset(range(len(case.calls)) if case.watched is None else case.watched)
    return world.inputs <= _MOST_INPUTS and all(
        world.is_seen(manager, vector, shows, longer, watched)
        for manager in managers_taking(names, world.parameters, world.places)
    )


def only_shown(shows: Collection[str], answer: Answer) -> Answer:
    """As much of the answer as the target shows."""
    seen = {n: getattr(answer.observed, n) for n in OBSERVABLES if n in shows}
    return Answer(answer.returns, Observed(**seen), answer.error)


class _World:
    """Parameters and calls, in a larger world without the items that no call is about."""

    def __init__(
        self, names: Sequence[str], parameters: Parameters, calls: Sequence[Call], larger: bool
    ) -> None:
        items = {r.request_id: r.items for r in parameters.requests}
        about = [at for call in calls if (at := _place_of(call)) is not None]
        named = {items[r][k].identifier for r, k in about}
        # What is charged by position, as an encoder-decoder model's, may be by every position.
        keeps_all = not larger or any(KNOWN[name].system != "ledger" for name in names)
        self.places = {
            r: tuple(k for k, item in enumerate(mine) if keeps_all or item.identifier in named)
            for r, mine in items.items()
        }
        self.parameters = Parameters(
            parameters.cache_size,
            tuple(Request(r, tuple(items[r][k] for k in ks)) for r, ks in self.places.items()),
        )
        self._moved = any(ks != tuple(range(len(ks))) for ks in self.places.values())
        self.inputs = sum(map(len, self.places.values()))
        self.calls = tuple(calls)
        if self._moved:
            placed = {(r, k): place for r, ks in self.places.items() for place, k in enumerate(ks)}
            self.calls = tuple(
                call
                if (where := _place_of(call)) is None
                else msgspec.structs.replace(call, input_id=placed[where])
                for call in calls
            )

    def is_given(
        self, manager: AnsweringManager, answers: Sequence[Answer], longer: Stretched | None
    ) -> bool:
        between: Collection[int] = () if longer is None else longer.between
        expected = iter(answers)
        given = next(expected)
        for k, call in enumerate(self.calls):
            looked_at = k not in between and given.observed != Observed()
            wrong = manager.answer(call, shown=looked_at)
            if k in between and wrong is not None:
                continue
            if given.error is not None:
                return wrong is None
            if wrong is None or answer_differences(self._told(k, wrong, longer), given):
                return False
            following = next(expected, None)
            if following is None:
                return True
            given = following
        return True

    def is_seen(
        self,
        manager: AnsweringManager,
        vector: Vector,
        shows: Collection[str],
        longer: Stretched | None,
        watched: Collection[int],
    ) -> bool:
        between: Collection[int] = () if longer is None else longer.between
        steps = iter(vector.steps)
        for k, call in enumerate(self.calls):
            expect = None if k in between else next(steps).expect
            right = None
            if expect is not None:
                looked_at = shows if k in watched else ()
                right = only_shown(looked_at, Answer(expect.returns, expect.observe))
            wrong = manager.answer(call, shown=right is not None and right.observed != Observed())
            if wrong is None:
                return False  # it may do anything: no protocol is left to follow
            if right is None:
                continue
            if answer_differences(self._told(k, wrong, longer), right):
                return True
        return False

    def _told(self, number: int, expect: Expect, longer: Stretched | None) -> Expect:
        """What the manager says, in the names, positions and numbers of the vector."""
        seen = expect.observe
        if seen.held is not None and self._moved:
            held = {r: tuple(self.places[r][k] for k in ks) for r, ks in seen.held.items()}
            seen = msgspec.structs.replace(seen, held=held)
        if longer is None:
            return Expect(expect.returns, seen)
        told = longer.answer(number, Answer(expect.returns, seen))
        assert told.returns is None or isinstance(told.returns, bool | tuple)
        return Expect(told.returns, told.observed)


def _place_of(call: Call) -> tuple[str, int] | None:
    """The request and the position that a call is about, if it is about one."""
    match call:
        case (
            CheckAndUpdateCache(request, k)
            | CanAllocate(request, k)
            | Allocate(request, k)
            | FreeEncoderInput(request, k)
        ):
            return request, k
        case _:
            return None
