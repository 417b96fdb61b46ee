"""Read a few source files of a released vLLM out of its wheel, through the package index of pip.

A wheel of vLLM weighs hundreds of megabytes, its encoder cache manager twenty kilobytes: only the
wheel's table of contents and the needed files are transferred, by HTTP range requests. What was
read is kept in the user's cache directory, and a release that is there needs no network.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import TargetError
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


class IndexUnreachable(TargetError):
    """The package index did not answer, and the release is not in the cache."""


def is_version(text: str) -> bool:
    """Whether the text looks like a release, such as `0.33.0` or `v0.33.0rc1`."""
    return re.fullmatch(r"v?\d+(\.\d+)+[a-z0-9.+]*", text) is not None


def read_release(
    version: str, files: Sequence[str], *, cache: Path | None = None
) -> dict[str, bytes]:
    """The content of some files of a release, by their path in the wheel.

    `cache` replaces the user's cache directory. Raises `TargetError`; it is an
    `IndexUnreachable` if a network would help.
    """
    version = version.removeprefix("v")
    kept = (_user_cache() if cache is None else cache) / "vllm" / version
    for directory in sorted(kept.glob("*")):
        if all((directory / name).is_file() for name in files):
            return {name: (directory / name).read_bytes() for name in files}
    settings = pip_settings()
    if not settings.urls:
        raise TargetError(f"pip is configured to use no package index over HTTP; {_OFFLINE}")
    with _session(settings) as session:
        wheel = _find_wheel(version, settings.urls, session)
        content = _read_wheel(wheel, files, session)
    _keep(content, kept / _key(wheel))
    return content


def released_versions() -> tuple[str, ...]:
    """Every version of which the package index has a wheel, in no order. Raises `TargetError`."""
    settings = pip_settings()
    if not settings.urls:
        raise TargetError("pip is configured to use no package index over HTTP; name the releases")
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
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(data)
            os.replace(file.name, path)
    except OSError:
        return


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
    import zipfile

    import requests
    from remotezip import RemoteZip, RemoteZipError

    version = str(wheel.version)

    def read(**options: Any) -> dict[str, bytes]:
        with RemoteZip(wheel.url, session=session, timeout=TIMEOUT_SECONDS, **options) as archive:
            return {name: archive.read(name) for name in files}

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
    except (OSError, RemoteZipError, zipfile.BadZipFile, RuntimeError) as error:
        raise TargetError(
            f"the package index does not give out parts of the wheel of vllm {version} "
            f"({type(error).__name__}); {_OFFLINE}"
        ) from None


def _unreachable(version: str, error: Exception) -> IndexUnreachable:
    return IndexUnreachable(
        f"vllm {version} is not in the cache, and the package index did not answer "
        f"({type(error).__name__}); connect, or {_OFFLINE}"
    )
