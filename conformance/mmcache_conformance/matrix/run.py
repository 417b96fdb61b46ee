"""Many targets against every clause, in parallel: any `concurrent.futures` executor will do.

The result for a release is kept in the user's cache, under what it depends on: the vectors, the
harness and the release. So a run that was interrupted goes on where it was, and only what changed
is run again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import AbstractContextManager
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Literal

import msgspec

from mmcache_vectors.manager import Vector

from ..errors import TargetSpecError, describe_exception
from ..suites.load import suite_digest, suite_version
from ..verdicts.model import Suite, TargetReport

__all__ = [
    "Defect",
    "Matrix",
    "ResultCache",
    "defects",
    "harness_digest",
    "has_defect",
    "matrix_of",
    "run_matrix",
    "unexplained",
    "worker_processes",
]

MakeExecutor = Callable[[], AbstractContextManager[Executor]]


class Defect(msgspec.Struct, frozen=True):
    """A wrong decision of the specification's list, and where among the rows it was met.

    A row *has* the defect if it fails every vector that applies and that the decision fails.
    """

    variant: str
    says: str
    clauses: tuple[str, ...]
    first_with: str
    """The first row that has it."""
    last_with: str
    first_without: str | None
    """The first row after `last_with` in which it could be looked for and is not."""
    rows: tuple[str, ...]
    """All rows that have it."""
    gaps: bool = False
    """Whether some row between the first and the last could have it, and does not."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, for machines. Rows are in the order in which they were asked for."""

    format: Literal["mmcache/matrix"] = "mmcache/matrix"
    format_version: Literal[1] = 1
    suite: Suite
    date: str
    """The day of the run, as 2026-01-31."""
    rows: tuple[TargetReport, ...]
    defects: tuple[Defect, ...]


# --- running -----------------------------------------------------------------------------------


def run_matrix(
    specs: Sequence[str],
    vectors: Sequence[Vector],
    make_executor: MakeExecutor,
    *,
    cache: ResultCache | None = None,
    done: Callable[[TargetReport], None] = lambda report: None,
) -> tuple[TargetReport, ...]:
    """One report a target, in order. What cannot be run has a report that says why.

    `done` is called for each as it comes. A target that takes a worker process down is run again
    in an executor of its own, so that its neighbours keep their results.
    """
    found: dict[str, TargetReport] = {}

    def keep(report: TargetReport) -> None:
        found[report.target] = report
        if cache is not None:
            cache.put(report)
        done(report)

    for spec in dict.fromkeys(specs):
        kept = cache.get(spec) if cache is not None else None
        if kept is not None:
            found[spec] = kept
            done(kept)
    left = [spec for spec in dict.fromkeys(specs) if spec not in found]
    if left:
        with make_executor() as executor:
            for report in _run_in(executor, left, vectors):
                keep(report)
    for spec in left:
        if spec not in found:
            with make_executor() as executor:
                for report in _run_in(executor, (spec,), vectors):
                    keep(report)
            if spec not in found:
                keep(_not_run(spec, "the process that ran it died"))
    return tuple(found[spec] for spec in specs)


def _run_in(
    executor: Executor, specs: Sequence[str], vectors: Sequence[Vector]
) -> Iterator[TargetReport]:
    """The reports that come; none for a target whose worker process died."""
    harness = harness_digest()
    jobs: dict[Future[TargetReport], str] = {}
    try:
        for spec in specs:
            with contextlib.suppress(BrokenExecutor):
                jobs[executor.submit(_run_one, spec, tuple(vectors), harness)] = spec
        for job in as_completed(jobs):
            try:
                yield job.result()
            except BrokenExecutor:
                continue
            except Exception as error:
                yield _not_run(jobs[job], describe_exception(error))
    finally:
        for job in jobs:
            job.cancel()  # what has not begun, if this was interrupted


def _run_one(spec: str, vectors: tuple[Vector, ...], harness: str) -> TargetReport:
    """What a worker does, perhaps on another machine."""
    from ..targets.open import open_target
    from ..verdicts.run import run_target

    if harness_digest() != harness:
        return _not_run(spec, "the worker has another version of mmcache_conformance installed")
    try:
        target = open_target(spec)
    except TargetSpecError as error:
        return _not_run(spec, str(error))
    return run_target(target, vectors)


def _not_run(spec: str, reason: str) -> TargetReport:
    return TargetReport(spec, None, reason, 0.0, ())


def worker_processes(count: int) -> MakeExecutor:
    """Processes of this machine, which leave standard output and interrupts to this one."""

    @contextlib.contextmanager
    def executor() -> Iterator[Executor]:
        others = active_children()
        context = get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=context, initializer=_as_worker) as pool:
            try:
                yield pool
            except BaseException:
                # An interrupted run does not wait for what it has begun.
                for child in active_children():
                    if child not in others:
                        child.terminate()
                raise

    return executor


def _as_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout = sys.stderr


# --- keeping -----------------------------------------------------------------------------------


def harness_digest() -> str:
    """Sixteen hex digits of the source of this package: what else a verdict depends on."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class ResultCache:
    """One file a target. Only results are kept: a target that did not start is tried again."""

    def __init__(self, directory: Path, vectors: Sequence[Vector]) -> None:
        self._directory = directory / "matrix" / f"{suite_digest(vectors)}-{harness_digest()}"

    def get(self, spec: str) -> TargetReport | None:
        try:
            report = msgspec.json.decode(self._path(spec).read_bytes(), type=TargetReport)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return report if report.target == spec else None

    def put(self, report: TargetReport) -> None:
        """Store it. A cache that cannot be written is done without."""
        if report.implementation is None or not _lasts(report.target):
            return
        path = self._path(report.target)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
                file.write(msgspec.json.encode(report))
            os.replace(file.name, path)
        except OSError:
            return

    def _path(self, spec: str) -> Path:
        return self._directory / f"{spec.rpartition(':')[2]}.json"


def _lasts(spec: str) -> bool:
    """Whether the target is the same for ever, as a release is and a path is not."""
    from ..targets.vllm.wheel import is_version

    scheme, _, version = spec.partition(":")
    return scheme == "vllm" and is_version(version)


# --- judging -----------------------------------------------------------------------------------


def matrix_of(rows: Sequence[TargetReport], vectors: Sequence[Vector], date: str) -> Matrix:
    """The rows, and the defects that they have."""
    suite = Suite(suite_version(), len(vectors), suite_digest(vectors))
    return Matrix(suite=suite, date=date, rows=tuple(rows), defects=tuple(defects(rows, vectors)))


def defects(rows: Sequence[TargetReport], vectors: Sequence[Vector]) -> Iterator[Defect]:
    """Each wrong decision that some row has, in the order in which they were first met."""
    wrong = dict.fromkeys(name for vector in vectors for name in vector.kills)
    found: list[tuple[int, Defect]] = []
    for variant in wrong:
        state = [has_defect(row, variant, vectors) for row in rows]
        with_it = [k for k, has in enumerate(state) if has]
        if not with_it:
            continue
        first, last = with_it[0], with_it[-1]
        free = next((k for k in range(last + 1, len(rows)) if state[k] is False), None)
        own = [v for v in vectors if v.variant == variant]
        defect = Defect(
            variant=variant,
            says=own[0].description.removeprefix("An engine fails here if ") if own else variant,
            clauses=tuple(dict.fromkeys(clause for v in own for clause in v.clauses)),
            first_with=rows[first].target,
            last_with=rows[last].target,
            first_without=None if free is None else rows[free].target,
            rows=tuple(rows[k].target for k in with_it),
            gaps=any(state[k] is False for k in range(first, last)),
        )
        found.append((first, defect))
    yield from (defect for _, defect in sorted(found, key=lambda pair: pair[0]))


def has_defect(row: TargetReport, variant: str, vectors: Sequence[Vector]) -> bool | None:
    """Whether the row fails every vector that the decision fails; nothing if none applied."""
    about = {vector.id for vector in vectors if variant in vector.kills}
    outcomes = [v.outcome for v in row.verdicts if v.id in about and v.outcome != "skip"]
    return all(o in {"fail", "xfail"} for o in outcomes) if outcomes else None


def unexplained(row: TargetReport, vectors: Sequence[Vector]) -> tuple[str, ...]:
    """The vectors that the row fails although it has none of the decisions that they are about."""
    by_id = {vector.id: vector for vector in vectors}
    return tuple(
        verdict.id
        for verdict in row.verdicts
        if verdict.outcome in {"fail", "error"}
        and not any(has_defect(row, name, vectors) for name in by_id[verdict.id].kills)
    )
