"""One file out of a wheel, whatever the wheel is like."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib

__all__ = ["LARGEST", "WHEEL_TROUBLE", "TooLarge", "read_member"]

LARGEST = 4 << 20
"""Bytes of a source file. A manager has twenty thousand."""


class TooLarge(ValueError):
    """The member is no source file."""


WHEEL_TROUBLE = (
    OSError,
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What `zipfile` raises for an archive that is damaged, encrypted, or of a kind that it lacks."""


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content, of which the checksum in the archive was found right.

    Raises:
        KeyError: It is not there.
        TooLarge: There is more of it than `LARGEST`, whatever the archive says of its size.
    """
    info = archive.getinfo(name)
    content = b""
    if info.file_size <= LARGEST:
        with archive.open(info) as member:
            while len(content) <= LARGEST and (part := member.read(1 << 16)):
                content += part
    if info.file_size > LARGEST or len(content) > LARGEST:
        raise TooLarge(f"{name} is larger than {LARGEST >> 20} MB, so it is no source file")
    return content
