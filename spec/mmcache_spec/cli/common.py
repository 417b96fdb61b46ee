"""What the commands share: exit codes, where they print, and words for what goes wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.console import Console

from ..campaign import ClusterError
from ..checks.bounded import Disagreement, NoVerdict
from ..checks.foundations import Unfounded
from ..evaluate.text import formula
from ..generate.folder import ForeignFile
from ..model.variants import VARIANTS, Variant
from ..model.world import scope

__all__ = [
    "PROVED",
    "REFUTED",
    "SMALL",
    "UNKNOWN",
    "USAGE",
    "VariantName",
    "apology",
    "err",
    "not_shown",
    "out",
    "print_lines",
    "scope_option",
]

T = TypeVar("T")

PROVED, REFUTED, USAGE, UNKNOWN = 0, 1, 2, 3

SMALL = scope(3, 2, 2)
"""Where CTIs are looked for, and lemmas tried."""
out = Console(highlight=False, soft_wrap=True, markup=False)
err = Console(highlight=False, soft_wrap=True, markup=False, stderr=True)


def scope_option(
    help: str, default: tuple[int, int, int] | None = None
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """`--scope HASHES REQUESTS INPUTS`, three numbers, as the parameter `size`."""
    return click.option(
        "--scope",
        "size",
        type=click.IntRange(1, 26),
        nargs=3,
        default=default,
        show_default=default is not None,
        metavar="HASHES REQUESTS INPUTS",
        help=f"{help} INPUTS are those of one request.",
    )


class VariantName(click.ParamType[Variant]):
    """An argument that names a variant."""

    name = "VARIANT"

    def convert(self, value: Any, param: Any, ctx: Any) -> Variant:
        if isinstance(value, Variant):
            return value
        if value not in VARIANTS:
            self.fail(f"no variant {value!r}; there are: {', '.join(VARIANTS)}", param, ctx)
        return VARIANTS[value]

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(v) for v in VARIANTS if v.startswith(incomplete)]


@contextmanager
def apology(code: int) -> Iterator[None]:
    """What may go wrong below, in words instead of a traceback."""
    try:
        yield
    except NoVerdict as error:
        err.print(f"unknown: {error}")
        sys.exit(UNKNOWN)
    except Disagreement as error:
        err.print(f"the solver and the interpreter disagree; this is a defect of mmcache: {error}")
        sys.exit(UNKNOWN)
    except ClusterError as error:
        err.print(str(error))
        sys.exit(UNKNOWN)
    except ForeignFile as error:
        err.print(str(error))
        sys.exit(USAGE)
    except OSError as error:
        err.print(f"{error.filename}: {error.strerror}")
        sys.exit(code)


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        out.print(line)


def not_shown(thing: Unfounded) -> str:
    return f"{thing.where}: {formula(thing.about)} {thing.says}"
