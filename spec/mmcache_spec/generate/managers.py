"""The systems that managers implement: their names here and in vectors, their wrong variants."""

from __future__ import annotations

import hashlib

from mmcache_vectors.manager import Manager

from ..kernel.system import TransitionSystem
from ..kernel.terms import alpha_form
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


def digest(system: TransitionSystem) -> str:
    """A digest of the definitions: actions, claims, axioms and initial state."""
    parts: list[object] = [(a.name, alpha_form(a.formula)[0]) for a in system.axioms]
    parts += [(v.name, alpha_form(term)[0]) for v, term in system.init]
    for action in system.actions:
        parts.append(action.name)
        parts += [(n, alpha_form(g)[0]) for n, g in action.guard.items()]
        parts += [(v.name, alpha_form(term)[0]) for v, term in action.effect]
        parts.append(None if action.returns is None else alpha_form(action.returns)[0])
    parts += [(p.name, p.clause, alpha_form(p.formula)[0]) for p in system.properties]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
