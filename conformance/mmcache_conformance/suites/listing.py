"""What the vectors are, in short: the `--json` output of `list`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ..implementation import Kind
from .load import AnyVector, defended, suite_digest, suite_version

__all__ = ["Listed", "Listing", "listing"]


class Listed(msgspec.Struct, frozen=True):
    """One vector. `clauses` are those that it is about, `defends` those that it defends."""

    id: str
    kind: Kind
    variant: str
    clauses: tuple[str, ...]
    defends: tuple[str, ...]
    kills: tuple[str, ...]
    description: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors in the order of their ids, those of managers first, of pairs last."""

    format: Literal["mmcache/list"] = "mmcache/list"
    format_version: Literal[1] = 1
    version: str
    digest: str
    vectors: tuple[Listed, ...]


def listing(vectors: Sequence[AnyVector]) -> Listing:
    """What these vectors are."""
    found = tuple(
        Listed(
            v.id,
            v.kind,
            v.variant,
            v.clauses,
            defended().get(v.id, v.clauses),
            v.kills,
            v.description,
        )
        for v in vectors
    )
    return Listing(version=suite_version(), digest=suite_digest(vectors), vectors=found)
