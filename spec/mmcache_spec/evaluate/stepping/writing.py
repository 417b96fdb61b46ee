"""The code of calls whose integers are forms: comparisons ask for signs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...kernel.terms import BOOL, INT, Binder, MapSort, Op, Symbol, Term, subterms
from ..compiled import CompiledSystem, Emitter, choice, code, is_code, sum_of, text_of
from .forms import Form

__all__ = ["CallCode", "StepEmitter", "local", "made", "speaks_of_the_answer"]


@dataclass(frozen=True)
class CallCode:
    """The code of one call."""

    lines: tuple[str, ...]
    after: str
    """The expression for the state after the call."""
    bad: str
    """The condition that the call breaks something."""
    depth: int
    """How deep in the `if`s of its guards what follows is."""


ASKS = re.compile(r"\b[SP]\[")
WORD = re.compile(r"\w+")


class _Cells(type(code(""))):  # type: ignore[misc]
    """A set that is not known yet, by the condition of each membership."""

    cells: tuple[Any, ...]


def _cells(cells: Sequence[Any]) -> Any:
    bits = sum_of([choice(c, 1 << k, 0) for k, c in enumerate(cells)], " | ")
    if not is_code(bits):
        return bits
    made = _Cells(bits)
    made.cells = tuple(cells)
    return made


class StepEmitter(Emitter):
    """Comparisons of integers ask for signs, and are made only where they are needed."""

    def __init__(self, of: CompiledSystem, arguments: Mapping[str, Any]) -> None:
        super().__init__(of, arguments)
        self._tainted = {str(a) for a in arguments.values() if is_code(a)}
        self.after: Mapping[str, Any] = {}

    def state_of(self, variable: Symbol) -> Any:
        return self._state(variable, "s")

    def _symbol(self, symbol: Symbol, bound: Mapping[Symbol, str]) -> Any:
        match symbol.role:
            case "next":
                return self.after[symbol.name]
        return super()._symbol(symbol, bound)

    def kept(self, term: Term, bound: Mapping[Symbol, str], value: Any) -> Any:
        """A comparison may be one that is not to be made, so it stays where it is needed."""
        if is_code(value):
            asks = ASKS.search(value) is not None
            if asks and (bound or term.sort == BOOL):
                return value
            if term.sort == BOOL and len(value) < 160:
                return value
        return super().kept(term, bound, value)

    def _named(self, value: Any) -> Any:
        name = super()._named(value)
        if is_code(name) and name is not value and self._uncertain(value):
            self._tainted.add(str(name))
        return name

    def _uncertain(self, text: str) -> bool:
        """Whether the expression depends on an integer argument."""
        return bool(self._tainted) and not self._tainted.isdisjoint(WORD.findall(text))

    def _binder(self, term: Binder, bound: Mapping[Symbol, str]) -> Any:
        if term.name != "setof":
            return super()._binder(term, bound)
        choices = product(*(self._of.elements(v.sort) for v in term.variables))
        inner = [{**bound, **dict(zip(term.variables, c, strict=True))} for c in choices]
        cells = [self.value(term.body, b) for b in inner]
        return _cells(cells)

    def _op(self, term: Term, bound: Mapping[Symbol, str]) -> Any:
        assert isinstance(term, Op)
        if term.name == "member":
            members = self.value(term.args[0], bound)
            if isinstance(members, _Cells):
                element = [self.value(a, bound) for a in term.args[1:]]
                return members.cells[self._bit(term.args[0], element).bit_length() - 1]
        return super()._op(term, bound)

    def _total(self, term: Op, bits: Any) -> Any:
        if not isinstance(bits, _Cells):
            return super()._total(term, bits)
        assert term.function is not None
        weights = self._of.world.functions[term.function.name]
        each = [weights[x] for x in self._of.elements(term.function.domain)]
        return sum_of([choice(c, w, 0) for c, w in zip(bits.cells, each, strict=True)], " + ")

    def compared(self, term: Op, left: Any, right: Any) -> Any:
        sort = term.args[0].sort
        if isinstance(sort, MapSort) and sort.value == INT:
            pairs = zip(left, right, strict=True)
            parts = [self._compared("eq", a, b) for a, b in pairs]
            return code(f"all(({', '.join(text_of(p) for p in parts)},))")
        if sort == INT:
            return self._compared(term.name, left, right)
        return super().compared(term, left, right)

    def _compared(self, name: str, left: Any, right: Any) -> Any:
        if not is_code(left) and not is_code(right) and left == right:
            return name != "lt"
        one, two = text_of(left), text_of(right)
        table = "P" if self._uncertain(f"{one} {two}") else "S"
        match name:
            case "lt":
                return code(f"{table}[{one} - {two}]")
            case "le":
                return code(f"{table}[{one} - {two} - 1]")
        return code(f"(not {table}[{one} - {two}] and not {table}[{two} - {one}])")

    def largest(self, values: list[Any]) -> Any:
        if not values:
            return 0
        return code(f"largest(S, ({', '.join(text_of(v) for v in values)},))")


def _largest(signs: Mapping[Form, bool], values: Iterable[Form | None]) -> Form:
    """The greatest of those that are not None, 0 where there is none."""
    best: Form | None = None
    for value in values:
        if value is not None and (best is None or signs[best - value]):
            best = value
    return 0 if best is None else best


def made(head: str, body: Sequence[str]) -> Callable[..., Any]:
    """The function of this head and these lines."""
    source = f"def {head}:\n" + "".join(f"    {line}\n" for line in body)
    names: dict[str, Any] = {"largest": _largest}
    exec(compile(source, f"<{head}>", "exec"), names)
    function: Callable[..., Any] = names[head.partition("(")[0]]
    return function


def local(name: str) -> str:
    """The name that a variable of the model has in the code, as `Emitter` writes it."""
    return f"s_{name.replace(' ', '_')}"


def speaks_of_the_answer(term: Term) -> bool:
    """Whether the term has a name for what the call returns."""
    return any(isinstance(s, Symbol) and s.role == "result" for s in subterms(term))
