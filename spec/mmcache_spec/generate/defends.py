"""Which clauses a vector defends: those that break when a wrong manager is caught by it.

Every known wrong decision and every mutant is played on the vector. Where the wrong manager first
answers otherwise than specified, the specification says which clauses that answer, or that state,
breaks. A vector that kills none of them is given the nearest wrong managers there are: those that
at one call answer, or are left with, one thing otherwise. A vector defends what it is seen to
catch, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from mmcache_vectors.manager import Vector

from ..evaluate.interpreter import Interpreter, Step
from ..kernel.system import TransitionSystem
from ..kernel.terms import INT, SetSort
from ..oracle import Replay, agrees
from .managers import specified, system_name, wrong_ledgers
from .worth import mutants_of

__all__ = ["defends", "wrong_managers"]


def wrong_managers(system: TransitionSystem) -> dict[str, TransitionSystem]:
    """The known wrong decisions and the mutants, by the names that `strengths` has for them."""
    wrong = {v.name: v.system for v in wrong_ledgers() if v.system.name == system.name}
    return wrong | {f"{system.name}: mutant {m.name}": m.system for m in mutants_of(system)}


_MOST_STEPS = 60
"""Of a long vector not every single thing is made otherwise: there are a million."""


def defends(vector: Vector, strengths: Iterable[str]) -> tuple[str, ...]:
    """The clauses, in their order; `strengths` names the wrong managers that the vector kills."""
    system = specified(system_name(vector.manager))
    known = wrong_managers(system)
    broken = {
        clause
        for name in strengths
        if name in known
        for clause in _first_broken(system, known[name], vector)
    }
    if not broken and not vector.clauses and len(vector.steps) <= _MOST_STEPS:
        broken = set(_broken_by_one_thing(system, vector))
    return tuple(sorted(broken | set(vector.clauses), key=lambda id: (id[0], int(id[1:]))))


def _first_broken(
    system: TransitionSystem, wrong: TransitionSystem, vector: Vector
) -> Iterator[str]:
    """What breaks where the wrong manager first answers otherwise."""
    right, other = Replay(system, vector.parameters), Replay(wrong, vector.parameters)
    for step in vector.steps:
        right.answer(step.call)
        if agrees(other.answer(step.call), step.expect):
            continue
        if len(other.steps) != len(right.steps):
            return  # it refuses the call: no answer, so no clause
        yield from _blamed(right.interpreter, right.steps[-1], other.steps[-1], wrong)
        return


def _blamed(
    interpreter: Interpreter, right: Step, other: Step, wrong: TransitionSystem
) -> Iterator[str]:
    """The clauses that the wrong answer and state break; the record is that of the right one."""
    own = {v.name for v in wrong.variables if v.role != "ghost"}
    seen: dict[str, Any] = {
        name: other.after[name] if name in own else value for name, value in right.after.items()
    }
    return _clauses(interpreter, replace(right, after=seen, result=other.result))


def _clauses(interpreter: Interpreter, step: Step) -> Iterator[str]:
    for prop in interpreter.breaks(step):
        if prop.clause is not None:
            yield prop.clause


def _broken_by_one_thing(system: TransitionSystem, vector: Vector) -> Iterator[str]:
    """What breaks if at one call of the vector one thing is otherwise."""
    replay = Replay(system, vector.parameters)
    for call in (step.call for step in vector.steps):
        replay.answer(call)
        for step in _otherwise(system, replay.steps[-1], replay.interpreter):
            yield from _clauses(replay.interpreter, step)


def _otherwise(system: TransitionSystem, step: Step, interpreter: Interpreter) -> Iterator[Step]:
    """The step with another answer, or with one number or one element of its state otherwise."""
    if isinstance(step.result, bool):
        yield replace(step, result=not step.result)
    elif isinstance(step.result, frozenset):
        for h in interpreter.world.universe["Hash"]:
            yield replace(step, result=step.result ^ {(h,)})
    for variable in system.variables:
        value = step.after[variable.name]
        if variable.role == "ghost" or variable.name == "clock":
            continue
        if variable.sort == INT:
            others: list[Any] = [value + 1, value - 1]
        elif isinstance(variable.sort, SetSort):
            of = (interpreter.world.universe[s.name] for s in variable.sort.elements)
            others = [value ^ {element} for element in product(*of)]
        else:
            continue
        for other in others:
            yield replace(step, after={**step.after, variable.name: other})
