"""What a lemma is: a schema of `kernel.lemmas`, applied to arguments, and nothing else.

A *schema* is a function from terms to a formula that is true of all finite sets and all
non-negative weights. Applied to symbols that stand for anything it gives its *statement*, which
`render.coq` prints and the theories in spec/lemmas prove. Each lemma is compared with the statement
of its schema when it is made: it is that statement, with the arguments in their places. So what is
proved of the statement holds of every lemma, if the sets it was given are finite and the weights
not negative; a lemma lists both, and `checks.foundations` shows them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Generic, ParamSpec, final, get_type_hints

from .places import Places, PlaceValue, always_the_same
from .terms import BOOL, INT, Binder, Function, MapSort, Op, SetSort, Sort, Symbol, Term, replaced

__all__ = [
    "ANYTHING",
    "SCHEMAS",
    "Argument",
    "Element",
    "Elements",
    "Fact",
    "Family",
    "Key",
    "KeyFunction",
    "Kind",
    "Lemma",
    "Members",
    "Predicate",
    "Property",
    "Schema",
    "Sorts",
    "Statement",
    "Weight",
    "lemma_of",
    "statements",
]


class Kind(Enum):
    """What an argument of a schema is. What is taken for granted of each is said in Coq."""

    MEMBERS = "a finite set"
    ELEMENT = "an element"
    KEY = "a map from elements to numbers"
    WEIGHT = "a function from elements to numbers that are not negative"
    KEY_FUNCTION = "a function from elements to numbers"
    ELEMENTS = "the sort of the elements"
    PREDICATE = "a property that finitely many elements have"
    PROPERTY = "a property of elements"
    FACT = "a lemma about any element"
    SORTS = "some sorts"
    FAMILY = "a lemma about any elements of some sorts"


@final
@dataclass(frozen=True, eq=False)
class Lemma:
    """An instance of a schema.

    Attributes:
        schema: One of `SCHEMAS`.
        arguments: What the schema is applied to, in its order. Not kept.
        formula: The schema's statement with the arguments in their places.
        finite: The sets that must be finite for the formula to be true. Where a lemma speaks of a
            bound variable, each is to be finite whatever the variable stands for.
        weights: The functions that must not be negative for the formula to be true.

    Raises:
        TypeError: The schema is not one of `SCHEMAS`; an argument is not what the schema takes; or
            the formula that comes out is not the statement that is proved.
    """

    schema: Schema[...]
    arguments: InitVar[tuple[object, ...]]
    formula: Term = field(init=False)
    finite: tuple[Term, ...] = field(init=False)
    weights: tuple[Function, ...] = field(init=False)

    def __init_subclass__(cls) -> None:
        raise TypeError("a lemma is made by a schema, not by a subclass")

    def __post_init__(self, arguments: tuple[object, ...]) -> None:
        if SCHEMAS.get(self.schema.name) is not self.schema:
            raise TypeError("a lemma is made by a schema of kernel.lemmas, not of any formula")
        application = _Application(self.schema, arguments)
        object.__setattr__(self, "formula", application.formula)
        object.__setattr__(self, "finite", tuple(application.finite))
        object.__setattr__(self, "weights", tuple(application.weights))

    def renamed(self, find: Callable[[Symbol], Symbol | None]) -> Lemma:
        """The same instance, of other symbols of the same sorts.

        A statement that is proved of anything holds of it under other names, so this needs no
        comparison; the sets that must be finite are renamed with it.

        Raises:
            TypeError: A symbol is renamed to one of another sort, or one of the two is bound.
        """

        def checked(symbol: Symbol) -> Symbol | None:
            other = find(symbol)
            if other is not None and other.sort != symbol.sort:
                raise TypeError(f"{symbol.name} is a {symbol.sort}, not a {other.sort}")
            if other is not None and "bound" in (symbol.role, other.role):
                raise TypeError(f"{symbol.name} as {other.name}: one of them is bound")
            return other

        other = object.__new__(Lemma)
        object.__setattr__(other, "schema", self.schema)
        object.__setattr__(other, "formula", replaced(self.formula, checked))
        object.__setattr__(other, "finite", tuple(replaced(t, checked) for t in self.finite))
        object.__setattr__(other, "weights", self.weights)
        return other


def lemma_of(thing: object) -> Lemma:
    """The thing, which must be a lemma: a formula of another origin is not taken for one.

    Raises:
        TypeError: It is something else.
    """
    if type(thing) is not Lemma:
        kind = type(thing).__name__
        raise TypeError(f"a {kind} is no lemma; only a schema of kernel.lemmas makes one")
    return thing


Members = Annotated[Term, Kind.MEMBERS]
Element = Annotated[Term, Kind.ELEMENT]
Key = Annotated[Term, Kind.KEY]
Weight = Annotated[Function, Kind.WEIGHT]
KeyFunction = Annotated[Function, Kind.KEY_FUNCTION]
Elements = Annotated[Sort, Kind.ELEMENTS]
Predicate = Annotated[Callable[[Term], Term], Kind.PREDICATE]
Property = Annotated[Callable[[Term], Term], Kind.PROPERTY]
Fact = Annotated[Callable[[Term], Lemma], Kind.FACT]
Sorts = Annotated[tuple[Sort, ...], Kind.SORTS]
Family = Annotated[Callable[..., Lemma], Kind.FAMILY]

P = ParamSpec("P")

SCHEMAS: dict[str, Schema[...]] = {}
"""Every schema, by name: what is printed for Coq, and all that can make a lemma."""


class Schema(Generic[P]):
    """A function from terms to a formula, as a maker of lemmas. Used as a decorator.

    Raises:
        TypeError: An argument is not annotated with its kind, or the name is taken.
    """

    def __init__(self, build: Callable[P, Term]) -> None:
        self.name = build.__name__.strip("_")
        self.build: Callable[..., Term] = build
        self.__doc__ = build.__doc__
        self.__code__ = build.__code__
        self._signature = inspect.signature(build)
        if self.name in SCHEMAS:
            raise TypeError(f"there is a schema {self.name} already")
        SCHEMAS[self.name] = self

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Lemma:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return Lemma(self, tuple(bound.arguments.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _schema_named, (self.name,)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The arguments by name. Read late, since an annotation may name what comes below."""
        hints = get_type_hints(self.build, include_extras=True)
        found = {}
        for name in self._signature.parameters:
            (kind,) = getattr(hints.get(name), "__metadata__", (None,))
            if not isinstance(kind, Kind):
                raise TypeError(f"schema {self.name}: say of what kind {name} is")
            found[name] = kind
        return found

    @cached_property
    def statement(self) -> Statement:
        """The schema, of symbols that stand for anything; over one sort, if it takes some."""
        return self.statement_over(1)

    def statement_over(self, arity: int) -> Statement:
        """The same for a schema that takes sorts, so many of them."""
        if arity not in self._statements:
            self._statements[arity] = _general(self, arity)
        return self._statements[arity]

    @cached_property
    def _statements(self) -> dict[int, Statement]:
        return {}

    @property
    def takes_sorts(self) -> bool:
        return Kind.SORTS in self.kinds.values()


def _schema_named(name: str) -> Schema[...]:
    return SCHEMAS[name]


# --- the statement of a schema -----------------------------------------------------------------

ANYTHING = Sort("T")
"""The sort of the elements in a statement."""

MOST_SORTS = 3


@dataclass(frozen=True)
class Argument:
    """One argument of a statement, and the symbol, function or sort that stands for it."""

    name: str
    kind: Kind
    value: object


@dataclass(frozen=True)
class Statement:
    """What is to be proved of a schema: its formula, for all that the arguments can stand for."""

    name: str
    sorts: tuple[Sort, ...]
    arguments: tuple[Argument, ...]
    formula: Term


def statements() -> list[Statement]:
    """One for each schema; for one that takes sorts, one for each number of them."""
    found = []
    for schema in SCHEMAS.values():
        arities = range(1, MOST_SORTS + 1) if schema.takes_sorts else (1,)
        found += [schema.statement_over(n) for n in arities]
    return found


@dataclass(frozen=True)
class _Assumed:
    """In the place of a lemma, where a schema is applied to no lemma in particular."""

    formula: Term


def _general(schema: Schema[...], arity: int) -> Statement:
    if arity > MOST_SORTS:
        raise TypeError(f"{schema.name}: proved for up to {MOST_SORTS} variables, not {arity}")
    sorts = (ANYTHING, *(Sort(f"T{k}") for k in range(1, arity)))
    arguments = [Argument(n, k, _any(n, k, sorts)) for n, k in schema.kinds.items()]
    formula = schema.build(*(_as_given(a) for a in arguments))
    name = f"{schema.name}_{arity}" if schema.takes_sorts else schema.name
    return Statement(name, sorts, tuple(arguments), formula)


def _any(name: str, kind: Kind, sorts: tuple[Sort, ...]) -> object:
    match kind:
        case Kind.MEMBERS:
            return Symbol(SetSort.of(ANYTHING), name, "parameter")
        case Kind.ELEMENT:
            return Symbol(ANYTHING, name, "parameter")
        case Kind.KEY:
            return Symbol(MapSort.of(ANYTHING, INT), name, "parameter")
        case Kind.WEIGHT | Kind.KEY_FUNCTION:
            return Function(name, ANYTHING, INT)
        case Kind.PREDICATE | Kind.PROPERTY | Kind.FACT | Kind.FAMILY:
            return Function(name, ANYTHING, BOOL)
        case Kind.ELEMENTS:
            return ANYTHING
        case Kind.SORTS:
            return sorts


def _as_given(argument: Argument) -> Any:
    """The argument in the form in which a schema takes it."""
    match argument.kind, argument.value:
        case ((Kind.PREDICATE | Kind.PROPERTY), Function() as said):
            return lambda x: Op(BOOL, "apply", (x,), said)
        case ((Kind.FACT | Kind.FAMILY), Function() as said):
            return lambda *x: _Assumed(Op(BOOL, "apply", x, said))
    return argument.value


# --- a schema, applied -------------------------------------------------------------------------


_FUNCTIONS = (Kind.PREDICATE, Kind.PROPERTY, Kind.FACT, Kind.FAMILY)
"""The arguments that are Python functions, called by the schema."""


class _Application:
    """A schema applied to arguments: the formula, and what must be so for it to be true."""

    def __init__(self, schema: Schema[...], arguments: tuple[object, ...]) -> None:
        self.finite: list[Term] = []
        self.weights: list[Function] = []
        self._schema = schema
        self._said: dict[str, list[PlaceValue]] = {}
        """What a predicate or a lemma said of which elements, by the name of the argument."""
        names = list(schema.kinds)
        self._given = dict(zip(names, arguments, strict=True))
        self._elements = self._sort_of_elements()
        self._sorts = self._check()
        statement = schema.statement_over(len(self._sorts))
        self.formula = schema.build(*(self._recorded(name) for name in names))
        sorts = dict(zip(statement.sorts, self._sorts, strict=True))
        if not Places(self._given, self._said, sorts).filled(statement.formula, self.formula):
            raise TypeError(
                f"schema {schema.name}: of these arguments it says something else than of any; "
                "what is proved is the latter"
            )
        for name, said in self._said.items():
            if not always_the_same(said):
                raise TypeError(f"schema {schema.name}: {name} is not the same each time")
        self._collect()

    def _recorded(self, name: str) -> Any:
        """The argument; where it is a function of ours, one that remembers what it said."""
        kind, given = self._schema.kinds[name], self._given[name]
        if kind not in _FUNCTIONS:
            return given
        said = self._said[name] = []
        return _Recorded(given, kind, said, self)

    def _collect(self) -> None:
        for name, kind in self._schema.kinds.items():
            given = self._given[name]
            if kind is Kind.MEMBERS:
                assert isinstance(given, Term)
                self.finite.append(given)
            elif kind is Kind.WEIGHT:
                assert isinstance(given, Function)
                self.weights.append(given)
            elif kind is Kind.PREDICATE:
                (x,), formula = self._said[name][0]
                assert isinstance(x, Symbol)
                self.finite.append(Binder(SetSort.of(x.sort), "setof", (x,), formula))

    # Are the arguments what the schema takes?

    def _sort_of_elements(self) -> Sort:
        for name, kind in self._schema.kinds.items():
            given = self._given[name]
            match kind, given:
                case Kind.MEMBERS, Term(sort=SetSort(elements=(sort,))):
                    return sort
                case Kind.ELEMENT, Term(sort=sort):
                    return sort
                case Kind.ELEMENTS, Sort():
                    return given
                case Kind.SORTS, (Sort() as sort, *_):
                    return sort
        raise TypeError(f"schema {self._schema.name}: of the elements of which sort?")

    def _check(self) -> tuple[Sort, ...]:
        sorts: tuple[Sort, ...] = (self._elements,)
        for name, kind in self._schema.kinds.items():
            given = self._given[name]
            if kind is Kind.SORTS and isinstance(given, tuple):
                sorts = given
            if not self._fits(kind, given):
                raise TypeError(f"schema {self._schema.name}: {name} is to be {kind.value}")
        return sorts

    def _fits(self, kind: Kind, given: object) -> bool:
        x = self._elements
        if kind in _FUNCTIONS:
            return callable(given)
        match kind, given:
            case Kind.MEMBERS, Term(sort=sort):
                return sort == SetSort.of(x)
            case Kind.ELEMENT, Term(sort=sort):
                return sort == x
            case Kind.KEY, Term(sort=sort):
                return sort == MapSort.of(x, INT)
            case ((Kind.WEIGHT | Kind.KEY_FUNCTION), Function(domain=domain, range=values)):
                return (domain, values) == (x, INT)
            case Kind.ELEMENTS, Sort():
                return True
            case Kind.SORTS, (*sorts,):
                return all(isinstance(s, Sort) for s in sorts)
        return False


class _Recorded:
    """A predicate, or a lemma about any elements, that remembers what it said of which."""

    def __init__(
        self,
        given: Any,
        kind: Kind,
        said: list[PlaceValue],
        application: _Application,
    ) -> None:
        self.__code__ = given.__code__
        self._given, self._kind, self._said, self._application = given, kind, said, application

    def __call__(self, *elements: Term) -> Any:
        answer = self._given(*elements)
        if self._kind in (Kind.PREDICATE, Kind.PROPERTY):
            if not isinstance(answer, Term) or answer.sort != BOOL:
                raise TypeError(f"{answer!r} is no formula")
            self._said.append((elements, answer))
            return answer
        lemma = lemma_of(answer)
        self._said.append((elements, lemma.formula))
        self._application.finite += lemma.finite
        self._application.weights += lemma.weights
        return lemma
