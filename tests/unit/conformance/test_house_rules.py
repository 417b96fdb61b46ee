"""Rules of the house that can be checked: a Struct is part of a document, anything else is not."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import msgspec

import mmcache_conformance
from mmcache_conformance.differ.report import DifferReport
from mmcache_conformance.engines.generate import AbstractPath, Shape
from mmcache_conformance.engines.random import RandomRun
from mmcache_conformance.exhaust.report import ExhaustReport
from mmcache_conformance.logs.format import Event, Header
from mmcache_conformance.logs.verdict import CheckReport
from mmcache_conformance.matrix.run import Matrix
from mmcache_conformance.suites import load
from mmcache_conformance.targets import command, wire
from mmcache_conformance.verdicts.expected import ExpectedFailures
from mmcache_conformance.verdicts.model import RunReport

DOCUMENTS = (
    *(RunReport, RandomRun, CheckReport, ExhaustReport, Matrix, ExpectedFailures, Header, Event),
    *(wire.Message, wire.Started, wire.Ran, wire.Errored),
    *(importlib.import_module("mmcache_conformance.engines.generate")._Sketches, AbstractPath),
    *(Shape, load._Header, DifferReport, command._RawRan),
)
"""All that is read from or written to a file, a pipe or a terminal as JSON or TOML."""


def structs() -> Iterator[type]:
    """Every Struct that the package defines."""
    for found in pkgutil.walk_packages(mmcache_conformance.__path__, "mmcache_conformance."):
        module = importlib.import_module(found.name)
        for value in vars(module).values():
            ours = isinstance(value, type) and value.__module__ == module.__name__
            if ours and issubclass(value, msgspec.Struct):
                yield value


def parts(info: object) -> Iterator[type]:
    """The Structs of which a type is made."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting += one
        elif isinstance(one, (msgspec.inspect.Type, msgspec.inspect.Field)) and id(one) not in seen:
            seen.add(id(one))
            if isinstance(one, msgspec.inspect.StructType):
                yield one.cls
            waiting += [getattr(one, name) for name in one.__struct_fields__]


def test_a_struct_is_part_of_a_document() -> None:
    written = set(parts(msgspec.inspect.multi_type_info(DOCUMENTS)))
    bases = {base for cls in written for base in cls.__mro__}
    stray = {cls for cls in structs() if cls not in bases}
    assert not stray, "a frozen dataclass will do"
    assert RunReport in written
    assert len(written) > 30
