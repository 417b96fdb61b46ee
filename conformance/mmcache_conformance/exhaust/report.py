"""The `--json` output of `exhaust`: what was found in each scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ..exits import ExitCode
from .search import Exhausted

__all__ = ["ExhaustReport", "report_of"]


class ExhaustReport(msgspec.Struct, frozen=True, kw_only=True):
    """One entry a scope, in the order in which they were asked for."""

    format: Literal["mmcache/exhaust"] = "mmcache/exhaust"
    format_version: Literal[1] = 1
    exit_code: ExitCode
    scopes: tuple[Exhausted, ...]


def report_of(scopes: Sequence[Exhausted]) -> ExhaustReport:
    """A difference counts more than a search that was given up."""
    codes = {found.exit_code for found in scopes}
    order = (ExitCode.FAILED, ExitCode.COULD_NOT)
    worst = next((code for code in order if code in codes), ExitCode.OK)
    return ExhaustReport(exit_code=worst, scopes=tuple(scopes))
