"""`mmcache-conformance workloads`: random workloads on an engine, every clause after every pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..exits import ExitCode
from .options import cluster_option, json_option, print_document, usage_errors

if TYPE_CHECKING:
    from ..engines.random import RandomRun

__all__ = ["workloads"]


@click.command()
@click.argument("target", default="reference-pass")
@click.option("--passes", type=click.IntRange(1, 10**7), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, help="The first workload.")
@click.option("--like", metavar="TARGET", help="Compare the schedules with this target's.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Workers here (default: one a core).")
@cluster_option
@json_option
@click.pass_context
def workloads(
    context: click.Context,
    target: str,
    passes: int,
    seed: int,
    like: str | None,
    jobs: int | None,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Run random workloads on TARGET, an engine, and check every clause after every pass.

    \b
    TARGET, as for run:
      reference-pass        the reference engine; after a colon, the variant
                            of the specification whose mistake it makes
      vllm-scheduler        the scheduler of a vLLM that can be imported;
                            after colons: v1 or v2 (which runner's worker),
                            withdraw, payload, skip (the repairs), mmcache
                            or two-phase (a ledger of the reference in it),
                            scheduler=module:Class (a fork's scheduler)
      cmd:COMMAND           a program whose adapter declares itself an engine

    \b
    The exit code is 0 if no clause breaks and no schedule differs, 1 if one
    does, 2 if the command cannot be understood, 3 if an engine could not be
    started.
    """
    from mmcache_spec.campaign import ClusterError, workers

    from ..engine_command import open_any_engine
    from ..engines.random import random_campaign
    from ..errors import AdapterError, TargetError

    with usage_errors():
        for name in (target, like):
            if name is not None:
                open_any_engine(name)
    try:
        with workers(cluster, jobs=jobs) as executor:
            found = random_campaign(
                target, passes, executor, first=seed, like=like, opener=open_any_engine
            )
    except (TargetError, AdapterError) as error:
        click.echo(f"could not be started: {error}", err=True)
        context.exit(ExitCode.COULD_NOT)
    except ClusterError as error:
        click.echo(str(error), err=True)
        context.exit(ExitCode.COULD_NOT)
    if as_json:
        print_document(found)
    else:
        _print(found, seed)
    context.exit(ExitCode.FAILED if found.failures or found.differences else ExitCode.OK)


def _print(found: RandomRun, seed: int) -> None:
    click.echo(
        f"{found.target}: {found.passes} passes of {found.workloads} workloads from seed {seed} "
        f"on, {found.preemptions} preemptions, {found.withdrawals} passes with a withdrawn encoding"
    )
    for clause, count in sorted(found.failures.items()):
        example = found.examples[clause]
        click.echo(f"  {clause} breaks in {count} workloads, for example of seed {example}")
    if found.like is not None:
        what = f"differs in {len(found.differences)} workloads: {list(found.differences[:5])}"
        same = "is the same"
        click.echo(f"  the schedule of {found.like} {what if found.differences else same}")
    if not found.failures:
        click.echo("  no clause breaks")
