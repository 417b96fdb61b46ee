"""What a proof really needs: the invariants, guards and lines of the definition that it rests on.

Of each query a *minimal* part is kept that is still unsatisfiable: no assumption of it can be left
out. There may be other minimal parts; which one is found is settled by the order in which the
assumptions are tried, and by work that is counted, not timed. So it is the same on every machine
with the same solver. Axioms and facts about finite sets are true of every world, and always there.

A line that is left out leaves its variable to chance. A line that no proof of a clause needs, not
even the proof of an invariant that such a proof needs, is redundant, or shows that a clause is
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import z3

from ..evaluate.unbounded import Unbounded
from ..kernel.system import TransitionSystem
from ..kernel.terms import Symbol, Term, alpha_form, result, symbols
from .induction import Obligation, conjuncts, facts, formula_of, framed, obligations

__all__ = ["Core", "Need", "cores", "needed_by_clauses", "unneeded"]

MUCH = 4_000_000
"""How much the solver may work to prove a query as a whole."""
TIMES, BESIDES = 4, 20_000
"""How much it may work to prove it with less: so many times what the whole needed, and a little."""


@dataclass(frozen=True, order=True)
class Need:
    """One thing that a proof rests on. `where` is the action, or "" for an invariant."""

    kind: str
    """invariant, guard, answer, line, record, or start."""
    where: str
    name: str

    def __str__(self) -> str:
        return self.name if not self.where else f"{self.where}: {self.name}"


@dataclass(frozen=True)
class Core:
    """What the proofs of one obligation need; None where the solver did not manage it again."""

    claim: str
    clause: str | None
    action: str | None
    needs: tuple[Need, ...] | None


def cores(system: TransitionSystem, wanted: Iterable[Obligation] | None = None) -> Iterator[Core]:
    """The core of every obligation of the system, or of some."""
    for obligation in obligations(system) if wanted is None else wanted:
        action = None if obligation.action is None else obligation.action.name
        claim = obligation.claim
        yield Core(claim.name, claim.clause, action, _of(obligation))


def _of(obligation: Obligation) -> tuple[Need, ...] | None:
    found: set[Need] = set()
    itself = obligation.claim
    parts = conjuncts(itself.formula) if obligation.kind == "consecution" else ()
    before = {alpha_form(part)[0] for part in parts}
    for conjunct in conjuncts(formula_of(obligation)):
        if alpha_form(framed(obligation, conjunct))[0] in before:
            found.add(Need("invariant", "", itself.name))
            continue
        needs = _Query(obligation, conjunct).minimal()
        if needs is None:
            return None
        found.update(needs)
    return tuple(sorted(found))


class _Query:
    """One query, its assumptions by what they come from."""

    def __init__(self, obligation: Obligation, conjunct: Term) -> None:
        self.obligation = obligation
        labelled = list(self._assumptions(conjunct))
        axioms = (a for a in obligation.system.axioms if self._is_given(a.name))
        always = [a.formula for a in axioms] + facts(obligation, conjunct)
        terms = [framed(obligation, t) for t in (*always, ~conjunct, *(t for _, t in labelled))]
        asserted = Unbounded().assertions(terms)
        count = len(always) + 1
        self.always = [*asserted[:count], *asserted[len(terms) :]]
        self.parts = dict(zip((need for need, _ in labelled), asserted[count:], strict=False))

    def _is_given(self, name: str) -> bool:
        """Whether the proof may rest on this axiom or invariant: see `Action.premises`."""
        claim, action = self.obligation.claim.name, self.obligation.action
        named = None if action is None else action.premises.get(claim)
        return named is None or name in named

    def _assumptions(self, conjunct: Term) -> Iterator[tuple[Need, Term]]:
        system, action = self.obligation.system, self.obligation.action
        where = "" if action is None else action.name
        if action is not None:
            for invariant in filter(lambda i: self._is_given(i.name), system.invariants):
                yield Need("invariant", "", invariant.name), invariant.formula
            for name, guard in action.guard.items():
                yield Need("guard", where, name), guard
        lines = list(_lines(self.obligation, conjunct))
        said = [conjunct, *(term for *_, term in lines)]
        returns = None if action is None else action.returns
        if returns is not None and any(map(_speaks_of_the_answer, said)):
            yield Need("answer", where, "answer"), result(returns.sort) == returns
        for kind, variable, value in lines:
            yield Need(kind, where, variable.name), variable.next == value

    def minimal(self) -> list[Need] | None:
        """The needs without any of which the query is not shown to be unsatisfiable."""
        for mbqi in (True, False):
            core, work = self._core(list(self.parts), mbqi, MUCH)
            if core is not None:
                return self._smallest(core, mbqi, TIMES * work + BESIDES)
        return None

    def _smallest(self, core: set[Need], mbqi: bool, work: int) -> list[Need]:
        """The core without any need that the rest can do without; each is left out once, in order.

        Once is enough: a need that was needed beside more is needed beside less. What z3's core of
        the rest does not name goes at once, so most needs are never asked about. That the order
        is ours and the work is counted makes the page the same on every machine.
        """
        kept = [need for need in self.parts if need in core]
        for need in list(kept):
            if need in kept:
                smaller, _ = self._core([n for n in kept if n != need], mbqi, work)
                if smaller is not None:
                    kept = [n for n in kept if n in smaller]
        return kept

    def _core(self, needs: Sequence[Need], mbqi: bool, most: int) -> tuple[set[Need] | None, int]:
        """Some of these that are enough, None where they are not shown to be; and the work."""
        solver = z3.Solver()
        before = _work(solver)
        solver.set("rlimit", most)
        solver.set("mbqi", mbqi)
        solver.add(*self.always)
        names = {f"need {k}": need for k, need in enumerate(needs)}
        for name, need in names.items():
            solver.assert_and_track(self.parts[need], name)
        proved = solver.check() == z3.unsat
        work = _work(solver) - before
        if not proved:
            return None, work
        return {names[str(c).strip("|")] for c in solver.unsat_core()}, work


def _work(solver: z3.Solver) -> int:
    """What z3 has worked so far, in this process."""
    return int(solver.statistics().get_key_value("rlimit count"))


def _lines(obligation: Obligation, conjunct: Term) -> Iterator[tuple[str, Symbol, Term]]:
    """The lines that give the next values of which the conjunct speaks, and what they speak of.

    What an observer records is written as he sees it: of the next values, not of how they came.
    """
    system, action = obligation.system, obligation.action
    if action is None:
        used = _nexts(conjunct)
        yield from (("start", v, t) for v, t in system.init if v.name in used)
        return
    recorded = {m.variable.name: m.updates.get(action.name) for m in system.monitors}
    lines: dict[str, tuple[str, Symbol, Term]] = {}
    for variable, value in action.effect:
        seen = recorded.get(variable.name)
        kind = "line" if variable.name not in recorded else "record"
        lines[variable.name] = kind, variable, value if seen is None else seen
    todo, done = _nexts(conjunct), set[str]()
    while todo:
        name = min(todo)
        todo.discard(name)
        done.add(name)
        if name in lines:
            todo |= _nexts(lines[name][2]) - done
    yield from (line for name, line in lines.items() if name in done)


def _nexts(term: Term) -> set[str]:
    return {s.name for s in symbols(term) if s.role == "next"}


def _speaks_of_the_answer(term: Term) -> bool:
    return any(s.role == "result" for s in symbols(term))


def needed_by_clauses(system: TransitionSystem, found: Iterable[Core]) -> set[Need]:
    """Everything that some clause needs, directly or for the proof of an invariant."""
    by_claim: dict[str, list[Core]] = {}
    for core in found:
        by_claim.setdefault(core.claim, []).append(core)
    todo = [c.name for c in system.properties if c.clause is not None]
    needs, done = set[Need](), set[str]()
    while todo:
        claim = todo.pop()
        if claim in done:
            continue
        done.add(claim)
        for core in by_claim.get(claim, ()):
            needs.update(core.needs or ())
            todo += [n.name for n in core.needs or () if n.kind == "invariant"]
    return needs


def unneeded(system: TransitionSystem, found: Iterable[Core]) -> list[Need]:
    """The answers, lines, guards and invariants of the system that no clause needs."""
    needs = needed_by_clauses(system, found)
    record = {m.variable.name for m in system.monitors}
    every = [Need("invariant", "", i.name) for i in system.invariants if i.clause is None]
    for action in system.actions:
        every += [Need("guard", action.name, name) for name in action.guard]
        if action.returns is not None:
            every.append(Need("answer", action.name, "answer"))
        for variable, _ in action.effect:
            kind = "record" if variable.name in record else "line"
            every.append(Need(kind, action.name, variable.name))
    return [need for need in every if need not in needs]
