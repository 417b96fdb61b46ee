"""What a packed state shows: of a walk through one world, under the names of that world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mmcache_spec.evaluate.uniform import Packed, UniformWorld
from mmcache_spec.phases import Place
from mmcache_vectors.manager import Observed, Parameters

__all__ = ["View", "WalkedScene"]


class View:
    """What a packed state shows, under the names of the world. Parts that were seen are kept."""

    def __init__(
        self, in_world: UniformWorld, parameters: Parameters, shown: frozenset[str]
    ) -> None:
        world = in_world.world
        variables = [v.name for v in in_world.uniform.variables]
        self._at = {name: k for k, name in enumerate(variables)}
        called, sizes = world.functions["identifier"], world.functions["size"]
        self._hashes = [called[h] for h in world.universe["Hash"]]
        self._sizes = [sizes[h] for h in world.universe["Hash"]]
        self._requests = [r.request_id for r in parameters.requests]
        self._width, self._row = len(self._requests), (1 << len(self._requests)) - 1
        universe = world.universe
        owner, position = world.functions["owner"], world.functions["position"]
        self._inputs = [(owner[i], position[i]) for i in universe["Input"]]
        self._shown = shown
        self._whole = "cached" in self._at
        self._reports: dict[int, tuple[str, ...]] = {}
        self._cached: dict[tuple[int, int], dict[str, tuple[str, ...]]] = {}
        self._held: dict[int, dict[str, tuple[int, ...]]] = {}
        self._sets_of_requests: dict[int, tuple[str, ...]] = {}

    def idle(self, state: Packed) -> list[int]:
        """The numbers of the freeable hashes, oldest first; none of an encoder-decoder model."""
        if not self._whole:
            return []
        bits, since = state[self._at["freeable"]], state[self._at["since"]]
        if not bits & (bits - 1):
            return _numbers(bits)
        return sorted(_numbers(bits), key=since.__getitem__)

    def idle_sizes(self, state: Packed) -> list[int]:
        """The sizes of the freeable hashes, oldest first."""
        return [self._sizes[k] for k in self.idle(state)]

    def is_cached(self, state: Packed, mm_hash: int) -> bool:
        """Whether the hash of this number is cached."""
        return self._whole and bool(state[self._at["cached"]] >> mm_hash & 1)

    def known(self, state: Packed) -> int:
        """The bits of the hashes that are cached, or were evicted and not reported yet."""
        known: int = state[self._at["cached"]] | state[self._at["freed"]]
        return known

    @property
    def is_whole(self) -> bool:
        """Whether there is a cache, and not only what is charged."""
        return self._whole

    def held(self, state: Packed) -> int:
        """The bits of the inputs that hold their hash."""
        bits: int = state[self._at["held" if self._whole else "outstanding"]]
        return bits

    def slots(self, state: Packed) -> tuple[int, int]:
        """The free and the freeable slots, which for encoder-decoder models are the same."""
        free: int = state[self._at["free_slots"]]
        return free, state[self._at["freeable_slots"]] if self._whole else free

    def report(self, bits: int) -> tuple[str, ...]:
        if bits not in self._reports:
            self._reports[bits] = tuple(sorted(set(self._members(bits))))
        return self._reports[bits]

    def observed(self, state: Packed) -> Observed:
        at, shown = self._at, self._shown
        free = state[at["free_slots"]] if "num_free_slots" in shown else None
        if not self._whole:
            return Observed(num_free_slots=free)
        return Observed(
            free,
            state[at["freeable_slots"]] if "num_freeable_slots" in shown else None,
            self._cached_in(state) if "cached" in shown else None,
            self._freeable_in(state) if "freeable" in shown else None,
            self._held_in(state) if "held" in shown else None,
        )

    def _members(self, bits: int) -> Iterator[str]:
        return (self._hashes[k] for k in _numbers(bits))

    def _cached_in(self, state: Packed) -> dict[str, tuple[str, ...]]:
        key: tuple[int, int] = state[self._at["cached"]], state[self._at["references"]]
        known = self._cached.get(key)
        if known is None:
            known = self._cached[key] = {
                self._hashes[k]: self._holders(key[1] >> k * self._width & self._row)
                for k in _numbers(key[0])
            }
        return known

    def _holders(self, bits: int) -> tuple[str, ...]:
        found = self._sets_of_requests.get(bits)
        if found is None:
            found = tuple(sorted(self._requests[q] for q in _numbers(bits)))
            self._sets_of_requests[bits] = found
        return found

    def _freeable_in(self, state: Packed) -> tuple[str, ...]:
        return tuple([self._hashes[k] for k in self.idle(state)])

    def _held_in(self, state: Packed) -> dict[str, tuple[int, ...]]:
        bits: int = state[self._at["held"]]
        known = self._held.get(bits)
        if known is None:
            lists: dict[str, list[int]] = {}
            for k in _numbers(bits):
                request, position = self._inputs[k]
                lists.setdefault(request, []).append(position)
            known = self._held[bits] = {r: tuple(sorted(ks)) for r, ks in lists.items()}
        return known


def _numbers(bits: int) -> list[int]:
    """Which bits are set."""
    found = []
    while bits:
        found.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return found


class WalkedScene:
    """The state that a walk has come to, as its phases see it."""

    def __init__(
        self, view: View, places: Sequence[Place], parameters: Parameters, state: Packed
    ) -> None:
        self._view, self._parameters, self.places, self.state = view, parameters, places, state

    @property
    def requests(self) -> int:
        return len(self._parameters.requests)

    def size(self, place: int) -> int:
        at = self.places[place]
        return self._parameters.requests[at.request].items[at.position].num_embeds

    def held(self) -> list[int]:
        bits = self._view.held(self.state)
        return [k for k, place in enumerate(self.places) if bits >> place.number & 1]

    def is_cached(self, place: int) -> bool:
        return self._view.is_cached(self.state, self.places[place].mm_hash)

    def room(self) -> tuple[int, int]:
        return self._view.slots(self.state)

    def idle(self) -> list[int]:
        return self._view.idle_sizes(self.state)
