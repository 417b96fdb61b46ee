"""What a walk does for a while: the phases that lead a manager into situations.

Calls drawn one by one seldom fill a cache, drain it and squeeze what is left. A phase asks for
calls with a purpose, looks at the specified state after each, and ends when there is nothing more
for it to do. What the guards refuse is passed over: a phase need not know the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

__all__ = ["PHASES", "Ask", "Phase", "Place", "Scene", "draw_phases"]

_OFTEN = (3, 6, 20, 40, 70, 300)
"""How often a phase does one thing again: on both sides of where small counters end."""


@dataclass(frozen=True)
class Place:
    """An input: its number among all, and the request, its position there, and the hash."""

    number: int
    request: int
    position: int
    mm_hash: int


@dataclass(frozen=True)
class Ask:
    """A call that is wanted. `at` is the number of a place, for `free` that of a request.

    Without a kind, any call will do, as habit has it.
    """

    kind: str = ""
    at: int = 0
    budget: int = 0
    pending: int = 0


class Scene(Protocol):
    """The specified state as a phase sees it: after each call it has changed."""

    @property
    def places(self) -> Sequence[Place]:
        """Those that the walk is about: a call names a place by where it stands here."""

    @property
    def requests(self) -> int:
        """How many requests there are."""

    def size(self, place: int) -> int:
        """The size of its item."""

    def held(self) -> list[int]:
        """The places that hold their hash."""

    def is_cached(self, place: int) -> bool:
        """Whether its hash is cached."""

    def room(self) -> tuple[int, int]:
        """The free and the freeable slots."""

    def idle(self) -> list[int]:
        """The sizes of the freeable hashes, oldest first."""


Phase = Callable[[Scene, Random], Iterator[Ask]]

_REPORT, _RESET, _ANY = Ask("get_freed_mm_hashes"), Ask("reset"), Ask()


def draw_phases(random: Random) -> tuple[Phase, ...]:
    """The few phases that one walk consists of: any, or some that lead on from one another."""
    chosen = random.sample(PHASES, random.choice((0, 1, 2, 3)))
    if not chosen or random.random() < 0.5:
        chosen += random.choice(_CIRCLES)
    return tuple(chosen)


# --- steps that phases are made of -------------------------------------------------------------


def _lookup(place: int) -> Ask:
    return Ask("check_and_update_cache", place)


def _release(place: int) -> Ask:
    return Ask("free_encoder_input", place)


def _serve(scene: Scene, place: int) -> Iterator[Ask]:
    """What an engine does for an item: look it up, and make room for it if it is not there."""
    yield _lookup(place)
    if not scene.is_cached(place):
        size = scene.size(place)
        yield Ask("can_allocate", place, size)
        if size <= scene.room()[0]:
            yield Ask("allocate", place)


def _ordered(scene: Scene, random: Random, places: Sequence[int]) -> list[int]:
    """The places in one of several orders."""
    every, ordered = scene.places, list(places)
    way = random.randrange(6)
    if way == 0:
        random.shuffle(ordered)
    elif way == 1:
        ordered.reverse()
    elif way == 2:
        ordered.sort(key=lambda k: every[k].mm_hash)
    elif way == 3:
        ordered.sort(key=lambda k: (every[k].position, every[k].request))
    elif way == 4:
        ordered = ordered[len(ordered) // 2 :] + ordered[: len(ordered) // 2]
    return ordered


# --- the phases --------------------------------------------------------------------------------


def _wander(scene: Scene, random: Random) -> Iterator[Ask]:
    """Calls as habit has them."""
    for _ in range(random.choice((3, 8, 20))):
        yield _ANY


def _fill(scene: Scene, random: Random) -> Iterator[Ask]:
    """Serve one after another until there is no room, or a little longer."""
    refused = 0
    for place in _ordered(scene, random, range(len(scene.places))):
        yield from _serve(scene, place)
        refused += not scene.is_cached(place)
        if refused > 1:
            return


def _pour(scene: Scene, random: Random) -> Iterator[Ask]:
    """Allocate all that there is room for, and ask nothing."""
    for place in _ordered(scene, random, range(len(scene.places))):
        if scene.is_cached(place):
            yield _lookup(place)
        elif scene.size(place) <= scene.room()[0]:
            yield Ask("allocate", place)


def _drain(scene: Scene, random: Random) -> Iterator[Ask]:
    """Release all that is held, or most of it, in some order."""
    held = _ordered(scene, random, scene.held())
    if random.random() < 0.3:
        held = held[: len(held) // 2]
    for place in held:
        yield _release(place)


def _end(scene: Scene, random: Random) -> Iterator[Ask]:
    """Requests end, in some order; one that holds nothing as well."""
    requests = random.sample(range(scene.requests), random.randint(1, scene.requests))
    for request in requests:
        yield Ask("free", request)
        if random.random() < 0.1:
            yield Ask("free", request)


def _squeeze(scene: Scene, random: Random) -> Iterator[Ask]:
    """Ask for just as much as evicting so many of the idle entries gives, or one more or less."""
    absent = [k for k in range(len(scene.places)) if not scene.is_cached(k)]
    if not absent:
        return
    place = random.choice(absent)
    idle, size = scene.idle(), scene.size(place)
    wanted = scene.room()[0] + sum(idle[: random.randint(0, len(idle))])
    pending = wanted + random.choice((-1, 0, 0, 0, 1)) - size
    yield Ask("can_allocate", place, size + random.choice((0, 0, 1, 1 << 20)), max(0, pending))
    yield Ask("allocate", place)
    if random.random() < 0.5:
        yield _REPORT


def _trim(scene: Scene, random: Random) -> Iterator[Ask]:
    """Ask for just as much as evicting a few of the idle entries gives.

    Which these are tells the order of the others.
    """
    absent = [k for k in range(len(scene.places)) if not scene.is_cached(k)]
    if absent:
        place, idle = random.choice(absent), scene.idle()
        pending = scene.room()[0] + sum(idle[: random.randint(1, 3)]) - scene.size(place)
        if pending >= 0:
            yield Ask("can_allocate", place, scene.size(place), pending)
        yield _REPORT


def _enlarge(scene: Scene, random: Random) -> Iterator[Ask]:
    """Serve the largest item that is absent: it takes the room of many."""
    absent = [k for k in range(len(scene.places)) if not scene.is_cached(k)]
    if absent:
        yield from _serve(scene, max(absent, key=scene.size))


def _scan(scene: Scene, random: Random) -> Iterator[Ask]:
    """Each item once, and released at once or one later."""
    behind = random.random() < 0.3
    last: int | None = None
    for place in _ordered(scene, random, range(len(scene.places))):
        yield from _serve(scene, place)
        if not behind:
            yield _release(place)
        elif last is not None:
            yield _release(last)
        last = place
    if random.random() < 0.3:
        yield _REPORT


def _hammer(scene: Scene, random: Random) -> Iterator[Ask]:
    """One call again and again: a hit, a release and a hit, a question, a report."""
    place = random.randrange(len(scene.places))
    yield from _serve(scene, place)
    again: Sequence[Ask] = random.choice(
        (
            (_lookup(place),),
            (_lookup(place),),
            (_lookup(place), _release(place)),
            (Ask("can_allocate", place, scene.size(place)),),
            (Ask("allocate", place),),
            (_REPORT,),
            (_release(place),),
        )
    )
    for _ in range(random.choice(_OFTEN)):
        yield from again


def _turn_over(scene: Scene, random: Random) -> Iterator[Ask]:
    """One item is made, given back, evicted for another, and reported, again and again."""
    place = random.randrange(len(scene.places))
    others = [
        k
        for k, other in enumerate(scene.places)
        if other.mm_hash != scene.places[place].mm_hash and not scene.is_cached(k)
    ]
    if not others:
        return
    other = random.choice(others)
    told = random.random() < 0.8
    for _ in range(random.choice(_OFTEN)):
        yield Ask("allocate", place)
        yield _release(place)
        size = scene.size(other)
        yield Ask("can_allocate", other, size, max(0, scene.room()[1] - size))
        if told:
            yield _REPORT


def _share(scene: Scene, random: Random) -> Iterator[Ask]:
    """All that carry one hash take it, and give it back in another order."""
    mm_hash = random.choice(scene.places).mm_hash
    alike = [k for k, place in enumerate(scene.places) if place.mm_hash == mm_hash]
    for place in _ordered(scene, random, alike):
        yield from _serve(scene, place)
    if random.random() < 0.5:
        for place in _ordered(scene, random, alike):
            yield _release(place)
    else:
        holders = list(dict.fromkeys(scene.places[k].request for k in alike))
        for request in random.sample(holders, len(holders)):
            yield Ask("free", request)


def _return(scene: Scene, random: Random) -> Iterator[Ask]:
    """A request ends and comes again under the same id."""
    request = random.choice(scene.places).request
    mine = [k for k, place in enumerate(scene.places) if place.request == request]
    for _ in range(2):
        for place in _ordered(scene, random, mine):
            yield from _serve(scene, place)
        yield Ask("free", request)


def _ask_again(scene: Scene, random: Random) -> Iterator[Ask]:
    """The same question before and after something else, for who keeps an answer too long."""
    place = random.randrange(len(scene.places))
    if scene.is_cached(place) and random.random() < 0.7:
        question = _lookup(place)
    else:
        size, (free, freeable) = scene.size(place), scene.room()
        pending = max(0, random.choice((free, freeable, freeable)) - size + random.choice((0, 1)))
        pending = random.choice((0, pending))
        question = Ask("can_allocate", place, size - (random.random() < 0.1), pending)
    for _ in range(random.choice((2, 3, 4))):
        yield question
        held = scene.held()
        between = random.randrange(6)
        if between == 0 and held:
            yield _release(random.choice(held))
        elif between == 1 and held:
            yield Ask("free", scene.places[random.choice(held)].request)
        elif between == 2:
            yield from _serve(scene, random.randrange(len(scene.places)))
        elif between == 3:
            yield _REPORT
        elif between == 4:
            yield from _squeeze(scene, random)
        else:
            yield _ANY
    yield question


def _look(scene: Scene, random: Random) -> Iterator[Ask]:
    """Every item is looked up, and what was found is given back."""
    for place in _ordered(scene, random, range(len(scene.places))):
        held_before = place in scene.held()
        yield _lookup(place)
        if not held_before:
            yield _release(place)


def _report(scene: Scene, random: Random) -> Iterator[Ask]:
    """Reports, one after the other."""
    for _ in range(random.choice((1, 1, 2, 4))):
        yield _REPORT


def _begin_again(scene: Scene, random: Random) -> Iterator[Ask]:
    """A reset in the middle, and the releases that come too late."""
    late = _ordered(scene, random, scene.held())
    yield _RESET
    if random.random() < 0.5:
        for place in late[: random.randint(0, len(late))]:
            yield _release(place)
    if random.random() < 0.3:
        yield _RESET


PHASES: tuple[Phase, ...] = (
    _wander,
    _fill,
    _pour,
    _drain,
    _end,
    _squeeze,
    _trim,
    _enlarge,
    _scan,
    _hammer,
    _turn_over,
    _share,
    _return,
    _ask_again,
    _look,
    _report,
    _begin_again,
)

_CIRCLES: tuple[tuple[Phase, ...], ...] = (
    (_fill, _drain, _squeeze),
    (_fill, _end, _enlarge),
    (_fill, _drain, _enlarge, _report),
    (_pour, _end, _enlarge, _report),
    (_pour, _drain, _squeeze, _report),
    (_scan, _squeeze, _report),
    (_share, _squeeze),
)
"""An eviction of several needs a full cache of which much is idle."""
