"""Two wordings of a line are compared where they differ, and that is sound."""

from __future__ import annotations

import pytest

from mmcache_spec.checks.in_place import same_in_place
from mmcache_spec.kernel.mutants import mutations
from mmcache_spec.kernel.rewriting import rewritten
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.kernel.terms import (
    BOOL,
    INT,
    Binder,
    SetSort,
    Symbol,
    Term,
    ite,
    parameter,
    setof,
)
from mmcache_spec.model.ledger import ledger
from mmcache_spec.model.progress import progress
from mmcache_spec.model.world import HASH

LEDGER, PROGRESS = ledger(), progress()


def _variable(name: str, system: TransitionSystem = LEDGER) -> Symbol:
    return next(v for v in system.variables if v.name == name)


CACHED, FREEABLE, FREED = map(_variable, ("cached", "freeable", "freed"))


def _same(one: Term, two: Term) -> bool:
    return same_in_place(LEDGER, LEDGER.action("can_allocate"), one, two)


def test_what_differs_inside_may_be_the_same_one_level_further_out() -> None:
    a, b = parameter("a", INT), parameter("b", INT)
    assert _same(ite(a < b, a, b), ite(a <= b, a, b))
    assert not _same(ite(a < b, a, b), ite(b < a, a, b))


@pytest.mark.parametrize(("beside", "same"), [(CACHED, True), (FREED, False)])
def test_a_bound_variable_stands_for_everything(beside: Symbol, same: bool) -> None:
    """A freeable hash is cached, says an invariant; that it is on the report says none."""
    both = setof(HASH, lambda h: FREEABLE.has(h) & beside.has(h))
    assert isinstance(both, Binder)
    one = rewritten(both, lambda t: FREEABLE.has(both.variables[0]) if t is both.body else None)
    assert _same(both, one) is same


def test_another_bound_variable_is_another_wording() -> None:
    """The two conditions look alike, each alone: a member of one set."""
    h, k = Symbol(HASH, "h", "bound"), Symbol(HASH, "k", "bound")

    def cached_by(which: Symbol) -> Term:
        some = Binder(BOOL, "exists", (k,), CACHED.has(which))
        return Binder(SetSort.of(HASH), "setof", (h,), some)

    assert _same(cached_by(h), cached_by(h))
    assert not _same(cached_by(h), cached_by(k))


@pytest.mark.parametrize(
    ("change", "same"),
    [("condition 1 of 2 is gone", True), ("condition 2 of 2 is gone", False)],
)
def test_what_the_clauses_say_of_the_answer_may_be_used(change: str, same: bool) -> None:
    """Who computes nothing is not at the end: S13 says that no answer is below 0."""
    schedule = PROGRESS.action("schedule")
    line = schedule.updates["finished"]
    other = next(term for what, term in mutations(line) if what == change)
    assert same_in_place(PROGRESS, schedule, line, other) is same
