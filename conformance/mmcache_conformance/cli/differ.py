"""`mmcache-conformance differ`: the command, and its report for people."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..exits import ExitCode
from .options import (
    NotWritten,
    Seconds,
    echo,
    foreign_code,
    in_process_option,
    json_option,
    make_folder,
    print_document,
    timeout_option,
    usage_errors,
    vectors_option,
    write_file,
)

if TYPE_CHECKING:
    from ..differ.pairs import PairDifferReport
    from ..differ.report import DifferReport, Finding
    from ..implementation import Implementation
    from ..oracle.known import Known
    from ..pairs.protocol import PairTarget

__all__ = ["differ"]

_SECONDS = 10.0


@click.command()
@click.argument("target", default="reference")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)
@click.option(
    "--count",
    type=click.IntRange(1, 10**12),
    metavar="N",
    help="Play so many sequences, however long.",
)
@click.option(
    "--seconds",
    type=Seconds(),
    help=f"Play so long (default: {_SECONDS:g}, if there is no --count).",
)
@click.option(
    "--calls",
    type=click.IntRange(1, 1000),
    help="Calls of a sequence (default: from 6 to 40, at random).",
)
@click.option(
    "--findings",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Go on until so many kinds of difference are found.",
)
@click.option(
    "--expected",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The failures that are expected, as for run: what they explain is passed over.",
)
@click.option(
    "--save",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save what is found as vectors, for run --vectors DIR.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Targets at a time, each with a process of its own beside it.",
)
@click.option("--cluster", metavar="ADDRESS", help="Play on this Dask cluster.")
@timeout_option
@in_process_option
@vectors_option
@json_option
@click.pass_context
def differ(
    context: click.Context,
    target: str,
    seed: int,
    count: int | None,
    seconds: float | None,
    calls: int | None,
    findings: int,
    expected: Path | None,
    save: Path | None,
    jobs: int,
    cluster: str | None,
    timeout: float | None,
    in_process: bool,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Play random sequences of calls on TARGET, and compare it with the specification.

    Worlds are larger than those of the vectors: up to 8 hashes, 6 requests and 12 items, with
    large and small numbers and with long names. What is found is made as short as it can be, and
    --save keeps it as a vector. TARGET is any manager, or a pair of processor caches (in smaller
    worlds), as for run; the same seed and --count play the same sequences.

    \b
    The exit code is 0 if nothing differs (but what --expected explains), 1 if
    something does, 2 if the command cannot be understood, 3 if the target
    could not be started or played on, 130 if it was interrupted.
    """
    from mmcache_spec.campaign import ClusterError

    from ..differ.campaign import run_campaign
    from ..differ.search import Campaign
    from ..errors import AdapterError, TargetError

    if save is not None:
        make_folder(save, "--save")
    if count is None and seconds is None:
        seconds = _SECONDS
    found = _pair_of(target, timeout, in_process)
    if found is not None:
        for option, given in (("--expected", expected), ("--vectors", directory),
                              ("--cluster", cluster), ("--jobs", jobs > 1)):  # fmt: skip
            if given:
                raise click.UsageError(f"{option} is for managers, and {target} is a pair")
        _differ_pair(context, found, seed, calls, count, seconds, findings, save, as_json)
        return
    try:
        with usage_errors(), foreign_code():
            implementation, known = _known(target, timeout, in_process, expected, directory)
            campaign = Campaign(
                target, seed, calls, known=known, timeout=timeout, in_process=in_process
            )
            with _progress(not as_json, count, seconds) as on_progress:
                report = run_campaign(
                    campaign,
                    implementation,
                    count=count,
                    seconds=seconds,
                    findings=findings,
                    jobs=jobs,
                    cluster=cluster,
                    on_progress=on_progress,
                )
    except (TargetError, AdapterError, ClusterError) as error:
        echo(f"{target} could not be played on: {error}", err=True)
        context.exit(ExitCode.COULD_NOT)
    if as_json:
        print_document(report)
    else:
        echo("\n".join(_lines(report)))
    if save is not None:
        _save(save, report, quiet=as_json)
    context.exit(report.exit_code)


def _pair_of(name: str, timeout: float | None, in_process: bool) -> PairTarget | None:
    """The target, if it is a pair of processor caches and nothing else."""
    from ..open import open_target
    from ..pairs.open import is_pair_name
    from ..pairs.protocol import PairTarget

    if not is_pair_name(name) and not name.startswith("cmd:"):
        return None
    with usage_errors():
        found = open_target(name, timeout=timeout, in_process=in_process)
    if isinstance(found, PairTarget):
        return found
    found.stop()
    return None


def _differ_pair(
    context: click.Context,
    target: PairTarget,
    seed: int,
    calls: int | None,
    count: int | None,
    seconds: float | None,
    findings: int,
    save: Path | None,
    as_json: bool,
) -> None:
    from ..differ.pairs import run_pair_campaign
    from ..errors import AdapterError, TargetError

    try:
        with foreign_code(), _progress(not as_json, count, seconds) as on_progress:
            report = run_pair_campaign(
                target,
                seed=seed,
                calls=calls,
                count=count,
                seconds=seconds,
                findings=findings,
                on_progress=on_progress,
            )
    except (TargetError, AdapterError) as error:
        echo(f"{target.name} could not be played on: {error}", err=True)
        context.exit(ExitCode.COULD_NOT)
    if as_json:
        print_document(report)
    else:
        echo("\n".join(_pair_lines(report)))
    if save is not None:
        _save(save, report, quiet=as_json)
    context.exit(report.exit_code)


def _pair_lines(report: PairDifferReport) -> Iterator[str]:
    from mmcache_vectors.clauses import clause

    from ..reports.pairs import pair_failure_lines

    yield f"{report.target}: {report.implementation.name}, seed {report.seed}"
    for finding in report.findings:
        yield from map(_decision_line, finding.decisions)
        if not finding.decisions:
            yield "DIFFERS from the specification; no decision that is known here explains it:"
        yield from (f"  {line}" for line in pair_failure_lines(finding.vector, finding.failure))
        for about in map(clause, finding.clauses):
            yield f"  {about.id} {about.name}: {about.says}"
        yield (
            f"  sequence {finding.sequence} of {finding.calls_at_first} calls, "
            f"made {len(finding.vector.steps)}"
        )
    if report.left_out:
        yield f"not called, because the target lacks it: {', '.join(report.left_out)}"
    rate = report.sequences / max(report.seconds, 0.001)
    yield (
        f"{report.sequences:,} sequences, {report.calls:,} calls compared in {report.worlds:,} "
        f"worlds, {report.seconds:.1f} s, {rate:,.0f} sequences/s"
    )
    if not report.findings:
        yield "nothing differs"


def _decision_line(name: str) -> str:
    from mmcache_spec.model.variants import VARIANTS

    variant = VARIANTS[name]
    seen = f" ({', '.join(variant.seen_in)})" if variant.seen_in else ""
    return f"DECISION {name}{seen}: {variant.says}; it explains all of this:"


def _known(
    name: str,
    timeout: float | None,
    in_process: bool,
    expected: Path | None,
    directory: Path | None,
) -> tuple[Implementation, Known]:
    """Who is tested, and what it is known to do otherwise."""
    from ..oracle.known import known_of, nothing_known
    from ..suites.load import load_suite
    from ..targets.open import open_manager
    from ..verdicts.expected import load_expected

    target = open_manager(name, timeout=timeout, in_process=in_process)
    try:
        if expected is None:
            return target.start(), nothing_known
        suite = load_suite(directory)
        listed = load_expected(expected, suite)
        implementation = target.start()
        return implementation, known_of(target, implementation, listed, suite)
    finally:
        target.stop()


@contextlib.contextmanager
def _progress(
    wanted: bool, count: int | None, seconds: float | None
) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal: of the sequences if they are counted, else of the time."""
    from rich.console import Console

    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield lambda sequences: None
        return
    import time

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        TextColumn("{task.fields[played]:,} sequences, {task.fields[rate]:,.0f}/s"),
        TimeElapsedColumn(),
    )
    began = time.perf_counter()
    played = 0
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=count if seconds is None else seconds, played=0, rate=0.0)

        def on_progress(sequences: int) -> None:
            nonlocal played
            played += sequences
            passed = time.perf_counter() - began
            done = played if seconds is None else passed
            bar.update(task, completed=done, played=played, rate=played / max(passed, 0.001))

        yield on_progress


def _lines(report: DifferReport) -> Iterator[str]:
    from ..reports.decisions import uncompared_lines

    yield f"{report.target}: {report.implementation.name}, seed {report.seed}"
    for finding in report.findings:
        yield from _story(report, finding)
    if report.left_out:
        yield f"not called, because the target lacks it: {', '.join(report.left_out)}"
    yield from uncompared_lines(report.implementation)
    rate = report.sequences / max(report.seconds, 0.001)
    yield (
        f"{report.sequences:,} sequences, {report.calls:,} calls compared in {report.worlds:,} "
        f"worlds, {report.seconds:.1f} s, {rate:,.0f} sequences/s"
    )
    if report.known:
        yield f"{report.known:,} of them differ as expected"
    if not report.findings:
        new = "nothing else differs" if report.known else "nothing differs"
        yield new if report.calls else "no call could be made, so nothing was compared"


def _story(report: DifferReport, finding: Finding) -> Iterator[str]:
    from mmcache_vectors.clauses import clause

    from ..reports.story import call_text, difference_lines, parameter_lines
    from ..verdicts.model import CallFailure

    yield from map(_decision_line, finding.decisions)
    if not finding.decisions:
        yield "DIFFERS from the specification; no decision that is known here explains it:"
    vector = finding.vector
    calls = [step.call for step in vector.steps]
    yield from (f"  {line}" for line in parameter_lines(vector.parameters))
    if finding.after:
        yield (
            f"  only after {len(finding.after)} other sequences in the same process: managers "
            "share something that they must not share"
        )
    for number, call in enumerate(calls, start=1):
        yield f"  {number:3}  {call_text(call, vector.parameters)}"
    failure = CallFailure(len(calls) - 1, calls[-1], finding.differences, "")
    yield from (f"       {line}" for line in difference_lines(failure))
    for about in map(clause, finding.clauses):
        yield f"  {about.id} {about.name}: {about.says}"
    yield f"  sequence {finding.sequence} of {finding.calls_at_first} calls, made {len(calls)}"


def _save(directory: Path, report: DifferReport | PairDifferReport, *, quiet: bool) -> None:
    from mmcache_vectors.document import canonical

    for finding in report.findings:
        path = directory / f"{finding.vector.id}.json"
        content = canonical(finding.vector)
        if path.exists() and path.read_bytes() != content:
            raise NotWritten(f"{path} is there already and is another file: not overwritten")
        write_file(path, content)
        if not quiet:
            echo(f"saved: {path}")
