"""The manifest of a suite: its sizes, what each vector is good for, and statistics."""

from __future__ import annotations

import json
from typing import Any

from mmcache_vectors.manager import CanAllocate, Vector

from .suite import Suite

__all__ = ["manifest", "statistics"]


def manifest(suite: Suite) -> bytes:
    """Canonical bytes, as of the vectors."""
    content: dict[str, Any] = {
        "defends": suite.defends,
        "format": "mmcache/manifest",
        "format_version": 1,
        "sizes": {
            "deep": suite.deep,
            "long": suite.long,
            "smoke": suite.smoke,
            "standard": sorted(suite.vectors),
        },
        "statistics": statistics(suite),
        "strengths": suite.strengths,
    }
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    return text.encode() + b"\n"


def statistics(suite: Suite) -> dict[str, int | float]:
    """Vectors, steps, and what they reach and kill; a share is of all vectors."""
    vectors = list(suite.vectors.values())
    strengths = {name for names in suite.strengths.values() for name in names}
    quiet = sum(not _evicts(v) for v in vectors)
    return {
        "vectors": len(vectors),
        "vectors of the smoke size": len(suite.smoke),
        "steps": sum(len(v.steps) for v in vectors),
        "goals reached": sum(": goal " in s and " directly after " not in s for s in strengths),
        "pairs of actions reached": sum(" directly after " in s for s in strengths),
        "mutants killed": sum(": mutant " in s for s in strengths),
        "variants killed": sum(": " not in s for s in strengths),
        "share without eviction": round(quiet / len(vectors), 3),
    }


def _evicts(vector: Vector) -> bool:
    before: set[str] = set()
    for step in vector.steps:
        after = set(step.expect.observe.cached or ())
        if isinstance(step.call, CanAllocate) and before - after:
            return True
        before = after
    return False
