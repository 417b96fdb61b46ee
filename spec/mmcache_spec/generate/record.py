"""Which definitions have been proved: so that `refute` need not search in vain.

The record names definitions by their digest, so one that has changed since is not on it.
`mmcache-spec prove --record` writes it; `mmcache-spec variants --check` notices where it is stale.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from ..kernel.system import TransitionSystem
from .managers import digest

__all__ = ["RECORD", "add_to_record", "on_record"]

RECORD = Path(str(files("mmcache_spec.generate") / "proved.json"))


def on_record(systems: Iterable[TransitionSystem], path: Path = RECORD) -> bool:
    """Whether these very definitions have been proved, as far as the record goes."""
    known = _read(path)
    return all(digest(system) in known for system in systems)


def add_to_record(systems: Iterable[TransitionSystem], path: Path = RECORD) -> None:
    """Note that these definitions are proved.

    Raises:
        OSError: the record cannot be written.
    """
    known = _read(path) | {digest(system): system.name for system in systems}
    path.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found
