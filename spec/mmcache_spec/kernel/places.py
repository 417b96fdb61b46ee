"""Whether a formula is a statement with arguments in its places, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .terms import (
    BOOL,
    Binder,
    Function,
    Literal,
    MapSort,
    Op,
    SetSort,
    Sort,
    Symbol,
    Term,
    alpha_form,
)

__all__ = ["PlaceValue", "Places", "always_the_same"]

PlaceValue = tuple[tuple[Term, ...], Term]
"""Some elements, and what a predicate or a lemma said of them."""


@dataclass(frozen=True)
class Places:
    """What stands in the places of a statement's symbols.

    Attributes:
        arguments: A term, function or sort for each parameter and function of the statement.
        said: For each predicate of the statement, what it said of which elements.
        sorts: A sort for each sort of the statement.
    """

    arguments: Mapping[str, object]
    said: Mapping[str, Sequence[PlaceValue]]
    sorts: Mapping[Sort, Sort]

    def filled(self, general: Term, actual: Term) -> bool:
        """Whether the actual term is the general one, with the arguments themselves in place."""
        return self._is(general, actual, {})

    def _is(self, general: Term, actual: Term, bound: Mapping[Symbol, Symbol]) -> bool:
        match general, actual:
            case Symbol(role="parameter", name=name), _:
                return actual is self.arguments[name]
            case Symbol(role="bound"), _:
                return bound.get(general) is actual
            case Literal(value=value), Literal(value=other):
                return value == other
            case Op(name="apply", args=args, function=Function(name=name)), _ if name in self.said:
                elements = [bound.get(x) for x in args if isinstance(x, Symbol)]
                return any(
                    formula is actual and _identical(of, elements)
                    for of, formula in self.said[name]
                )
            case Op(), Op():
                return (
                    (general.name, general.label) == (actual.name, actual.label)
                    and self._function(general.function) == actual.function
                    and self._sort(general.sort) == actual.sort
                    and len(general.args) == len(actual.args)
                    and all(
                        self._is(g, a, bound)
                        for g, a in zip(general.args, actual.args, strict=True)
                    )
                )
            case Binder(value=None), Binder(value=None):
                pairs = dict(zip(general.variables, actual.variables, strict=False))
                return (
                    general.name == actual.name
                    and len(general.variables) == len(actual.variables)
                    and all(self._sort(g.sort) == a.sort for g, a in pairs.items())
                    and self._is(general.body, actual.body, {**bound, **pairs})
                )
        return False

    def _function(self, general: Function | None) -> object:
        return None if general is None else self.arguments.get(general.name)

    def _sort(self, general: Sort) -> Sort:
        """The sort that one of the statement stands for."""
        if isinstance(general, SetSort):
            return SetSort.of(*map(self._sort, general.elements))
        if isinstance(general, MapSort):
            return MapSort.of(self._sort(general.key), self._sort(general.value))
        return self.sorts.get(general, general)


def _identical(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def always_the_same(answers: Sequence[PlaceValue]) -> bool:
    """Whether a predicate said the same of all elements of which it was asked."""
    if len(answers) < 2:
        return True
    first, *others = map(_of_any, answers)
    return all(other == first for other in others)


def _of_any(answer: PlaceValue) -> tuple[object, list[int]]:
    """What was said, in a form that is the same whatever elements it was said of."""
    elements, formula = answer
    variables = tuple(x for x in elements if isinstance(x, Symbol))
    form, free = alpha_form(Binder(BOOL, "forall", variables, formula))
    return form, [id(x) for x in free]
