"""What the operations on sets and maps mean: of each element, or each key."""

from __future__ import annotations

from .terms import Binder, MapSort, Op, SetSort, Symbol, all_of, any_of, ite

__all__ = ["SET_OPERATIONS", "pointwise"]

SET_OPERATIONS = ("empty", "insert", "remove", "union", "minus")


def pointwise(term: Op) -> Binder:
    """A set operation, or an update of a map, as the comprehension that it abbreviates."""
    if isinstance(term.sort, MapSort):
        table, key, value = term.args
        k = Symbol(term.sort.key, "k", "bound")
        return Binder(term.sort, "mapof", (k,), ite(k == key, value, table[k]))
    assert isinstance(term.sort, SetSort)
    x = tuple(Symbol(e, "x", "bound") for e in term.sort.elements)
    match term.name, term.args:
        case "empty", ():
            body = any_of()
        case "union", (one, two):
            body = one.has(*x) | two.has(*x)
        case "minus", (one, two):
            body = one.has(*x) & ~two.has(*x)
        case "insert", (one, *element):
            body = one.has(*x) | all_of(*(a == b for a, b in zip(x, element, strict=True)))
        case "remove", (one, *element):
            body = one.has(*x) & ~all_of(*(a == b for a, b in zip(x, element, strict=True)))
        case _:
            raise TypeError(term.name)
    return Binder(term.sort, "setof", x, body)
