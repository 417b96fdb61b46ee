"""Many targets against every clause, one after the other.

One process and no memory: a release takes some milliseconds once its source file is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ..errors import TargetNameError, describe_exception
from ..open import open_target
from ..oracle.decisions import explained
from ..suites.load import AnyVector, suite_digest, suite_version
from ..verdicts.model import SuiteSelection, TargetReport
from ..verdicts.run import run_target
from .defects import Defect, defects

__all__ = ["Matrix", "matrix_of", "run_matrix"]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, for machines. Rows are in the order in which they were asked for."""

    format: Literal["mmcache/matrix"] = "mmcache/matrix"
    format_version: Literal[1] = 1
    suite: SuiteSelection
    date: str
    """The day of the run, as 2026-01-31."""
    rows: tuple[TargetReport, ...]
    defects: tuple[Defect, ...]


def run_matrix(
    names: Sequence[str],
    vectors: Sequence[AnyVector],
    on_report: Callable[[TargetReport], None] = lambda report: None,
    *,
    timeout: float | None = None,
    in_process: bool = False,
    refresh: bool = False,
) -> tuple[TargetReport, ...]:
    """One report a target, in order; what cannot be run has a report that says why.

    A target that is named twice is run once. `timeout`, `in_process` and `refresh` are as for
    `open_target`.
    """
    found: dict[str, TargetReport] = {}
    for name in dict.fromkeys(names):
        found[name] = _report_on(name, vectors, timeout, in_process, refresh)
        on_report(found[name])
    return tuple(found[name] for name in names)


def _report_on(
    name: str,
    vectors: Sequence[AnyVector],
    timeout: float | None,
    in_process: bool,
    refresh: bool,
) -> TargetReport:
    try:
        target = open_target(name, timeout=timeout, in_process=in_process, refresh=refresh)
        return explained(run_target(target, vectors), vectors)
    except TargetNameError as error:
        reason = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # one row that breaks down must not cost the others
        reason = describe_exception(error)
    return TargetReport(name, None, reason, 0.0, ())


def matrix_of(rows: Sequence[TargetReport], vectors: Sequence[AnyVector], date: str) -> Matrix:
    """The rows, and the defects that they have."""
    suite = SuiteSelection(suite_version(), len(vectors), suite_digest(vectors))
    return Matrix(suite=suite, date=date, rows=tuple(rows), defects=tuple(defects(rows, vectors)))
