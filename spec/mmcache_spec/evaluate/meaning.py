"""What a term means: a Python function of a step, made once for each term.

Nothing here is clever but one thing: a quantifier looks at those elements only that its body
speaks of (`narrowing`), so that a world of hundreds of elements can be interpreted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ..kernel.terms import Binder, Function, Literal, Op, Symbol, Term, unnamed
from .narrowing import All, Members, OneOf, Same, Source, antecedents, conjuncts, narrowed

__all__ = ["Elements", "Meanings", "Scope", "State", "Value", "World"]

Value = Any
"""bool, int, an element (a string), a frozenset of tuples of elements, or a dict (a map)."""

State = Mapping[str, Value]


@dataclass(frozen=True)
class World:
    """A finite world: the elements of each sort, and the constants and functions over them."""

    universe: Mapping[str, Sequence[str]]
    constants: Mapping[str, int]
    functions: Mapping[str, Mapping[str, Value]]


class Elements:
    """The elements of a world, as they are looked up."""

    def __init__(self, world: World) -> None:
        self.all = world.universe
        self.known = {sort: frozenset(elements) for sort, elements in world.universe.items()}
        self._world = world
        self._with_value: dict[str, dict[Value, list[str]]] = {}

    def with_value(self, function: Function, value: Value) -> Sequence[str]:
        """Those of which the function has this value."""
        if function.name not in self._with_value:
            found: dict[Value, list[str]] = {}
            given = self._world.functions[function.name]
            for element in self.all[function.domain.name]:
                found.setdefault(given[element], []).append(element)
            self._with_value[function.name] = found
        return self._with_value[function.name].get(value, ())


@dataclass(frozen=True, slots=True)
class Scope:
    """All that a term without unbound variables can speak of."""

    world: World
    elements: Elements
    before: State
    after: State
    arguments: Mapping[str, Value]
    result: Value
    named: dict[int, Value] = field(default_factory=dict)
    """By their identity: the values of named terms that have no unbound variable."""


Bound = dict[Symbol, Value]
"""The values of the bound variables."""

Meaning = Callable[[Scope, Bound], Value]

_Each = Callable[[Scope, Bound], Iterator[Bound]]

_OF_ALL: Mapping[str, Callable[..., Value]] = {
    "not": operator.not_,
    "eq": operator.eq,
    "lt": operator.lt,
    "le": operator.le,
    "add": operator.add,
    "sub": operator.sub,
    "minus": operator.sub,
    "union": operator.or_,
    "member": lambda members, *element: element in members,
    "insert": lambda members, *element: members | {element},
    "remove": lambda members, *element: members - {element},
    "get": operator.getitem,
    "put": lambda map_, key, value: {**map_, key: value},
    "empty": frozenset,
}
"""The operators that are functions of all their arguments."""


class Meanings:
    """The functions of the terms that were asked for."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Term, Meaning]] = {}
        self._free: dict[int, tuple[Term, frozenset[Symbol]]] = {}

    def of(self, term: Term) -> Meaning:
        """What the term means: a function of a scope and of the values of bound variables."""
        known = self._known.get(id(term))
        if known is None:
            known = self._known[id(term)] = term, self._made(term)  # kept: so is its identity
        return known[1]

    def _made(self, term: Term) -> Meaning:
        if isinstance(term, Op):
            return self._operator(term)
        if isinstance(term, Symbol):
            return _symbol(term)
        if isinstance(term, Binder):
            return self._binder(term)
        if isinstance(term, Literal):
            value = term.value
            return lambda at, bound: value
        raise TypeError(f"not a term: {term!r}")

    def free(self, term: Term) -> frozenset[Symbol]:
        """The variables that the term uses but does not bind."""
        known = self._free.get(id(term))
        if known is None:
            known = self._free[id(term)] = term, self._unbound(unnamed(term))
        return known[1]

    def _unbound(self, term: Term) -> frozenset[Symbol]:
        match term:
            case Symbol(role="bound"):
                return frozenset((term,))
            case Op():
                return frozenset().union(*map(self.free, term.args))
            case Binder():
                parts = (term.body,) if term.value is None else (term.body, term.value)
                return frozenset().union(*map(self.free, parts)) - frozenset(term.variables)
        return frozenset()

    # Operators.

    def _operator(self, term: Op) -> Meaning:
        args = tuple(map(self.of, term.args))
        match term.name:
            case "and":
                return _decided_by(False, args)
            case "or":
                return _decided_by(True, args)
            case "implies":
                one, two = args
                return lambda at, bound: not one(at, bound) or two(at, bound)
            case "ite":
                asked, yes, no = args
                return lambda at, bound: yes(at, bound) if asked(at, bound) else no(at, bound)
            case "named":
                return self._named(term, args[0])
            case "apply" | "total":
                return _of_function(term, args[0])
        if term.name not in _OF_ALL:
            raise TypeError(f"no operator {term.name!r}")
        return _of_all(_OF_ALL[term.name], args)

    def _named(self, term: Op, meant: Meaning) -> Meaning:
        if self.free(term):
            return meant

        def once(at: Scope, bound: Bound) -> Value:
            if id(term) not in at.named:
                at.named[id(term)] = meant(at, {})
            return at.named[id(term)]

        return once

    # Binders.

    def _binder(self, term: Binder) -> Meaning:
        if term.name == "mapof":
            return self._map(term)
        if term.name == "forall":
            body = self.of(term.body)
            each, _ = self._each(term.variables, tuple(antecedents(term.body)))
            return lambda at, bound: all(body(at, b) for b in each(at, bound))
        each, asked = self._chosen(term.variables, term.body)
        variables = term.variables
        match term.name:
            case "exists":
                return lambda at, bound: any(asked(at, b) for b in each(at, bound))
            case "setof" if len(variables) == 1:
                (variable,) = variables
                return lambda at, bound: frozenset(
                    [(b[variable],) for b in each(at, bound) if asked(at, b)]
                )
            case "setof":
                return lambda at, bound: frozenset(
                    [tuple([b[v] for v in variables]) for b in each(at, bound) if asked(at, b)]
                )
            case "largest":
                assert term.value is not None
                value = self.of(term.value)
                return lambda at, bound: max(
                    (value(at, b) for b in each(at, bound) if asked(at, b)), default=0
                )
        raise TypeError(f"no binder {term.name!r}")

    def _map(self, term: Binder) -> Meaning:
        (key,) = term.variables
        sort, body = key.sort.name, self.of(term.body)

        def whole(at: Scope, bound: Bound) -> Value:
            inner = dict(bound)
            values = {}
            for element in at.elements.all[sort]:
                inner[key] = element
                values[element] = body(at, inner)
            return values

        changed = self._changed(key, unnamed(term.body))
        return whole if changed is None else changed

    def _changed(self, key: Symbol, body: Term) -> Meaning | None:
        """Another map, changed at few keys, if that is what the body says."""
        if not (isinstance(body, Op) and body.name == "ite"):
            return None
        other = unnamed(body.args[2])
        if not (isinstance(other, Op) and other.name == "get" and unnamed(other.args[1]) is key):
            return None
        if key in self.free(other.args[0]):
            return None
        sort = key.sort.name
        value, old = self.of(body.args[1]), self.of(other.args[0])
        each, asked = self._chosen((key,), body.args[0])

        def changed(at: Scope, bound: Bound) -> Value:
            before = old(at, bound)
            values = {element: before[element] for element in at.elements.all[sort]}
            for b in each(at, bound):
                if asked(at, b):
                    values[b[key]] = value(at, b)
            return values

        return changed

    # The values of bound variables.

    def _chosen(self, variables: Sequence[Symbol], condition: Term) -> tuple[_Each, Meaning]:
        """Values among which are all for which the condition holds, and what is left to ask."""
        parts = tuple(conjuncts(condition))
        each, met = self._each(variables, parts)
        left = [self.of(part) for k, part in enumerate(parts) if k not in met]
        return each, left[0] if len(left) == 1 else _decided_by(False, left)

    def _each(
        self, variables: Sequence[Symbol], conditions: Sequence[Term]
    ) -> tuple[_Each, Collection[int]]:
        """All values of the variables for which the conditions may hold; and which do, of course.

        It is one dictionary, changed in place: whoever keeps values takes them out at once.
        """
        sources, met = narrowed(variables, conditions, self.free)
        if all(isinstance(source, All) for source in sources):
            return _every(variables), met
        places = [self._placed(source) for source in sources]

        def each(at: Scope, bound: Bound) -> Iterator[Bound]:
            return below(at, dict(bound), 0)

        def below(at: Scope, inner: Bound, depth: int) -> Iterator[Bound]:
            if depth == len(places):
                yield inner
                return
            for _ in places[depth](at, inner):
                yield from below(at, inner, depth + 1)

        (first, *more) = places
        return (each if more else lambda at, bound: first(at, dict(bound))), met

    def _placed(self, source: Source) -> _Each:
        """Puts each value of its variables where it is told, one after the other."""
        match source:
            case All(variable):
                return _placed_in(variable, lambda at, inner: at.elements.all[variable.sort.name])
            case OneOf(variable, function, value):
                wanted = self.of(value)
                return _placed_in(
                    variable,
                    lambda at, inner: at.elements.with_value(function, wanted(at, inner)),
                )
            case Same(variable, value):
                return self._same(variable, self.of(value))
            case Members():
                return self._members(source)

    def _same(self, variable: Symbol, value: Meaning) -> _Each:
        sort = variable.sort.name

        def same(at: Scope, inner: Bound) -> Sequence[str]:
            element = value(at, inner)
            return (element,) if element in at.elements.known[sort] else ()

        return _placed_in(variable, same)

    # What is in a set but not in the world is nothing that a quantifier speaks of.

    def _members(self, source: Members) -> _Each:
        members = self.of(source.members)
        binds = [(k, v, v.sort.name) for k, v in source.binds]
        fixed = [(k, self.of(p)) for k, p in source.known]
        if len(binds) == 1 and not fixed:
            ((_, variable, sort),) = binds

            def of_one(at: Scope, inner: Bound) -> Iterator[Bound]:
                known = at.elements.known[sort]
                for (x,) in members(at, inner):
                    if x in known:
                        inner[variable] = x
                        yield inner

            return of_one

        def of_more(at: Scope, inner: Bound) -> Iterator[Bound]:
            known = at.elements.known
            wanted = [(k, value(at, inner)) for k, value in fixed]
            for element in members(at, inner):
                if all(element[k] == value for k, value in wanted) and all(
                    element[k] in known[sort] for k, _, sort in binds
                ):
                    for k, variable, _ in binds:
                        inner[variable] = element[k]
                    yield inner

        return of_more


def _placed_in(variable: Symbol, values: Callable[[Scope, Bound], Sequence[str]]) -> _Each:
    def each(at: Scope, inner: Bound) -> Iterator[Bound]:
        for value in values(at, inner):
            inner[variable] = value
            yield inner

    return each


def _every(variables: Sequence[Symbol]) -> _Each:
    def of_one(at: Scope, bound: Bound) -> Iterator[Bound]:
        inner = dict(bound)
        for element in at.elements.all[sorts[0]]:
            inner[variables[0]] = element
            yield inner

    def each(at: Scope, bound: Bound) -> Iterator[Bound]:
        inner = dict(bound)
        for values in product(*(at.elements.all[sort] for sort in sorts)):
            inner.update(zip(variables, values, strict=True))
            yield inner

    sorts = [v.sort.name for v in variables]
    return of_one if len(sorts) == 1 else each


def _symbol(symbol: Symbol) -> Meaning:
    name = symbol.name
    match symbol.role:
        case "bound":
            return lambda at, bound: bound[symbol]
        case "state" | "ghost":
            return lambda at, bound: at.before[name]
        case "next":
            return lambda at, bound: at.after[name]
        case "parameter":
            return lambda at, bound: at.arguments[name]
        case "constant":
            return lambda at, bound: at.world.constants[name]
        case "result":
            return lambda at, bound: at.result


def _decided_by(value: bool, args: Sequence[Meaning]) -> Meaning:
    """Each is asked only where those before it have not decided."""

    def decided(at: Scope, bound: Bound) -> bool:
        for arg in args:
            if bool(arg(at, bound)) is value:
                return value
        return not value

    return decided


def _of_function(term: Op, arg: Meaning) -> Meaning:
    assert term.function is not None
    name = term.function.name
    if term.name == "apply":
        return lambda at, bound: at.world.functions[name][arg(at, bound)]

    def total(at: Scope, bound: Bound) -> int:
        weight = at.world.functions[name]
        return sum([weight[x] for (x,) in arg(at, bound)])

    return total


def _of_all(function: Callable[..., Value], args: Sequence[Meaning]) -> Meaning:
    if len(args) == 1:
        (one,) = args
        return lambda at, bound: function(one(at, bound))
    if len(args) == 2:
        first, second = args
        return lambda at, bound: function(first(at, bound), second(at, bound))
    return lambda at, bound: function(*[arg(at, bound) for arg in args])
