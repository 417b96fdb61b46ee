"""When two differences are one: the same answer is wrong in the same way after the same calls."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass

from mmcache_vectors.manager import Call

from ..targets.protocol import call_name
from ..verdicts.model import Difference
from ..verdicts.signature import Signature, signature_of

__all__ = ["Kind", "kind_of"]

_CLASSES = {
    "check_and_update_cache": "take",
    "allocate": "take",
    "free_encoder_input": "release",
    "free": "release",
}
"""Calls that often stand for one another in the least sequences of one defect."""


@dataclass(frozen=True)
class Kind:
    """What stays the same of a difference when its least sequence is found again elsewhere.

    Two defects can have one signature: a report may name fewer because it ends after two hashes,
    or because it is empty after a reset. Their least sequences then differ in which calls they
    need, or in how many hashes are named.
    """

    signature: Signature
    calls: frozenset[str]
    """Which calls there are; those that take count as one, and those that give back."""
    counts: tuple[tuple[int, int], ...]
    """Of each thing that differs and can be counted, how many were expected, and how many came."""

    def may_be(self, calls: Sequence[Call]) -> bool:
        """Whether a difference after these calls may be of this kind, once they are made few."""
        return self.calls <= _classes(calls)


def kind_of(calls: Sequence[Call], differences: Sequence[Difference]) -> Kind:
    """The kind of a difference that the last call of a least sequence shows."""
    counts = tuple(
        (len(d.expected), len(d.got))
        for d in differences
        if isinstance(d.expected, Sized) and isinstance(d.got, Sized) and d.what != "error"
    )
    return Kind(signature_of(calls[-1], differences), _classes(calls), counts)


def _classes(calls: Sequence[Call]) -> frozenset[str]:
    return frozenset(_CLASSES.get(name, name) for name in map(call_name, calls))
