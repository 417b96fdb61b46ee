"""Find a vLLM's `encoder_cache_manager.py` and load its classes, without vLLM and without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mmcache_vectors.manager import Manager

from ...errors import TargetError, describe_exception
from ..python import ManagerClasses
from .archive import LARGEST, WHEEL_TROUBLE, read_member
from .stand_ins import execute

__all__ = ["MANAGER_FILE", "Source", "find_source", "load_classes", "split_classes"]

MANAGER_FILE = "vllm/v1/core/encoder_cache_manager.py"
_IN_PACKAGE = MANAGER_FILE.partition("/")[2]
"""Where the file is below a package, of vLLM or of a fork under another name."""
FIRST_IN_SCOPE = "0.10.2"

_CLASSES: dict[Manager, str] = {
    "encoder_cache": "EncoderCacheManager",
    "encoder_decoder": "EncoderDecoderCacheManager",
}


@dataclass(frozen=True)
class Source:
    """One manager file. `name` is for people, `file` for tracebacks."""

    name: str
    file: str
    version: str | None
    content: bytes
    package: str = "vllm"
    """The package that the file is of, from which nothing else is taken."""


def split_classes(where: str) -> tuple[str, tuple[str, ...]]:
    """From `PATH:Class[,Class]` to the path and the classes; a path may have a colon too."""
    path, colon, named = where.rpartition(":")
    classes = tuple(named.split(","))
    if not colon or Path(where).exists() or not all(name.isidentifier() for name in classes):
        return where, ()
    return path, classes


def find_source(where: str | None, *, cache: Path | None = None, refresh: bool = False) -> Source:
    """The manager file of the installed vLLM (`None`), of a path, or of a release.

    A path is the file, a directory that holds it, or a wheel; a release is tried only if no such
    path exists, and with `refresh` it is read anew. Raises `TargetError`.
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
    content = read_release(version, (MANAGER_FILE,), cache=cache, refresh=refresh)[MANAGER_FILE]
    return Source(f"vLLM {version}", MANAGER_FILE, version, content)


# --- the classes -------------------------------------------------------------------------------


def load_classes(
    source: Source, named: tuple[str, ...] = (), target: str = "vllm:PATH"
) -> ManagerClasses:
    """Execute the file.

    Args:
        source: The file.
        named: The classes to test, instead of those that vLLM's have the names of.
        target: How the user named the file: with a class behind it, another target.

    Raises:
        TargetError: It cannot be executed, or has no such classes, or is out of scope.
    """
    digest = hashlib.sha256(source.content).hexdigest()[:8]
    module = f"vllm_encoder_cache_manager_{digest}"
    try:
        names = execute(source.content, source.file, module, package=source.package)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(f"{source.file} cannot be loaded: {describe_exception(error)}") from None
    here = {n: c for n, c in names.items() if isinstance(c, type) and c.__module__ == module}
    chosen = _named(source, here, named, target) if named else _by_name(source, here, target)
    shared = chosen.get("encoder_cache")
    if shared is not None and not hasattr(shared, "get_freed_mm_hashes"):
        raise TargetError(
            f"out of scope: the manager of {source.name} keeps encoder outputs by request; "
            f"the specification is about outputs that are shared by hash (vLLM {FIRST_IN_SCOPE} "
            "and later)"
        )
    # Before 0.23.0 get_cached_input_ids answered which inputs are cached, for whomever.
    by_position = b"request_cached_ids" in source.content
    tested = {cls.__name__ for cls in chosen.values()}
    shown = ",".join(sorted(tested)) if named else ""
    return ManagerClasses(
        name=f"{shown} of {source.name}" if shown else source.name,
        version=source.version,
        encoder_cache=shared,
        encoder_decoder=chosen.get("encoder_decoder"),
        lacks=frozenset() if by_position else frozenset({"held"}),
        untested=tuple(f"{target}:{n}" for n in _managers(here) if n not in tested),
    )


def _managers(here: dict[str, type]) -> list[str]:
    """The names of the classes of the file that are managers: they allocate, and report."""
    calls = ("allocate", "get_freed_mm_hashes")
    return [n for n, c in here.items() if all(callable(getattr(c, call, None)) for call in calls)]


def _by_name(source: Source, here: dict[str, type], target: str) -> dict[Manager, type]:
    found = {kind: here[name] for kind, name in _CLASSES.items() if name in here}
    if "encoder_cache" not in found:
        others = _managers(here)
        hint = (
            f"; it has {', '.join(others)}: name one, as in {target}:{others[0]}" if others else ""
        )
        raise TargetError(f"{source.file} has no class EncoderCacheManager{hint}")
    return found


def _named(
    source: Source, here: dict[str, type], named: tuple[str, ...], target: str
) -> dict[Manager, type]:
    """Each class as the kind of manager that it is: by its base, else the first is for sharing."""
    found: dict[Manager, type] = {}
    for name in named:
        if name not in here:
            known = ", ".join(_managers(here)) or "no manager"
            raise TargetError(f"{source.file} has no class {name}; it has {known}")
        cls = here[name]
        bases = {base.__name__ for base in cls.__mro__}
        kind: Manager = "encoder_cache"
        if _CLASSES["encoder_decoder"] in bases or found:
            kind = "encoder_decoder"
        if kind in found:
            raise TargetError(f"{target}: {found[kind].__name__} and {name} are of one kind")
        found[kind] = cls
    return found


# --- where the file is -------------------------------------------------------------------------


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
    forks = sorted(p for depth in ("*", "*/*") for p in directory.glob(f"{depth}/{_IN_PACKAGE}"))
    return _read(Path(_only(map(str, forks), str(directory))), version)


def _only(found: Iterable[str], where: str) -> str:
    """The one file of a fork, whatever its package is called."""
    files = list(found)
    if not files:
        raise TargetError(f"no {MANAGER_FILE} in {where}, and none of a fork: */{_IN_PACKAGE}")
    if len(files) > 1:
        raise TargetError(f"several managers in {where}, name one: {', '.join(files)}")
    return files[0]


def _package_of(file: str) -> str:
    """The package that has the file, by its path."""
    path = PurePosixPath(file.replace("\\", "/"))
    if path.match(_IN_PACKAGE) and len(path.parts) > len(PurePosixPath(_IN_PACKAGE).parts):
        name = path.parts[-len(PurePosixPath(_IN_PACKAGE).parts) - 1]
        if name.isidentifier():
            return name
    return "vllm"


def _name_of(package: str, version: str | None) -> str:
    own = "vLLM" if package == "vllm" else package
    return f"{own} {version}" if version else f"{own} source"


def _read(path: Path, version: str | None) -> Source:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise TargetError(f"{path}: {reason}") from None
    if len(content) > LARGEST:
        raise TargetError(f"{path} is larger than {LARGEST >> 20} MB, so it is no source file")
    package = _package_of(str(path.absolute()))
    return Source(_name_of(package, version), str(path), version, content, package)


def _in_wheel(path: Path) -> Source:
    import zipfile

    version = path.name.split("-")[1] if path.name.count("-") >= 4 else None
    try:
        with zipfile.ZipFile(path) as wheel:
            members = wheel.namelist()
            forks = (n for n in members if n.endswith(f"/{_IN_PACKAGE}"))
            name = MANAGER_FILE if MANAGER_FILE in members else _only(forks, str(path))
            content = read_member(wheel, name)
    except TargetError:
        raise
    except WHEEL_TROUBLE as error:
        raise TargetError(f"{path} cannot be read: {describe_exception(error)}") from None
    package = _package_of(name)
    shown = _name_of(package, version) if version else _name_of(package, None).split()[0]
    return Source(shown, name, version, content, package)
