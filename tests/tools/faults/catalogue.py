"""The faults, as `catalogue.toml` has them, and the sources with one of them in it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.support.drivers import CPP

__all__ = ["Change", "Fault", "faults", "sources_with"]

FILES = ("example.cpp", "example_engine.hpp", "mmcache_adapter.hpp")


@dataclass(frozen=True)
class Change:
    """In this file, `new` instead of `old`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Fault:
    """One wrong decision in the engine or in its driver."""

    name: str
    why: str
    """How it comes about; of a fault that cannot be seen, why not."""
    changes: tuple[Change, ...]
    seen: bool = True
    """Whether a caller who keeps to the protocol can see it."""


def faults() -> tuple[Fault, ...]:
    """All of them, in the order of the file."""
    path = Path(__file__).with_name("catalogue.toml")
    document = tomllib.loads(path.read_text())
    return tuple(
        Fault(
            entry["name"],
            entry["why"],
            tuple(Change(c["file"], c["old"], c["new"]) for c in entry["change"]),
            entry.get("seen", True),
        )
        for entry in document["fault"]
    )


def sources_with(fault: Fault | None) -> dict[str, str]:
    """The texts of the example's files, with the fault in them.

    Raises:
        ValueError: What a change replaces is not there exactly once.
    """
    texts = {name: (CPP / name).read_text() for name in FILES}
    for change in () if fault is None else fault.changes:
        assert fault is not None
        if (count := texts[change.file].count(change.old)) != 1:
            raise ValueError(
                f"{fault.name}: in {change.file}, this is there {count} times: {change.old!r}"
            )
        texts[change.file] = texts[change.file].replace(change.old, change.new)
    return texts
