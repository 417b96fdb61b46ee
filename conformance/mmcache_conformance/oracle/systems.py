"""The specified transition system of each kind of manager."""

from __future__ import annotations

from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import ledger
from mmcache_vectors.manager import Manager

__all__ = ["specified"]


def specified(manager: Manager) -> TransitionSystem:
    """The protocol as it should be, for this kind of manager."""
    return ledger() if manager == "encoder_cache" else encoder_decoder()
