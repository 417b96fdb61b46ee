"""Which wrong decision of the specification's list explains what a target did."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from mmcache_spec.model.variant import Variant
from mmcache_spec.model.variants import VARIANTS
from mmcache_spec.oracle import Replay
from mmcache_vectors.manager import Call, Manager, Parameters

from ..targets.protocol import Answer
from ..verdicts.judge import answer_differences

__all__ = ["decisions_about", "explained_by"]

_SYSTEMS: dict[Manager, str] = {"encoder_cache": "ledger", "encoder_decoder": "encoder_decoder"}


@cache
def decisions_about(manager: Manager) -> tuple[Variant, ...]:
    """The wrong decisions that a manager of this kind can take."""
    name = _SYSTEMS[manager]
    return tuple(v for v in VARIANTS.values() if v.expected is not None and v.system.name == name)


def explained_by(
    manager: Manager, parameters: Parameters, calls: Sequence[Call], answers: Sequence[Answer]
) -> tuple[str, ...]:
    """The decisions under which every one of the answers would be right."""
    return tuple(v.name for v in decisions_about(manager) if _agrees(v, parameters, calls, answers))


def _agrees(
    variant: Variant, parameters: Parameters, calls: Sequence[Call], answers: Sequence[Answer]
) -> bool:
    replay = Replay(variant.system, parameters)
    for call, answer in zip(calls, answers, strict=False):
        expected = replay.answer(call)
        if expected is None or answer_differences(expected, answer):
            return False
    return True
