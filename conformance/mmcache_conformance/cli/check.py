"""`mmcache-conformance check`: the command, and its verdict for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ..logs.check import Checked, Illegal

__all__ = ["check"]


@click.command()
@click.argument(
    "log", metavar="LOG.jsonl", type=click.Path(dir_okay=False, allow_dash=True), required=False
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a line, and no more.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--audit-every",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Run one event in so many on the specification's interpreter, too.",
)
@click.pass_context
def check(
    context: click.Context, log: str | None, schema: bool, as_json: bool, audit_every: int
) -> None:
    """Does the specification allow what LOG.jsonl records? A dash reads standard input.

    \b
    The exit code is 0 if it does, 1 if some event is illegal, 2 if the
    command or the log cannot be understood.
    """
    from ..logs.check import check_log
    from ..logs.format import LogError, log_schema

    if schema:
        import json

        click.echo(json.dumps(log_schema(), indent=2, sort_keys=True))
        return
    if log is None:
        raise click.UsageError("which log? Give a file, or a dash for standard input")
    source = "standard input" if log == "-" else log

    def lines() -> Iterable[bytes]:
        return sys.stdin.buffer if log == "-" else _lines_of(Path(log))

    try:
        found = check_log(lines, source, again=log != "-", audit_every=audit_every)
    except LogError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{source}: {error.strerror}") from None
    if as_json:
        import msgspec

        compact = msgspec.json.encode(found, order="sorted")
        click.echo(msgspec.json.format(compact, indent=2))
    else:
        click.echo("\n".join(_verdict(found)))
    context.exit(0 if found.illegal is None else 1)


def _lines_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _verdict(found: Checked) -> Iterator[str]:
    events = f"{found.events:,} events of {found.managers} manager{'s' * (found.managers != 1)}"
    if found.illegal is not None:
        yield from _story(found.illegal)
        yield f"{found.source}: illegal; {events} read"
        return
    yield f"{found.source}: allowed; {events}, {found.audited:,} of them also interpreted"
    if found.unfinished:
        yield f'no "end", so more may follow: {", ".join(found.unfinished)}'


def _story(illegal: Illegal) -> Iterator[str]:
    from mmcache_vectors.clauses import clause

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
