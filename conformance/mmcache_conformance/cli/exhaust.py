"""`mmcache-conformance exhaust`: the command, and its report for people."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..exhaust.search import Exhausted, Progress
    from ..exhaust.world import Scope

__all__ = ["exhaust"]


@click.command()
@click.argument("target", default="reference")
@click.option("--hashes", type=click.IntRange(1, 12), default=4, show_default=True)
@click.option("--requests", type=click.IntRange(1, 6), default=2, show_default=True)
@click.option("--inputs", type=click.IntRange(1, 12), default=4, show_default=True, help="Each.")
@click.option("--capacity", type=click.IntRange(0), default=6, show_default=True)
@click.option("--sizes", help="Of the hashes, such as 1,2,3,2 (which is the default for four).")
@click.option("--encoder-decoder", is_flag=True, help="The manager for encoder-decoder models.")
@click.option("--processes", type=click.IntRange(1), help="Default: one a core.")
@click.option(
    "--max-states",
    type=click.IntRange(1),
    default=2_000_000,
    show_default=True,
    help="Give up beyond; one takes one or two kilobytes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def exhaust(
    context: click.Context,
    target: str,
    hashes: int,
    requests: int,
    inputs: int,
    capacity: int,
    sizes: str | None,
    encoder_decoder: bool,
    processes: int | None,
    max_states: int,
    as_json: bool,
) -> None:
    """Go through every reachable state of TARGET and of the specification, together.

    Within the scope this is complete: every sequence of calls that a caller may make, of any
    length. TARGET is as for run, but must be a Python class.

    \b
    The exit code is 0 if nothing differs, 1 if something does, 2 if the
    command cannot be understood, 3 if the target could not be started or
    the search was given up.
    """
    from ..errors import TargetError, TargetSpecError
    from ..exhaust.search import exhaust as search
    from ..exhaust.world import Scope

    scope = Scope(
        "encoder_decoder" if encoder_decoder else "encoder_cache",
        hashes,
        requests,
        inputs,
        capacity,
        _sizes(sizes, hashes),
    )
    try:
        with _progress(not as_json) as tell, contextlib.redirect_stdout(sys.stderr):
            found = search(
                target,
                scope,
                processes=processes or os.cpu_count() or 1,
                max_states=max_states,
                tell=tell,
            )
    except TargetSpecError as error:
        raise click.UsageError(str(error)) from None
    except TargetError as error:
        click.echo(f"{target} could not be exhausted: {error}", err=True)
        context.exit(3)
    if as_json:
        import msgspec

        compact = msgspec.json.encode(found, order="sorted")
        click.echo(msgspec.json.format(compact, indent=2))
    else:
        click.echo("\n".join(_report(found, scope)))
    context.exit(_exit_code(found))


def _exit_code(found: Exhausted) -> int:
    if found.disagreement is not None:
        return 1
    complete = not found.bounded and found.spec_states == found.spec_states_expected
    return 0 if complete else 3


def _sizes(text: str | None, hashes: int) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if len(sizes) != hashes or min(sizes) < 0:
        raise click.BadParameter(
            f"give {hashes} sizes, 0 or more, as in 1,2,3", param_hint="--sizes"
        )
    return sizes


@contextlib.contextmanager
def _progress(wanted: bool) -> Iterator[Callable[[Progress], None]]:
    """A line on the terminal that shows how far the search is."""
    from rich.console import Console

    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield lambda progress: None
        return
    import time

    started = time.perf_counter()
    with console.status("starting") as status:

        def tell(now: Progress) -> None:
            rate = now.pairs / (time.perf_counter() - started)
            status.update(
                f"{now.pairs:,} states, {now.transitions:,} calls, depth {now.depth}, "
                f"{now.waiting:,} waiting, {rate:,.0f} states/s"
            )

        yield tell


def _report(found: Exhausted, scope: Scope) -> Iterator[str]:
    from ..reports.story import parameter_lines

    yield f"{found.target}: {found.implementation.name}, {scope.manager}"
    yield from parameter_lines(found.parameters)
    if found.left_out:
        yield f"not called, because the target lacks it: {', '.join(found.left_out)}"
    if found.opaque:
        yield "its own state cannot be read: states are told apart by what they show"
    rate = found.pairs / max(found.seconds, 0.001)
    yield (
        f"{found.pairs:,} states, {found.transitions:,} calls compared, depth {found.depth}, "
        f"{found.seconds:.1f} s, {rate:,.0f} states/s"
    )
    if found.disagreement is not None:
        yield from _difference_story(found)
    elif found.bounded:
        yield "given up: more states than --max-states; nothing differs so far"
    elif found.spec_states != found.spec_states_expected:
        yield (
            f"incomplete: the spec has {found.spec_states_expected:,} states here, and "
            f"{found.spec_states:,} of them occurred; please report this"
        )
    else:
        yield (
            f"complete: all {found.spec_states:,} states of the spec occurred, and nothing differs"
        )


def _difference_story(found: Exhausted) -> Iterator[str]:
    from mmcache_vectors.clauses import clause

    from ..reports.story import call_text, difference_lines
    from ..verdicts.model import Failure

    wrong = found.disagreement
    assert wrong is not None
    yield "DIFFERS from the specification; the shortest sequence of calls that shows it:"
    for number, call in enumerate(wrong.calls, start=1):
        yield f"{number:3}  {call_text(call, found.parameters)}"
    if wrong.calls:
        failure = Failure(len(wrong.calls) - 1, wrong.calls[-1], wrong.differences, "")
        yield from (f"     {line}" for line in difference_lines(failure))
    for about in map(clause, wrong.clauses):
        yield f"{about.id} {about.name}: {about.says}"
