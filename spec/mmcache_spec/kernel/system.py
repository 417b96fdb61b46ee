"""Transition systems: state variables, actions, properties, and what an observer records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .schemas import Lemma, lemma_of
from .terms import INT, Function, Symbol, Term, all_of, alpha_form, replaced, symbols

__all__ = [
    "Action",
    "ActionProperty",
    "Axiom",
    "Invariant",
    "Monitor",
    "Property",
    "Scope",
    "TransitionSystem",
]


@dataclass(frozen=True)
class Action:
    """One call of the API, or one event of the system.

    `guard` names the conditions under which the action may happen: the caller's duties.
    `effect` gives the next value of every variable in `modifies`; the kernel frames the rest. It
    may speak of the answer (`result`), which is then written once.
    `returns` is what the call answers, in terms of the state before it.
    """

    name: str
    parameters: tuple[Symbol, ...] = ()
    guard: Mapping[str, Term] = field(default_factory=dict)
    effect: tuple[tuple[Symbol, Term], ...] = ()
    returns: Term | None = None
    lemmas: Mapping[str, tuple[Lemma, ...]] = field(default_factory=dict)
    """Facts about finite sets that the proof of a property may use; see `kernel.lemmas`."""
    premises: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the name of a property, the axioms and invariants that its proof is given; by default all.
    Fewer make a proof faster, and never easier."""
    _setting: _Setting | None = field(default=None, init=False, compare=False, repr=False)
    """Of an action that a system has composed its record with: that system's setting. An action
    that is made of another has none yet."""

    def __post_init__(self) -> None:
        names = [variable.name for variable, _ in self.effect]
        if len(names) != len(set(names)):
            raise ValueError(f"{self.name}: a variable is updated twice")
        answers = () if self.returns is None else (self.returns,)
        for term in (*self.guard.values(), *answers):
            self._speaks_of_none(term, "next", "result")
        for _, term in self.effect:
            self._speaks_of_none(term, "next", *(() if answers else ("result",)))
        for given in self.lemmas.values():
            for thing in given:
                lemma_of(thing)

    def _speaks_of_none(self, term: Term, *roles: str) -> None:
        for symbol in symbols(term):
            if symbol.role in roles:
                raise ValueError(f"{self.name}: speaks of {symbol.name} after the action")

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
class Monitor:
    """One line of the record that an observer of the calls keeps.

    A ghost variable with its first value and, by the name of the action, its next value after a
    call. It is declared once for a protocol, beside the actions; the system composes it with every
    design, and no design can write or read it. Without an update for an action it keeps its value.

    An update speaks of the record before the call, of the parameters and the answer (`result`),
    and of what the observer sees: the variables that the system declares observable, before the
    call, and after it (`next`). How a design comes to what is seen is none of its business.
    """

    variable: Symbol
    init: Term
    updates: Mapping[str, Term] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = self.variable.name
        if self.variable.role != "ghost":
            raise ValueError(f"the monitor {name} is a {self.variable.role}, not a ghost variable")
        for value in (self.init, *self.updates.values()):
            self.variable.becomes(value)

    def is_seen_by(self, observed: frozenset[str]) -> None:
        """Raise `ValueError` where an update speaks of what an observer cannot see."""
        for action, value in self.updates.items():
            for name in (s.name for s in symbols(value) if s.role in ("state", "next")):
                if name not in observed:
                    raise ValueError(
                        f"the monitor {self.variable.name} reads {name} at {action}, "
                        "which no observer sees"
                    )


@dataclass(frozen=True, eq=False)
class _Setting:
    """What the record of an action is composed of, and what its guards are checked against.

    Systems that are made of one another share nearly all actions, and are made by the thousand:
    where the setting is the same, a composed action is as it should be.
    """

    own: tuple[Symbol, ...]
    """The variables of the design."""
    monitors: tuple[Monitor, ...]
    observables: Mapping[str, Term]
    duties: Mapping[str, Mapping[str, Term]] | None

    def is_the_same_as(self, other: _Setting | None) -> bool:
        return (
            other is not None
            and len(self.own) == len(other.own)
            and all(a is b for a, b in zip(self.own, other.own, strict=True))
            and self.monitors is other.monitors
            and self.observables is other.observables
            and self.duties is other.duties
        )


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
    """State variables, an initial condition, actions, and what is claimed of them.

    The record of the `monitors` is part of every system that is made: its variables join
    `variables`, its first values `init`, and its updates the effect of each action, in the place
    of whatever the action says of these variables. So it is right in every design and mutant,
    however it was made of another.
    """

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
    monitors: tuple[Monitor, ...] = ()
    observables: Mapping[str, Term] = field(default_factory=dict)
    """What an observer sees of a state, by name: terms over the state."""
    freedoms: Mapping[str, str] = field(default_factory=dict)
    """What the clauses leave free on purpose, by name, in words. Where there are any, everything
    else is claimed to be determined: see `checks.complete`."""
    uniqueness: Mapping[str, tuple[Lemma, ...]] = field(default_factory=dict)
    """Facts about finite sets, by action, for the proof that there is one answer and one state."""
    duties: Mapping[str, Mapping[str, Term]] | None = None
    """By action, all that its caller has to see to. A design that asks for more is refused, since
    whatever is proved of it would be proved of fewer calls. None: the guards are the system's own
    choices."""

    def __post_init__(self) -> None:
        for given in self.uniqueness.values():
            for thing in given:
                lemma_of(thing)
        self._keep_the_record()
        declared = {v.name for v in self.variables}
        if {v.name for v, _ in self.init} != declared:
            raise ValueError(f"{self.name}: the initial condition must give every variable a value")
        self._check_names()
        for action in self.actions:
            self._check_premises(action)
            if unknown := action.modifies - declared:
                raise ValueError(
                    f"{self.name}.{action.name} modifies {sorted(unknown)}, not declared"
                )
        for prop in self.action_properties:
            self.action(prop.action)

    @property
    def observed(self) -> frozenset[str]:
        """The names of the variables that are observable as they are."""
        seen = self.observables.values()
        return frozenset(term.name for term in seen if isinstance(term, Symbol))

    def _check_duties(self, action: Action) -> None:
        if self.duties is None:
            return
        due = {alpha_form(term)[0] for term in self.duties.get(action.name, {}).values()}
        for name, guard in action.guard.items():
            if alpha_form(guard)[0] not in due:
                raise ValueError(
                    f"{self.name}.{action.name}: the guard {name} is no duty of the caller; a "
                    "design takes every call that the protocol allows"
                )

    def _keep_the_record(self) -> None:
        """Compose the monitors with what the design says, in place of what it says of them."""
        monitored = {m.variable.name for m in self.monitors}
        own = tuple(v for v in self.variables if v.name not in monitored)
        if strangers := sorted(v.name for v in own if v.role == "ghost"):
            raise ValueError(f"{self.name}: {strangers} are ghosts, and no monitor says of what")
        setting = _Setting(own, self.monitors, self.observables, self.duties)
        if not any(setting.is_the_same_as(a._setting) for a in self.actions):
            for monitor in self.monitors:
                monitor.is_seen_by(self.observed)
        init = (line for line in self.init if line[0].name not in monitored)
        composed = {
            "variables": (*own, *(m.variable for m in self.monitors)),
            "init": (*init, *((m.variable, m.init) for m in self.monitors)),
            "actions": tuple(self._recorded(a, setting) for a in self.actions),
        }
        for name, value in composed.items():
            object.__setattr__(self, name, value)

    def _recorded(self, action: Action, setting: _Setting) -> Action:
        """The action as the design has it, and what the observer notes down of it."""
        if setting.is_the_same_as(action._setting):
            return action
        self._check_duties(action)
        monitored = {m.variable.name for m in self.monitors}
        effect = tuple(line for line in action.effect if line[0].name not in monitored)
        self._check_blindness(action, effect)
        after: dict[str, Term] = {
            **{v.name: v for v in setting.own},
            **{v.name: value for v, value in effect},
        }

        def happened(symbol: Symbol) -> Term | None:
            if symbol.role == "next":
                return after[symbol.name]
            if symbol.role == "result":
                if action.returns is None or action.returns.sort != symbol.sort:
                    raise ValueError(f"{self.name}.{action.name} returns no {symbol.sort}")
                # A number stays a name, since its term is long and stands in many lines; a set is
                # written out, since lemmas are found by looking at the operations that make it.
                return None if symbol.sort == INT else action.returns
            return None

        record = tuple(
            (m.variable, replaced(m.updates[action.name], happened))
            for m in self.monitors
            if action.name in m.updates
        )
        composed = replace(action, effect=(*effect, *record))
        object.__setattr__(composed, "_setting", setting)
        return composed

    def _check_blindness(self, action: Action, effect: tuple[tuple[Symbol, Term], ...]) -> None:
        """What a design does and answers rests on its own state, not on the record."""
        answer = () if action.returns is None else (action.returns,)
        for term in (*answer, *(value for _, value in effect)):
            for symbol in symbols(term):
                if symbol.role == "ghost":
                    raise ValueError(f"{self.name}.{action.name} reads the record {symbol.name}")

    def _check_premises(self, action: Action) -> None:
        """A premise that is misspelt would be left out in silence."""
        known = {a.name for a in self.axioms} | {i.name for i in self.invariants}
        for claim, names in action.premises.items():
            if unknown := sorted(set(names) - known):
                raise ValueError(f"{self.name}.{action.name}: {claim} rests on {unknown}, unknown")

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

    def claiming(
        self, invariants: Iterable[Invariant] = (), action_properties: Iterable[ActionProperty] = ()
    ) -> TransitionSystem:
        """The same system, of which only this is claimed; its proofs may rest on all there is."""
        return replace(
            self,
            actions=tuple(replace(a, premises={}) if a.premises else a for a in self.actions),
            invariants=tuple(invariants),
            action_properties=tuple(action_properties),
        )

    @property
    def properties(self) -> tuple[Property, ...]:
        return (*self.invariants, *self.action_properties)

    def clauses(self) -> list[str]:
        """Ids of the clauses that some property states, in order of first mention."""
        return list(dict.fromkeys(p.clause for p in self.properties if p.clause is not None))

    def stating(self, clause: str) -> tuple[Property, ...]:
        return tuple(p for p in self.properties if p.clause == clause)
