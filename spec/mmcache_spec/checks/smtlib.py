"""Proof obligations as SMT-LIB 2 scripts, and a second solver's opinion of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import z3

from .induction import Obligation, queries

__all__ = ["Script", "cvc5_says", "scripts"]


@dataclass(frozen=True)
class Script:
    """One query of an obligation. It is proved where a solver answers `unsat`."""

    name: str
    text: str


def scripts(obligation: Obligation) -> Iterator[Script]:
    for number, assertions in enumerate(queries(obligation), 1):
        solver = z3.Solver()
        solver.add(*assertions)
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
        header = f"; {obligation.label}\n; unsat means proved\n(set-logic ALL)\n"
        body = "\n".join(line for line in solver.to_smt2().splitlines() if not line.startswith(";"))
        yield Script(name, f"{header}{body}\n")


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
