"""Building terms anew: the one place that knows how a term is taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from .terms import Binder, Op, Role, Term, replaced, unnamed

__all__ = ["parts", "places", "rebuilt", "rewritten", "substituted"]


def parts(term: Term) -> tuple[Term, ...]:
    """The terms directly below this one."""
    term = unnamed(term)
    if isinstance(term, Op):
        return term.args
    if isinstance(term, Binder):
        return (term.body,) if term.value is None else (term.body, term.value)
    return ()


def rebuilt(term: Term, new: tuple[Term, ...]) -> Term:
    """The same term, with these directly below it."""
    term = unnamed(term)
    if isinstance(term, Op):
        return replace(term, args=new)
    if isinstance(term, Binder):
        return replace(term, body=new[0], value=new[1] if len(new) > 1 else None)
    return term


def rewritten(term: Term, instead: Callable[[Term], Term | None]) -> Term:
    """The term with something else in place of each outermost subterm that has a replacement."""
    term = unnamed(term)
    other = instead(term)
    if other is not None:
        return other
    below = parts(term)
    new = tuple(rewritten(t, instead) for t in below)
    same = all(a is unnamed(b) for a, b in zip(new, below, strict=True))
    return term if same else rebuilt(term, new)


def substituted(term: Term, values: Mapping[str, Term], *roles: Role) -> Term:
    """The term with these values for the symbols of these names and roles."""
    return replaced(term, lambda s: values.get(s.name) if s.role in roles else None)


def places(term: Term) -> Iterator[tuple[Term, Callable[[Term], Term]]]:
    """Every subterm, outermost first, and the function that puts another in its place."""
    term = unnamed(term)
    yield term, lambda new: new
    below = parts(term)
    for k, part in enumerate(below):
        for inner, put in places(part):

            def put_here(
                new: Term, put: Callable[[Term], Term] = put, k: int = k, whole: Term = term
            ) -> Term:
                return rebuilt(whole, (*below[:k], put(new), *below[k + 1 :]))

            yield inner, put_here
