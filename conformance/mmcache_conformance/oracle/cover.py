"""Few decisions that together explain as many failures as all do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

__all__ = ["covering"]


def covering(
    explains: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str, list[str], tuple[str, ...]]]:
    """Greedily the decision that explains most of what is left, and what of it that is.

    With it, the others that explain exactly the same of it, and cannot be told apart.
    """
    left = {id for ids in explains.values() for id in ids}
    while left:
        cover = {name: [id for id in ids if id in left] for name, ids in explains.items()}
        best = max(cover, key=lambda name: len(cover[name]))
        yield best, cover[best], tuple(n for n in cover if n != best and cover[n] == cover[best])
        left -= set(cover[best])
