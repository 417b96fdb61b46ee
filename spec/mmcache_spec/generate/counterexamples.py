"""Vectors that an engine with a known wrong decision fails: the shortest there are."""

from __future__ import annotations

from ..checks.bounded import Trace, shortest
from ..model.variants import VARIANTS, Variant
from ..model.world import scopes_up_to
from .draft import Draft
from .warm_up import warm_up

__all__ = ["counterexamples"]


SEARCH = scopes_up_to(3, 2, 2)


BOUND = 8


def counterexamples(name: str) -> list[Draft]:
    variant = VARIANTS[name]
    drafts = []
    found = shortest(variant.system, SEARCH, "init", BOUND)
    if found is not None:
        where = "from the empty cache"
        drafts.append(_draft(variant, "", where, found.clauses, found))
    found = shortest(variant.system, SEARCH, "pass", BOUND)
    if found is not None and (warmed := warm_up(found)) is not None:
        where = "from a warm cache, in one pass"
        drafts.append(_draft(variant, "-warm", where, found.clauses, warmed))
    return drafts


def _draft(
    variant: Variant, suffix: str, where: str, clauses: tuple[str, ...], trace: Trace
) -> Draft:
    return Draft(
        slug=f"{variant.name.replace('_', '-')}{suffix}",
        description=f"An engine fails here if {variant.says}.",
        goal=f"shortest counterexample of {variant.name} {where}",
        variant=variant.name,
        clauses=clauses,
        trace=trace,
    )
