"""A foreign Python class in a process of its own, driven like every adapter.

Whatever such a class does to its process, it does to that one: it may exit, hang, crash, print, or
start threads, and this costs the vector that is being played and nothing else. Only the first
exchange is not that of the protocol: what to load goes to the child, and everything that is known
of the class comes back (`Begin`, `Begun`, `Refused`). The child is `adapters/isolated.py`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Annotated

import msgspec

from ..errors import AdapterError, TargetError
from ..implementation import Implementation
from .command import CommandTarget
from .process import LineListener, Process, Timeout, shown_line
from .start import START_LIMIT, start_seconds, where_it_is
from .wire import BESIDE_FEATURE, SNAPSHOTS_FEATURE, WATCHED_FEATURE

__all__ = [
    "Begin",
    "Begun",
    "Classes",
    "IsolatedTarget",
    "Loaded",
    "Look",
    "Refused",
    "VllmFile",
    "search_path",
]

_CHILD = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop())
from mmcache_conformance.adapters.isolated import main
main()
"""
"""It looks for modules where the harness does, from the first on."""


class Classes(msgspec.Struct, frozen=True, tag=True):
    """Classes that can be imported: `module:Class[,module:Class]`."""

    name: str


class VllmFile(msgspec.Struct, frozen=True, tag=True):
    """A file of vLLM that was found already, so that the child needs no network."""

    name: str
    file: str
    version: str | None
    content: bytes
    package: str
    named: tuple[str, ...]
    """The classes of it that are tested, if the user named some."""
    target: str
    """How the user named the file."""


class Begin(msgspec.Struct, frozen=True, tag_field="cmd", tag="begin"):
    """Load this, and say who it is."""

    load: Classes | VllmFile
    configuration: str | None


class Look(msgspec.Struct, frozen=True, tag_field="cmd", tag="look"):
    """Make an instance, and say who it is; `touch` it by making each call once, or do not."""

    touch: bool


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """It is loaded, and nothing of it was made yet."""


class Begun(msgspec.Struct, frozen=True, tag=True):
    """It can be made; from now on the protocol is spoken."""

    implementation: Implementation


class Refused(msgspec.Struct, frozen=True, tag=True):
    """It cannot be loaded or made, and why."""

    reason: Annotated[str, msgspec.Meta(min_length=1)]


class IsolatedTarget(CommandTarget):
    """As `CommandTarget`, of a class. `load` may raise `TargetError`; it is called once."""

    def __init__(
        self,
        name: str,
        load: Callable[[], Classes | VllmFile],
        *,
        timeout: float,
        configuration: str | None = None,
        trace: LineListener | None = None,
    ) -> None:
        words = [sys.executable, "-P", "-c", _CHILD, json.dumps(search_path())]
        super().__init__(name, words, timeout=timeout, trace=trace)
        self._load = load
        self._loaded: Classes | VllmFile | None = None
        self._configuration = configuration
        self._touches = True
        """Whether the calls are tried before the first vector. One that takes its process with it,
        or never returns, is left to the vectors that make it."""

    def start(self) -> Implementation:
        self._loaded = self._load()
        return super().start()

    def _launch(self) -> Implementation:
        try:
            return super()._launch()
        except _Untouchable:
            self._touches = False
            return super()._launch()

    def _introduced(self, process: Process) -> Implementation:
        assert self._loaded is not None
        seconds = start_seconds()
        begin = Begin(self._loaded, self._configuration)
        try:
            self._said(process, msgspec.json.encode(begin), seconds)
        except Timeout:
            where = where_it_is(process)
            raise TargetError(
                f"{self.name} is not loaded after {seconds:g} s: "
                f"{'' if where is None else f'it was at {where}; '}"
                f"{START_LIMIT}=SECONDS gives it longer"
            ) from None
        look = msgspec.json.encode(Look(self._touches))
        try:
            said = self._said(process, look, self._timeout)
        except AdapterError as error:
            if self._touches:
                self._drop()
                raise _Untouchable(str(error)) from None
            raise
        if not isinstance(said, Begun):
            raise AdapterError("a reply to something else")
        self._features = (BESIDE_FEATURE, SNAPSHOTS_FEATURE, WATCHED_FEATURE)
        return said.implementation

    def _said(self, process: Process, request: bytes, timeout: float) -> Loaded | Begun:
        """The reply to a request. Raises `AdapterError`, and `TargetError` if it refuses."""
        line = process.exchange(request, timeout)
        try:
            said = msgspec.json.decode(line, type=Loaded | Begun | Refused)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise AdapterError(f"not a reply: {shown_line(line)}") from None
        if isinstance(said, Refused):
            raise TargetError(said.reason)
        return said


class _Untouchable(Exception):
    """One of its calls ended the process or never returned, before any vector."""


def search_path() -> list[str]:
    """Where this process looks for modules, the working directory by its name."""
    try:
        here = os.getcwd()
    except OSError:  # the working directory was deleted
        here = ""
    return [entry or here for entry in sys.path if entry or here]
