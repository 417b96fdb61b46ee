"""Which package index pip is configured to use, so that a release is looked for where pip would."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["IndexSettings", "pip_settings"]


@dataclass(frozen=True)
class IndexSettings:
    """Where and how pip would look. The URLs may hold a password: they are never shown."""

    urls: tuple[str, ...]
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None


def pip_settings(run: Callable[[], str] | None = None) -> IndexSettings:
    """What `pip download` would use. `run` gives the output of `pip config list`."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    listed = run() if run else _pip_config_list(_environment_of_pip())
    values: dict[str, str] = {}
    for scope in ("global", "install", "download", ":env:"):
        for line in listed.splitlines():
            name, separator, value = line.partition("=")
            if separator and name.startswith(f"{scope}."):
                values[name.removeprefix(f"{scope}.")] = _unquoted(value)
    urls = [values.get("index-url", PYPI_SIMPLE_ENDPOINT)]
    urls += values.get("extra-index-url", "").split()
    if values.get("no-index", "").lower() in {"1", "true", "yes", "on"}:
        urls = []
    return IndexSettings(
        tuple(url for url in urls if url.startswith(("http://", "https://"))),
        values.get("cert"),
        values.get("client-cert"),
        values.get("proxy"),
    )


def _unquoted(value: str) -> str:
    try:
        return str(ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return value


_HOMES = ("HOME", "PATH", "USERPROFILE", "APPDATA", "PROGRAMDATA", "VIRTUAL_ENV")


def _environment_of_pip() -> tuple[tuple[str, str], ...]:
    """The variables that say what pip is and how it is configured."""
    return tuple(
        (name, value)
        for name, value in sorted(os.environ.items())
        if name.startswith(("PIP_", "XDG_CONFIG")) or name in _HOMES
    )


@lru_cache(maxsize=1)
def _pip_config_list(environment: tuple[tuple[str, str], ...]) -> str:
    """The configuration as pip prints it; without pip, what its environment variables say.

    A start of pip takes longer than to read a release from the cache, so it is asked once for an
    environment.
    """
    import shutil
    import subprocess
    import sys
    from importlib.util import find_spec

    command = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or ""]
    if command != [""]:
        listed = subprocess.run(
            [*command, "config", "list"], capture_output=True, text=True, check=False
        )
        if listed.returncode == 0:
            return listed.stdout
    prefix = "PIP_"
    return "\n".join(
        f":env:.{name.removeprefix(prefix).lower().replace('_', '-')}={value!r}"
        for name, value in environment
        if name.startswith(prefix)
    )
