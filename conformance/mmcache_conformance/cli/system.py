"""The commands about whole engines: `mmcache-conformance system ...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mmcache_vectors.engine import SystemVector

    from ..engines.run import SystemReport, SystemVerdict

__all__ = ["system"]

_vectors_option = click.option(
    "--vectors",
    "directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take the system vectors of this directory instead of those of the package.",
)


@click.group()
def system() -> None:
    """System vectors: a scheduler, its ledger and a worker, pass by pass."""


@system.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("-k", "part", metavar="TEXT", help="Only the vectors with TEXT in their id.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--quiet", "-q", is_flag=True, help="One line a vector.")
@_vectors_option
@click.pass_context
def run(
    context: click.Context,
    targets: tuple[str, ...],
    part: str | None,
    as_json: bool,
    quiet: bool,
    directory: Path | None,
) -> None:
    """Run the system vectors on every TARGET.

    \b
    TARGET is one of
      reference-pass           the reference engine (the default)
      reference-pass:VARIANT   the same with one wrong decision
      vllm-scheduler           the scheduler of an importable vLLM; after colons
                               v1 or v2 (which runner's worker), withdraw,
                               payload (the repairs), mmcache (our ledger in it)

    \b
    The exit code is 0 if everything passed, 1 if something failed, 2 if the
    command cannot be understood, 3 if a target could not be started.
    """
    from ..engines.open import open_system_target
    from ..engines.run import encode_system_run, run_system
    from ..errors import TargetSpecError

    try:
        opened = [open_system_target(spec) for spec in targets or ("reference-pass",)]
    except TargetSpecError as error:
        raise click.UsageError(str(error)) from None
    vectors = [v for v in _suite(directory) if part is None or part in v.id]
    if not vectors:
        raise click.UsageError(f"no system vector has {part!r} in its id")
    reports = [run_system(target, vectors) for target in opened]
    if as_json:
        click.echo(encode_system_run(reports), nl=False)
    else:
        for report in reports:
            _print(report, quiet)
    if any(report.implementation is None for report in reports):
        context.exit(3)
    context.exit(0 if all(report.ok for report in reports) else 1)


@system.command(name="random")
@click.argument("target", default="reference-pass")
@click.option("--passes", type=click.IntRange(min=1), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="The first workload.")
@click.option("--like", metavar="TARGET", help="Compare the schedules with this target's.")
@click.pass_context
def random_workloads(
    context: click.Context, target: str, passes: int, seed: int, like: str | None
) -> None:
    """Run random workloads on TARGET, and check every clause after every pass."""
    from ..engines.open import open_system_target
    from ..engines.random import random_run
    from ..errors import TargetError, TargetSpecError

    try:
        tested = open_system_target(target)
        other = None if like is None else open_system_target(like)
        for opened in (tested, other):
            if opened is not None:
                opened.start()
    except TargetSpecError as error:
        raise click.UsageError(str(error)) from None
    except TargetError as error:
        click.echo(f"could not be started: {error}", err=True)
        context.exit(3)
    tally = random_run(tested, passes, first=seed, like=other)
    click.echo(
        f"{target}: {tally.passes} passes of {tally.workloads} workloads from seed {seed} on, "
        f"{tally.preemptions} preemptions, {tally.withdrawals} passes with a withdrawn encoding"
    )
    for clause, count in sorted(tally.failures.items()):
        example = tally.examples[clause]
        click.echo(f"  {clause} breaks in {count} workloads, for example of seed {example}")
    if like is not None:
        what = f"differs in {len(tally.differences)} workloads: {tally.differences[:5]}"
        click.echo(f"  the schedule of {like} {what if tally.differences else 'is the same'}")
    if not tally.failures:
        click.echo("  no clause breaks")
    context.exit(1 if tally.failures or tally.differences else 0)


@system.command(name="list")
@_vectors_option
def list_system_vectors(directory: Path | None) -> None:
    """List the system vectors: id, what breaks, by which wrong decision."""
    for vector in _suite(directory):
        click.echo(f"{vector.id}  {','.join(vector.clauses) or '-'}  {vector.variant}")


@system.command()
def schema() -> None:
    """Print the JSON Schema of a system vector."""
    import json

    from mmcache_vectors.engine import system_schema

    click.echo(json.dumps(system_schema(), indent=2, sort_keys=True))


def _suite(directory: Path | None) -> tuple[SystemVector, ...]:
    from mmcache_vectors.engine import VectorError

    from ..suites.load_engine import load_system_suite

    try:
        return load_system_suite(directory)
    except VectorError as error:
        raise click.UsageError(str(error)) from None


def _print(report: SystemReport, quiet: bool) -> None:
    if report.implementation is None:
        click.echo(f"{report.target} could not be started: {report.reason}")
        return
    about = report.implementation
    version = f" {about.version}" if about.version else ""
    passed = sum(v.outcome == "pass" for v in report.verdicts)
    click.echo(f"{report.target}: {about.name}{version}")
    for verdict in report.verdicts:
        click.echo(f"  {_line(verdict)}")
        if verdict.breaches and not quiet:
            for text in _story(verdict):
                click.echo(f"      {text}")
    click.echo(f"  {passed} of {len(report.verdicts)} passed in {report.seconds:.2f} s")


def _line(verdict: SystemVerdict) -> str:
    about = ""
    if verdict.breaches:
        told = (f"pass {b.pass_number}: {b.clause}, {b.says}" for b in verdict.breaches)
        about = "".join(f"\n         {text}" for text in told)
    elif verdict.reason is not None:
        about = f"  {verdict.reason}"
    elif verdict.reached is False:
        about = "  (the situation did not come up)"
    return f"{verdict.outcome:5}  {verdict.id}{about}"


def _story(verdict: SystemVerdict) -> list[str]:
    return [
        f"pass {r.number}: tokens {r.num_scheduled_tokens}, "
        f"encode { {q: list(i) for q, i in r.scheduled_encoder_inputs.items()} }, "
        f"report {list(r.report)}, preempted {list(r.preempted)}, cached {list(r.cached)}, "
        f"worker {list(r.worker)}"
        for r in verdict.records
    ]
