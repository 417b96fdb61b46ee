"""`mmcache-conformance list` and `show`: what the vectors are and say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    complete_vector,
    echo,
    json_option,
    no_vector_matches,
    print_document,
    select_option,
    selection,
    usage_errors,
    vectors_option,
)

if TYPE_CHECKING:
    from ..suites.load import AnyVector

__all__ = ["list_vectors", "show"]


@click.command(name="list")
@select_option
@json_option
@vectors_option
def list_vectors(expression: str | None, as_json: bool, directory: Path | None) -> None:
    """List the vectors, one a line: id, clauses, what it tests, how long it is."""
    vectors = _selected(directory, expression)
    if as_json:
        from ..suites.listing import listing

        print_document(listing(vectors))
        return
    rows = [(v.id, ",".join(_clauses(v)) or "-", v.kind, _length(v)) for v in vectors]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        echo("  ".join([*cells, row[3]]))


@click.command()
@click.argument("vector_id", shell_complete=complete_vector)
@json_option
@vectors_option
def show(vector_id: str, as_json: bool, directory: Path | None) -> None:
    """Tell a vector as a story, or all whose ids begin with VECTOR_ID.

    The name of a variant, such as unfiltered_report, stands for the vectors that were made for it.
    """
    from ..reports.story import vector_story

    vectors = {vector.id: vector for vector in _selected(directory, None)}
    begins = [id for id in vectors if id.startswith(vector_id)]
    chosen = [vector_id] if vector_id in vectors else begins
    if not chosen:
        word = vector_id.replace("-", "_")
        chosen = [id for id, vector in vectors.items() if vector.variant == word]
    if not chosen:
        from difflib import get_close_matches

        near = get_close_matches(vector_id, vectors, n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise click.UsageError(f"no vector {vector_id!r}{hint}")
    if as_json:
        print_document([vectors[id] for id in chosen])
        return
    echo("\n".join(vector_story(vectors[id]) for id in chosen), nl=False)


def _clauses(vector: AnyVector) -> tuple[str, ...]:
    """Those that it is about; of one that is about none in particular, those that it defends."""
    from ..suites.load import defended

    return vector.clauses or defended().get(vector.id, ())


def _length(vector: AnyVector) -> str:
    from mmcache_vectors.engine import EngineVector

    if isinstance(vector, EngineVector):
        return f"{len(vector.requests)} requests"
    return f"{len(vector.steps)} steps"


def _selected(directory: Path | None, expression: str | None) -> tuple[AnyVector, ...]:
    """The vectors of both kinds."""
    from ..suites.load import load_all

    with usage_errors():
        chosen = selection(expression)
        vectors = tuple(vector for vector in load_all(directory) if chosen(vector))
    if not vectors:
        raise no_vector_matches(expression)
    return vectors
