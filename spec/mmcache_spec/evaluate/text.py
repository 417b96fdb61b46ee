"""Terms as formulas, for people."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count

from ..kernel.terms import (
    Binder,
    Literal,
    Op,
    Symbol,
    Term,
    alpha_form,
    replaced,
    subterms,
    unnamed,
)

__all__ = ["formula", "lines", "names_in"]

_LOOSE, _OR, _AND, _RELATION, _SUM, _TIGHT = range(6)

_INFIX = {
    "implies": ("⇒", _LOOSE),
    "eq": ("=", _RELATION),
    "lt": ("<", _RELATION),
    "le": ("≤", _RELATION),
    "add": ("+", _SUM),
    "sub": ("−", _SUM),
    "union": ("∪", _SUM),
    "minus": ("∖", _SUM),
}


def formula(term: Term) -> str:
    """The term in the notation of the docs; a prime marks the value after the action."""
    return _show(term, _LOOSE)


def lines(term: Term) -> list[str]:
    """The formula, a line for each conjunct."""
    if isinstance(term, Op) and term.name == "and" and len(term.args) > 1:
        first, *others = (_show(a, _AND + 1) for a in term.args)
        return [f"  {first}", *(f"∧ {other}" for other in others)]
    return [formula(term)]


def names_in(term: Term) -> dict[str, Term]:
    """The abbreviations that the formula uses, and what they stand for; inner ones last."""
    found: dict[str, Term] = {}
    parts: tuple[Term, ...] = ()
    if isinstance(term, Op) and term.name == "named" and len(term.args) == 1:
        found[str(term.label)] = term.args[0]
        parts = term.args
    elif isinstance(term, Op) and term.name == "named" and len(term.args) == 2:
        found[str(term.label)] = _in_general(term)
        parts = term.args
    elif isinstance(term, Op):
        parts = term.args[1:] if term.name == "named" else term.args
    elif isinstance(term, Binder):
        parts = (term.body,) if term.value is None else (term.body, term.value)
    for part in parts:
        found.update(names_in(part))
    return found


def _in_general(term: Op) -> Term:
    """What a definition says, with the name that it has for its argument in place of that."""
    body, actual = term.args
    formal = Symbol(actual.sort, str(term.label).split("(")[1].rstrip(")"), "bound")

    def general(t: Term) -> Term:
        if t is actual:
            return formal
        if isinstance(t, Op):
            return replace(t, args=tuple(map(general, t.args)))
        if isinstance(t, Binder):
            value = None if t.value is None else general(t.value)
            return replace(t, body=general(t.body), value=value)
        return t

    return general(body)


def _show(term: Term, context: int) -> str:
    text, binding = _parts(term)
    return f"({text})" if binding < context else text


def _parts(term: Term) -> tuple[str, int]:
    match term:
        case Literal(value=value):
            return str(value), _TIGHT
        case Symbol(role="next", name=name):
            return f"{name}′", _TIGHT
        case Symbol(name=name):
            return name, _TIGHT
        case Binder():
            return _binder(term)
        case Op():
            return _operator(term)
    raise TypeError(f"not a term: {term!r}")


def _distinct(term: Binder) -> Binder:
    """The same binder; a variable is renamed if its body speaks of another one of that name.

    Otherwise `{ k | f(k) = f(j) }`, made by a function that calls its own variable `j`, would be
    shown to people as `{ j | f(j) = f(j) }`.
    """
    outer = {v.name for v in alpha_form(term)[1]}
    if not any(v.name in outer for v in term.variables):
        return term
    inside = [term.body] if term.value is None else [term.body, term.value]
    taken = {s.name for part in inside for s in subterms(part) if isinstance(s, Symbol)}
    new: dict[Symbol, Symbol] = {}
    for v in term.variables:
        new[v] = replace(v, name=_fresh(v.name, taken)) if v.name in outer else v
        taken.add(new[v].name)
    value = None if term.value is None else replaced(term.value, new.get)
    variables = tuple(new[v] for v in term.variables)
    return replace(term, variables=variables, body=replaced(term.body, new.get), value=value)


def _fresh(name: str, taken: set[str]) -> str:
    """The next letter that is not taken, or else the name with a number."""
    letters = (chr(c) for c in range(ord(name[0]) + 1, ord("z") + 1))
    numbered = (f"{name}{n}" for n in count(1))
    return next(other for other in chain(letters, numbered) if other not in taken)


def _binder(term: Binder) -> tuple[str, int]:
    term = _distinct(term)
    names = ", ".join(v.name for v in term.variables)
    typed = ", ".join(f"{v.name}: {v.sort}" for v in term.variables)
    body = _show(term.body, _LOOSE)
    match term.name:
        case "forall":
            return f"∀ {typed}. {body}", _LOOSE
        case "exists":
            return f"∃ {typed}. {body}", _LOOSE
        case "setof":
            return f"{{ {names} | {body} }}", _TIGHT
        case "mapof":
            return f"[ {names} ↦ {body} ]", _TIGHT
        case _:
            assert term.value is not None
            return f"max {{ {_show(term.value, _LOOSE)} | {body} }}", _TIGHT


def _operator(term: Op) -> tuple[str, int]:
    args = term.args
    if term.name == "named":
        if len(args) == 1:
            return str(term.label), _TIGHT
        if len(args) == 2:
            return f"{str(term.label).split('(')[0]}({_show(args[1], _LOOSE)})", _TIGHT
        left, right = (_show(a, _SUM) for a in args[1:])
        return f"{left} {term.label} {right}", _RELATION
    if term.name in _INFIX:
        symbol, binding = _INFIX[term.name]
        if term.name == "eq" and args[0].sort.name == "Bool":
            return f"{_show(args[0], _AND)} ⇔ {_show(args[1], _AND)}", _LOOSE
        to_the_right = term.name == "implies"
        left = _show(args[0], binding + (to_the_right or _mixes_sets(term)))
        right = _show(args[1], binding if to_the_right else binding + 1)
        return f"{left} {symbol} {right}", binding
    match term.name:
        case "and":
            return (
                (" ∧ ".join(_show(a, _AND + 1) for a in args), _AND) if args else ("true", _TIGHT)
            )
        case "or":
            return (" ∨ ".join(_show(a, _OR + 1) for a in args), _OR) if args else ("false", _TIGHT)
        case "not" if isinstance(args[0], Op) and args[0].name == "member":
            return _membership(args[0], "∉"), _RELATION
        case "not" if isinstance(args[0], Op) and args[0].name == "eq":
            left, right = (_show(a, _SUM) for a in args[0].args)
            return f"{left} ≠ {right}", _RELATION
        case "not":
            return f"¬{_show(args[0], _TIGHT)}", _TIGHT
        case "ite":
            condition, then, otherwise = (_show(a, _LOOSE) for a in args)
            return f"if {condition} then {then} else {otherwise}", _LOOSE
        case "member":
            return _membership(term, "∈"), _RELATION
        case "insert":
            return f"{_show(args[0], _SUM)} ∪ {{{_tuple(args[1:])}}}", _SUM
        case "remove":
            return f"{_show(args[0], _SUM)} ∖ {{{_tuple(args[1:])}}}", _SUM
        case "empty":
            return "∅", _TIGHT
        case "get":
            return f"{_show(args[0], _TIGHT)}[{_show(args[1], _LOOSE)}]", _TIGHT
        case "put":
            table, key, value = (_show(a, _LOOSE) for a in args)
            return f"{table}[{key} ↦ {value}]", _TIGHT
        case "total":
            assert term.function is not None
            return f"Σ {term.function.name}({_show(args[0], _LOOSE)})", _TIGHT
        case "apply":
            assert term.function is not None
            return f"{term.function.name}({_show(args[0], _LOOSE)})", _TIGHT
    raise TypeError(f"no notation for {term.name!r}")


def _mixes_sets(term: Op) -> bool:
    """A union of a difference, or the like, which nobody reads without parentheses."""
    left = unnamed(term.args[0])
    sets = {"union", "minus", "insert", "remove"}
    return isinstance(left, Op) and {term.name, left.name} <= sets and term.name != left.name


def _tuple(terms: tuple[Term, ...]) -> str:
    shown = ", ".join(_show(t, _LOOSE) for t in terms)
    return shown if len(terms) == 1 else f"({shown})"


def _membership(term: Op, symbol: str) -> str:
    return f"{_tuple(term.args[1:])} {symbol} {_show(term.args[0], _SUM)}"
