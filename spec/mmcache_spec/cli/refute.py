"""`mmcache-spec refute`: the shortest counterexample of a wrong design."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from mmcache_vectors.clauses import CLAUSES

from ..checks.bounded import Counterexample, Sought, elements, look_for
from ..checks.lasso import Lasso, find_lasso
from ..generate.record import on_record
from ..kernel.system import Scope
from ..model.progress_clauses import WALK
from ..model.variants import Variant
from ..model.world import exact_name, scopes_of
from ..render.lasso import lasso_data, lasso_story
from ..render.story import as_json, story
from .common import UNKNOWN, VariantName, apology, out, scope_option
from .progress import progress_line

__all__ = ["livelock", "refute_command"]

FOUND, NONE_FOUND = 0, 1


@click.command("refute")
@click.argument("variant", type=VariantName())
@click.option(
    "--from",
    "origin",
    type=click.Choice(["init", "pass"]),
    default="init",
    show_default=True,
    help="Start from the empty cache, or from any state in which a pass may begin.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--bound", type=click.IntRange(1, 100), default=13, show_default=True, help="In calls."
)
@scope_option("The largest scope to search.")
@click.option("--clause", help="Break this clause, not the one that the variant is known for.")
def refute_command(
    variant: Variant,
    origin: Any,
    form: str,
    bound: int,
    size: tuple[int, int, int] | None,
    clause: str | None,
) -> None:
    """Find the shortest counterexample of VARIANT.

    Sizes and capacity are symbolic; the scope bounds hashes, requests, and inputs of a request.
    The example is made small, and executed again without the solver.

    Exit code: 0 found, 1 none up to the bound, 2 usage, 3 unknown.
    """
    if clause is not None and clause not in CLAUSES:
        raise click.UsageError(f"no clause {clause!r}; there are: {', '.join(CLAUSES)}")
    anywhere = size is None and clause is None
    if anywhere and variant.expected is None and on_record(variant.systems):
        _say_proved(variant, form)
    found: Counterexample | None = None
    places: dict[str, list[str]] = {}
    with apology(UNKNOWN), progress_line(quiet=form == "json") as say:
        for system in variant.systems:
            scopes = scopes_of(system.name, size)
            wanted = system.stating(clause) if clause else variant.aims_at
            if wanted == ():
                continue
            answer = look_for(system, scopes, origin, bound, wanted, say)
            found = answer.found
            if found is not None:
                places = {_searched(answer, scopes): [system.name]}
                break
            places.setdefault(_searched(answer, scopes), []).append(system.name)
    if not places:
        raise click.UsageError(f"{variant.name} does not state {clause}")
    searched = _in_words(places)
    if form == "json":
        data: dict[str, Any] = {"variant": variant.name, "bound": bound, "scope": searched}
        data["counterexample"] = None if found is None else as_json(found)
        if found is not None and (lasso := livelock(variant, found)) is not None:
            data["lasso"] = lasso_data(lasso)
        print(json.dumps(data, indent=2))
    elif found is None:
        calls = "1 call" if bound == 1 else f"{bound} calls"
        out.print(
            f"{variant.name}: no counterexample of up to {calls}, with {searched}, "
            "whatever the sizes and the capacity, from 1 on"
        )
    else:
        _print_counterexample(variant, found, searched)
    sys.exit(NONE_FOUND if found is None else FOUND)


def _searched(answer: Sought, scopes: Sequence[Scope]) -> str:
    """Where no shorter path is, in words: no more than was searched."""
    places = []
    if answer.searched:
        most = max(map(elements, answer.searched))
        whole = len(answer.searched) == len(scopes)
        places.append(
            scopes[-1].name + ("" if whole else f", no more than {most} of them together")
        )
    if answer.unrolled:
        places.append(f"just {exact_name(answer.unrolled[-1])}, unrolled by Z3")
    return " and ".join(places)


def _in_words(places: Mapping[str, Sequence[str]]) -> str:
    """Each place by its name, and where there are several, which systems were looked at there."""
    if len(places) == 1:
        return next(iter(places))
    return "; ".join(f"{place} ({', '.join(systems)})" for place, systems in places.items())


def livelock(variant: Variant, found: Counterexample) -> Lasso | None:
    """The livelock that a counterexample to progress is the beginning of."""
    if variant.expected is None or variant.expected.lasso is None or found.origin != "init":
        return None
    return find_lasso(variant.system, WALK, found.world)


def _say_proved(variant: Variant, form: str) -> None:
    if form == "json":
        data = {"variant": variant.name, "proved": True, "counterexample": None}
        print(json.dumps(data, indent=2))
    else:
        out.print(
            f"{variant.name} is proved, for any number of hashes and requests: there is no "
            "counterexample to look for.\n"
            f"Prove it again: mmcache-spec prove {variant.name}. "
            "Search all the same: say where, with --scope."
        )
    sys.exit(NONE_FOUND)


def _print_counterexample(variant: Variant, found: Counterexample, searched: str) -> None:
    where = "the empty cache" if found.origin == "init" else "the start of a pass"
    calls = "call" if found.length == 1 else "calls"
    out.print(f"{variant.name}: {variant.says}")
    out.print(
        f"The shortest counterexample from {where} has {found.length} {calls} "
        f"(with {searched}; sizes and capacity are any from 1 on)."
    )
    out.print()
    for line in story(found):
        out.print(line)
    if (lasso := livelock(variant, found)) is not None:
        out.print()
        for line in lasso_story(lasso):
            out.print(line)
