"""Names that are alike: each style does what it says."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from zlib import crc32

import pytest

from mmcache_conformance.verdicts.names import ALIKE, STYLES, Style, draw_names, style_name

_ALL = 0xFFFFFFFF


def _fnv_1a(text: bytes) -> int:
    value = 2166136261
    for byte in text:
        value = (value ^ byte) * 16777619 & _ALL
    return value


def _crc32c(text: bytes) -> int:
    value = _ALL
    for byte in text:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ _ALL


def _one_at_a_time(text: bytes) -> int:
    value = 0
    for byte in text:
        value = (value + byte) * 1025 & _ALL
        value ^= value >> 6
    value = value * 9 & _ALL
    value ^= value >> 11
    return value * 32769 & _ALL


def _murmur3(text: bytes) -> int:
    assert len(text) % 4 == 0
    value = 0
    for k in range(0, len(text), 4):
        block = int.from_bytes(text[k : k + 4], "little") * 0xCC9E2D51 & _ALL
        block = (block << 15 | block >> 17) & _ALL
        value ^= block * 0x1B873593 & _ALL
        value = ((value << 13 | value >> 19) & _ALL) * 5 + 0xE6546B64 & _ALL
    value ^= len(text)
    value = (value ^ value >> 16) * 0x85EBCA6B & _ALL
    value = (value ^ value >> 13) * 0xC2B2AE35 & _ALL
    return value ^ value >> 16


def _crc16(text: bytes) -> int:
    value = 0xFFFF
    for byte in text:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ (0x1021 if value & 0x8000 else 0)) & 0xFFFF
    return value


def _crc16_of_modems(text: bytes) -> int:
    value = 0
    for byte in text:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xA001 if value & 1 else 0)
    return value


def _fletcher(text: bytes) -> int:
    first = second = 0
    for byte in text:
        first = (first + byte) % 255
        second = (second + first) % 255
    return second << 8 | first


def _polynomial(factor: int) -> Callable[[bytes], int]:
    def value(text: bytes) -> int:
        found = 0
        for byte in text:
            found = (found * factor + byte) & _ALL
        return found

    return value


def _multiplied_and_mixed(start: int, factor: int) -> Callable[[bytes], int]:
    def value(text: bytes) -> int:
        found = start
        for byte in text:
            found = (found * factor & _ALL) ^ byte
        return found

    return value


def _elf(text: bytes) -> int:
    value = 0
    for byte in text:
        value = ((value << 4) + byte) & _ALL
        value ^= (value & 0xF0000000) >> 24
        value &= 0x0FFFFFFF
    return value


def _js(text: bytes) -> int:
    value = 1315423911
    for byte in text:
        value ^= ((value << 5) + byte + (value >> 2)) & _ALL
    return value


def _rotating(text: bytes) -> int:
    value = 0
    for byte in text:
        value = ((value << 5 | value >> 27) ^ byte) & _ALL
    return value


def _murmur2(text: bytes) -> int:
    assert len(text) % 4 == 0
    value = len(text)
    for k in range(0, len(text), 4):
        block = int.from_bytes(text[k : k + 4], "little") * 0x5BD1E995 & _ALL
        block = (block ^ block >> 24) * 0x5BD1E995 & _ALL
        value = (value * 0x5BD1E995 & _ALL) ^ block
    value = (value ^ value >> 13) * 0x5BD1E995 & _ALL
    return value ^ value >> 15


def _xxh32(text: bytes) -> int:
    assert len(text) % 4 == 0
    assert len(text) < 16
    value = 374761393 + len(text)
    for k in range(0, len(text), 4):
        value = (value + int.from_bytes(text[k : k + 4], "little") * 3266489917) & _ALL
        value = (value << 17 | value >> 15) * 668265263 & _ALL
    value = (value ^ value >> 15) * 2246822519 & _ALL
    value = (value ^ value >> 13) * 3266489917 & _ALL
    return value ^ value >> 16


CHECKSUMS: dict[str, Callable[[bytes], int]] = {
    "crc32": crc32,
    "fnv-1a": _fnv_1a,
    "fnv-1": _multiplied_and_mixed(2166136261, 16777619),
    "sdbm": _polynomial(65599),
    "crc32c": _crc32c,
    "murmur3": _murmur3,
    "crc16": _crc16,
    "crc16 of modems": _crc16_of_modems,
    "fletcher": _fletcher,
    "one at a time": _one_at_a_time,
    "djb2 with exclusive or": _multiplied_and_mixed(5381, 33),
    "elf": _elf,
    "by 131": _polynomial(131),
    "js": _js,
    "by 37": _polynomial(37),
    "by 257": _polynomial(257),
    "rotating": _rotating,
    "murmur2": _murmur2,
    "xxh32": _xxh32,
}


@pytest.mark.parametrize("name", ALIKE)
def test_two_by_two_they_share_the_checksum(name: str) -> None:
    texts = ALIKE[name]
    assert len(set(texts)) == len(texts)
    for one, other in zip(texts[::2], texts[1::2], strict=True):
        assert CHECKSUMS[name](one.encode()) == CHECKSUMS[name](other.encode())


@pytest.mark.parametrize("style", STYLES, ids=style_name)
def test_a_draw_is_distinct_and_the_same_again(style: Style) -> None:
    for number in (1, 2, 3, 8, 33, 300):
        names = draw_names(Random(number), number, style)
        assert len(set(names)) == len(names) == number
        assert "" not in names
        assert names == draw_names(Random(number), number, style)
