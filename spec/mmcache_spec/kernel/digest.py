"""Sixteen hex digits of the definitions of a system: which specification a vector is of."""

from __future__ import annotations

import hashlib

from .system import TransitionSystem
from .terms import alpha_form

__all__ = ["digest"]


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
