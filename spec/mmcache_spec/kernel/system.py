"""Transition systems: state variables, actions, properties. Declarations only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .schemas import Lemma, lemma_of
from .terms import Function, Symbol, Term, all_of, subterms

__all__ = [
    "Action",
    "ActionProperty",
    "Axiom",
    "Invariant",
    "Property",
    "Scope",
    "TransitionSystem",
]


@dataclass(frozen=True)
class Action:
    """One call of the API, or one event of the system.

    `guard` names the conditions under which the action may happen: the caller's duties.
    `effect` gives the next value of every variable in `modifies`; the kernel frames the rest.
    `returns` is what the call answers, in terms of the state before it.
    """

    name: str
    parameters: tuple[Symbol, ...] = ()
    guard: Mapping[str, Term] = field(default_factory=dict)
    effect: tuple[tuple[Symbol, Term], ...] = ()
    returns: Term | None = None
    lemmas: Mapping[str, tuple[Lemma, ...]] = field(default_factory=dict)
    """Facts about finite sets that the proof of a property may use; see `kernel.lemmas`."""

    def __post_init__(self) -> None:
        names = [variable.name for variable, _ in self.effect]
        if len(names) != len(set(names)):
            raise ValueError(f"{self.name}: a variable is updated twice")
        written = [*self.guard.values(), *(value for _, value in self.effect)]
        for term in [*written, *([] if self.returns is None else [self.returns])]:
            for symbol in subterms(term):
                if isinstance(symbol, Symbol) and symbol.role in ("next", "result"):
                    raise ValueError(f"{self.name}: speaks of {symbol.name} after the action")
        for given in self.lemmas.values():
            for thing in given:
                lemma_of(thing)

    @property
    def modifies(self) -> frozenset[str]:
        return frozenset(variable.name for variable, _ in self.effect)

    @property
    def updates(self) -> dict[str, Term]:
        return {variable.name: value for variable, value in self.effect}

    @property
    def enabled(self) -> Term:
        return all_of(*self.guard.values())


@dataclass(frozen=True)
class Axiom:
    """An assumption on the constants and functions: the ordinary world."""

    name: str
    formula: Term


@dataclass(frozen=True)
class Invariant:
    """A state predicate that holds initially and that every action preserves."""

    name: str
    formula: Term
    clause: str | None = None
    """The id of the clause that it states; None for a strengthening invariant."""
    lemmas: tuple[Lemma, ...] = ()
    """Facts about finite sets that its proofs may use, of the state in question."""

    def __post_init__(self) -> None:
        for thing in self.lemmas:
            lemma_of(thing)


@dataclass(frozen=True)
class ActionProperty:
    """What one action must do: a predicate over the states before and after, and the result."""

    name: str
    action: str
    formula: Term
    clause: str | None = None


Property = Invariant | ActionProperty


@dataclass(frozen=True)
class Scope:
    """A small universe to search in: the elements of each sort, and what is fixed about them."""

    name: str
    universe: Mapping[str, tuple[str, ...]]
    fixed: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    """Functions whose values do not matter, so that the search need not choose them."""
    at_least: Mapping[str, int] = field(default_factory=dict)
    """Lower bounds for constants and the values of functions, for the sake of readable examples."""
    interchangeable: tuple[str, ...] = ()
    """The sorts whose elements nothing fixed tells apart."""

    def restricted_to(self, kept: Mapping[str, tuple[str, ...]]) -> Scope:
        """The same scope with fewer elements."""
        elements = {x for xs in kept.values() for x in xs}
        fixed = {
            name: {x: y for x, y in values.items() if x in elements}
            for name, values in self.fixed.items()
        }
        return Scope(self.name, kept, fixed, self.at_least, self.interchangeable)


@dataclass(frozen=True, eq=False)
class TransitionSystem:
    """State variables, an initial condition, actions, and what is claimed of them."""

    name: str
    variables: tuple[Symbol, ...]
    constants: tuple[Symbol, ...]
    functions: tuple[Function, ...]
    axioms: tuple[Axiom, ...]
    init: tuple[tuple[Symbol, Term], ...]
    actions: tuple[Action, ...]
    invariants: tuple[Invariant, ...]
    action_properties: tuple[ActionProperty, ...]
    pass_start: Term
    """What is true, besides the invariants, when a scheduling pass begins."""

    def __post_init__(self) -> None:
        declared = {v.name for v in self.variables}
        if {v.name for v, _ in self.init} != declared:
            raise ValueError(f"{self.name}: the initial condition must give every variable a value")
        self._check_names()
        for action in self.actions:
            if unknown := action.modifies - declared:
                raise ValueError(
                    f"{self.name}.{action.name} modifies {sorted(unknown)}, not declared"
                )
        for prop in self.action_properties:
            self.action(prop.action)

    def _check_names(self) -> None:
        """Solvers know symbols by name: no two may share one."""
        taken = [v.name for v in self.variables] + [f"{v.name}_after" for v in self.variables]
        taken += [c.name for c in self.constants] + [f.name for f in self.functions] + ["result"]
        actions = [a.name for a in self.actions]
        for names in (taken, actions):
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{self.name}: {sorted(twice)} named twice")
        for action in self.actions:
            if clash := {p.name for p in action.parameters} & set(taken):
                raise ValueError(f"{self.name}.{action.name}: {sorted(clash)} named twice")

    def action(self, name: str) -> Action:
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(f"{self.name} has no action {name!r}")

    @property
    def properties(self) -> tuple[Property, ...]:
        return (*self.invariants, *self.action_properties)

    def clauses(self) -> list[str]:
        """Ids of the clauses that some property states, in order of first mention."""
        return list(dict.fromkeys(p.clause for p in self.properties if p.clause is not None))

    def stating(self, clause: str) -> tuple[Property, ...]:
        return tuple(p for p in self.properties if p.clause == clause)
