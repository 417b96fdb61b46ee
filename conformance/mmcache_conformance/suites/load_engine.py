"""The system vectors: those of the package, or those of a directory."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from mmcache_vectors.engine import SystemVector, VectorError, decode_system

__all__ = ["load_system_suite"]


def load_system_suite(directory: Path | None = None) -> tuple[SystemVector, ...]:
    """All of them, sorted by id. Raises `VectorError`, also if there are none."""
    root: Traversable = directory or files("mmcache_vectors") / "engine_vectors"
    try:
        found = [(str(f), f.read_bytes()) for f in root.iterdir() if f.name.endswith(".json")]
    except OSError as error:
        raise VectorError(f"{root}: {error.strerror}") from None
    if not found:
        raise VectorError(f"{root}: no system vectors here; they are files named *.json")
    vectors = [decode_system(content, source) for source, content in found]
    return tuple(sorted(vectors, key=lambda vector: vector.id))
