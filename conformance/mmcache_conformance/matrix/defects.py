"""Which wrong decisions of the specification's list the rows of a matrix have, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from mmcache_spec.model.variants import VARIANTS

from ..oracle.set_order import SET_ORDER
from ..oracle.taken import KNOWN
from ..suites.load import AnyVector
from ..verdicts.model import TargetReport

__all__ = ["Defect", "defects", "has_defect", "unexplained"]


class Defect(msgspec.Struct, frozen=True):
    """A wrong decision of the specification's list, and where among the rows it was met.

    A row *has* the defect if it fails every vector that applies and that the decision fails, and
    fails them as the decision does.
    """

    variant: str
    says: str
    clauses: tuple[str, ...]
    first_with: str
    """The first row that has it."""
    last_with: str
    first_without: str | None
    """The first row after `last_with` in which it could be looked for and is not."""
    rows: tuple[str, ...]
    """All rows that have it."""
    reports: tuple[str, ...] = ()
    """Public reports of it."""
    gaps: bool = False
    """Whether some row between the first and the last could have it, and does not."""


def defects(rows: Sequence[TargetReport], vectors: Sequence[AnyVector]) -> Iterator[Defect]:
    """Each wrong decision that some row has, in the order in which they were first met."""
    wrong = dict.fromkeys(name for vector in vectors for name in vector.kills)
    wrong |= dict.fromkeys(d.name for row in rows for d in row.decisions if d.name in KNOWN)
    found: list[tuple[int, Defect]] = []
    for variant in wrong:
        state = [has_defect(row, variant, vectors) for row in rows]
        with_it = [k for k, has in enumerate(state) if has]
        if not with_it:
            continue
        first, last = with_it[0], with_it[-1]
        free = next((k for k in range(last + 1, len(rows)) if state[k] is False), None)
        own = [v for v in vectors if v.variant == variant]
        defect = Defect(
            variant=variant,
            says=_says(variant, own),
            clauses=_clauses(variant, own),
            first_with=rows[first].target,
            last_with=rows[last].target,
            first_without=None if free is None else rows[free].target,
            rows=tuple(rows[k].target for k in with_it),
            reports=_reports(variant),
            gaps=any(state[k] is False for k in range(first, last)),
        )
        found.append((first, defect))
    yield from (defect for _, defect in sorted(found, key=lambda pair: pair[0]))


def _says(variant: str, own: Sequence[AnyVector]) -> str:
    if variant not in VARIANTS and variant in KNOWN:
        return KNOWN[variant].says
    if variant in VARIANTS and (not own or own[0].kind == "processor_cache"):
        return VARIANTS[variant].says
    return own[0].description.removeprefix("An engine fails here if ") if own else variant


def _clauses(variant: str, own: Sequence[AnyVector]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(clause for v in own for clause in v.clauses))
    if variant not in VARIANTS and variant in KNOWN:
        return (KNOWN[variant].clause,)
    expected = VARIANTS[variant].expected if variant in VARIANTS else None
    if found or expected is None:
        return found
    return (expected.target or expected.breaks[0],)


def _reports(variant: str) -> tuple[str, ...]:
    known = KNOWN.get(variant) or VARIANTS.get(variant)
    return () if known is None else known.seen_in


def has_defect(row: TargetReport, variant: str, vectors: Sequence[AnyVector]) -> bool | None:
    """Whether the row has taken the decision; nothing if no vector about it applied.

    Where the failures were played again, that is known; else it has if it fails every vector that
    the decision fails.
    """
    about = {vector.id for vector in vectors if variant in _shown_by(vector)}
    found = [v for v in row.verdicts if v.id in about and v.outcome != "skip"]
    if not found:
        return None
    if any(verdict.broke is not None for verdict in row.verdicts):
        taken = (d for d in row.decisions if not d.contradicted_by)
        return any(variant in (d.name, *d.alternatives) for d in taken)
    return all(v.outcome in {"fail", "xfail"} for v in found)


def _shown_by(vector: AnyVector) -> tuple[str, ...]:
    """What a vector tells from what is specified; in larger worlds, also the order of a set."""
    if vector.kind == "encoder_cache":
        return (*vector.kills, SET_ORDER.name)
    return tuple(vector.kills)


def unexplained(row: TargetReport, vectors: Sequence[AnyVector]) -> tuple[str, ...]:
    """The vectors that the row fails for no decision of the list.

    Of a row whose failures were played again that is known; of any other, those count that it fails
    although it has none of the decisions that they are about.
    """
    if any(verdict.broke is not None for verdict in row.verdicts):
        errors = [v.id for v in row.verdicts if v.outcome == "error"]
        return (*row.unexplained, *errors)
    by_id = {vector.id: vector for vector in vectors}
    return tuple(
        verdict.id
        for verdict in row.verdicts
        if verdict.outcome in {"fail", "error"}
        and not any(has_defect(row, name, vectors) for name in by_id[verdict.id].kills)
    )
