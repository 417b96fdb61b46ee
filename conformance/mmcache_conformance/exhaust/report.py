"""The `--json` output of `exhaust`: what was found in each scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from .search import Exhausted

__all__ = ["ExhaustReport", "encode_exhaust", "exhaust_schema", "report_of"]


class ExhaustReport(msgspec.Struct, frozen=True, kw_only=True):
    """One entry a scope, in the order in which they were asked for."""

    format: Literal["mmcache/exhaust"] = "mmcache/exhaust"
    format_version: Literal[1] = 1
    exit_code: Literal[0, 1, 3]
    scopes: tuple[Exhausted, ...]


def report_of(scopes: Sequence[Exhausted]) -> ExhaustReport:
    """A difference counts more than a search that was given up."""
    codes = {found.exit_code for found in scopes}
    worst: Literal[0, 1, 3] = 1 if 1 in codes else 3 if 3 in codes else 0
    return ExhaustReport(exit_code=worst, scopes=tuple(scopes))


def encode_exhaust(report: ExhaustReport) -> bytes:
    """Indented JSON with sorted keys and one newline at the end."""
    compact = msgspec.json.encode(report, order="sorted")
    return msgspec.json.format(compact, indent=2) + b"\n"


def exhaust_schema() -> dict[str, Any]:
    """The JSON Schema of the output (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mmcache exhaust, version 1",
        **msgspec.json.schema(ExhaustReport),
    }
