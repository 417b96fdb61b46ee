"""From the text that names an engine to the target."""

from __future__ import annotations

from ..errors import TargetSpecError
from .protocol import SystemTarget
from .reference import REFERENCE_PASS, REFERENCE_VARIANTS, ReferencePass

__all__ = ["open_system_target"]


def open_system_target(spec: str) -> SystemTarget:
    """The target, not yet started. Raises `TargetSpecError`."""
    name, _, rest = spec.partition(":")
    if name == REFERENCE_PASS:
        variant = rest or "specified"
        if variant not in REFERENCE_VARIANTS:
            known = ", ".join(REFERENCE_VARIANTS)
            raise TargetSpecError(
                f"no variant {variant!r} of the reference pass; there are {known}"
            )
        return ReferencePass(variant)
    if name == "vllm-scheduler":
        from .vllm.target import VllmScheduler

        return VllmScheduler(spec)
    raise TargetSpecError(
        f"{spec!r} does not name an engine: {REFERENCE_PASS}, {REFERENCE_PASS}:VARIANT, or "
        "vllm-scheduler[:v1|:v2][:withdraw][:payload][:mmcache|:two-phase]"
    )
