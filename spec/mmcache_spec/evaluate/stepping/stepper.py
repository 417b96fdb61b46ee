"""All steps out of a state of one world, at once, as fast Python over linear forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from ...kernel.system import Action, ActionProperty, Invariant, Property, TransitionSystem
from ...kernel.terms import INT, Symbol, Term, subterms
from ..compiled import CompiledSystem, is_code, text_of
from ..interpreter import ActionCall, World
from .arguments import CallWithIntegers, WriteCall
from .forms import Form, Signs, Symbols, Undetermined
from .layout import Layout, Packed, Places
from .ranks import Ranks
from .writing import CallCode, StepEmitter, local, made, speaks_of_the_answer

__all__ = ["FreeVariables", "Stepper", "Successor"]

Successor = tuple[int, Packed, bool]
"""The number of the call, the state after it, and whether the call breaks something."""

FreeVariables = dict[int, tuple[Term, tuple[Symbol, ...]]]
"""As `CompiledSystem.free` has them."""


class Stepper:
    """All steps out of a state of one world, at once."""

    def __init__(
        self,
        system: TransitionSystem,
        world: World,
        variables: tuple[Symbol, ...],
        ages: Mapping[str, int],
        alive: Sequence[str | None],
        wanted: Sequence[Property],
        symbols: Symbols,
        free: FreeVariables | None = None,
    ) -> None:
        """One system in one world.

        Args:
            system: Whose actions are performed.
            world: Has forms for numbers.
            variables: Those that matter; effects on others are left out.
            ages: Variables of which only the order counts, with their time scales.
            alive: For each scale, the set outside of which ages are forgotten.
            wanted: The properties that a step may break.
            symbols: What the digits of the forms are.
            free: A table to share with the steppers of other worlds.
        """
        self.system = system
        self.wanted = wanted
        compiled = CompiledSystem(
            system, world, with_ghosts=True, free={} if free is None else free
        )
        by_name = {v.name: v for v in variables}
        self.layout = Layout(
            compiled,
            (
                *(v for v in variables if v.name not in ages),
                *sorted((v for v in variables if v.name in ages), key=lambda v: ages[v.name]),
            ),
            ages,
            tuple(None if name is None else by_name[name] for name in alive),
            symbols,
        )
        self.signs = Signs(symbols, ())
        self.ranks = Ranks(self.layout, self.signs)
        self.calls: list[ActionCall] = []
        self._with_integers: dict[int, CallWithIntegers] = {}
        self._expand = self._write()
        self._breaks = self._write_invariants([p for p in wanted if isinstance(p, Invariant)])

    def enter(self, signs: Signs) -> None:
        """Go to a world, given by its signs."""
        self.signs = signs
        self.ranks.enter(signs)
        for call in self._with_integers.values():
            call.enter(signs)

    def pack(self, values: Mapping[str, Any]) -> Packed:
        """The state in which the variables have these values."""
        flat: list[Any] = []
        aged: list[Form] = []
        for v in self.layout.variables:
            value = values[v.name]
            if v.name in self.layout.ages:
                aged += value if isinstance(value, tuple) else [value]
            else:
                flat.append(value)
        if not self.layout.ages:
            return tuple(flat)
        return (*flat, self.ranks[(*aged, *self.layout.lives_in(values))])

    def initial(self) -> Packed:
        """The initial state."""
        writer = self._emitter({})
        by_name = {v.name: term for v, term in self.system.init}
        values = {v.name: writer.value(by_name[v.name], {}) for v in self.layout.variables}
        if writer.lines or any(is_code(v) for v in values.values()):
            raise Undetermined("the initial state is not a constant")
        return self.pack(values)

    def successors(self, state: Packed) -> list[Successor]:
        """What each call that the state allows leads to, in the order of the actions."""
        out: list[Successor] = []
        allowed: list[int] = []
        self._expand(state, self.signs, self.ranks, out.append, allowed.append)
        for number in allowed:
            out += ((number, *step) for step in self._with_integers[number].steps(state))
        return out

    def breaks(self, state: Packed) -> bool:
        """Whether the state violates a wanted invariant."""
        return bool(self._breaks(state, self.signs))

    def call(self, number: int, before: Packed, after: Packed, broke: bool) -> ActionCall:
        """The call with its integers, which are forms."""
        if number in self._with_integers:
            return self._with_integers[number].call(before, after, broke)
        return self.calls[number]

    def condition(self, formula: Term) -> tuple[tuple[str, ...], Callable[..., bool]]:
        """The names of the variables of a formula, and its truth, given their values."""
        names = self._names_in(formula)
        writer = self._emitter({})
        value = writer.value(formula, {})
        body = [*self.layout.entries(names), *writer.lines, f"return bool({text_of(value)})"]
        return names, made(f"truth({', '.join(['S', *map(local, names)])})", body)

    def amount(self, term: Term) -> tuple[tuple[str, ...], Callable[..., Any]]:
        """The names of the variables of a term, and its value, given theirs."""
        names = self._names_in(term)
        writer = self._emitter({})
        value = writer.value(term, {})
        body = [*self.layout.entries(names), *writer.lines, f"return {text_of(value)}"]
        return names, made(f"amount({', '.join(['S', *map(local, names)])})", body)

    def _names_in(self, term: Term) -> tuple[str, ...]:
        found = (s for s in subterms(term) if isinstance(s, Symbol))
        return tuple(dict.fromkeys(s.name for s in found if s.role in ("state", "ghost")))

    # Writing the code.

    def _emitter(self, arguments: Mapping[str, Any]) -> StepEmitter:
        return StepEmitter(self.layout.of, arguments)

    def _write(self) -> Callable[..., None]:
        body = [self.layout.unpacking()]
        elements = [(a, c) for a in self.system.actions for c in self._element_calls(a)]
        for action, call in elements:
            number = len(self.calls)
            self.calls.append(call)
            if any(p.sort == INT for p in action.parameters):
                places = Places(self.layout, action, self.wanted)
                with_integers = CallWithIntegers(
                    action, call, self._code_of(action), places, self.ranks
                )
                if with_integers.possible:
                    self._with_integers[number] = with_integers
                    body += self._when_allowed(number, action, call)
                continue
            code = self._one(action, call.arguments, nested=True)
            if code is not None:
                found = f"out(({number}, {code.after}, {code.bad}))"
                body += [*code.lines, " " * code.depth + found]
        return made("expand(s, S, N, out, more)", body)

    def _when_allowed(self, number: int, action: Action, call: ActionCall) -> list[str]:
        """A note that the call may happen, if the guards without integer arguments allow it."""
        integers = {p.name for p in action.parameters if p.sort == INT}
        writer = self._emitter(call.arguments)
        conditions = [
            text_of(writer.value(guard, {}))
            for guard in action.guard.values()
            if not any(isinstance(s, Symbol) and s.name in integers for s in subterms(guard))
        ]
        test = " and ".join(c for c in conditions if c != "True") or "True"
        return [*writer.lines, f"if {test}: more({number})"]

    def _element_calls(self, action: Action) -> Iterable[ActionCall]:
        parameters = [p for p in action.parameters if p.sort != INT]
        choices = [self.layout.of.elements(p.sort) for p in parameters]
        for values in product(*choices):
            yield ActionCall(
                action.name, dict(zip((p.name for p in parameters), values, strict=True))
            )

    def _code_of(self, action: Action) -> WriteCall:
        return lambda arguments: self._one(action, arguments, nested=False)

    def _one(
        self, action: Action, arguments: Mapping[str, Any], *, nested: bool
    ) -> CallCode | None:
        """The code of one call, or None where it is refused whatever the state.

        With `nested`, each guard is an `if` around what follows; else the function returns there.
        """
        writer = self._emitter(arguments)
        lines: list[str] = []
        depth = 0

        def flush() -> None:
            lines.extend(" " * depth + line for line in writer.lines)
            writer.lines.clear()

        for guard in action.guard.values():
            value = writer.value(guard, {})
            flush()
            if not is_code(value):
                if not value:
                    return None
            elif nested:
                lines.append(" " * depth + f"if {value}:")
                depth += 1
            else:
                lines.append(f"if not {value}: return None")
        claims = [
            p.formula
            for p in self.wanted
            if isinstance(p, ActionProperty) and p.action == action.name
        ]
        moved = {v.name for v in self.layout.variables}
        effects = [term for v, term in action.effect if v.name in moved]
        if action.returns is not None and any(map(speaks_of_the_answer, (*claims, *effects))):
            writer.answer = writer.value(action.returns, {})
        updates = action.updates
        after = {
            v.name: writer.value(updates[v.name], {}) if v.name in updates else writer.state_of(v)
            for v in self.layout.variables
        }
        writer.after = after
        bad = [f"not {text_of(writer.value(formula, {}))}" for formula in claims]
        flush()
        return CallCode(
            tuple(lines), self.layout.packing(after), " or ".join(bad) or "False", depth
        )

    def _write_invariants(self, wanted: Sequence[Invariant]) -> Callable[..., bool]:
        writer = self._emitter({})
        body = [self.layout.unpacking()]
        for invariant in wanted:
            value = writer.value(invariant.formula, {})
            body += writer.lines
            writer.lines.clear()
            body.append(f"if not {text_of(value)}: return True")
        body.append("return False")
        return made("breaks(s, S)", body)
