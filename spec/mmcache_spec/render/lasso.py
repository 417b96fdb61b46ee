"""A livelock told to people: what leads into it, and what goes on for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..checks.lasso import Lasso
from ..evaluate.interpreter import Step
from .story import call_text
from .words import words_of

__all__ = ["lasso_data", "lasso_story"]

INDENT = " " * 5


def lasso_story(lasso: Lasso) -> Iterator[str]:
    """The lasso, line by line."""
    words = words_of(lasso.system)
    stem, loop = len(lasso.stem), len(lasso.loop)
    yield f"The livelock: {_calls(stem)}, and then {_calls(loop)} for ever."
    yield ""
    yield words.world_text(lasso.world)
    yield ""
    yield "  Start"
    yield INDENT + words.state_text(lasso.start)
    for number, step in enumerate(lasso.stem, 1):
        yield from _step(f"{number:3}", lasso, step)
    yield "  Again and again"
    for step in lasso.loop:
        yield from _step("  ↻", lasso, step)


def lasso_data(lasso: Lasso) -> dict[str, Any]:
    """The lasso as data: the calls, what they answer, and the world."""
    return {
        "constants": dict(lasso.world.constants),
        "functions": {name: dict(table) for name, table in lasso.world.functions.items()},
        "stem": [_plain(step) for step in lasso.stem],
        "loop": [_plain(step) for step in lasso.loop],
    }


def _plain(step: Step) -> dict[str, Any]:
    return {
        "action": step.call.action,
        "arguments": dict(step.call.arguments),
        "returns": step.result,
    }


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _step(mark: str, lasso: Lasso, step: Step) -> Iterator[str]:
    answer = "" if step.result is None else f" → {step.result}"
    words = words_of(lasso.system)
    yield f"{mark}  {call_text(words, step.call, lasso.world)}{answer}"
    yield INDENT + words.state_text(step.after)
