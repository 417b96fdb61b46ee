"""The systems that managers implement: their names here and in vectors, their wrong variants."""

from __future__ import annotations

from mmcache_vectors.manager import Manager

from ..kernel.digest import digest
from ..kernel.system import TransitionSystem
from ..model.variants import SPECIFIED, VARIANTS, Variant

__all__ = ["MANAGERS", "PREFIX", "digest", "specified", "system_name", "wrong_ledgers"]


MANAGERS: dict[str, Manager] = {"ledger": "encoder_cache", "encoder_decoder": "encoder_decoder"}
"""The systems that a manager implements."""


PREFIX = {"ledger": "", "encoder_decoder": "encoder-decoder-"}


def specified(name: str) -> TransitionSystem:
    """The right system of this name."""
    (system,) = (s for s in SPECIFIED.systems if s.name == name)
    return system


def system_name(manager: Manager) -> str:
    (name,) = (name for name, m in MANAGERS.items() if m == manager)
    return name


def wrong_ledgers() -> list[Variant]:
    """The variants that vectors for managers can tell from `specified`."""
    return [v for v in VARIANTS.values() if v.expected is not None and v.system.name in MANAGERS]
