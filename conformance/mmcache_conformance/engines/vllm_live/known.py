"""What is known of releases: the failures that a live engine of each is expected to show."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from packaging.version import InvalidVersion, Version

__all__ = ["expected_file"]

_PREFIX = "vllm-"


def expected_file(version: str) -> Path | None:
    """The file of expected failures for a release: its own, or that of the release before it.

    A release that behaves otherwise than the one before it is thereby noticed.
    """
    folder = Path(str(files(__package__) / "known"))
    known = {
        Version(path.stem.removeprefix(_PREFIX)): path for path in folder.glob(f"{_PREFIX}*.toml")
    }
    try:
        fitting = [v for v in known if v <= Version(version)]
    except InvalidVersion:
        fitting = list(known)
    return known[max(fitting)] if fitting else None
