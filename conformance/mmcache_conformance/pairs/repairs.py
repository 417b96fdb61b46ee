"""The repairs of vLLM's processor cache, put on a release at run time. Its files stay as they are.

Each is as small as a patch to the release would be, and is a decision of the specification that is
proved with the others (`mmcache-spec prove`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["REPAIRS"]


def order_of_the_prompt(sides: Any) -> None:
    """P0 takes the items in the order of the prompt. The switch is `walk = prompt_order`.

    The release's own procedure is called for one item after the other; what is cached is asked
    once, and all of the request is touched first, as it does itself.
    """
    merge = sides.merge

    def merging(hashes: Any, items: Any, positions: Any, cached: Any) -> Any:
        places = sides.of.argsort(positions)
        if hasattr(sides.p0, "touch_sender_cache_item"):
            for modality, k in places:
                sides.p0.touch_sender_cache_item(hashes[modality][k])
        sent: dict[str, dict[int, Any]] = {}
        for modality, k in places:
            one = (({modality: [by[modality][k]]}) for by in (hashes, items, positions, cached))
            sent.setdefault(modality, {})[k] = merge(*one)[modality][0]
        return {m: [by[k] for k in sorted(by)] for m, by in sent.items()}

    sides.merge = merging


def spare_the_request(sides: Any) -> None:
    """An insertion evicts no later item of its own request, or is not made.

    Where they leave no room, the item is stored on neither side. The switch is
    `insertion = spares_the_request`; it stands on `order`. It uses the pins that the release's
    cache has.
    """

    def sparing(cache: Any, later: Sequence[str], size: int, insert: Callable[[], Any]) -> Any:
        kept = {h for h in later if h in cache}
        room = cache.maxsize - sum(cache.getsizeof(cache._Cache__data[h]) for h in kept)
        for h in kept:
            cache.pin(h)
        try:
            return insert() if size <= room else None
        finally:
            cache.pinned_items -= kept

    merge, handle = sides.merge, sides.handle
    order: list[str] = []

    def merging(hashes: Any, items: Any, positions: Any, cached: Any) -> Any:
        order[:] = [hashes[m][k] for m, k in sides.of.argsort(positions)]
        return merge(hashes, items, positions, cached)

    at_sender = sides.p0.get_and_update_item

    def taking(item: Any, mm_hash: str) -> Any:
        order.remove(mm_hash)
        if mm_hash in sides.p0._cache or item is None:
            return at_sender(item, mm_hash)
        size = item[0]["data"].nbytes
        taken = sparing(sides.p0._cache, order, size, lambda: at_sender(item, mm_hash))
        return item if taken is None else taken

    at_receiver = sides.p1.get_and_update_item
    arriving: list[str] = []

    def handling(features: Any) -> Any:
        arriving[:] = [feature.mm_hash for feature in features]
        return handle(features)

    def storing(item: Any, mm_hash: str) -> Any:
        arriving.remove(mm_hash)
        if item is None or mm_hash in sides.p1._cache:
            return at_receiver(item, mm_hash)
        size = item["data"].nbytes
        stored = sparing(sides.p1._cache, arriving, size, lambda: at_receiver(item, mm_hash))
        return item if stored is None else stored

    sides.merge, sides.handle = merging, handling
    sides.p0.get_and_update_item, sides.p1.get_and_update_item = taking, storing


def send_what_was_recorded(sides: Any) -> None:
    """The items of a rejected request are sent all the same. The switch is `rejected = travels`."""
    sides.travels = True


def tell_what_was_forgotten(sides: Any) -> None:
    """What P0 forgets by a clear or after a miss goes with its next message, for P1 to forget.

    The switches are `clear = told` and `miss = forgotten_and_told`.
    """
    owed: set[str] = set()
    process, deliver = sides.process, sides.deliver
    invalidate, clear = getattr(sides.p0, "invalidate", None), sides.p0.clear_cache
    told: dict[str, set[str]] = {}

    def processing(request: Any) -> Any:
        sent = process(request)
        if request.items:
            told[request.request_id] = set(owed)
            owed.clear()
        return sent

    def delivering(request_id: str) -> Any:
        for mm_hash in told.pop(request_id, ()):
            sides.p1._cache.pop(mm_hash, None)
        return deliver(request_id)

    def invalidating(mm_hash: str) -> None:
        if mm_hash in sides.p0._cache:
            owed.add(mm_hash)
        if invalidate is not None:
            invalidate(mm_hash)

    def clearing() -> None:
        owed.update(sides.p0._cache.order)
        clear()

    sides.process, sides.deliver = processing, delivering
    sides.clear_sender = clearing
    sides.clear_receiver = lambda: None
    if invalidate is not None:
        sides.invalidate = invalidating


REPAIRS: dict[str, Callable[[Any], None]] = {
    "order": order_of_the_prompt,
    "spare": spare_the_request,
    "travel": send_what_was_recorded,
    "tell": tell_what_was_forgotten,
}
"""By the word that asks for each in the name of a target; they are put on in this order."""
