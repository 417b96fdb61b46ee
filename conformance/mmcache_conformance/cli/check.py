"""`mmcache-conformance check`: the command, and its verdict for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from .options import echo, json_option, print_document

if TYPE_CHECKING:
    from ..logs.explain import Illegal
    from ..logs.verdict import Checked

__all__ = ["check"]


@click.command()
@click.argument(
    "logs",
    metavar="LOG.jsonl...",
    type=click.Path(dir_okay=False, allow_dash=True),
    nargs=-1,
    required=True,
)
@json_option
@click.option(
    "--audit-every",
    type=click.IntRange(1, 10**9),
    default=1000,
    show_default=True,
    help="Run one call in so many on the specification's interpreter, too.",
)
@click.pass_context
def check(context: click.Context, logs: tuple[str, ...], as_json: bool, audit_every: int) -> None:
    """Does the specification allow what each LOG.jsonl records? A dash reads standard input.

    \b
    The exit code is 0 if it does, 1 if some event is illegal, 2 if the
    command or a log cannot be understood, or a log says that it is not
    complete, 3 if nothing follows from a log, or if it is cut off or has
    holes, and nothing is illegal in the rest. What was not judged is said
    in the line of the verdict.
    """
    from ..logs.verdict import report_of

    found = []
    for log in logs:
        found.append(_checked(log, audit_every))
        if not as_json:
            echo("\n".join(_verdict(found[-1])), err=found[-1].error is not None)
    report = report_of(found)
    if as_json:
        print_document(report)
    context.exit(report.exit_code)


def _checked(log: str, audit_every: int) -> Checked:
    from ..logs.check import check_log
    from ..logs.format import LogError
    from ..logs.verdict import unreadable

    source = "standard input" if log == "-" else log

    def lines() -> Iterable[bytes]:
        return _bounded(sys.stdin.buffer) if log == "-" else _lines_of(Path(log))

    try:
        return check_log(lines, source, can_reread=log != "-", audit_every=audit_every)
    except LogError as error:
        return unreadable(source, str(error))
    except OSError as error:
        return unreadable(source, f"{source or 'an empty name'}: {error.strerror}")


def _lines_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from _bounded(file)


def _bounded(file: IO[bytes]) -> Iterator[bytes]:
    """The lines; of one that is too long, a part that is too long as well."""
    from ..logs.format import LONGEST_LINE

    while line := file.readline(LONGEST_LINE + 1):
        yield line


def _verdict(found: Checked) -> Iterator[str]:
    if found.error is not None:
        yield f"Error: {found.error}"
        return
    events = f"{found.events:,} events of {found.managers} manager{'s' * (found.managers != 1)}"
    unjudged = _unjudged(found)
    if found.illegal is not None:
        for illegal in (found.illegal, *found.also_illegal):
            yield from _story(illegal)
        if found.unexplained:
            yield f"and {found.unexplained:,} more illegal events, which are not explained"
        if found.unread is not None:
            yield f"nothing is judged from there on: {found.unread}"
        count = 1 + len(found.also_illegal) + found.unexplained
        times = f" {count:,} times" if count > 1 else ""
        yield f"{found.source}: illegal{times}; {events} read{unjudged}"
        return
    if found.cut is not None:
        doubt = "" if found.doubt is None else f", and {found.doubt}"
        yield (
            f"{found.source}: cut off at line {found.cut}; nothing is illegal before it{doubt}; "
            f"{events}{unjudged}"
        )
        return
    if found.doubt is not None or not found.calls:
        why = found.doubt or "none of them is a call"
        what = "nothing checked" if found.managers < 2 or not found.calls else "nothing is illegal"
        yield f"{found.source}: {what}; {events}, and {why}{unjudged if found.calls else ''}"
        return
    if found.holes:
        yield (
            f"{found.source}: nothing is illegal, but not all of it could be judged; "
            f"{events}{unjudged}"
        )
        return
    yield f"{found.source}: allowed; {events}, {found.audited:,} of them also interpreted{unjudged}"


def _unjudged(found: Checked) -> str:
    """What was not judged, for the line of the verdict."""
    said = [f"could not judge {hole}" for hole in found.holes]
    said += [f"not judged: {text}" for text in found.not_judged]
    if found.unfinished:
        few = ", ".join(found.unfinished[:3])
        more = len(found.unfinished) - 3
        said.append(f'no "end", so more may follow: {few}' + (f" and {more} more" * (more > 0)))
    return "".join(f"; {text}" for text in said)


def _story(illegal: Illegal) -> Iterator[str]:
    from mmcache_vectors.clauses import clause

    from ..reports.decisions import decision_line

    if illegal.decisions:
        count = len(illegal.decisions)
        yield "1 decision explains it:" if count == 1 else f"any of {count} decisions explains it:"
        yield from (f"  {decision_line(d)}" for d in illegal.decisions)
    shown = ", ".join(f"{k}={v}" for k, v in illegal.event.items() if k not in {"op", "returns"})
    yield f"ILLEGAL at line {illegal.line}: {illegal.event['op']}({shown})"
    yield f"  {illegal.reason}"
    if illegal.expected or illegal.got:
        yield f"  expected  {illegal.expected}"
        yield f"  got       {illegal.got}"
    for about in map(clause, illegal.clauses):
        yield f"  {about.id} {about.name}: {about.says}"
    yield "the ledger before it:"
    yield from (f"  {line}" for line in illegal.ledger)
    for mm_hash, events in illegal.history.items():
        yield f"what concerned {mm_hash} until then:"
        yield from (f"  {line}" for line in events or ("nothing",))
