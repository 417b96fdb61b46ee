"""The log format: what a manager was asked and what it answered, one JSON object a line.

The first line is the header; every other line is an event of one manager. This module is the typed
model; the published JSON Schema is generated from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from mmcache_vectors.document import Count, Name, schema_of
from mmcache_vectors.manager import Manager

__all__ = [
    "LOG_FORMAT",
    "LOG_FORMAT_VERSION",
    "Allocated",
    "Asked",
    "Created",
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
]

LOG_FORMAT = "mmcache/log"
LOG_FORMAT_VERSION = 1


class LogError(ValueError):
    """A log that cannot be read: the file, the line, what is wrong with it."""


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The first line."""

    format: Literal["mmcache/log"] = "mmcache/log"
    format_version: Literal[1] = 1
    producer: str
    """What wrote the log, for people."""


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


class LookedUp(_Event, frozen=True, tag="check_and_update_cache"):
    request: str
    input_id: Count
    identifier: Name
    num_embeds: Count
    returns: bool


class Asked(_Event, frozen=True, tag="can_allocate"):
    request: str
    input_id: Count
    identifier: Name
    num_embeds: Count
    encoder_compute_budget: int
    num_embeds_to_schedule: int
    returns: bool


class Allocated(_Event, frozen=True, tag="allocate"):
    request: str
    input_id: Count
    identifier: Name
    num_embeds: Count


class FreedInput(_Event, frozen=True, tag="free_encoder_input"):
    request: str
    input_id: Count


class Freed(_Event, frozen=True, tag="free"):
    request: str


class Reported(_Event, frozen=True, tag="get_freed_mm_hashes"):
    returns: tuple[str, ...]


class WasReset(_Event, frozen=True, tag="reset"):
    """The manager forgot everything; the worker is emptied with it."""


class PassEnded(_Event, frozen=True, tag="pass"):
    """Optional: a scheduling pass is complete, and its order is on the way to the worker."""


class WorkerStepped(_Event, frozen=True, tag="worker_step"):
    """Optional: what a worker did in one step, in this order; the steps in the order of passes."""

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
    numbered = enumerate(lines, start=1)
    number, first = next(numbered, (0, b""))
    if number == 0:
        raise LogError(f"{source}: empty; a log begins with its header")
    _check_header(first, source)
    decode = msgspec.json.Decoder(LogEvent).decode
    for number, line in numbered:
        try:
            yield number, decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise LogError(_what_is_wrong(source, number, line, error)) from None


def _check_header(line: bytes, source: str) -> None:
    try:
        header: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        header = None
    if not isinstance(header, dict) or header.get("format") != LOG_FORMAT:
        raise LogError(f'{source}: line 1: no header; it should say "format": "{LOG_FORMAT}"')
    version = header.get("format_version")
    if version != LOG_FORMAT_VERSION:
        raise LogError(
            f"{source}: line 1: version {version!r}, but this reads version {LOG_FORMAT_VERSION}"
        )
    try:
        msgspec.convert(header, Header)
    except msgspec.ValidationError as error:
        raise LogError(f"{source}: line 1: {error}") from None


def _what_is_wrong(source: str, number: int, line: bytes, error: Exception) -> str:
    where = f"{source}: line {number}"
    if not line.strip():
        return f"{where}: an empty line; a log has one event a line"
    if not line.endswith(b"\n") and not isinstance(error, msgspec.ValidationError):
        return f"{where}: cut off in the middle; the log is truncated"
    if isinstance(error, RecursionError):
        return f"{where}: nested too deeply"
    return f"{where}: {error}"


def log_schema() -> dict[str, Any]:
    """The JSON Schema of one line (draft 2020-12): the header, or an event."""
    return schema_of((Header, LogEvent), "a line of an mmcache log, version 1")
