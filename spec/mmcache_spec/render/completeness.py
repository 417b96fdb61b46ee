"""What the clauses determine, told to people; and two answers that they allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mmcache_vectors.clauses import CLAUSES

from ..checks.complete import QuestionOutcome
from ..checks.two_answers import ANSWER, Difference
from ..evaluate.interpreter import Interpreter, State, Step
from ..kernel.system import TransitionSystem
from .story import call_text
from .words import words_of

__all__ = ["answer_story", "complete_summary"]

INDENT = " " * 5


def complete_summary(system: TransitionSystem, answers: Sequence[QuestionOutcome]) -> Iterator[str]:
    """The verdict on one system, and what it leaves free."""
    name = system.name.replace("_", "-")
    known = sum(a.verdict == "proved" for a in answers)
    seconds = sum(a.seconds for a in answers)
    word = "COMPLETE" if known == len(answers) else "NOT COMPLETE"
    clauses = ", ".join(c for c in CLAUSES if c in system.clauses())
    determined = f"{known} of {len(answers)} answers and states determined"
    yield f"{name}: {word}: {determined} ({seconds:.1f} s)"
    yield f"  by the clauses {clauses}"
    yield f"  seen of a state: {', '.join(system.observables)}"
    for freedom, says in system.freedoms.items():
        yield f"  left free: {freedom}: {says}"


def answer_story(answer: QuestionOutcome) -> Iterator[str]:
    """What is not determined, and two designs that differ in it where they were found."""
    question, found = answer.question, answer.difference
    if found is None:
        yield f"? {question.label}: neither determined nor found to differ"
        return
    yield f"? {question.label} is not determined: every clause allows both of these"
    words = words_of(question.system.name)
    yield words.world_text(found.world)
    if not found.steps:
        for number, state in enumerate(found.starts, 1):
            yield f"{INDENT}{number}       {_seen(found, state)}"
        return
    one, two = found.steps
    yield f"{INDENT}before  {_seen(found, one.before)}"
    yield f"{INDENT}call    {call_text(words, one.call, found.world)}"
    for number, step in enumerate((one, two), 1):
        yield f"{INDENT}{number}       {_outcome(found, step)}"


def _outcome(found: Difference, step: Step) -> str:
    answer = "" if step.result is None else f"answers {_plain(step.result)}   "
    return answer + ("" if found.question.what == ANSWER else _seen(found, step.after))


def _seen(found: Difference, state: State) -> str:
    """What can be seen of the state, in one line."""
    system = found.question.system
    interpreter = Interpreter(system, found.world)
    values = {n: interpreter.evaluate(t, state) for n, t in system.observables.items()}
    return "   ".join(f"{name.replace('_', ' ')} {_plain(v)}" for name, v in values.items())


def _plain(value: Any) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(" ".join(x) for x in value)) or "–"
    return str(value)
