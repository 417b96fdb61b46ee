"""What our JSON documents have in common: a header, canonical bytes, a schema, clear errors.

A document says what it is (`format`) and in which version (`format_version`). What cannot be read
is refused with one line: which file, where in it, why, and how to mend it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Protocol, TypeVar

import msgspec

__all__ = [
    "LARGEST",
    "Count",
    "DocumentError",
    "Name",
    "Positive",
    "canonical",
    "content_id",
    "convert",
    "parse",
    "read",
    "schema_of",
    "slug",
    "write_atomically",
]

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]

T = TypeVar("T")
D = TypeVar("D")


class DocumentError(ValueError):
    """A document that cannot be used: which file, where in it, why, and how to mend it."""


def canonical(document: object) -> bytes:
    """The one way to write it: sorted keys, two spaces, one newline at the end."""
    compact = msgspec.json.encode(document, order="sorted")
    return msgspec.json.format(compact, indent=2) + b"\n"


def schema_of(type_: Any, title: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a type, or of one of several types (a tuple of them).

    Of several, each is under its name in `$defs`.
    """
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    if not isinstance(type_, tuple):
        return {**head, **msgspec.json.schema(type_)}
    schemas, definitions = msgspec.json.schema_components(type_, ref_template="#/$defs/{name}")
    return {**head, "anyOf": list(schemas), "$defs": definitions}


def parse(
    content: bytes,
    source: str,
    type_: type[T],
    *,
    format: str,
    version: int,
    noun: str,
    error: type[DocumentError] = DocumentError,
) -> T:
    """A document of this format, checked against its type.

    Args:
        content: The bytes of the file.
        source: What to call the file in an error.
        type_: The type of the whole document.
        format: What it should say of itself.
        version: Which version of that this package reads.
        noun: What such a document is called.
        error: What to raise.

    Raises:
        DocumentError: It cannot be used; the text names `source` and the JSON path.
    """

    def decoded(as_: type[D]) -> D:
        try:
            return msgspec.json.decode(content, type=as_)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError as wrong:
            raise error(f"{source}: not JSON: {wrong}") from None
        except RecursionError:
            raise error(f"{source}: not {_a(noun)}: nested too deeply") from None

    try:
        header = decoded(_Header)
    except msgspec.ValidationError:
        header = _Header()
    if header.format != format:
        raise error(f'{source}: at $.format: not {_a(noun)}; it should say "{format}"')
    said = header.format_version
    if said != version or isinstance(said, bool):
        raise error(
            f"{source}: at $.format_version: version {said!r}, but this suite reads version "
            f"{version}; install the suite that the {noun} was made for"
        )
    try:  # what is no JSON within may be noticed here only: the header has passed it over
        return decoded(type_)
    except msgspec.ValidationError as wrong:
        raise error(f"{source}: {_placed(wrong)}") from None


class _Header(msgspec.Struct):
    """What a document says of itself."""

    format: Any = None
    format_version: Any = None


def _placed(wrong: msgspec.ValidationError) -> str:
    reason, _, path = str(wrong).partition(" - at ")
    return f"at {path.strip('`') or '$'}: {reason}"


def convert(
    data: object, source: str, type_: type[T], *, error: type[DocumentError] = DocumentError
) -> T:
    """Data that was parsed already, as the type has it. Raises `error`, with the JSON path."""
    try:
        return msgspec.convert(data, type_, strict=True)
    except msgspec.ValidationError as wrong:
        raise error(f"{source}: {_placed(wrong)}") from None


LARGEST = 16 << 20
"""Bytes of a document. The largest vector has a ninth of it."""


class _Openable(Protocol):
    """A path, or a file of a package."""

    def open(self, mode: Literal["rb"]) -> IO[bytes]: ...


def read(path: _Openable, *, error: type[DocumentError] = DocumentError) -> bytes:
    """The bytes of a file. Raises `error`, also if there are more than `LARGEST`."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as wrong:
        raise error(f"{path}: {wrong.strerror}") from None
    if len(content) > LARGEST:
        raise error(f"{path}: longer than {LARGEST} bytes; no file of this kind is")
    return content


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


# --- ids ---------------------------------------------------------------------------------------


def content_id(name: str, content: object) -> str:
    """A stable id: the name, and eight hex digits of the content."""
    written = msgspec.json.encode(content, order="deterministic")
    return f"{name}-{hashlib.sha256(written).hexdigest()[:8]}"


def slug(identity: str) -> str:
    """The readable part of an id."""
    return re.sub(r"-[0-9a-f]{8}$", "", identity)


def write_atomically(path: Path, content: bytes) -> None:
    """The whole content, or what was there before.

    What is no ordinary file, such as `/dev/stdout` or a named pipe, is written to as it is. Of a
    link, the file that it leads to is written.

    Raises:
        OSError: It cannot be written.
    """
    if _is_stream(path):
        # Not truncated: it may be a file that others write to, too.
        with open(path, "ab", buffering=0) as stream:
            left = memoryview(content)
            while left:
                left = left[stream.write(left) :]
        return
    path = path.resolve()
    mode = path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask()
    handle, unfinished = tempfile.mkstemp(prefix=".unfinished-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(unfinished, mode)
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _is_stream(path: Path) -> bool:
    """A device or a pipe, or a descriptor of this process, whatever that is open on."""
    if os.path.abspath(path).startswith(("/dev/", "/proc/")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
