"""`mmcache-conformance exhaust`: the command, and its report for people."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..exits import ExitCode
from .options import (
    cluster_option,
    echo,
    foreign_code,
    json_option,
    print_document,
    timeout_option,
    usage_errors,
    vectors_option,
)

if TYPE_CHECKING:
    from mmcache_vectors.manager import Manager

    from ..exhaust.search import Exhausted, SearchProgress
    from ..exhaust.world import SearchScope
    from ..oracle.known import Known

__all__ = ["exhaust"]


@click.command()
@click.argument("target", default="reference")
@click.option("--hashes", type=click.IntRange(1, 12), multiple=True, default=(4,))
@click.option("--requests", type=click.IntRange(1, 6), multiple=True, default=(2,))
@click.option(
    "--inputs", type=click.IntRange(1, 12), multiple=True, default=(4,), help="Of each request."
)
@click.option("--capacity", type=click.IntRange(0, 1000), multiple=True, default=(6,))
@click.option("--sizes", help="Of the hashes, such as 1,2,3,2 (which is the default for four).")
@click.option("--encoder-decoder", is_flag=True, help="The manager for encoder-decoder models.")
@click.option(
    "--max-states",
    type=click.IntRange(1, 10**9),
    default=2_000_000,
    show_default=True,
    help="Give up beyond, in each scope; one takes one or two kilobytes.",
)
@click.option(
    "--expected",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The failures that are expected, as for run: what they explain is passed over.",
)
@click.option("--jobs", type=click.IntRange(1, 256), help="Scopes at a time (default: one a core).")
@cluster_option
@timeout_option
@vectors_option
@json_option
@click.pass_context
def exhaust(
    context: click.Context,
    target: str,
    hashes: tuple[int, ...],
    requests: tuple[int, ...],
    inputs: tuple[int, ...],
    capacity: tuple[int, ...],
    sizes: str | None,
    encoder_decoder: bool,
    max_states: int,
    expected: Path | None,
    jobs: int | None,
    cluster: str | None,
    timeout: float | None,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Go through every reachable state of TARGET and of the specification, together.

    Within the scope this is complete: every sequence of calls that a caller may make, of any
    length. TARGET is any manager, as for run; of a cmd: the states are kept as snapshots, or
    else their calls are made again. The scope is 4 hashes, 2 requests
    with 4 inputs each, capacity 6; give an option twice, as in --capacity 4 --capacity 6, to
    search several scopes, each in a process of its own.

    \b
    The exit code is 0 if nothing differs (but what --expected explains), 1 if
    something does, 2 if the command cannot be understood, 3 if the target
    could not be started, if its states cannot be kept as they are, or if the
    search was not complete: given up, or states lie behind known differences
    only, or something that the target shows cannot be compared.
    """
    from mmcache_spec.campaign import ClusterError

    from ..errors import AdapterError, TargetError
    from ..exhaust.report import report_of
    from ..exhaust.world import SearchScope

    kind: Manager = "encoder_decoder" if encoder_decoder else "encoder_cache"
    scopes = [
        SearchScope(kind, h, r, i, c, _sizes(sizes, h))
        for h, r, i, c in product(hashes, requests, inputs, capacity)
    ]
    found = []
    try:
        with usage_errors():
            known = _known(target, timeout, expected, directory)
            search = partial(_search, target, max_states, known, timeout)
            for one in _searched(search, scopes, jobs, cluster, quiet=as_json):
                found.append(one)
                if not as_json:
                    echo("\n".join(_report(one, one.scope)))
    except (TargetError, AdapterError, ClusterError) as error:
        echo(f"{target} could not be exhausted: {error}", err=True)
        context.exit(ExitCode.COULD_NOT)
    report = report_of(found)
    if as_json:
        print_document(report)
    context.exit(report.exit_code)


def _known(
    name: str, timeout: float | None, expected: Path | None, directory: Path | None
) -> Known:
    """What the target is known to do otherwise."""
    from ..oracle.known import known_of, nothing_known
    from ..suites.load import load_suite
    from ..targets.open import open_manager
    from ..verdicts.expected import load_expected

    if expected is None:
        return nothing_known
    suite = load_suite(directory)
    listed = load_expected(expected, suite)
    target = open_manager(name, timeout=timeout)
    try:
        with foreign_code():
            return known_of(target, target.start(), listed, suite)
    finally:
        target.stop()


def _search(
    target: str,
    max_states: int,
    known: Known,
    timeout: float | None,
    scope: SearchScope,
    on_progress: Callable[[SearchProgress], None] = lambda progress: None,
) -> Exhausted:
    from ..exhaust.search import exhaust as search

    return search(
        target,
        scope,
        max_states=max_states,
        known=known,
        timeout=timeout,
        on_progress=on_progress,
    )


def _searched(
    search: Callable[..., Exhausted],
    scopes: Sequence[SearchScope],
    jobs: int | None,
    cluster: str | None,
    *,
    quiet: bool,
) -> Iterator[Exhausted]:
    """One search a scope, in order: here if there is one, else by several workers."""
    from mmcache_spec.campaign import workers

    if len(scopes) == 1 and cluster is None:
        with _progress(not quiet) as on_progress, foreign_code():
            found = search(scopes[0], on_progress=on_progress)
        yield found
        return
    with workers(cluster, jobs=jobs) as executor:
        running = [executor.submit(search, s) for s in scopes]
        for job in running:
            yield job.result()


def _sizes(text: str | None, hashes: int) -> tuple[int, ...]:
    if text is None:
        return ()
    try:
        sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if len(sizes) != hashes or min(sizes) < 0 or max(sizes) > 1000:
        raise click.BadParameter(
            f"give {hashes} sizes, 0 to 1000, as in 1,2,3", param_hint="--sizes"
        )
    return sizes


@contextlib.contextmanager
def _progress(wanted: bool) -> Iterator[Callable[[SearchProgress], None]]:
    """A line on the terminal that shows how far the search is."""
    from rich.console import Console

    console = Console(stderr=True)
    if not wanted or not console.is_terminal:
        yield lambda progress: None
        return
    import time

    started = time.perf_counter()
    with console.status("starting") as status:

        def on_progress(now: SearchProgress) -> None:
            rate = now.pairs / (time.perf_counter() - started)
            status.update(
                f"{now.pairs:,} states, {now.transitions:,} calls, depth {now.depth}, "
                f"{now.waiting:,} waiting, {rate:,.0f} states/s"
            )

        yield on_progress


def _report(found: Exhausted, scope: SearchScope) -> Iterator[str]:
    from ..reports.decisions import uncompared_lines
    from ..reports.story import parameter_lines

    yield f"{found.target}: {found.implementation.name}, {scope.manager}"
    yield from parameter_lines(found.parameters)
    if found.left_out:
        yield f"not called, because the target lacks it: {', '.join(found.left_out)}"
    if found.kept_as == "calls made again":
        yield "it keeps no snapshots: the calls that lead to a state are made again"
    yield from uncompared_lines(found.implementation)
    if found.opaque:
        yield "its own state cannot be read: states are told apart by what they show"
    rate = found.pairs / max(found.seconds, 0.001)
    yield (
        f"{found.pairs:,} states, {found.transitions:,} calls compared, depth {found.depth}, "
        f"{found.seconds:.1f} s, {rate:,.0f} states/s"
    )
    if found.known:
        yield f"{found.known:,} of them differ as expected"
    if found.disagreement is not None:
        yield from _difference_story(found)
    elif found.bounded:
        yield "given up: more states than --max-states; nothing differs so far"
    else:
        yield _how_complete(found)


def _how_complete(found: Exhausted) -> str:
    """What follows from a search that came to its end."""
    else_ = "nothing else differs" if found.known else "nothing differs"
    if found.spec_states != found.spec_states_expected:
        why = "the rest lies behind known differences only" if found.known else "please report this"
        return (
            f"incomplete: the spec has {found.spec_states_expected:,} states here, and "
            f"{found.spec_states:,} of them occurred, in which {else_}; {why}"
        )
    if found.uncompared:
        return (
            f"incomplete: all {found.spec_states:,} states of the spec occurred, and {else_}, but "
            f"not all that the target shows could be compared: {'; '.join(found.uncompared)}"
        )
    return f"complete: all {found.spec_states:,} states of the spec occurred, and {else_}"


def _difference_story(found: Exhausted) -> Iterator[str]:
    from mmcache_vectors.clauses import clause

    from ..oracle.decisions import decided
    from ..reports.decisions import decision_line
    from ..reports.story import call_text, difference_lines
    from ..verdicts.model import CallFailure

    wrong = found.disagreement
    assert wrong is not None
    taken = [decided(name) for name in wrong.decisions]
    if taken:
        yield (
            "1 decision explains it:" if len(taken) == 1 else "any of these decisions explains it:"
        )
        yield from (f"  {decision_line(decision)}" for decision in taken)
    else:
        yield "no known decision explains it"
    yield "DIFFERS from the specification; the shortest sequence of calls that shows it:"
    for number, call in enumerate(wrong.calls, start=1):
        yield f"{number:3}  {call_text(call, found.parameters)}"
    if wrong.calls:
        failure = CallFailure(len(wrong.calls) - 1, wrong.calls[-1], wrong.differences, "")
        yield from (f"     {line}" for line in difference_lines(failure))
    for about in map(clause, wrong.clauses):
        yield f"{about.id} {about.name}: {about.says}"
