"""Engine vectors made by hand, for tests of what is judged on the passes."""

from __future__ import annotations

from mmcache_vectors.engine import (
    ENGINE_CLAUSES,
    FORMAT,
    FORMAT_VERSION,
    EngineSettings,
    EngineVector,
    PassesHold,
    PathProvenance,
    WorkloadRequest,
    content_id,
)

__all__ = ["an_engine_vector"]


def an_engine_vector(
    engine: EngineSettings, requests: tuple[WorkloadRequest, ...], stall_after: int
) -> EngineVector:
    """A vector of which every clause is expected after every pass."""
    expect = PassesHold(ENGINE_CLAUSES, stall_after, max_passes=100)
    return EngineVector(
        FORMAT,
        FORMAT_VERSION,
        content_id("by-hand", engine, requests, (), expect),
        "",
        "specified",
        (),
        (),
        None,
        PathProvenance("", "", "", ()),
        engine,
        requests,
        (),
        expect,
    )
