"""How z3 is asked whether a query is unsatisfiable: in several ways, with counted work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

__all__ = [
    "AT_FIRST",
    "AT_LAST",
    "OF_A_DESIGN",
    "PATIENTLY",
    "WITH_A_HINT",
    "WITH_LITTLE_WORK",
    "WITH_MORE_WORK",
    "Attempt",
    "unsatisfiable",
]


@dataclass(frozen=True)
class Attempt:
    """One way to ask z3. Any that answers `unsat` is as good as another.

    `work` is the most that the solver may do, counted by itself (`rlimit`) and not by a clock: a
    busy machine takes longer and answers the same. Here a million is about 0.8 s.
    """

    work: int
    mbqi: bool = True
    seed: int = 0
    plain: bool = False
    """Without the steps by which z3 prepares a formula for a solver of its choice: quicker where
    there is little to do, and not otherwise."""


AT_FIRST = (Attempt(800_000), Attempt(800_000, mbqi=False))
"""Before a counterexample is looked for. Of the specified systems the hardest query needs 610,000,
the hardest but three 270,000, and nearly every one less than a tenth.

Two strategies for quantifiers, since each fails where the other is quick: with `mbqi` z3 also tries
instances out of a candidate model, without it only those that a term of the query suggests.
"""

AT_LAST = (
    *(Attempt(2_500_000, mbqi, seed) for seed in (0, 1, 3, 5) for mbqi in (True, False)),
    Attempt(25_000_000),
)
"""When none was found.

Which instances z3 tries, and in which order, depends on the seed, so a query that one seed does not
finish another may. The numbers mean nothing: any seed that answers `unsat` has proved it, and no
other answer is used. Of the specified systems no query comes here; where a new one does, look for a
missing lemma first.
"""

WITH_A_HINT = (Attempt(100_000, mbqi=False, plain=True), Attempt(200_000, plain=True))
"""Where it is known what a proof needs, and it is given nothing else: nearly always enough."""

WITH_LITTLE_WORK = (Attempt(150_000), Attempt(150_000, mbqi=False))
"""For questions that are asked of everything, and where a `no` costs little."""

OF_A_DESIGN = (Attempt(400_000), Attempt(400_000, mbqi=False))
"""For designs that are made by the thousand, and mostly are not as they should be."""

WITH_MORE_WORK = (*OF_A_DESIGN, Attempt(3_000_000, mbqi=False), Attempt(3_000_000))
"""For the few obligations of such a design that its change touches."""


PATIENTLY = (*AT_FIRST, *AT_LAST)


def unsatisfiable(query: Sequence[z3.BoolRef], attempts: Sequence[Attempt] = AT_FIRST) -> bool:
    """Whether some attempt shows it; `False` says nothing."""
    return any(_unsat(query, attempt) for attempt in attempts)


def _unsat(query: Sequence[z3.BoolRef], attempt: Attempt) -> bool:
    solver = z3.SimpleSolver() if attempt.plain else z3.Solver()
    if attempt.plain:
        solver.set("auto_config", False)
    solver.set("mbqi", attempt.mbqi)
    solver.set("random_seed", attempt.seed)
    solver.set("rlimit", attempt.work)
    solver.add(*query)
    return bool(solver.check() == z3.unsat)
