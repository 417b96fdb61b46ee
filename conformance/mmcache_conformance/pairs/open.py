"""From the text that names a pair of processor caches to the target.

`reference-pair` · `pair:module:Sender,module:Receiver` · `vllm-processor-cache:VERSION[:WORD]...`
"""

from __future__ import annotations

from ..errors import TargetNameError
from .protocol import PairTarget

__all__ = ["PAIR_FORMS", "is_pair_name", "open_pair"]

_REFERENCE = "reference-pair"
_CLASSES = "pair"
_VLLM = "vllm-processor-cache"
PAIR_FORMS = f"{_REFERENCE}, {_CLASSES}:module:Sender,module:Receiver or {_VLLM}:VERSION[:WORD]..."


def is_pair_name(name: str) -> bool:
    """Whether the text names a pair, rightly or wrongly."""
    return name.partition(":")[0] in {_REFERENCE, _CLASSES, _VLLM}


def open_pair(name: str, *, refresh: bool = False) -> PairTarget:
    """The target, not yet started. Raises `TargetNameError`."""
    scheme, colon, rest = name.partition(":")
    if scheme == _VLLM:
        from .vllm import VllmPair

        return VllmPair(name, refresh=refresh)
    from .classes import ClassPair

    if name == _REFERENCE:
        classes = "mmcache.processor_cache:Sender,mmcache.processor_cache:Receiver"
        return ClassPair(name, classes, "the reference")
    if scheme == _CLASSES and colon:
        return ClassPair(name, rest)
    raise TargetNameError(f"{name!r} does not name a pair: {PAIR_FORMS}")
