"""The vectors: those of the package, or those of a directory, of managers, engines and pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

import msgspec

from mmcache_vectors import engine, manager, pair
from mmcache_vectors.document import canonical, read
from mmcache_vectors.engine import EngineVector
from mmcache_vectors.manager import Vector, VectorError
from mmcache_vectors.pair import PairVector

__all__ = [
    "ENGINES",
    "MANAGERS",
    "PAIRS",
    "AnyVector",
    "VectorFormat",
    "defended",
    "load_all",
    "load_suite",
    "suite_digest",
    "suite_version",
]

AnyVector = Vector | EngineVector | PairVector
V = TypeVar("V", Vector, EngineVector, PairVector)


@dataclass(frozen=True)
class VectorFormat(Generic[V]):
    """One kind of vectors: how they are called, where the package has them, how they are read."""

    noun: str
    name: str
    """What a file of it says of itself."""
    folder: str
    decode: Callable[[bytes, str], V]


MANAGERS = VectorFormat("vectors", manager.FORMAT, "vectors", manager.decode)
ENGINES = VectorFormat("engine vectors", engine.FORMAT, "engine_vectors", engine.decode)
PAIRS = VectorFormat("pair vectors", pair.FORMAT, "pair_vectors", pair.decode)
_FORMATS: tuple[VectorFormat[Any], ...] = (MANAGERS, ENGINES, PAIRS)


@overload
def load_suite(directory: Path | None = None) -> tuple[Vector, ...]: ...
@overload
def load_suite(directory: Path | None, format: VectorFormat[V]) -> tuple[V, ...]: ...
def load_suite(directory: Path | None = None, format: VectorFormat[Any] = MANAGERS) -> Any:
    """All vectors of one kind, sorted by id. A directory may have other kinds beside them.

    Raises `VectorError`, also if there are none.
    """
    return _packaged(format) if directory is None else _of_kind(directory, format)


def load_all(directory: Path | None = None) -> tuple[AnyVector, ...]:
    """The vectors of all kinds, each sorted by id: of managers, of engines, of pairs.

    Raises `VectorError`.
    """
    if directory is None:
        return (*load_suite(None), *load_suite(None, ENGINES), *load_suite(None, PAIRS))
    found = _load(directory, _FORMATS)
    if not found:
        raise VectorError(f"{directory}: no vectors here; they are files named *.json")
    kinds = (Vector, EngineVector, PairVector)
    return tuple(sorted(found, key=lambda v: kinds.index(type(v))))


@cache
def _packaged(format: VectorFormat[V]) -> tuple[V, ...]:
    """Those of the package, read once: nothing changes them while a program runs."""
    return _of_kind(files("mmcache_vectors") / format.folder, format)


def _of_kind(root: Traversable, format: VectorFormat[V]) -> tuple[V, ...]:
    found = _load(root, (format,))
    if not found:
        raise VectorError(f"{root}: no {format.noun} here; they are files named *.json")
    return cast(tuple[V, ...], found)


def _load(root: Traversable, wanted: Sequence[VectorFormat[Any]]) -> tuple[AnyVector, ...]:
    try:
        found = sorted(
            (f for f in root.iterdir() if f.name.endswith(".json")), key=lambda f: f.name
        )
    except OSError as error:
        raise VectorError(f"{root}: {error.strerror}") from None
    vectors: dict[str, AnyVector] = {}
    for file in found:
        source = str(file)
        content = read(file, error=VectorError)
        format = _format_of(content)
        if format is not None and format not in wanted:
            continue
        # What says that it is none of them is for the first kind to refuse.
        vector: AnyVector = (format or wanted[0]).decode(content, source)
        if vector.id in vectors:
            raise VectorError(f"{source}: at $.id: {vector.id!r} is the id of another file too")
        vectors[vector.id] = vector
    return tuple(vectors[id] for id in sorted(vectors))


class _Header(msgspec.Struct):
    format: str


def _format_of(content: bytes) -> VectorFormat[Any] | None:
    """The kind that the file says it is."""
    try:
        said = msgspec.json.decode(content, type=_Header).format
    except (msgspec.DecodeError, RecursionError):
        return None
    return next((f for f in _FORMATS if f.name == said), None)


@cache
def defended() -> Mapping[str, tuple[str, ...]]:
    """For each vector of the package, by its id: the clauses that it has been seen to defend."""
    content = (files("mmcache_vectors") / "manifest.json").read_bytes()
    return msgspec.json.decode(content, type=_Manifest).defends


class _Manifest(msgspec.Struct):
    defends: dict[str, tuple[str, ...]] = {}


def suite_version() -> str:
    """The version of the package that the vectors and the harness came with."""
    try:
        return version("mmcache-spec")
    except PackageNotFoundError:
        return "not installed"


def suite_digest(vectors: Iterable[AnyVector]) -> str:
    """Sixteen hex digits of the canonical bytes of the vectors, in the order of their ids."""
    digest = hashlib.sha256()
    for vector in sorted(vectors, key=lambda v: v.id):
        digest.update(canonical(vector))
    return digest.hexdigest()[:16]
