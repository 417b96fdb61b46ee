"""From the text that names a pair of processor caches to the target.

`reference-pair` · `pair:module:Sender,module:Receiver` · `vllm-processor-cache:VERSION[:WORD]...`
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from ..errors import TargetNameError
from ..targets.command import DEFAULT_TIMEOUT, CommandTarget
from ..targets.isolated import search_path
from .command import CommandPair
from .protocol import PairTarget

__all__ = ["PAIR_FORMS", "is_pair_name", "open_pair"]

_REFERENCE = "reference-pair"
_CLASSES = "pair"
_VLLM = "vllm-processor-cache"
PAIR_FORMS = f"{_REFERENCE}, {_CLASSES}:module:Sender,module:Receiver or {_VLLM}:VERSION[:WORD]..."


def is_pair_name(name: str) -> bool:
    """Whether the text names a pair, rightly or wrongly."""
    return name.partition(":")[0] in {_REFERENCE, _CLASSES, _VLLM}


def open_pair(
    name: str,
    *,
    timeout: float | None = None,
    trace: Callable[[str, bytes], None] | None = None,
    in_process: bool = False,
    refresh: bool = False,
) -> PairTarget:
    """The target, not yet started. Raises `TargetNameError`.

    Args:
        name: As on the command line.
        timeout: What the process of two classes has for one call, in seconds.
        trace: Gets every line that goes to such a process (`>`) or comes from it (`<`).
        in_process: Run foreign classes in this process, and not in one of their own.
        refresh: Read a release of vLLM anew, and not from the cache.
    """
    scheme, colon, rest = name.partition(":")
    if scheme == _VLLM:
        from .vllm import VllmPair

        return VllmPair(name, refresh=refresh)
    from .classes import ClassPair

    if name == _REFERENCE:
        classes = "mmcache.processor_cache:Sender,mmcache.processor_cache:Receiver"
        return ClassPair(name, classes, "the reference")
    if scheme == _CLASSES and colon:
        here = ClassPair(name, rest)
        if in_process:
            return here
        words = [sys.executable, "-P", "-c", _CHILD, json.dumps(search_path()), name]
        limit = timeout or DEFAULT_TIMEOUT
        return CommandPair(CommandTarget(name, words, timeout=limit, trace=trace))
    raise TargetNameError(f"{name!r} does not name a pair: {PAIR_FORMS}")


_CHILD = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from mmcache_conformance.adapters.python import main
sys.exit(main(sys.argv[1:]))
"""
"""It looks for modules where the harness does, from the first on."""
