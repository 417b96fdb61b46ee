"""The same definitions as fast Python, for one finite world.

`interpreter` walks the terms at every call; that is fine for thousands of calls, not for millions.
Here every call of a world becomes one straight-line Python function: elements, quantifiers and the
functions of the world are evaluated at compile time, and a set is an integer with one bit an
element. Nothing about the protocol is written here; that the two agree is tested on random states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..kernel.system import TransitionSystem
from ..kernel.terms import (
    BOOL,
    INT,
    Binder,
    Literal,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    alpha_form,
    subterms,
    unnamed,
)
from .interpreter import ActionCall, State, World

__all__ = [
    "CompiledCall",
    "CompiledClaims",
    "CompiledSystem",
    "CompiledView",
    "Emitter",
    "Packed",
    "choice",
    "code",
    "is_code",
    "sum_of",
    "text_of",
]

Packed = tuple[Any, ...]
"""A state, as a rule without its ghosts: integers, bit sets, and a tuple of integers for a map."""

CompiledCall = Callable[..., tuple[Any, Packed] | None]
"""From a state, and the integers among the arguments in their order, to the result and the next
state, or to None where a guard refuses. A set is returned as bits."""

CompiledClaims = Callable[..., int]
"""From the states before and after a call, its result, and the integers among its arguments, to the
position of the first formula that is false, or to -1. States alone are given twice."""

CompiledView = Callable[[Packed], tuple[Any, ...]]
"""From a state to the values of some terms."""


class _Code(str):
    """The text of an expression that is not known before the call."""

    __slots__ = ()


def code(text: str) -> Any:
    """The expression of this text."""
    return _Code(text)


def is_code(value: Any) -> bool:
    """Whether the value is not known before the call."""
    return isinstance(value, _Code)


_Value = Any
"""Known: bool, int, an element. A set: bits. A map: a tuple. Unknown, or in part: `_Code`."""


@dataclass(frozen=True)
class CompiledSystem:
    """One transition system in one world, without ghost variables unless they are asked for."""

    system: TransitionSystem
    world: World
    with_ghosts: bool = False
    _written: dict[str, CompiledCall] = field(default_factory=dict, repr=False, compare=False)
    """By their source: calls that do the same, whatever the state, are one function."""
    free: dict[int, tuple[Term, tuple[Symbol, ...]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    """The unbound variables of each term, by its identity: the same in all worlds, so whoever
    compiles for many worlds hands one table to all."""

    def __post_init__(self) -> None:
        if self.with_ghosts:
            return
        ghosts = {v.name for v in self.system.variables if v.role == "ghost"}
        for action in self.system.actions:
            read = [*action.guard.values(), *(() if action.returns is None else (action.returns,))]
            read += [term for v, term in action.effect if v.name not in ghosts]
            for term in (t for r in read for t in subterms(r)):
                if isinstance(term, Symbol) and term.role == "ghost":
                    raise ValueError(f"{action.name} reads the ghost {term.name}")

    @property
    def variables(self) -> tuple[Symbol, ...]:
        return tuple(v for v in self.system.variables if self.with_ghosts or v.role != "ghost")

    def compile(self, call: ActionCall) -> CompiledCall:
        """The function that performs this call, for whatever integers."""
        action = self.system.action(call.action)
        integers = [p.name for p in action.parameters if p.sort == INT]
        unknown = {name: _Code(f"a_{name}") for name in integers}
        writer = Emitter(self, {**call.arguments, **unknown})
        for guard in action.guard.values():
            writer.lines.append(f"if not {writer.value(guard, {})}: return None")
        answer = None if action.returns is None else writer.value(action.returns, {})
        writer.answer = answer
        if isinstance(answer, _Code) and action.returns is not None and action.returns.sort == BOOL:
            answer = _Code(f"bool({answer})")
        updates = action.updates
        after = [writer.value(updates.get(v.name, v), {}) for v in self.variables]
        return writer.function(answer, after, list(unknown.values()))

    def compile_claims(
        self, formulas: Sequence[Term], arguments: Mapping[str, Any], integers: Sequence[str] = ()
    ) -> CompiledClaims:
        """The function that looks for a formula that is false of a step, or of one state.

        `arguments` are those elements that the call was given, `integers` the names of the rest.
        """
        unknown = {name: _Code(f"a_{name}") for name in integers}
        writer = Emitter(self, {**arguments, **unknown})
        for k, formula in enumerate(formulas):
            value = writer.value(formula, {})
            if value is not True:
                writer.lines.append(f"if not {text_of(value)}: return {k}")
        return writer.claims(list(unknown.values()))

    def compile_view(self, terms: Sequence[Term]) -> CompiledView:
        """The function that evaluates the terms in a state."""
        writer = Emitter(self, {})
        return writer.view([writer.value(term, {}) for term in terms])

    def initial(self) -> Packed:
        writer = Emitter(self, {})
        init = dict(self.system.init)
        by_name = {v.name: term for v, term in init.items()}
        return tuple(_constant(writer.value(by_name[v.name], {})) for v in self.variables)

    # Between packed states and those of the interpreter.

    def bit(self, sort: SetSort, element: tuple[str, ...]) -> int:
        index = 0
        for part, value in zip(sort.elements, element, strict=True):
            index = index * len(self.elements(part)) + self.elements(part).index(value)
        return 1 << index

    def free_variables(self, term: Term) -> tuple[Symbol, ...]:
        """The bound variables that the term uses but does not bind."""
        if id(term) not in self.free:
            self.free[id(term)] = term, tuple(alpha_form(term)[1])
        return self.free[id(term)][1]

    def elements(self, sort: Sort) -> tuple[str, ...]:
        return tuple(self.world.universe[sort.name])

    def members(self, sort: SetSort, bits: int) -> frozenset[tuple[str, ...]]:
        """The set that the bits stand for."""
        every = product(*(self.elements(e) for e in sort.elements))
        return frozenset(x for k, x in enumerate(every) if bits >> k & 1)

    def pack(self, state: State) -> Packed:
        return tuple(self._pack(v.sort, state[v.name]) for v in self.variables)

    def unpack(self, packed: Packed) -> dict[str, Any]:
        """The state as the interpreter has it; ghosts are absent."""
        values = zip(self.variables, packed, strict=True)
        return {v.name: self._unpack(v.sort, value) for v, value in values}

    def _pack(self, sort: Sort, value: Any) -> Any:
        match sort:
            case SetSort():
                return sum(self.bit(sort, x) for x in value)
            case MapSort(key=key):
                return tuple(value[k] for k in self.elements(key))
        return value

    def _unpack(self, sort: Sort, value: Any) -> Any:
        match sort:
            case SetSort():
                return self.members(sort, value)
            case MapSort(key=key):
                return dict(zip(self.elements(key), value, strict=True))
        return value


class Emitter:
    """Writes the body of one function. Every intermediate value is computed once."""

    def __init__(self, compiled: CompiledSystem, arguments: Mapping[str, Any]) -> None:
        self._of = compiled
        self._arguments = arguments
        self._known: dict[tuple[Any, ...], _Value] = {}
        self._kept: list[Term] = []
        self._names = 0
        self.lines: list[str] = []
        self.answer: _Value = _Code("result")
        """The value that the call returns, once it is known; a claim is given it."""

    def function(
        self, answer: _Value, after: Iterable[_Value], integers: Iterable[str]
    ) -> CompiledCall:
        done = ", ".join(text_of(value) for value in after)
        body = [self._opened("s"), *self.lines, f"return {text_of(answer)}, ({done},)"]
        written: CompiledCall = self._written(["s", *integers], body)
        return written

    def claims(self, integers: Iterable[str]) -> CompiledClaims:
        body = [self._opened("s"), self._opened("n"), *self.lines, "return -1"]
        written: CompiledClaims = self._written(["s", "n", "result", *integers], body)
        return written

    def view(self, values: Iterable[_Value]) -> CompiledView:
        shown = "".join(f"{text_of(value)}, " for value in values)
        body = [self._opened("s"), *self.lines, f"return ({shown})"]
        written: CompiledView = self._written(["s"], body)
        return written

    def _opened(self, moment: str) -> str:
        """The statement that gives each part of a state its name."""
        return (
            f"{', '.join(text_of(self._state(v, moment)) for v in self._of.variables)}, = {moment}"
        )

    def _written(self, parameters: Iterable[str], body: Iterable[str]) -> Any:
        source = f"def call({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body)
        written = self._of._written
        if source not in written:
            names: dict[str, Any] = {}
            exec(compile(source, f"<{self._of.system.name}>", "exec"), names)
            written[source] = names["call"]
        return written[source]

    def value(self, term: Term, bound: Mapping[Symbol, str]) -> _Value:
        term = unnamed(term)
        match term:
            case Literal(value=value):
                return value
            case Symbol():
                return self._symbol(term, bound)
        free = self._of.free_variables(term)
        key = (id(term), *(bound[v] for v in free))
        if key not in self._known:
            found = self._binder(term, bound) if isinstance(term, Binder) else self._op(term, bound)
            self._known[key] = self.kept(term, bound, found)
            self._kept.append(term)
        return self._known[key]

    def kept(self, term: Term, bound: Mapping[Symbol, str], value: _Value) -> _Value:
        """What stands for the value of the term wherever it occurs."""
        return self._named(value)

    def _named(self, value: _Value) -> _Value:
        """A local variable for the expression, so that it is computed once."""
        if isinstance(value, tuple):
            return tuple(self._named(v) for v in value)
        if not isinstance(value, _Code) or value.isidentifier():
            return value
        self._names += 1
        self.lines.append(f"t{self._names} = {value}")
        return _Code(f"t{self._names}")

    def _symbol(self, symbol: Symbol, bound: Mapping[Symbol, str]) -> _Value:
        match symbol.role:
            case "bound":
                return bound[symbol]
            case "constant":
                return self._of.world.constants[symbol.name]
            case "parameter":
                return self._arguments[symbol.name]
            case "result":
                return self.answer
            case "next":
                return self._state(symbol, "n")
            case "state" | "ghost":
                return self._state(symbol, "s")
        raise TypeError(f"a call cannot read {symbol.role} {symbol.name}")

    def _state(self, symbol: Symbol, moment: str) -> _Value:
        stem = f"{moment}_{symbol.name.replace(' ', '_')}"
        if isinstance(symbol.sort, MapSort):
            keys = range(len(self._of.elements(symbol.sort.key)))
            return tuple(_Code(f"{stem}_{k}") for k in keys)
        return _Code(stem)

    def _binder(self, term: Binder, bound: Mapping[Symbol, str]) -> _Value:
        choices = product(*(self._of.elements(v.sort) for v in term.variables))
        inner = [{**bound, **dict(zip(term.variables, c, strict=True))} for c in choices]
        bodies = [self.value(term.body, b) for b in inner]
        match term.name:
            case "forall":
                return _all(bodies)
            case "exists":
                return _not(_all([_not(b) for b in bodies]))
            case "setof":
                return sum_of([choice(b, 1 << k, 0) for k, b in enumerate(bodies)], " | ")
            case "mapof":
                return tuple(bodies)
            case "largest":
                assert term.value is not None
                values = [choice(b, self.value(term.value, at), None) for b, at in
                          zip(bodies, inner, strict=True)]  # fmt: skip
                return self.largest([v for v in values if v is not None])
        raise TypeError(term.name)

    def _op(self, term: Term, bound: Mapping[Symbol, str]) -> _Value:
        assert isinstance(term, Op)
        match term.name, term.args:
            case "and", parts:
                return _all(self._until_false(parts, bound))
            case "or", parts:
                return _not(_all(self._until_false(parts, bound, _not)))
            case "implies", (premise, conclusion):
                premise = self.value(premise, bound)
                if not isinstance(premise, _Code) and not premise:
                    return True
                return _not(_all([premise, _not(self.value(conclusion, bound))]))
            case "ite", (condition, then, otherwise):
                condition = self.value(condition, bound)
                if not isinstance(condition, _Code):
                    return self.value(then if condition else otherwise, bound)
                return choice(condition, self.value(then, bound), self.value(otherwise, bound))
        args = [self.value(a, bound) for a in term.args]
        match term.name, args:
            case "not", [a]:
                return _not(a)
            case "empty", []:
                return 0
            case "eq", [a, b] if term.args[0].sort == BOOL:
                return _operation("==", _not(a), _not(b))
            case "eq" | "lt" | "le", [a, b]:
                return self.compared(term, a, b)
            case "add", [a, b]:
                return _operation("+", a, b)
            case "sub", [a, b]:
                return _operation("-", a, b)
            case "union", [a, b]:
                return _operation("|", a, b)
            case "minus", [a, b]:
                return _operation("& ~", a, b)
            case "member", [s, *x]:
                return _operation("&", s, self._bit(term.args[0], x))
            case "insert", [s, *x]:
                return _operation("|", s, self._bit(term, x))
            case "remove", [s, *x]:
                return _operation("& ~", s, self._bit(term, x))
            case "get", [m, x]:
                return m[self._index(term.args[0], x)]
            case "put", [m, x, new]:
                at = self._index(term, x)
                return (*m[:at], new, *m[at + 1 :])
            case "apply", [x]:
                assert term.function is not None
                return self._of.world.functions[term.function.name][x]
            case "total", [s]:
                return self._total(term, s)
        raise TypeError(f"no operator {term.name!r}")

    def _until_false(
        self,
        parts: Iterable[Term],
        bound: Mapping[Symbol, str],
        read: Callable[[_Value], _Value] = lambda value: value,
    ) -> list[_Value]:
        """The values of the parts, up to one that is known to be false: the rest is not needed."""
        values = []
        for part in parts:
            values.append(read(self.value(part, bound)))
            if not isinstance(values[-1], _Code) and not values[-1]:
                break
        return values

    def compared(self, term: Op, left: _Value, right: _Value) -> _Value:
        """Whether two values that are no truth values are equal, or two integers in order."""
        if isinstance(left, tuple):
            return _all([_operation("==", x, y) for x, y in zip(left, right, strict=True)])
        return _operation({"eq": "==", "lt": "<", "le": "<="}[term.name], left, right)

    def largest(self, values: list[_Value]) -> _Value:
        """The greatest of those that are not None, 0 where there is none."""
        if not values:
            return 0
        listed = ", ".join(text_of(v) for v in values)
        return _Code(f"max([v for v in ({listed},) if v is not None], default=0)")

    def _bit(self, members: Term, element: list[str]) -> int:
        assert isinstance(members.sort, SetSort)
        return self._of.bit(members.sort, tuple(element))

    def _index(self, map_: Term, element: str) -> int:
        assert isinstance(map_.sort, MapSort)
        return self._of.elements(map_.sort.key).index(element)

    def _total(self, term: Op, bits: _Value) -> _Value:
        assert term.function is not None
        weights = self._of.world.functions[term.function.name]
        each = [weights[x] for x in self._of.elements(term.function.domain)]
        parts = [choice(_operation("&", bits, 1 << k), w, 0) for k, w in enumerate(each)]
        return sum_of(parts, " + ")


def text_of(value: _Value) -> str:
    """The value as Python writes it."""
    if isinstance(value, tuple):
        return "(" + "".join(f"{text_of(v)}, " for v in value) + ")"
    return value if isinstance(value, _Code) else repr(value)


def _constant(value: _Value) -> Any:
    if isinstance(value, _Code):
        raise TypeError(f"not known before the first call: {value}")
    return value


def _operation(operator: str, left: _Value, right: _Value) -> _Value:
    if isinstance(left, _Code) or isinstance(right, _Code):
        return _Code(f"({text_of(left)} {operator} {text_of(right)})")
    return eval(f"left {operator} right", {}, {"left": left, "right": right})


def _not(value: _Value) -> _Value:
    return _Code(f"(not {value})") if isinstance(value, _Code) else not value


def _all(values: list[_Value]) -> _Value:
    unknown = [v for v in values if isinstance(v, _Code)]
    if any(not v for v in values if not isinstance(v, _Code)):
        return False
    return _Code("(" + " and ".join(dict.fromkeys(unknown)) + ")") if unknown else True


def choice(condition: _Value, then: _Value, otherwise: _Value) -> _Value:
    """One of two values."""
    if not isinstance(condition, _Code):
        return then if condition else otherwise
    if isinstance(then, tuple):
        pairs = zip(then, otherwise, strict=True)
        return tuple(choice(condition, a, b) for a, b in pairs)
    if text_of(then) == text_of(otherwise):
        return then
    return _Code(f"({text_of(then)} if {condition} else {text_of(otherwise)})")


def sum_of(values: list[_Value], operator: str) -> _Value:
    """The values put together by the operator: a sum, or the union of bits."""
    known = sum(v for v in values if not isinstance(v, _Code))
    unknown = [v for v in values if isinstance(v, _Code)]
    if not unknown:
        return known
    return _Code("(" + operator.join([*unknown, *([repr(known)] if known else ())]) + ")")
