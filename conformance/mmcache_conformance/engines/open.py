"""From the text that names an engine to the target.

`reference-pass[:VARIANT]` · `vllm-scheduler[:WORD]...` · `vllm-live[:WORD]...`
"""

from __future__ import annotations

from ..errors import TargetNameError
from .protocol import EngineTarget

__all__ = ["ENGINE_FORMS", "is_engine_name", "open_engine"]

REFERENCE_PASS = "reference-pass"
VLLM_SCHEDULER = "vllm-scheduler"
VLLM_LIVE = "vllm-live"
ENGINE_FORMS = f"{REFERENCE_PASS}[:VARIANT], {VLLM_SCHEDULER}[:WORD]... or {VLLM_LIVE}[:WORD]..."


def is_engine_name(name: str) -> bool:
    """Whether the text names an engine, rightly or wrongly, and no manager."""
    return name.partition(":")[0] in {REFERENCE_PASS, VLLM_SCHEDULER, VLLM_LIVE}


def open_engine(name: str) -> EngineTarget:
    """The target, not yet started. Raises `TargetNameError`.

    Only what is named is imported: to run vectors on something else needs none of it.
    """
    scheme, _, rest = name.partition(":")
    if scheme == REFERENCE_PASS:
        from .reference import ReferencePass

        return ReferencePass(rest or "specified")
    if scheme == VLLM_SCHEDULER:
        from .vllm.target import VllmScheduler

        return VllmScheduler(name)
    if scheme == VLLM_LIVE:
        from .vllm_live.target import VllmLive

        return VllmLive(name)
    raise TargetNameError(f"{name!r} does not name an engine: {ENGINE_FORMS}")
