"""Find a vLLM's `encoder_cache_manager.py` and load its classes, without vLLM and without torch."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from ...errors import TargetError, describe_exception
from ..python import ManagerClasses
from .stand_ins import execute

__all__ = ["MANAGER_FILE", "Source", "find_source", "load_classes"]

MANAGER_FILE = "vllm/v1/core/encoder_cache_manager.py"
FIRST_IN_SCOPE = "0.10.2"


class Source(msgspec.Struct, frozen=True):
    """One manager file. `name` is for people, `file` for tracebacks."""

    name: str
    file: str
    version: str | None
    content: bytes


def find_source(where: str | None, *, cache: Path | None = None) -> Source:
    """The manager file of the installed vLLM (`None`), of a path, or of a release.

    A path is the file, a directory that holds it, or a wheel; a release is tried only if no such
    path exists. Raises `TargetError`.
    """
    if where is None:
        return _installed()
    path = Path(where)
    if path.suffix == ".whl" and path.is_file():
        return _in_wheel(path)
    if path.is_file():
        return _read(path, None)
    if path.is_dir():
        return _in_directory(path, None)

    from .wheel import is_version, read_release

    if not is_version(where):
        raise TargetError(f"no such file or directory, and not a release such as 0.33.0: {where}")
    version = where.removeprefix("v")
    content = read_release(version, (MANAGER_FILE,), cache=cache)[MANAGER_FILE]
    return Source(f"vLLM {version}", MANAGER_FILE, version, content)


def load_classes(source: Source) -> ManagerClasses:
    """Execute the file. Raises `TargetError`."""
    digest = hashlib.sha256(source.content).hexdigest()[:8]
    try:
        names = execute(source.content, source.file, f"vllm_encoder_cache_manager_{digest}")
    except Exception as error:
        raise TargetError(f"{source.file} cannot be loaded: {describe_exception(error)}") from None
    manager = names.get("EncoderCacheManager")
    if not isinstance(manager, type):
        raise TargetError(f"{source.file} has no class EncoderCacheManager")
    if not hasattr(manager, "get_freed_mm_hashes"):
        raise TargetError(
            f"out of scope: the manager of {source.name} keeps encoder outputs by request; "
            f"the specification is about outputs that are shared by hash (vLLM {FIRST_IN_SCOPE} "
            "and later)"
        )
    encoder_decoder = names.get("EncoderDecoderCacheManager")
    # Before 0.23.0 get_cached_input_ids answered which inputs are cached, for whomever.
    by_position = b"request_cached_ids" in source.content
    return ManagerClasses(
        name=source.name,
        version=source.version,
        encoder_cache=manager,
        encoder_decoder=encoder_decoder if isinstance(encoder_decoder, type) else None,
        lacks=frozenset() if by_position else frozenset({"held"}),
    )


def _installed() -> Source:
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    try:
        spec = find_spec("vllm")
    except ValueError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise TargetError("vLLM is not installed here; name a release instead, as in vllm:0.33.0")
    try:
        installed = version("vllm")
    except PackageNotFoundError:
        installed = None
    return _in_directory(Path(next(iter(spec.submodule_search_locations))), installed)


def _in_directory(directory: Path, version: str | None) -> Source:
    parts = MANAGER_FILE.split("/")
    for skipped in range(len(parts)):
        path = directory.joinpath(*parts[skipped:])
        if path.is_file():
            return _read(path, version)
    raise TargetError(f"no {MANAGER_FILE} in {directory}")


def _read(path: Path, version: str | None) -> Source:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TargetError(f"{path}: {error.strerror}") from None
    return Source(f"vLLM {version}" if version else "vLLM source", str(path), version, content)


def _in_wheel(path: Path) -> Source:
    import zipfile

    version = path.name.split("-")[1] if path.name.count("-") >= 4 else None
    try:
        with zipfile.ZipFile(path) as wheel:
            content = wheel.read(MANAGER_FILE)
    except KeyError:
        raise TargetError(f"no {MANAGER_FILE} in {path}") from None
    except (OSError, zipfile.BadZipFile, RuntimeError) as error:
        raise TargetError(f"{path}: {error}") from None
    return Source(f"vLLM {version}" if version else "vLLM", MANAGER_FILE, version, content)
