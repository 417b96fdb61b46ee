"""Who is tested, as a started target says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from mmcache_vectors.manager import Manager

__all__ = ["Implementation", "Kind"]

Kind = Manager | Literal["engine", "processor_cache"]
"""What can be tested: a manager of either kind, a whole engine, or a pair of processor caches."""


class Implementation(msgspec.Struct, frozen=True):
    """Who is tested. `capabilities` has one entry for each kind of manager, or engine, it is."""

    name: str
    version: str | None
    language: str
    capabilities: dict[Kind, tuple[str, ...]]
    source: str | None = None
    """A link to its source."""
    untested: tuple[str, ...] = ()
    """Managers beside those that are tested: how to name each as a target of its own."""
    undriven: Mapping[Kind, str] = {}
    """The kinds of manager that it has and that cannot be driven, each with the reason."""
    uncompared: tuple[str, ...] = ()
    """State that is there and that cannot be compared, each with the reason."""
