"""The faults of `catalogue.toml` and of the lists held out, and the sources with one of them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.drivers import CPP

__all__ = ["LISTS", "Change", "Fault", "faults", "sources_with"]

_DRIVER, _ENGINE = "example.cpp", "example_engine.hpp"
FILES = (_DRIVER, _ENGINE, "mmcache_adapter.hpp")
_MEMBERS = "    std::int64_t capacity_, free_;"


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


LISTS = ("catalogue", "held_out", "held_out_2", "held_out_3")


def faults(of: str = "catalogue") -> tuple[Fault, ...]:
    """All of one of the `LISTS`, in the order of the file."""
    path = Path(__file__).with_name(f"{of}.toml")
    document = tomllib.loads(path.read_text())
    return tuple(
        Fault(entry["name"], entry["why"], tuple(_changes(entry)), entry.get("seen", True))
        for entry in document["fault"]
    )


def _changes(entry: dict[str, Any]) -> Iterator[Change]:
    for kind in ("hash", "request"):
        if (key := entry.get(f"{kind}_key")) is not None:
            yield from _keyed(kind, key)
    if (state := entry.get("state")) is not None:
        yield Change(_ENGINE, _MEMBERS, f"{_MEMBERS}\n    {state}")
    for change in entry.get("change", ()):
        yield Change(change.get("file", _ENGINE), change["old"], change["new"])


def _keyed(kind: str, key: str) -> Iterator[Change]:
    """The driver keeps hashes, or requests, under this key, and shows them under their names."""
    function = f"inline std::string key_of(const std::string& name) {{ {key} }}\n\n"
    yield Change(_ENGINE, "class EncoderCache {", f"{function}class EncoderCache {{")
    name = "r.items[k].identifier" if kind == "hash" else "r.request_id"
    noted = f"names_[key_of({name})] = {name};\n        "
    find, insert = "return cache_.find(", "cache_.insert("
    yield Change(_DRIVER, find, noted + find)
    yield Change(_DRIVER, insert, noted + insert)
    member = "    EncoderCache cache_;"
    yield Change(_DRIVER, member, f"{member}\n    std::map<std::string, std::string> names_;")
    if kind == "hash":
        yield Change(_DRIVER, f"k, {name});", f"k, key_of({name}));")
        yield Change(_DRIVER, f"k, {name}, r", f"k, key_of({name}), r")
        yield Change(_DRIVER, "return cache_.take_evicted();", _named("cache_.take_evicted()"))
        yield Change(_DRIVER, "return cache_.idle();", _named("cache_.idle()"))
        yield Change(_DRIVER, "result[hash]", "result[names_.at(hash)]")
    else:
        for before in (
            "cache_.find(",
            "cache_.insert(",
            "{ cache_.consume(",
            "++k) cache_.consume(",
        ):
            yield Change(_DRIVER, f"{before}{name}", f"{before}key_of({name})")
        yield Change(_DRIVER, f"uses.find({name})", f"uses.find(key_of({name}))")
        yield Change(_DRIVER, "push_back(use.first)", "push_back(names_.at(use.first))")


def _named(keys: str) -> str:
    listed = f"for (const auto& key : {keys}) told.push_back(names_.at(key));"
    return (
        f"std::remove_cv_t<std::remove_reference_t<decltype({keys})>> told; {listed} return told;"
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
