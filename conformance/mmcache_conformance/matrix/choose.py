"""Which vLLM releases a matrix is about: `0.10.2..0.33.0`, `latest:5`, some by name, or a list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from packaging.version import Version

from ..errors import TargetNameError
from ..targets.vllm.source import FIRST_IN_SCOPE

__all__ = ["DEFAULT", "choose_releases"]

DEFAULT = f"{FIRST_IN_SCOPE}.."


def choose_releases(expression: str, known: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    """The releases that the expression chooses, oldest first.

    Its parts, with commas between them, are `A..B`, which includes both ends and may lack either,
    `latest:N`, or one release. The first two choose among the stable ones of `known`, which is
    asked only for them; a release by name is taken as it is. Raises `TargetNameError`, and
    whatever `known` raises.
    """
    parts = [part.strip() for part in expression.split(",")]
    stable: list[Version] = []
    if any(".." in part or ":" in part for part in parts):
        stable = sorted({v for v in map(_parsed, known()) if v and not v.is_prerelease})
    chosen = {version for part in parts for version in _chosen(part, stable)}
    return tuple(map(str, sorted(chosen)))


def _chosen(part: str, stable: Sequence[Version]) -> Sequence[Version]:
    latest = re.fullmatch(r"latest:(\d{1,9})", part)
    first, dots, last = part.partition("..")
    if latest is None and not dots:
        return [_version(part)]
    if latest is not None:
        found = stable[-int(latest[1]) :] if int(latest[1]) else []
    else:
        low, high = (_version(end) if end else None for end in (first, last))
        found = [v for v in stable if (not low or v >= low) and (not high or v <= high)]
    if not found:
        raise TargetNameError(f"there is no stable release in {part!r}")
    return found


def _parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except ValueError:  # also of a number that is too long to be read
        return None


def _version(text: str) -> Version:
    found = _parsed(text)
    if found is None:
        raise TargetNameError(f"{text!r} is not a release, such as 0.33.0, A..B or latest:N")
    return found
