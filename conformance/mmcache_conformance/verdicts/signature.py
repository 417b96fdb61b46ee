"""In what an answer is wrong, without its names and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from mmcache_vectors.manager import Call

from ..targets.protocol import call_name
from .model import Difference

__all__ = ["Signature", "signature_of"]

Signature = tuple[str, ...]
"""The call, and what differs in which direction."""


def signature_of(call: Call, differences: Sequence[Difference]) -> Signature:
    """Two differences of one signature are perhaps two looks at one defect."""
    return (call_name(call), *(_direction(d) for d in differences))


def _direction(difference: Difference) -> str:
    expected, got = difference.expected, difference.got
    if difference.what == "error":
        return "error"
    if difference.what == "returns" and isinstance(expected, tuple) and isinstance(got, tuple):
        more, fewer = set(got) - set(expected), set(expected) - set(got)
        return "reports " + (("other" if fewer else "more") if more else "fewer")
    if isinstance(expected, bool):
        return f"{difference.what} {got}"
    return difference.what
