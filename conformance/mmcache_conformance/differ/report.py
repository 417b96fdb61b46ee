"""The `--json` output of `differ`: how much was played, and what was found."""

from __future__ import annotations

from typing import Literal

import msgspec

from mmcache_vectors.manager import Vector

from ..exits import ExitCode
from ..implementation import Implementation
from ..verdicts.model import Difference

__all__ = ["DifferReport", "Finding"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One difference, by a sequence of calls as short as it could be made."""

    vector: Vector
    """The sequence with what the specification answers; the last step differs."""
    differences: tuple[Difference, ...]
    clauses: tuple[str, ...]
    """What the answer breaks."""
    decisions: tuple[str, ...]
    """The wrong decisions of the specification's list that explain every answer up to the end."""
    sequence: int
    """Its number in the campaign, from 0: the first that differed in this way."""
    calls_at_first: int
    """How long it was when it was found."""
    after: tuple[Vector, ...] = ()
    """What has to be played before in the same process; nothing for a difference that shows in a
    process of its own."""


class DifferReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a campaign found. `sequences` are those that were played and compared."""

    format: Literal["mmcache/differ"] = "mmcache/differ"
    format_version: Literal[1] = 1
    exit_code: ExitCode
    target: str
    implementation: Implementation
    seed: int
    sequences: int
    calls: int
    worlds: int
    seconds: float
    known: int
    """Sequences that differ only as `--expected` says."""
    left_out: tuple[str, ...]
    """Calls that the target lacks, and which were therefore not made."""
    findings: tuple[Finding, ...]
