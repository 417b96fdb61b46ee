"""The code of a term: statements, and an expression for its value, that are right in every world.

A value of a sort of the world is the number of the element. A variable that is bound around a term
is either at one element, whose number a local variable has, or it is *swept*: then the code is that
of the set of all its elements for which the term is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ...kernel.terms import (
    BOOL,
    INT,
    Binder,
    Literal,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    alpha_form,
    unnamed,
)
from .tables import all_of_sort, names_of

__all__ = ["Writer"]

_At = Mapping[Symbol, str]
"""The local variables that have the numbers of the elements that bound variables are at."""


@dataclass
class _Level:
    """The body of the function, or that of a loop in it."""

    variables: frozenset[str] = frozenset()
    """Those that the loop goes through."""
    lines: list[str] = field(default_factory=list)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)


class Writer:
    """Writes the body of one function. What occurs more than once is computed once."""

    def __init__(self, terms: Iterable[Term]) -> None:
        """The terms are all those whose values will be wanted."""
        self._levels = [_Level()]
        self._names = 0
        self._uses = _uses(terms)
        self._free: dict[int, tuple[Symbol, ...]] = {}
        self.pairs: set[tuple[Sort, Sort]] = set()
        """The sorts of the relations that the code speaks of."""
        self.answer = "result"

    @property
    def lines(self) -> list[str]:
        """The statements so far."""
        assert len(self._levels) == 1
        return self._levels[0].lines

    # --- values ---------------------------------------------------------------------------------

    def value(self, term: Term, at: _At) -> str:
        """The expression for the value, where all bound variables are at an element."""
        term = unnamed(term)
        match term:
            case Literal(value=value):
                return repr(value)
            case Symbol():
                return self._symbol(term, at)
        free = self._free_in(term)
        key = (id(term), *(at[v] for v in free))
        depth = self._depth_of(at[v] for v in free)
        level = self._levels[depth]
        if key not in level.known:
            inner, self._levels = self._levels[depth + 1 :], self._levels[: depth + 1]
            if isinstance(term, Binder):
                found = self._named(self._binder(term, at))
            else:
                assert isinstance(term, Op)
                found = self._op(term, at)
                if self._uses[id(term)] > 1:
                    found = self._named(found)
            self._levels += inner
            level.known[key] = found
        return level.known[key]

    def _symbol(self, symbol: Symbol, at: _At) -> str:
        match symbol.role:
            case "bound":
                return at[symbol]
            case "constant":
                return f"c_{symbol.name}"
            case "parameter":
                return f"a_{symbol.name}"
            case "result":
                return self.answer
            case "state":
                return f"s_{symbol.name}"
        raise TypeError(f"a call cannot read {symbol.role} {symbol.name}")

    def _op(self, term: Op, at: _At) -> str:
        if term.name in ("and", "or") and not term.args:
            return repr(term.name == "and")
        args = [self.value(a, at) for a in term.args]
        match term.name, args:
            case (("and" | "or"), _):
                return f"({f' {term.name} '.join(args)})"
            case "implies", [a, b]:
                return f"(not {a} or {b})"
            case "ite", [condition, then, otherwise]:
                return f"({then} if {condition} else {otherwise})"
            case "not", [a]:
                return f"(not {a})"
            case "empty", []:
                return "0"
            case "eq", [a, b] if term.args[0].sort == BOOL:
                return f"((not {a}) == (not {b}))"
            case (("eq" | "lt" | "le"), [a, b]):
                return f"({a} { {'eq': '==', 'lt': '<', 'le': '<='}[term.name] } {b})"
            case "add", [a, b]:
                return f"({a} + {b})"
            case "sub", [a, b]:
                return f"({a} - {b})"
            case "union", [a, b]:
                return f"({a} | {b})"
            case "minus", [a, b]:
                return f"({a} & ~{b})"
            case "member", [s, *x]:
                return f"({s} >> {self._bit(term.args[0], x)} & 1)"
            case "insert", [s, *x]:
                return f"({s} | 1 << {self._bit(term, x)})"
            case "remove", [s, *x]:
                return f"({s} & ~(1 << {self._bit(term, x)}))"
            case "get", [m, x]:
                return f"{m}[{x}]"
            case "put", [m, x, new]:
                m, x = self._named(m), self._named(x)
                return f"({m}[:{x}] + ({new},) + {m}[{x} + 1:])"
            case "apply", [x]:
                assert term.function is not None
                return f"f_{term.function.name}[{x}]"
            case "total", [s]:
                assert term.function is not None
                return f"sum_{term.function.name}[{s}]"
        raise TypeError(f"no operator {term.name!r}")

    def _bit(self, members: Term, element: Sequence[str]) -> str:
        assert isinstance(members.sort, SetSort)
        if len(element) == 1:
            return element[0]
        first, second = element
        self._related(members.sort.elements)
        return f"({first} * n_{members.sort.elements[1].name} + {second})"

    # --- what binds variables -------------------------------------------------------------------

    def _binder(self, term: Binder, at: _At) -> str:
        match term.name:
            case "setof":
                return self._those(term.variables, term.body, at)
            case "exists":
                return f"({self._those(term.variables, term.body, at)} != 0)"
            case "forall":
                return f"({self._those(term.variables, term.body, at, but=True)} == 0)"
            case "mapof":
                return self._map(term, at)
            case "largest":
                return self._largest(term, at)
        raise TypeError(term.name)

    def _those(
        self, variables: tuple[Symbol, ...], body: Term, at: _At, *, but: bool = False
    ) -> str:
        """The bits of the elements for which the body is true; or of all others."""
        if len(variables) == 2:
            self._related([v.sort for v in variables])
        swept = self._swept(body, variables, at, but)
        if swept is not None:
            return swept
        parts = list(_conjuncts(body, but))
        scalar, masks, rest = [], [], []
        for part in parts:
            if not self._speaks_of(part[0], variables):
                scalar.append(part)
            elif (mask := self._swept(part[0], variables, at, part[1])) is not None:
                masks.append(mask)
            else:
                rest.append(part)
        among = " & ".join(masks) or self._everything(variables)
        if scalar:
            tests = " and ".join(self._truth(part, at) for part in scalar)
            among = f"({among} if {tests} else 0)"
        found = self._named("0")
        with self._each(variables, among, at) as (inner, bit):
            tests = " and ".join(self._truth(part, inner) for part in rest)
            self._write(f"if {tests}: {found} |= 1 << {bit}")
        return found

    def _truth(self, part: tuple[Term, bool], at: _At) -> str:
        term, negated = part
        value = self.value(term, at)
        return f"not {value}" if negated else value

    def _map(self, term: Binder, at: _At) -> str:
        (variable,) = term.variables
        body = unnamed(term.body)
        if not self._speaks_of(body, term.variables):
            return f"(({self.value(body, at)},) * n_{variable.sort.name})"
        found = self._new_name()
        if isinstance(body, Op) and body.name == "ite":
            condition, new, old = body.args
            old = unnamed(old)
            changed = self._swept(condition, term.variables, at)
            if (
                changed is not None
                and isinstance(old, Op)
                and old.name == "get"
                and unnamed(old.args[1]) is variable
                and not self._speaks_of(old.args[0], term.variables)
            ):
                self._write(f"{found} = list({self.value(old.args[0], at)})")
                with self._each(term.variables, changed, at) as (inner, bit):
                    self._write(f"{found}[{bit}] = {self.value(new, inner)}")
                return f"tuple({found})"
        self._write(f"{found} = []")
        with self._each(term.variables, self._everything(term.variables), at) as (inner, _):
            self._write(f"{found}.append({self.value(body, inner)})")
        return f"tuple({found})"

    def _largest(self, term: Binder, at: _At) -> str:
        assert term.value is not None
        among = self._those(term.variables, term.body, at)
        found = self._named("None")
        with self._each(term.variables, among, at) as (inner, _):
            value = self._named(self.value(term.value, inner))
            self._write(f"if {found} is None or {value} > {found}: {found} = {value}")
        return f"(0 if {found} is None else {found})"

    # --- all elements at once -------------------------------------------------------------------

    def _swept(
        self, term: Term, over: tuple[Symbol, ...], at: _At, but: bool = False
    ) -> str | None:
        """The bits of the elements for which the term is true, or of all others.

        Nothing where operations on bits do not tell.
        """
        term = unnamed(term)
        of = tuple(v for v in over if self._speaks_of(term, (v,)))
        everything = self._everything(over)
        if not of:
            yes, no = ("0", everything) if but else (everything, "0")
            return f"({yes} if {self.value(term, at)} else {no})"
        if len(of) < len(over):
            bits = self._swept(term, of, at, but)
            return None if bits is None else self._widened(bits, of[0], over)
        if not isinstance(term, Op):
            return None
        match term.name, term.args:
            case (("and" | "or"), parts):
                sign = "&" if (term.name == "and") is not but else "|"
                return _joined(sign, [self._swept(p, over, at, but) for p in parts])
            case "implies", (a, b):
                both = [self._swept(a, over, at, not but), self._swept(b, over, at, but)]
                return _joined("&" if but else "|", both)
            case "not", (a,):
                return self._swept(a, over, at, not but)
            case "ite", (condition, then, otherwise) if not self._speaks_of(condition, over):
                either = self._swept(then, over, at, but), self._swept(otherwise, over, at, but)
                if None in either:
                    return None
                return f"({either[0]} if {self.value(condition, at)} else {either[1]})"
        found = self._known_set(term, over, at)
        return f"({everything} & ~{found})" if found is not None and but else found

    def _known_set(self, term: Op, over: tuple[Symbol, ...], at: _At) -> str | None:
        """The elements for which an equation, or a membership, is true: a set that is kept."""
        match term.name, [unnamed(a) for a in term.args]:
            case "eq", [a, b]:
                return self._equal(a, b, over, at) or self._equal(b, a, over, at)
            case "member", [members, *element]:
                return self._members(members, element, over, at)
        return None

    def _equal(self, a: Term, b: Term, over: tuple[Symbol, ...], at: _At) -> str | None:
        """The elements that are b, or that a function takes to b."""
        if len(over) > 1 or b.sort in (BOOL, INT) or self._speaks_of(b, over):
            return None
        if a is over[0]:
            return f"(1 << {self.value(b, at)})"
        if isinstance(a, Op) and a.name == "apply" and unnamed(a.args[0]) is over[0]:
            assert a.function is not None
            return f"of_{a.function.name}[{self.value(b, at)}]"
        return None

    def _members(
        self, members: Term, element: list[Term], over: tuple[Symbol, ...], at: _At
    ) -> str | None:
        """The elements that are in a set, or are so with others that are known."""
        if self._speaks_of(members, over):
            return None
        if [id(e) for e in element] == [id(v) for v in over]:
            return self.value(members, at)
        if len(over) > 1:
            return None
        (variable,) = over
        if len(element) == 1:
            (image,) = element
            if isinstance(image, Op) and image.name == "apply":
                assert image.function is not None
                if unnamed(image.args[0]) is variable:
                    return f"from_{image.function.name}[{self.value(members, at)}]"
            return None
        first, second = element
        assert isinstance(members.sort, SetSort)
        pair = self._related(members.sort.elements)
        width = f"n_{members.sort.elements[1].name}"
        if second is variable and not self._speaks_of(first, over):
            row = f"{self.value(members, at)} >> {self.value(first, at)} * {width}"
            return f"({row} & {all_of_sort(variable.sort)})"
        if first is variable and not self._speaks_of(second, over):
            column = f"{self.value(members, at)} >> {self.value(second, at)} & ones_{pair}"
            return f"firsts_{pair}[{column}]"
        return None

    def _widened(self, bits: str, of: Symbol, over: tuple[Symbol, ...]) -> str | None:
        """The pairs of which one element is among those of the bits."""
        if len(over) != 2:
            return None
        pair = self._related([v.sort for v in over])
        return f"first_{pair}[{bits}]" if of is over[0] else f"({bits} * ones_{pair})"

    def _everything(self, over: tuple[Symbol, ...]) -> str:
        if len(over) > 2:
            raise TypeError("more than two variables at once")
        return f"all_{names_of([v.sort for v in over])}"

    # --- where statements go --------------------------------------------------------------------

    @contextmanager
    def _each(
        self, variables: tuple[Symbol, ...], among: str, at: _At
    ) -> Iterator[tuple[_At, str]]:
        """A loop through the bits: with the variables at each, and the number of the bit."""
        left, bit = self._named(among), self._new_name()
        opening = [f"{bit} = ({left} & -{left}).bit_length() - 1", f"{left} &= {left} - 1"]
        names = [bit] if len(variables) == 1 else [self._new_name() for _ in variables]
        if len(variables) == 2:
            opening.append(f"{names[0]}, {names[1]} = divmod({bit}, n_{variables[1].sort.name})")
        self._levels.append(_Level(frozenset({bit, *names}), opening))
        yield {**at, **dict(zip(variables, names, strict=True))}, bit
        body = self._levels.pop().lines
        self._write(f"while {left}:")
        for line in body:
            self._write(f" {line}")

    def _depth_of(self, names: Iterable[str]) -> int:
        """The outermost level at which all these local variables are known."""
        wanted = set(names)
        found = (k for k, level in enumerate(self._levels) if wanted & level.variables)
        return max(found, default=0)

    def _write(self, line: str) -> None:
        self._levels[-1].lines.append(line)

    def _named(self, expression: str) -> str:
        name = self._new_name()
        self._write(f"{name} = {expression}")
        return name

    def _new_name(self) -> str:
        self._names += 1
        return f"t{self._names}"

    # --- about terms ----------------------------------------------------------------------------

    def _related(self, sorts: Sequence[Sort]) -> str:
        first, second = sorts
        self.pairs.add((first, second))
        return names_of(sorts)

    def _free_in(self, term: Term) -> tuple[Symbol, ...]:
        if id(term) not in self._free:
            self._free[id(term)] = tuple(alpha_form(term)[1])
        return self._free[id(term)]

    def _speaks_of(self, term: Term, variables: tuple[Symbol, ...]) -> bool:
        free = self._free_in(unnamed(term))
        return any(v is f for v in variables for f in free)


def _joined(sign: str, parts: Sequence[str | None]) -> str | None:
    known = [p for p in parts if p is not None]
    return f"({f' {sign} '.join(known)})" if len(known) == len(parts) else None


def _conjuncts(term: Term, negated: bool) -> Iterator[tuple[Term, bool]]:
    """Terms, each with whether it is negated, that are all true where this one is."""
    term = unnamed(term)
    if isinstance(term, Op):
        if term.name == "not":
            yield from _conjuncts(term.args[0], not negated)
            return
        if term.name == ("or" if negated else "and"):
            for part in term.args:
                yield from _conjuncts(part, negated)
            return
        if term.name == "implies" and negated:
            yield from _conjuncts(term.args[0], False)
            yield from _conjuncts(term.args[1], True)
            return
    yield term, negated


def _uses(terms: Iterable[Term]) -> Counter[int]:
    """How often each term is part of others, by identity."""
    uses: Counter[int] = Counter()
    todo = list(terms)
    while todo:
        term = unnamed(todo.pop())
        uses[id(term)] += 1
        if uses[id(term)] > 1:
            continue
        if isinstance(term, Op):
            todo += term.args
        elif isinstance(term, Binder):
            todo += [term.body, *(() if term.value is None else (term.value,))]
    return uses
