"""Building terms anew: the one place that knows how a term is taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from .terms import Binder, Op, Role, Symbol, Term, alpha_form, replaced, unnamed

__all__ = ["parts", "places", "points", "rebuilt", "rewritten", "substituted"]


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


def points(term: Term) -> Iterator[tuple[Term, Callable[[Term], Term]]]:
    """Like `places`; but what a definition says is one place, however often it is used.

    A definition is a part that is shown by a name. Where it stands several times, perhaps of other
    bound variables, its inside comes once, after everything else, and what is put there is put
    wherever the definition is used.
    """
    forms = _Forms()
    uses: dict[object, list[Op]] = {}
    for op in forms.definitions(term):
        uses.setdefault(forms.of(op), []).append(op)
    shared = {form: ops[0] for form, ops in uses.items() if len(ops) > 1}

    def outside(t: Term) -> Iterator[tuple[Term, Callable[[Term], Term]]]:
        """The places of the term that are in no shared definition."""
        while isinstance(t, Op) and t.name == "named":
            if forms.of(t) in shared:
                return
            t = t.args[0]
        yield t, lambda new: new
        below = parts(t)
        for k, part in enumerate(below):
            for inner, put in outside(part):

                def put_here(
                    new: Term, put: Callable[[Term], Term] = put, k: int = k, whole: Term = t
                ) -> Term:
                    return rebuilt(whole, (*below[:k], put(new), *below[k + 1 :]))

                yield inner, put_here

    yield from outside(term)
    for form, use in shared.items():
        for inner, put in outside(use.args[0]):

            def put_wherever(
                new: Term, put: Callable[[Term], Term] = put, form: object = form, use: Op = use
            ) -> Term:
                return forms.redefined(term, form, put(new), forms.free(use))

            yield inner, put_wherever


class _Forms:
    """The forms of the definitions in a term, each worked out once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Op, object, list[Symbol]]] = {}

    def _look(self, op: Op) -> tuple[Op, object, list[Symbol]]:
        if id(op) not in self._known:
            self._known[id(op)] = (op, *alpha_form(op))
        return self._known[id(op)]

    def of(self, op: Op) -> object:
        """The same for definitions that differ only in the names of variables."""
        return op.label, self._look(op)[1]

    def free(self, op: Op) -> list[Symbol]:
        """The variables that it does not bind, in the order of the form."""
        return self._look(op)[2]

    def definitions(self, term: Term) -> Iterator[Op]:
        """Every use of a definition in the term, also within another."""
        todo = [term]
        while todo:
            t = todo.pop()
            if isinstance(t, Op) and t.name == "named":
                if len(t.args) < 3:
                    yield t
                todo.append(t.args[0])
            else:
                todo += parts(t)

    def redefined(self, term: Term, form: object, body: Term, variables: list[Symbol]) -> Term:
        """The term with another body in place of a definition, wherever it is used."""
        known: dict[int, Term] = {}

        def new(t: Term) -> Term:
            if id(t) not in known:
                known[id(t)] = changed(t)
            return known[id(t)]

        def changed(t: Term) -> Term:
            if isinstance(t, Op) and t.name == "named":
                if self.of(t) == form:
                    there = dict(zip(variables, self.free(t), strict=True))
                    return replaced(body, there.get)
                return new(t.args[0])
            below = parts(t)
            other = tuple(new(part) for part in below)
            same = all(a is b for a, b in zip(other, below, strict=True))
            return t if same else rebuilt(t, other)

        return new(term)
