"""vLLM's processor caches as a target: `vllm-processor-cache:VERSION[:WORD]...`.

The classes alone are innocent: what P0 does for a request, and the order in which P1 gets it, are
part of the target, and are the release's own. A rejected request is not sent, as in vLLM. The words
put the repairs of `repairs` on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from mmcache_vectors.pair import PairParameters, PairRequest, origin

from ..errors import TargetNameError, describe_exception
from ..implementation import Implementation
from ..targets.wire import PAIR_CALLS, PAIR_STATE
from .play import play
from .protocol import Keys, NotOffered, PairAnswer, PairCase, PairMiss, RequestFailed
from .repairs import REPAIRS
from .vllm_source import Released, Tensor, load_released

__all__ = ["SCHEME", "VllmPair", "VllmSides"]

SCHEME = "vllm-processor-cache"


class _Processor:
    """What `_merge_mm_kwargs` uses of the processor that it is a method of."""

    def _recompute_cached_prompt_update(self, update: Any, item: int) -> Any:
        return update


@dataclass
class VllmSides:
    """The two caches of a release, with its own request procedure.

    A repair changes a method, or `travels`.
    """

    of: Released
    capacity: int
    messages: dict[str, list[tuple[Any, str]]] = field(default_factory=dict)
    travels: bool = False
    """Whether the items of a rejected request are sent all the same."""

    def __post_init__(self) -> None:
        multimodal = SimpleNamespace(mm_processor_cache_gb=self.capacity)
        config = SimpleNamespace(get_multimodal_config=lambda: multimodal)
        self.p0: Any = self.of.sender(config)
        self.p1: Any = self.of.receiver(config)

    # --- P0 ------------------------------------------------------------------------------------

    def process(self, request: PairRequest) -> tuple[bool, ...]:
        hashes: dict[str, list[str]] = {}
        positions: dict[str, list[Any]] = {}
        items: dict[str, list[Any]] = {}
        for place, item in enumerate(request.items):
            tensor = Tensor(item.size, origin(request.request_id, place))
            hashes.setdefault(item.modality, []).append(item.identifier)
            positions.setdefault(item.modality, []).append(SimpleNamespace(offset=place))
            items.setdefault(item.modality, []).append(self.of.item({"data": tensor}))
        cached = {m: self.p0.is_cached(hs) for m, hs in hashes.items()}
        kwargs = self.merge(hashes, items, positions, cached)
        order = self.of.argsort(positions)
        message = [(kwargs[m][k], hashes[m][k]) for m, k in order]
        self.messages[request.request_id] = message
        return tuple(data is not None for data, _ in message)

    def merge(
        self,
        hashes: dict[str, list[str]],
        items: dict[str, list[Any]],
        positions: dict[str, list[Any]],
        cached: dict[str, list[bool]],
    ) -> Any:
        """The release's own procedure: by modality, for each item, what is sent for it."""
        missing = {
            m: [item for item, there in zip(own, cached[m], strict=True) if not there]
            for m, own in items.items()
        }
        updates: dict[str, list[Any]] = {m: [[] for _ in own] for m, own in missing.items()}
        arguments = [hashes, cached, missing, updates]
        if self.of.merge.__code__.co_argcount == 5:  # before 0.12 it asks the cache itself
            arguments.remove(cached)
        return self.of.merge(_Processor(), self.p0, *arguments)[0]

    def withdraw(self, request_id: str) -> bool:
        if not self.travels:
            del self.messages[request_id]
        return self.travels

    def invalidate(self, identifier: str) -> None:
        if not hasattr(self.p0, "invalidate"):
            raise NotOffered("invalidate")
        self.p0.invalidate(identifier)

    def clear_sender(self) -> None:
        self.p0.clear_cache()

    # --- P1 ------------------------------------------------------------------------------------

    def deliver(self, request_id: str) -> tuple[str, ...]:
        features = [
            SimpleNamespace(data=data, mm_hash=h, identifier=h, modality="image", mm_position=None)
            for data, h in self.messages.pop(request_id)
        ]
        try:
            handled = self.handle(features)
        except Exception as error:
            if self.of.miss is not None and isinstance(error, self.of.miss):
                raise PairMiss(tuple(getattr(error, "mm_hashes", ()))) from None
            if self.of.goes_on:
                raise RequestFailed(describe_exception(error)) from None
            raise
        return tuple(feature.data["data"].origin for feature in handled)

    def handle(self, features: list[Any]) -> list[Any]:
        """The release's own procedure of P1."""
        handled: list[Any] = self.p1.get_and_update_features(features)
        return handled

    def clear_receiver(self) -> None:
        self.p1.clear_cache()

    # --- what they hold ------------------------------------------------------------------------

    def keys(self) -> Keys:
        return Keys(
            tuple(h for h in self.p0._cache.order if h in self.p0._cache),
            tuple(h for h in self.p1._cache.order if h in self.p1._cache),
            tuple(self.p1._cache.order),
        )


class VllmPair:
    """The processor caches of one release."""

    def __init__(self, name: str, *, refresh: bool = False) -> None:
        """Raises `TargetNameError`."""
        self.name = name
        scheme, *words = name.split(":")
        self._version = words.pop(0) if words else ""
        if scheme != SCHEME or not self._version or any(word not in REPAIRS for word in words):
            raise TargetNameError(
                f"{name!r} does not name processor caches: {SCHEME}:VERSION, and any of the words "
                f"{', '.join(REPAIRS)}, each after a colon"
            )
        self._words = words
        self._refresh = refresh
        self._released: Released | None = None

    def start(self) -> Implementation:
        self._released = load_released(self._version, refresh=self._refresh)
        name = f"vLLM {self._released.version}, processor cache"
        calls = [n for n in PAIR_CALLS if n == "withdraw" or hasattr(self._released.sender, n)]
        offered = (*calls, *PAIR_STATE)
        return Implementation(name, self._released.version, "python", {"processor_cache": offered})

    def fresh(self, parameters: PairParameters) -> VllmSides:
        """A new pair, with the repairs that were asked for."""
        assert self._released is not None
        sides = VllmSides(self._released, parameters.capacity)
        for word, repair in REPAIRS.items():
            if word in self._words:
                repair(sides)
        return sides

    def play(self, case: PairCase) -> tuple[PairAnswer, ...]:
        return play(case, self.fresh(case.parameters))

    def stop(self) -> None:
        """Nothing to let go of."""
