"""Read a few source files of a released vLLM out of its wheel, through the package index of pip.

A wheel of vLLM weighs hundreds of megabytes, its encoder cache manager twenty kilobytes: only the
wheel's table of contents and the needed files are transferred, by HTTP range requests. What was
read is kept in the user's cache directory, and a release that is there needs no network.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mmcache_vectors.document import write_atomically

from ...errors import TargetError
from .archive import WHEEL_TROUBLE, read_member
from .index import IndexSettings, pip_settings

if TYPE_CHECKING:
    import requests
    from pypi_simple import DistributionPackage

__all__ = [
    "IndexUnreachable",
    "is_version",
    "kept_releases",
    "read_release",
    "released_versions",
]

TIMEOUT_SECONDS = 30
"""For each answer of the index."""

DEADLINE_SECONDS = 120.0
"""For all that a release needs, or the list of them."""

T = TypeVar("T")

_DIGEST = ".sha256"


class IndexUnreachable(TargetError):
    """The package index did not answer, and the release is not in the cache."""


def is_version(text: str) -> bool:
    """Whether the text looks like a release, such as `0.33.0` or `v0.33.0rc1`."""
    return re.fullmatch(r"v?\d+(\.\d+)+[a-z0-9.+]*", text) is not None


def read_release(
    version: str, files: Sequence[str], *, cache: Path | None = None, refresh: bool = False
) -> dict[str, bytes]:
    """The content of some files of a release, by their path in the wheel.

    What is in the cache is compared with the digest that was stored with it; of a file that is
    damaged, or with `refresh`, the release is read anew.

    Args:
        version: The release.
        files: What to read of it.
        cache: Instead of the user's cache directory.
        refresh: Do not look into the cache.

    Raises:
        IndexUnreachable: A network would help.
        TargetError: Nothing would.
    """
    version = version.removeprefix("v")
    kept = (_user_cache() if cache is None else cache) / "vllm" / version
    damaged: list[Path] = []
    for directory in [] if refresh else sorted(kept.glob("*")):
        if all((directory / name).is_file() for name in files):
            content = {name: _kept(directory / name) for name in files}
            if None not in content.values():
                return {name: data for name, data in content.items() if data is not None}
            damaged += [directory / name for name, data in content.items() if data is None]
    try:
        settings = pip_settings()
        if not settings.urls:
            raise TargetError(f"pip is configured to use no package index over HTTP; {_OFFLINE}")
        wheel, read = _in_time(version, lambda: _fetch(version, files, settings))
    except TargetError as error:
        if damaged:
            raise type(error)(f"{damaged[0]} is damaged, and {error}") from None
        raise
    _keep(read, kept / _key(wheel))
    return read


def _fetch(
    version: str, files: Sequence[str], settings: IndexSettings
) -> tuple[DistributionPackage, dict[str, bytes]]:
    with _session(settings) as session:
        wheel = _find_wheel(version, settings.urls, session)
        return wheel, _read_wheel(wheel, files, session)


def _in_time(what: str, work: Callable[[], T]) -> T:
    """What the work gives, if it does so before the deadline.

    A limit for each read is none for all of them: an index that sends a byte a second would keep
    us for ever. The thread that waits for it is left alone.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="index", daemon=True)
    thread.start()
    thread.join(DEADLINE_SECONDS)
    if failed:
        raise failed[0]
    if not found:
        raise IndexUnreachable(
            f"the package index did not give {what} within {DEADLINE_SECONDS:g} s; connect to a "
            f"faster one, or {_OFFLINE}"
        )
    return found[0]


def released_versions() -> tuple[str, ...]:
    """Every version of which the package index has a wheel, in no order. Raises `TargetError`."""
    settings = pip_settings()
    if not settings.urls:
        raise TargetError("pip is configured to use no package index over HTTP; name the releases")
    return _in_time("the list of releases", lambda: _versions(settings))


def _versions(settings: IndexSettings) -> tuple[str, ...]:
    known: set[str] = set()
    with _session(settings) as session:
        for url in settings.urls:
            try:
                known |= {str(wheel.version) for wheel in _wheels(url, session)}
            except _INDEX_TROUBLE as error:
                raise IndexUnreachable(
                    f"the package index did not answer ({type(error).__name__}); connect, or name "
                    "the releases"
                ) from None
    return tuple(known)


def kept_releases(cache: Path | None = None) -> tuple[str, ...]:
    """The versions in the cache, which need no network."""
    root = (_user_cache() if cache is None else cache) / "vllm"
    return tuple(sorted(path.name for path in root.glob("*") if is_version(path.name)))


def _user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("mmcache-conformance", appauthor=False)


def _key(wheel: DistributionPackage) -> str:
    """Names one wheel: a release may have been built more than once."""
    sha256 = wheel.digests.get("sha256")
    if sha256 is not None and re.fullmatch(r"[0-9a-f]{64}", sha256):
        return f"sha256-{sha256[:16]}"
    return f"size-{wheel.size}" if wheel.size is not None else "unidentified"


def _keep(content: Mapping[str, bytes], directory: Path) -> None:
    """Store the files. If the cache cannot be written, nothing is kept."""
    try:
        for name, data in content.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
            digest = hashlib.sha256(data).hexdigest()
            write_atomically(path.with_name(path.name + _DIGEST), f"{digest}\n".encode())
    except OSError:
        return


def _kept(path: Path) -> bytes | None:
    """What is in the cache; nothing if it is not what was put there, or if nobody can tell.

    Before there were digests, none was put there: such a file is made anew.
    """
    try:
        data = path.read_bytes()
        said = path.with_name(path.name + _DIGEST).read_text(errors="replace").strip()
    except OSError:
        return None
    return data if said == hashlib.sha256(data).hexdigest() else None


# --- the index and the wheel -------------------------------------------------------------------

_OFFLINE = (
    "fetch the wheel where there is one (pip download --no-deps vllm==VERSION) "
    "and name the file: vllm:PATH"
)


def _session(settings: IndexSettings) -> requests.Session:
    import requests

    session = requests.Session()
    if settings.certificates is not None:
        session.verify = settings.certificates
    if settings.client_certificate is not None:
        session.cert = settings.client_certificate
    if settings.proxy is not None:
        session.proxies = {"http": settings.proxy, "https": settings.proxy}
    return session


def _find_wheel(
    version: str, urls: Iterable[str], session: requests.Session
) -> DistributionPackage:
    known: set[str] = set()
    for url in urls:
        try:
            wheels = _wheels(url, session)
        except _INDEX_TROUBLE as error:
            raise _unreachable(version, error) from None
        known |= {p.version for p in wheels if p.version}
        # The Python files are the same for every platform.
        chosen = [p for p in wheels if p.version == version]
        if chosen:
            return min(chosen, key=lambda p: ("x86_64" not in p.filename, p.filename))
    if not known:
        raise TargetError(f"the package index has no wheel of vllm; {_OFFLINE}")
    raise TargetError(f"the package index has no wheel of vllm {version}{_nearest(version, known)}")


_INDEX_TROUBLE = (OSError, ValueError)


def _wheels(url: str, session: requests.Session) -> list[DistributionPackage]:
    """The wheels of vLLM on one index. Raises one of `_INDEX_TROUBLE`."""
    from pypi_simple import NoSuchProjectError, PyPISimple, UnsupportedRepoVersionError

    try:
        page = PyPISimple(url, session=session).get_project_page("vllm", timeout=TIMEOUT_SECONDS)
    except NoSuchProjectError:
        return []
    except UnsupportedRepoVersionError as error:
        raise ValueError(str(error)) from None
    return [p for p in page.packages if p.package_type == "wheel" and p.version]


def _nearest(version: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(version, sorted(known), n=3, cutoff=0.5)
    return f"; it has {', '.join(near)}" if near else ""


def _read_wheel(
    wheel: DistributionPackage, files: Sequence[str], session: requests.Session
) -> dict[str, bytes]:
    import requests
    from remotezip import RemoteZip, RemoteZipError

    version = str(wheel.version)

    def read(**options: Any) -> dict[str, bytes]:
        with RemoteZip(wheel.url, session=session, timeout=TIMEOUT_SECONDS, **options) as archive:
            return {name: read_member(archive, name) for name in files}

    try:
        try:
            return read()
        except (requests.HTTPError, RemoteZipError):
            # Some servers refuse a range that counts from the end.
            return read(support_suffix_range=False)
    except KeyError:
        raise TargetError(f"vllm {version} has no {' and '.join(files)}") from None
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _unreachable(version, error) from None
    except (RemoteZipError, *WHEEL_TROUBLE) as error:
        raise TargetError(
            f"the package index does not give out parts of the wheel of vllm {version} "
            f"({type(error).__name__}); {_OFFLINE}"
        ) from None


def _unreachable(version: str, error: Exception) -> IndexUnreachable:
    return IndexUnreachable(
        f"vllm {version} is not in the cache, and the package index did not answer "
        f"({type(error).__name__}); connect, or {_OFFLINE}"
    )
