"""The log format: what a manager was asked and what it answered, one JSON object a line.

The first line is the header; every other line is an event of one manager. This module is the typed
model; the published JSON Schema is generated from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Literal

import msgspec

from mmcache_vectors.document import Count, Name, schema_of
from mmcache_vectors.manager import Manager

__all__ = [
    "LOG_FORMAT",
    "LOG_FORMAT_VERSION",
    "LONGEST_LINE",
    "NEEDED_CALLS",
    "Allocated",
    "Asked",
    "Created",
    "CutOff",
    "Ended",
    "Freed",
    "FreedInput",
    "Header",
    "LogError",
    "LogEvent",
    "LookedUp",
    "PassEnded",
    "Reported",
    "WasReset",
    "WorkerStepped",
    "log_schema",
    "read_events",
    "read_log",
]

LOG_FORMAT = "mmcache/log"
LOG_FORMAT_VERSION = 1

LONGEST_LINE = 64 << 20
"""Bytes of one event. Nothing that records a scheduling pass comes near."""

NEEDED_CALLS = (
    "check_and_update_cache",
    "can_allocate",
    "allocate",
    "free_encoder_input",
    "free",
    "get_freed_mm_hashes",
)
"""Of a log in which one is not recorded nothing follows. (A manager may have no `reset`.)"""


class LogError(ValueError):
    """A log that cannot be read: the file, the line, what is wrong with it."""


class CutOff(LogError):
    """The last line is cut off in the middle: what comes before it can be judged all the same."""

    def __init__(self, said: str, line: int) -> None:
        super().__init__(said)
        self.line = line


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The first line."""

    format: Literal["mmcache/log"] = "mmcache/log"
    format_version: Literal[1] = 1
    producer: str
    """What wrote the log, for people."""
    records: tuple[str, ...] | None = None
    """The calls of which every one is in the log. A log that does not say so can be incomplete
    without anybody seeing it."""


class _Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op", gc=False):
    """`manager` tells the managers of one log apart; `seq` counts the events of each from 0."""

    manager: str
    seq: int


class Created(_Event, frozen=True, tag="new"):
    """A manager begins its life, empty. Always its first event."""

    kind: Manager
    cache_size: Count
    worker: bool = False
    """Whether the steps of its worker are in the log."""
    records: tuple[str, ...] | None = None
    """The calls that are recorded of this manager, where the header's are not."""


class LookedUp(_Event, frozen=True, tag="check_and_update_cache"):
    """Is the item of this input cached? If so, the request holds it now."""

    request: str
    input_id: Count
    identifier: Name
    num_embeds: Count
    returns: bool


class Asked(_Event, frozen=True, tag="can_allocate"):
    """Is there room, and budget? All numbers are in embeddings."""

    request: str
    input_id: Count
    identifier: Name
    num_embeds: Count
    encoder_compute_budget: int
    num_embeds_to_schedule: int
    returns: bool


class Allocated(_Event, frozen=True, tag="allocate"):
    """The item of this input is charged, and the request holds it."""

    request: str
    input_id: Count
    identifier: Name
    num_embeds: Count


class FreedInput(_Event, frozen=True, tag="free_encoder_input"):
    """The request no longer needs one of its inputs."""

    request: str
    input_id: Count


class Freed(_Event, frozen=True, tag="free"):
    """The request no longer needs any of its inputs."""

    request: str


class Reported(_Event, frozen=True, tag="get_freed_mm_hashes"):
    """The worker is told what was evicted since the last report."""

    returns: tuple[str, ...]


class WasReset(_Event, frozen=True, tag="reset"):
    """The manager forgot everything; the worker is emptied with it."""


class PassEnded(_Event, frozen=True, tag="pass"):
    """Optional: a scheduling pass is complete, and its order is on the way to the worker.

    What the order says, as far as it is known: the hashes to drop, to encode, and to load; and of
    those to encode, the ones whose raw item the worker was never sent.
    """

    drop: tuple[str, ...] | None = None
    encode: tuple[str, ...] | None = None
    load: tuple[str, ...] | None = None
    without_payload: tuple[str, ...] | None = None


class WorkerStepped(_Event, frozen=True, tag="worker_step"):
    """Optional: what a worker did in one step, in this order; the steps in the order of passes.

    What it loads instead of encoding it, it has encoded.
    """

    drop: tuple[str, ...] = ()
    encode: tuple[str, ...] = ()
    gather: tuple[str, ...] = ()


class Ended(_Event, frozen=True, tag="end"):
    """Optional: nothing of this manager follows. Without it, a log may be the beginning of one."""


LogEvent = (
    Created
    | LookedUp
    | Asked
    | Allocated
    | FreedInput
    | Freed
    | Reported
    | WasReset
    | PassEnded
    | WorkerStepped
    | Ended
)


def read_events(lines: Iterable[bytes], source: str) -> Iterator[tuple[int, LogEvent]]:
    """Each event with its line number. Raises `LogError`."""
    return read_log(lines, source)[1]


def read_log(lines: Iterable[bytes], source: str) -> tuple[Header, Iterator[tuple[int, LogEvent]]]:
    """The header, and each event with its line number. Raises `LogError`, now or in between."""
    numbered = enumerate(lines, start=1)
    number, first = next(numbered, (0, b""))
    if number == 0:
        raise LogError(f"{source}: empty; a log begins with its header")
    return _header(first, source), _events(numbered, source)


def _events(numbered: Iterable[tuple[int, bytes]], source: str) -> Iterator[tuple[int, LogEvent]]:
    decode = msgspec.json.Decoder(LogEvent).decode
    for number, line in numbered:
        if len(line) > LONGEST_LINE:
            raise LogError(f"{source}: line {number}: longer than {LONGEST_LINE} bytes")
        try:
            event = decode(line)
            _refuse_repeated(line)
            yield number, event
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, _Repeated) as error:
            said = _what_is_wrong(source, number, line, error)
            if said.endswith(_CUT):
                raise CutOff(said, number) from None
            raise LogError(said) from None


def _header(line: bytes, source: str) -> Header:
    try:
        header: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        header = None
    if not _is_header(header):
        raise LogError(f"{source}: line 1: {_instead_of_a_header(line)}")
    version = header.get("format_version")
    if version != LOG_FORMAT_VERSION:
        raise LogError(
            f"{source}: line 1: version {version!r}, but this reads version {LOG_FORMAT_VERSION}"
        )
    try:
        return msgspec.convert(header, Header)
    except msgspec.ValidationError as error:
        raise LogError(f"{source}: line 1: {error}") from None


def _is_header(value: object) -> bool:
    return isinstance(value, dict) and value.get("format") == LOG_FORMAT


def _instead_of_a_header(line: bytes) -> str:
    if line.startswith(b"\x1f\x8b"):
        return "the log is compressed (gzip); unpack it first"
    if line.startswith(b"\xef\xbb\xbf"):
        return "the log begins with a byte order mark; write it as UTF-8 without one"
    if b"\x00" in line or line.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "the log is not UTF-8"
    with suppress(ValueError, RecursionError):
        first, end = json.JSONDecoder().raw_decode(line.decode())
        if _is_header(first) and line[end:].strip():
            return "more than the header is on it; a log has one event a line"
    return f'no header; it should say "format": "{LOG_FORMAT}"'


class _Repeated(ValueError):
    """A name that an object has twice."""


def _refuse_repeated(line: bytes) -> None:
    """Of two values under one name, a reader takes either: raises `_Repeated`.

    Where no two texts of a line are alike, as in most, it is not looked at any closer, which takes
    two thirds of the time.
    """
    texts = line.split(b'"')[1::2]
    if b"\\" not in line and len(set(texts)) == len(texts):
        return
    _WITHOUT_REPEATED.decode(line.decode())


def _no_name_twice(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Repeated(f"{twice!r} is there twice in one object")


_WITHOUT_REPEATED = json.JSONDecoder(object_pairs_hook=_no_name_twice)

_CUT = ": cut off in the middle; the log is truncated"


def _what_is_wrong(source: str, number: int, line: bytes, error: Exception) -> str:
    where = f"{source}: line {number}"
    if not line.strip():
        return f"{where}: an empty line; a log has one event a line"
    if not line.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
        return f"{where}{_CUT}"
    if isinstance(error, RecursionError):
        return f"{where}: nested too deeply"
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if _is_header(msgspec.json.decode(line)):
            return f"{where}: a second header; two logs are in it, and each has a file of its own"
    return f"{where}: {error}"


def log_schema() -> dict[str, Any]:
    """The JSON Schema of one line (draft 2020-12): the header, or an event."""
    return schema_of((Header, LogEvent), "a line of an mmcache log, version 1")
