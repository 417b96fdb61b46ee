"""Long vectors: some hundred calls in worlds of some hundred hashes, requests or positions.

Deep vectors end at eight of anything. What is wrong from the ninth, the seventeenth or the
257th on, or only after some hundred calls of one life, needs more. A walk goes from phase to phase;
few walks are chosen that together show every amount that there may be a limit to, on both sides of
where such limits are, and every pair of phases, one after the other.

What must come back is the interpreter's answer to every call. The state is shown at the ends of
some phases only: of some hundred entries after each of some hundred calls, a file would be large
and a run slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from random import Random

from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Expect,
    Free,
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
from ..oracle import Replay, by_age, input_name
from ..phases import PHASES, Ask, Place
from .amounts import AMOUNT, Amounts
from .draft import CLOSING, answered, by_hits
from .managers import specified

__all__ = ["LONG", "long_vectors"]

LONG = 13
"""The most long vectors: as many as the default run has time for."""


SHOWN = 3000
"""Entries of shown states in one vector: hashes, references and positions that are held."""

_BY_NAME = {phase.__name__.strip("_"): phase for phase in PHASES}

_QUICK = ("pour", "drain", "end", "squeeze", "trim", "enlarge", "report", "begin_again")
"""Those that ask for few admissions, which take long where hundreds are idle."""


@dataclass(frozen=True)
class _Setting:
    """A world, how many calls a walk through it has, and by which phases it goes."""

    name: str
    parameters: Parameters
    calls: int
    phases: tuple[str, ...] = tuple(_BY_NAME)
    first: tuple[str, ...] = ()
    system: str = "ledger"
    walks: int = 8
    """How many candidates; fewer where one takes long."""


def _world(capacity: int, *requests: Sequence[tuple[str, int]]) -> Parameters:
    return Parameters(
        capacity,
        tuple(
            Request(f"r{k + 1}", tuple(Item(name, size) for name, size in items))
            for k, items in enumerate(requests)
        ),
    )


def _hashes(count: int, size: int = 1, first: int = 1) -> list[tuple[str, int]]:
    return [(f"h{k}", size) for k in range(first, first + count)]


def _dealt(items: Sequence[tuple[str, int]], requests: int) -> list[list[tuple[str, int]]]:
    """The items in turn to so many requests."""
    return [list(items[k::requests]) for k in range(requests)]


_A, _B = ("A", 1), ("B", 1)

ROLL = "a roll of names"
"""The setting that is chosen first of all: every request has an item of its own, and each is asked
for and served. The kit plays it under names that are alike in every way."""

NO_SIZE = "a long life with items of no size"
"""Chosen in any case too: no amount that is counted tells what has no size from what has one."""

_SETTINGS = (
    _Setting(
        "hundreds of hashes",
        _world(300, *_dealt(_hashes(300), 5), [("big", 300), ("half", 151), ("few", 30)]),
        400,
        _QUICK,
        ("pour", *["end"] * 5, "trim", "report", "trim", "report", "enlarge", "report"),
        walks=1,
    ),
    _Setting(
        ROLL,
        _world(32, *_dealt(_hashes(32), 32), [("all", 32)]),
        140,
        first=("fill", "drain", "drain", "enlarge", "report"),
        walks=1,
    ),
    _Setting(
        "hundreds of users",
        _world(2, *([_A] for _ in range(270)), [_A, _B, ("both", 2)]),
        560,
        ("share", "end", "pour", "drain", "squeeze", "report", "begin_again"),
        ("share", "enlarge"),
        walks=1,
    ),
    _Setting(
        "hundreds of positions",
        _world(2, [(_A, _B)[k % 9 == 4] for k in range(270)], [_A, _B, ("both", 2)]),
        560,
        ("pour", "share", "drain", "end", "squeeze", "return", "report"),
        ("share", "enlarge"),
    ),
    *(
        _Setting(
            f"a long life of {hashes} hashes",
            _world(
                capacity,
                *_dealt([(f"h{k}", 1 + k % 3) for k in range(hashes)] * 2, 3),
                [(f"h{k}", 1 + k % 3) for k in range(0, hashes, 2)],
                [("half", capacity // 2 + 1), ("all", capacity)],
                [],
            ),
            400,
            walks=14,
        )
        for hashes, capacity in ((3, 3), (5, 7), (7, 14))
    ),
    *(
        _Setting(
            f"a crowd of {requests} requests and {hashes} hashes",
            _world(
                capacity,
                *_dealt([(f"h{7 * k % hashes}", 1 + k % 2) for k in range(items)], requests),
                [("big", capacity), ("half", capacity // 2 + 1)],
                [],
            ),
            240,
            walks=4,
        )
        for hashes, requests, items, capacity in (
            (20, 12, 36, 20),
            (36, 36, 72, 50),
            (48, 20, 60, 70),
        )
    ),
    _Setting(
        "one identifier with two sizes",
        _world(4, [_A, _B], [("A", 3), ("C", 1)], [("A", 3), _B], [("all", 4)]),
        160,
    ),
    _Setting(
        NO_SIZE,
        _world(
            8,
            *_dealt([(f"h{k}", k % 4) for k in range(12)] * 2, 3),
            [(f"h{k}", k % 4) for k in range(0, 12, 2)],
            [("all", 8)],
        ),
        240,
        walks=1,
    ),
    _Setting(
        "hundreds of charges",
        _world(280, *_dealt(_hashes(280), 30)),
        330,
        ("pour", "drain", "end", "squeeze", "report", "begin_again"),
        ("pour", "report", "drain"),
        system="encoder_decoder",
    ),
    _Setting(
        "a long life",
        _world(3, [_A, _B], [_A, ("C", 2)], [_B], []),
        220,
        system="encoder_decoder",
    ),
)


@dataclass(frozen=True)
class _Walk:
    """A candidate, and the amounts and pairs of phases that it shows."""

    setting: int
    number: int
    calls: tuple[Call, ...]
    ends: frozenset[int]
    """The calls with which a phase ends, or with which there is more of something than before."""
    shows: frozenset[str]


def long_vectors(executor: Executor) -> dict[str, Vector]:
    """The chosen ones, by id. The result does not depend on how the work is shared out."""
    work = [(k, n) for k, setting in enumerate(_SETTINGS) for n in range(setting.walks)]
    candidates = list(executor.map(_walk, *zip(*work, strict=True)))
    return {vector.id: vector for vector in executor.map(_vector, _chosen(candidates))}


def _chosen(candidates: Sequence[_Walk]) -> list[_Walk]:
    """Greedily the one that adds most for its calls, by its number where several do.

    What few walks show counts the more, and an amount as twenty pairs.
    """
    found_in = Counter(word for walk in candidates for word in walk.shows)
    worth = {w: (20_000 if AMOUNT in w else 1000) // count for w, count in found_in.items()}
    missing = set(found_in)
    chosen = [walk for walk in candidates if _SETTINGS[walk.setting].name in {ROLL, NO_SIZE}]
    missing -= set().union(*(walk.shows for walk in chosen))

    def gain(walk: _Walk) -> tuple[float, int, int]:
        adds = sum(worth[word] for word in walk.shows & missing)
        return adds / (100 + len(walk.calls)), -walk.setting, -walk.number

    while missing and len(chosen) < LONG:
        best = max(candidates, key=gain)
        if not best.shows & missing:
            break
        chosen.append(best)
        missing -= best.shows
    return sorted(chosen, key=lambda w: (w.setting, w.number))


def _vector(walk: _Walk) -> Vector:
    setting = _SETTINGS[walk.setting]
    system = specified(setting.system)
    return answered(
        f"long-{walk.setting}-{walk.number}",
        f"A long walk, {setting.name}: {len(walk.shows)} amounts and pairs of phases.",
        f"{len(walk.shows)} amounts and pairs of phases",
        SPECIFIED.name,
        (),
        system,
        setting.parameters,
        [*by_hits(system, setting.parameters, walk.calls), *CLOSING],
        shown=_Shown(walk.ends),
    )


class _Shown:
    """Which state of an answer a vector expects.

    At the end of a phase all of it, while there is room; else nothing.
    """

    def __init__(self, ends: frozenset[int]) -> None:
        self._ends = ends
        self._left = SHOWN

    def __call__(self, number: int, answer: Expect) -> Expect:
        seen = answer.observe
        entries = sum(1 + len(users) for users in (seen.cached or {}).values())
        entries += sum(map(len, (seen.held or {}).values()))
        if number not in self._ends or entries > self._left:
            return Expect(answer.returns, Observed())
        self._left -= entries
        return answer


# --- the walks ---------------------------------------------------------------------------------


def _walk(setting: int, number: int) -> _Walk:
    given = _SETTINGS[setting]
    random = Random(f"long walk {setting} {number}")
    scene = _Scene(given)
    calls: list[Call] = []
    ends: set[int] = set()
    amounts = Amounts(scene.replay.interpreter.world)
    shows: set[str] = set()
    before: str | None = None
    for name in _phases(given, random):
        begun = len(calls)
        at_first = amounts.levels(scene.replay.state)
        for ask in _with_probes(_BY_NAME[name](scene, random), scene, random):
            call = scene.call(random, ask)
            done = scene.made(call)
            if done is not None:
                now = set(amounts.after(call, done, scene.replay.state))
                if now - shows:
                    ends.add(len(calls))
                shows |= now
                calls.append(call)
            if len(calls) == given.calls:
                break
        if len(calls) == begun:
            continue
        ends.add(len(calls) - 1)
        shows |= {f"{name} with {level}" for level in at_first}
        if before is not None:
            shows.add(f"{given.system}: {before}, then {name}")
        before = name
        if len(calls) == given.calls:
            break
    return _Walk(setting, number, tuple(calls), frozenset(ends), frozenset(shows))


def _with_probes(asks: Iterator[Ask], scene: _Scene, random: Random) -> Iterator[Ask]:
    """Between the calls of a phase, questions that change nothing.

    For all that is free, and for more than could be free: so what is wrong in the midst of a phase
    shows before it ends.
    """
    for ask in asks:
        yield ask
        if random.random() >= _PROBES:
            continue
        place = random.randrange(len(scene.places))
        size, (free, freeable) = scene.size(place), scene.room()
        wanted = random.choice((free, freeable + 1, freeable + 1, freeable + 1, 3 * freeable + 99))
        if wanted >= size:
            yield Ask("can_allocate", place, size, wanted - size)


_PROBES = 0.1
"""After how many calls there is a question."""

_MOST_PHASES = 200


def _phases(given: _Setting, random: Random) -> Iterator[str]:
    yield from given.first
    for _ in range(_MOST_PHASES):
        yield random.choice(given.phases)


class _Scene:
    """The specified manager, as phases see it."""

    def __init__(self, given: _Setting) -> None:
        self._parameters = given.parameters
        self.replay = Replay(specified(given.system), given.parameters, record=False)
        named = [
            (r, k, item.identifier, item.num_embeds)
            for r, request in enumerate(given.parameters.requests)
            for k, item in enumerate(request.items)
        ]
        numbers = {name: k for k, name in enumerate(dict.fromkeys(name for _, _, name, _ in named))}
        self.places = [Place(n, r, k, numbers[h]) for n, (r, k, h, _) in enumerate(named)]
        self._sizes = [size for *_, size in named]
        self._names = [input_name(given.parameters.requests[r].request_id, k) for r, k, *_ in named]

    @property
    def requests(self) -> int:
        return len(self._parameters.requests)

    def size(self, place: int) -> int:
        return self._sizes[place]

    def held(self) -> list[int]:
        state = self.replay.state
        held = state["held"] if "held" in state else state["outstanding"]
        return [k for k, name in enumerate(self._names) if (name,) in held]

    def is_cached(self, place: int) -> bool:
        hash_of = self.replay.interpreter.world.functions["hash_of"]
        return (hash_of[self._names[place]],) in self.replay.state.get("cached", ())

    def room(self) -> tuple[int, int]:
        free: int = self.replay.state["free_slots"]
        return free, self.replay.state.get("freeable_slots", free)

    def idle(self) -> list[int]:
        if "freeable" not in self.replay.state:
            return []
        sizes = self.replay.interpreter.world.functions["size"]
        return [sizes[h] for h in by_age(self.replay.state)]

    def made(self, call: Call) -> Expect | None:
        """The answer; None where a caller must not make the call."""
        return self.replay.answer(call)

    def call(self, random: Random, ask: Ask) -> Call:
        """The call that a phase wants; any, where it wants none in particular."""
        if not ask.kind:
            ask = self._any(random)
        if ask.kind == "get_freed_mm_hashes":
            return GetFreedMmHashes()
        if ask.kind == "reset":
            return Reset()
        if ask.kind == "free":
            return Free(self._parameters.requests[ask.at].request_id)
        place = self.places[ask.at]
        at = self._parameters.requests[place.request].request_id, place.position
        if ask.kind == "can_allocate":
            return CanAllocate(*at, ask.budget, ask.pending)
        return _CALLS[ask.kind](*at)

    def _any(self, random: Random) -> Ask:
        place = random.randrange(len(self.places))
        kind = random.choice((*_CALLS, *_CALLS, "can_allocate", "can_allocate", "free"))
        if kind == "free":
            return Ask(kind, self.places[place].request)
        size = self.size(place)
        return Ask(
            kind, place, size - (size > 0 and random.random() < 0.1), random.choice((0, 0, 1))
        )


_CALLS: dict[str, Callable[[str, int], Call]] = {
    "check_and_update_cache": CheckAndUpdateCache,
    "allocate": Allocate,
    "free_encoder_input": FreeEncoderInput,
}
