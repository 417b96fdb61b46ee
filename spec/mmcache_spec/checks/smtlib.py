"""Proof obligations as SMT-LIB 2 scripts, and a second solver's opinion of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import z3

from .complete import query
from .induction import Obligation, queries
from .two_answers import Question

__all__ = ["Script", "cvc5_says", "is_script", "question_script", "scripts"]


MEANING = "; unsat means proved"


@dataclass(frozen=True)
class Script:
    """One query of an obligation. It is proved where a solver answers `unsat`."""

    name: str
    text: str


def scripts(obligation: Obligation) -> Iterator[Script]:
    for number, assertions in enumerate(queries(obligation), 1):
        name = "-".join(
            part
            for part in (
                obligation.system.name,
                obligation.action.name if obligation.action else "init",
                obligation.claim.name,
                obligation.kind,
                str(number),
            )
        )
        yield Script(name, _text(obligation.label, assertions))


def question_script(question: Question, *, core: bool = False) -> Script:
    """The query of a question of completeness; with `core`, a part of it that is enough for z3.

    What is unsatisfiable in part is so as a whole: the part spares the other solver the search.
    """
    assertions = query(question)
    if core:
        solver = z3.Solver()
        numbered = {f"assertion {k}": a for k, a in enumerate(assertions)}
        for name, assertion in numbered.items():
            solver.assert_and_track(assertion, name)
        if solver.check() == z3.unsat:
            assertions = [numbered[tracked.decl().name()] for tracked in solver.unsat_core()]
    call = question.action.name if question.action else "init"
    name = "-".join((question.system.name, call, question.what.replace(" ", "_"), "determined"))
    return Script(name, _text(f"{question.label} is determined", assertions))


def _text(label: str, assertions: list[z3.BoolRef]) -> str:
    solver = z3.Solver()
    solver.add(*assertions)
    header = f"; {label}\n{MEANING}\n(set-logic ALL)\n"
    body = "\n".join(line for line in solver.to_smt2().splitlines() if not line.startswith(";"))
    return f"{header}{body}\n"


def is_script(content: bytes) -> bool:
    """Whether a file is such a script, to judge by its head."""
    return content.split(b"\n", 2)[1:2] == [MEANING.encode()]


def cvc5_says(script: Script, timeout_ms: int) -> str:
    """`sat`, `unsat` or `unknown`, by cvc5. Needs the package cvc5."""
    import cvc5

    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    solver.setOption("tlimit-per", str(timeout_ms))
    solver.setOption("enum-inst", "true")
    parser: Any = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script.text, script.name)
    answer = "unknown"
    while not (command := parser.nextCommand()).isNull():
        printed = command.invoke(solver, parser.getSymbolManager()).strip()
        if printed in ("sat", "unsat", "unknown"):
            answer = printed
    return answer
