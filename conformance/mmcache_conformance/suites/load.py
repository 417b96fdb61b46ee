"""The vectors: those of the package, or those of a directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from mmcache_vectors.manager import Vector, VectorError, decode, encode

__all__ = ["load_suite", "suite_digest", "suite_version"]


def load_suite(directory: Path | None = None) -> tuple[Vector, ...]:
    """All vectors, sorted by id. Raises `VectorError`, also if there are none."""
    root: Traversable = directory or files("mmcache_vectors") / "vectors"
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
        vector = decode(content, source)
        if vector.id in vectors:
            raise VectorError(f"{source}: at $.id: {vector.id!r} is the id of another file too")
        vectors[vector.id] = vector
    if not vectors:
        raise VectorError(f"{root}: no vectors here; they are files named *.json")
    return tuple(vectors[id] for id in sorted(vectors))


def suite_version() -> str:
    """The version of the package that the vectors and the harness came with."""
    try:
        return version("mmcache-spec")
    except PackageNotFoundError:
        return "not installed"


def suite_digest(vectors: Iterable[Vector]) -> str:
    """Sixteen hex digits of the canonical bytes of the vectors, in the order of their ids."""
    digest = hashlib.sha256()
    for vector in sorted(vectors, key=lambda v: v.id):
        digest.update(encode(vector))
    return digest.hexdigest()[:16]
