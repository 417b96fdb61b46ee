"""Terms: the small first-order language in which the protocol is written.

A term is data. It knows its sort and nothing of solvers: `translate.unbounded` and
`translate.finite` turn it into z3, `meaning` makes a Python function of it, and
`render.formula` prints it. That is how one definition serves proofs, counterexamples,
vectors and logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Literal as OneOf

__all__ = [
    "BOOL",
    "FALSE",
    "INT",
    "TRUE",
    "Binder",
    "Function",
    "Literal",
    "MapSort",
    "Op",
    "Role",
    "SetSort",
    "Sort",
    "Symbol",
    "Term",
    "after",
    "all_of",
    "alpha_form",
    "any_of",
    "constant",
    "defined",
    "empty",
    "exists",
    "forall",
    "function",
    "ite",
    "largest",
    "mapof",
    "named",
    "number",
    "parameter",
    "replaced",
    "result",
    "same_value",
    "setof",
    "state",
    "subterms",
    "symbols",
    "total",
    "unnamed",
]


@dataclass(frozen=True)
class Sort:
    """A named sort: `Bool`, `Int`, or an uninterpreted one such as `Hash`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class SetSort(Sort):
    """Finite sets of elements, or finite relations where there are two element sorts."""

    elements: tuple[Sort, ...]

    @classmethod
    def of(cls, *elements: Sort) -> SetSort:
        return cls(f"Set[{', '.join(map(str, elements))}]", elements)


@dataclass(frozen=True)
class MapSort(Sort):
    """Total functions from `key` to `value` that an action may update."""

    key: Sort
    value: Sort

    @classmethod
    def of(cls, key: Sort, value: Sort) -> MapSort:
        return cls(f"Map[{key}, {value}]", key, value)


BOOL = Sort("Bool")
INT = Sort("Int")

Role = OneOf["bound", "parameter", "constant", "state", "ghost", "next", "result"]


@dataclass(frozen=True, eq=False)
class Term:
    """A typed expression. `==` builds an equation; compare identities with `is`."""

    sort: Sort

    def __bool__(self) -> bool:
        raise TypeError("a term has no truth value; build formulas with all_of, any_of, implies")

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return Op(BOOL, "eq", (self, _coerce(other)))

    def __lt__(self, other: Term | int) -> Term:
        return Op(BOOL, "lt", (self, _coerce(other)))

    def __le__(self, other: Term | int) -> Term:
        return Op(BOOL, "le", (self, _coerce(other)))

    def __gt__(self, other: Term | int) -> Term:
        return Op(BOOL, "lt", (_coerce(other), self))

    def __ge__(self, other: Term | int) -> Term:
        return Op(BOOL, "le", (_coerce(other), self))

    def __add__(self, other: Term | int) -> Term:
        return Op(INT, "add", (self, _coerce(other)))

    def __sub__(self, other: Term | int) -> Term:
        return Op(INT, "sub", (self, _coerce(other)))

    def __invert__(self) -> Term:
        return Op(BOOL, "not", (self,))

    def __and__(self, other: Term) -> Term:
        return Op(BOOL, "and", (self, other))

    def __or__(self, other: Term) -> Term:
        return Op(BOOL, "or", (self, other))

    def implies(self, other: Term) -> Term:
        return Op(BOOL, "implies", (self, other))

    def iff(self, other: Term) -> Term:
        return Op(BOOL, "eq", (self, other))

    # Sets and relations.

    def has(self, *element: Term) -> Term:
        return Op(BOOL, "member", (self, *element))

    def insert(self, *element: Term) -> Term:
        return Op(self.sort, "insert", (self, *element))

    def remove(self, *element: Term) -> Term:
        return Op(self.sort, "remove", (self, *element))

    def union(self, other: Term) -> Term:
        return Op(self.sort, "union", (self, other))

    def minus(self, other: Term) -> Term:
        return Op(self.sort, "minus", (self, other))

    def subset_of(self, other: Term) -> Term:
        body = _pointwise(self, lambda x: self.has(*x).implies(other.has(*x)))
        return Op(BOOL, "named", (body, self, other), label="⊆")

    def same_elements(self, other: Term) -> Term:
        """Equality of sets, written out so that a solver needs no extensionality."""
        body = _pointwise(self, lambda x: self.has(*x).iff(other.has(*x)))
        return Op(BOOL, "named", (body, self, other), label="=")

    def is_empty(self) -> Term:
        body = _pointwise(self, lambda x: ~self.has(*x))
        return Op(BOOL, "named", (body, self, empty(*_set_sort(self).elements)), label="=")

    # Maps.

    def __getitem__(self, key: Term) -> Term:
        if not isinstance(self.sort, MapSort):
            raise TypeError(f"{self.sort} is not a map")
        return Op(self.sort.value, "get", (self, key))

    def put(self, key: Term, value: Term | int) -> Term:
        return Op(self.sort, "put", (self, key, _coerce(value)))


@dataclass(frozen=True, eq=False)
class Symbol(Term):
    """A name: a bound variable, a parameter of an action, a constant, or a state variable."""

    name: str
    role: Role

    __hash__ = object.__hash__

    @property
    def next(self) -> Symbol:
        """The value after the action (TLA+ writes a prime)."""
        if self.role not in ("state", "ghost"):
            raise TypeError(f"{self.name} is a {self.role}; only a state variable has a next value")
        return Symbol(self.sort, self.name, "next")

    def becomes(self, value: Term) -> tuple[Symbol, Term]:
        """One line of an effect: the next value of this variable, in terms of the values before."""
        if value.sort != self.sort:
            raise TypeError(f"{self.name} is a {self.sort}, not a {value.sort}")
        return self, value


@dataclass(frozen=True, eq=False)
class Literal(Term):
    """A number."""

    value: int

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class Op(Term):
    """An operator applied to terms; `name` is one of the operators that every backend knows."""

    name: str
    args: tuple[Term, ...]
    function: Function | None = None
    label: str | None = None

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class Binder(Term):
    """`forall`, `exists`, `setof`, `mapof`, or `largest`: a term that binds variables."""

    name: str
    variables: tuple[Symbol, ...]
    body: Term
    value: Term | None = field(default=None)

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Function:
    """An immutable function of the world, such as `size: Hash -> Int`."""

    name: str
    domain: Sort
    range: Sort

    def __call__(self, argument: Term) -> Term:
        if argument.sort != self.domain:
            raise TypeError(f"{self.name} takes a {self.domain}, not a {argument.sort}")
        return Op(self.range, "apply", (argument,), self)


def _coerce(value: object) -> Term:
    if isinstance(value, Term):
        return value
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, int):
        return number(value)
    raise TypeError(f"{value!r} is not a term")


def _set_sort(term: Term) -> SetSort:
    if not isinstance(term.sort, SetSort):
        raise TypeError(f"{term.sort} is not a set")
    return term.sort


def _pointwise(members: Term, body: Callable[[tuple[Symbol, ...]], Term]) -> Term:
    variables = tuple(
        Symbol(e, f"x{k}", "bound") for k, e in enumerate(_set_sort(members).elements)
    )
    return Binder(BOOL, "forall", variables, body(variables))


def named(name: str, term: Term) -> Term:
    """The term, to be shown to people by its name."""
    return Op(term.sort, "named", (term,), label=name)


def defined(name: str, build: Callable[[Term], Term], of: Term) -> Term:
    """What a definition says of a term, to be shown to people by its name: `fits(i)`."""
    formal = build.__code__.co_varnames[build.__code__.co_argcount - 1]
    body = build(of)
    return Op(body.sort, "named", (body, of), label=f"{name}({formal})")


def number(value: int) -> Term:
    return Literal(INT, value)


TRUE: Term = Op(BOOL, "and", ())
FALSE: Term = Op(BOOL, "or", ())


def constant(name: str, sort: Sort) -> Symbol:
    return Symbol(sort, name, "constant")


def function(name: str, domain: Sort, range: Sort) -> Function:
    return Function(name, domain, range)


def parameter(name: str, sort: Sort) -> Symbol:
    return Symbol(sort, name, "parameter")


def state(name: str, sort: Sort, *, ghost: bool = False) -> Symbol:
    """A state variable; a ghost is one of an observer's record: see `kernel.system.Monitor`."""
    return Symbol(sort, name, "ghost" if ghost else "state")


def result(sort: Sort) -> Symbol:
    """What the call returns, for use in properties of an action."""
    return Symbol(sort, "result", "result")


def all_of(*terms: Term) -> Term:
    return Op(BOOL, "and", terms)


def any_of(*terms: Term) -> Term:
    return Op(BOOL, "or", terms)


def ite(condition: Term, then: Term | int, otherwise: Term | int) -> Term:
    yes, no = _coerce(then), _coerce(otherwise)
    return Op(yes.sort, "ite", (condition, yes, no))


def empty(*elements: Sort) -> Term:
    return Op(SetSort.of(*elements), "empty", ())


def total(members: Term, weight: Function) -> Term:
    """The sum of `weight` over a finite set (in embeddings, where the weight is a size)."""
    return Op(INT, "total", (members,), weight)


def _bind(arguments: tuple[object, ...]) -> tuple[tuple[Symbol, ...], Callable[..., Term]]:
    *sorts, body = arguments
    assert callable(body)
    code: CodeType = body.__code__  # type: ignore[attr-defined]
    names = code.co_varnames[: code.co_argcount]
    if len(names) != len(sorts):
        stem = code.co_varnames[0]
        names = tuple(f"{stem}{k}" for k in range(len(sorts)))
    variables = []
    for name, sort in zip(names, sorts, strict=True):
        assert isinstance(sort, Sort)
        variables.append(Symbol(sort, name, "bound"))
    return tuple(variables), body


def forall(*arguments: Sort | Callable[..., Term]) -> Term:
    """`forall(HASH, REQUEST, lambda h, r: ...)`."""
    variables, body = _bind(arguments)
    return Binder(BOOL, "forall", variables, body(*variables))


def exists(*arguments: Sort | Callable[..., Term]) -> Term:
    variables, body = _bind(arguments)
    return Binder(BOOL, "exists", variables, body(*variables))


def setof(*arguments: Sort | Callable[..., Term]) -> Term:
    """The set, or relation, of all elements that satisfy the body."""
    variables, body = _bind(arguments)
    return Binder(SetSort.of(*(v.sort for v in variables)), "setof", variables, body(*variables))


def mapof(key: Sort, body: Callable[[Term], Term]) -> Term:
    variables, build = _bind((key, body))
    value = build(*variables)
    return Binder(MapSort.of(key, value.sort), "mapof", variables, value)


def largest(sort: Sort, where: Callable[[Term], Term], value: Callable[[Term], Term]) -> Term:
    """The greatest `value(x)` over the finitely many x with `where(x)`; 0 where there is none."""
    variables, build = _bind((sort, where))
    return Binder(INT, "largest", variables, build(*variables), value(*variables))


def replaced(term: Term, find: Callable[[Symbol], Term | None]) -> Term:
    """The term with some symbols replaced: those for which `find` gives another term.

    What is not replaced stays the same object, and so do the names that terms are shown by. A part
    that occurs again is replaced once.
    """
    known: dict[int, Term] = {}

    def new(term: Term) -> Term:
        if id(term) not in known:
            known[id(term)] = _with_parts(term, new, find)
        return known[id(term)]

    return new(term)


def _with_parts(
    term: Term, new: Callable[[Term], Term], find: Callable[[Symbol], Term | None]
) -> Term:
    match term:
        case Symbol():
            other = find(term)
            return term if other is None else other
        case Op():
            args = tuple(new(a) for a in term.args)
            same = all(a is b for a, b in zip(args, term.args, strict=True))
            return term if same else replace(term, args=args)
        case Binder():
            body = new(term.body)
            value = None if term.value is None else new(term.value)
            same = body is term.body and value is term.value
            return term if same else replace(term, body=body, value=value)
    return term


def after(term: Term) -> Term:
    """The same of the state after the action."""
    return replaced(term, lambda s: s.next if s.role in ("state", "ghost") else None)


def same_value(one: Term, two: Term) -> Term:
    """Equality of two terms of one sort; of sets and maps, written out element by element."""
    if isinstance(one.sort, SetSort):
        return one.same_elements(two)
    if isinstance(one.sort, MapSort):
        return forall(one.sort.key, lambda k: one[k] == two[k])
    return one == two


def unnamed(term: Term) -> Term:
    """The term that a name stands for."""
    while isinstance(term, Op) and term.name == "named":
        term = term.args[0]
    return term


def symbols(term: Term) -> Iterator[Symbol]:
    """The symbols that occur in the term; each object once, however often it occurs."""
    seen: set[int] = set()
    todo = [term]
    while todo:
        t = unnamed(todo.pop())
        if id(t) in seen:
            continue
        seen.add(id(t))
        match t:
            case Symbol():
                yield t
            case Op():
                todo += t.args
            case Binder():
                todo += [t.body, *(() if t.value is None else (t.value,))]


def subterms(term: Term) -> Iterator[Term]:
    """The term and everything below it, outermost first."""
    term = unnamed(term)
    yield term
    if isinstance(term, Op):
        for argument in term.args:
            yield from subterms(argument)
    elif isinstance(term, Binder):
        yield from subterms(term.body)
        if term.value is not None:
            yield from subterms(term.value)


def alpha_form(term: Term) -> tuple[object, list[Symbol]]:
    """A hashable form, equal for terms that differ only in the names of bound variables.

    With it, the variables that the term uses but does not bind, in order of first occurrence;
    the form does not depend on them either.
    """
    free: dict[Symbol, str] = {}

    def form(t: Term, bound: dict[Symbol, str]) -> object:
        t = unnamed(t)
        match t:
            case Symbol(role="bound"):
                return bound[t] if t in bound else free.setdefault(t, f"free {len(free)} {t.sort}")
            case Symbol():
                return (t.role, t.name)
            case Literal():
                return t.value
            case Op():
                name = t.name if t.function is None else f"{t.name} {t.function.name}"
                return (name, str(t.sort), *(form(a, bound) for a in t.args))
            case Binder():
                depth = len(bound)
                inner = {v: f"bound {depth + k} {v.sort}" for k, v in enumerate(t.variables)}
                parts = (t.body,) if t.value is None else (t.body, t.value)
                return (t.name, str(t.sort), *(form(p, {**bound, **inner}) for p in parts))
        raise TypeError(f"not a term: {t!r}")

    return form(term, {}), list(free)
