"""The vectors: those of the package, or those of a directory."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from mmcache_spec.vectors.format import Vector, VectorError, decode

__all__ = ["load_suite"]


def load_suite(directory: Path | None = None) -> tuple[Vector, ...]:
    """All vectors, sorted by id. Raises `VectorError`, also if there are none."""
    root: Traversable = directory or files("mmcache_conformance") / "vectors"
    try:
        found = sorted(
            (f for f in root.iterdir() if f.name.endswith(".json")), key=lambda f: f.name
        )
    except OSError as error:
        raise VectorError(f"{root}: {error.strerror}") from None
    vectors: dict[str, Vector] = {}
    for file in found:
        source = str(file)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise VectorError(f"{source}: {error.strerror}") from None
        try:
            vector = decode(content, source)
        except RecursionError:
            raise VectorError(f"{source}: nested too deeply") from None
        if vector.id in vectors:
            raise VectorError(f"{source}: at $.id: {vector.id!r} is the id of another file too")
        vectors[vector.id] = vector
    if not vectors:
        raise VectorError(f"{root}: no vectors here; they are files named *.json")
    return tuple(vectors[id] for id in sorted(vectors))
