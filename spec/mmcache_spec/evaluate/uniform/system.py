"""A transition system as one function an action, and the worlds in which they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from ...kernel.system import Action, TransitionSystem
from ...kernel.terms import BOOL, INT, MapSort, SetSort, Sort, Symbol
from ..meaning import State, World
from .tables import bits_in, element_of, number_of, tables_of
from .writing import Writer

__all__ = ["Packed", "UniformCall", "UniformSystem", "UniformWorld"]

Packed = tuple[Any, ...]
"""A state without its ghosts: integers, bit sets, and a tuple for a map."""

UniformCall = Callable[..., tuple[Any, Packed] | None]
"""From a state, and the arguments in the order of the action's parameters (of an element its
number), to the result and the next state, or to None where a guard refuses. A set is returned as
bits, and truth may be 1 or 0."""


class UniformSystem:
    """One transition system, without ghost variables, for every world."""

    def __init__(self, system: TransitionSystem) -> None:
        """Writes the code of every action.

        Raises:
            TypeError: It has a variable of a sort that this knows nothing of, or an action reads a
                ghost.
        """
        self.system = system
        self.variables = tuple(v for v in system.variables if v.role != "ghost")
        for variable in self.variables:
            _check(variable)
        self._pairs: set[tuple[Sort, Sort]] = set()
        self._code = {action.name: self._action(action) for action in system.actions}
        self._first = self._initial()

    def world(self, world: World) -> UniformWorld:
        """The system in one world."""
        return UniformWorld(self, world, tables_of(self.system, world, self._pairs))

    def call(self, action: str, tables: dict[str, Any]) -> UniformCall:
        """The function of an action that reads these tables."""
        return FunctionType(self._code[action], tables)

    def start(self, tables: dict[str, Any]) -> Packed:
        """The state that everything begins in."""
        made: Packed = FunctionType(self._first, tables)()
        return made

    def _action(self, action: Action) -> CodeType:
        names = {v.name for v in self.variables}
        updates = {name: term for name, term in action.updates.items() if name in names}
        returns = () if action.returns is None else (action.returns,)
        writer = Writer((*action.guard.values(), *returns, *updates.values()))
        for guard in action.guard.values():
            value = writer.value(guard, {})
            writer.lines.append(f"if not {value}: return None")
        answer = "None"
        for returned in returns:
            value = writer.value(returned, {})
            answer = writer.answer
            writer.lines.append(
                f"{answer} = {f'not not {value}' if returned.sort == BOOL else value}"
            )
        after = [
            writer.value(updates[v.name], {}) if v.name in updates else f"s_{v.name}"
            for v in self.variables
        ]
        opened = f"{', '.join(f's_{v.name}' for v in self.variables)}, = s"
        body = [opened, *writer.lines, f"return {answer}, ({', '.join(after)},)"]
        head = ", ".join(["s", *(f"a_{p.name}" for p in action.parameters)])
        return self._made(writer, head, body, action.name)

    def _initial(self) -> CodeType:
        first = {v.name: term for v, term in self.system.init}
        terms = [first[v.name] for v in self.variables]
        writer = Writer(terms)
        values = [writer.value(term, {}) for term in terms]
        body = [*writer.lines, f"return ({', '.join(values)},)"]
        return self._made(writer, "", body, "init")

    def _made(self, writer: Writer, head: str, body: list[str], what: str) -> CodeType:
        self._pairs |= writer.pairs
        source = f"def call({head}):\n" + "".join(f" {line}\n" for line in body)
        found: dict[str, Any] = {}
        exec(compile(source, f"<{self.system.name}, {what}>", "exec"), found)
        made: CodeType = found["call"].__code__
        return made


class UniformWorld:
    """One system in one world."""

    def __init__(self, uniform: UniformSystem, world: World, tables: dict[str, Any]) -> None:
        self.uniform = uniform
        self.world = world
        self._tables = tables

    @cached_property
    def calls(self) -> Mapping[str, UniformCall]:
        """The functions of the actions, by name."""
        of = self.uniform
        return {a.name: of.call(a.name, self._tables) for a in of.system.actions}

    def initial(self) -> Packed:
        """The state that everything begins in."""
        return self.uniform.start(self._tables)

    # Between packed states and those of the interpreter.

    def number(self, sort: Sort, element: str) -> int:
        """The number of an element."""
        return self.world.universe[sort.name].index(element)

    def members(self, sort: SetSort, bits: int) -> frozenset[tuple[str, ...]]:
        """The set that the bits stand for."""
        elements = [self.world.universe[e.name] for e in sort.elements]
        return frozenset(element_of(elements, k) for k in bits_in(bits))

    def pack(self, state: State) -> Packed:
        """A state of the interpreter, without its ghosts."""
        return tuple(self._pack(v.sort, state[v.name]) for v in self.uniform.variables)

    def unpack(self, packed: Packed) -> dict[str, Any]:
        """The state as the interpreter has it; ghosts are absent."""
        values = zip(self.uniform.variables, packed, strict=True)
        return {v.name: self._unpack(v.sort, value) for v, value in values}

    def _pack(self, sort: Sort, value: Any) -> Any:
        match sort:
            case SetSort():
                elements = [self.world.universe[e.name] for e in sort.elements]
                return sum(1 << number_of(elements, x) for x in value)
            case MapSort(key=key):
                return tuple(value[k] for k in self.world.universe[key.name])
        return value

    def _unpack(self, sort: Sort, value: Any) -> Any:
        match sort:
            case SetSort():
                return self.members(sort, value)
            case MapSort(key=key):
                return dict(zip(self.world.universe[key.name], value, strict=True))
        return value


def _check(variable: Symbol) -> None:
    sort = variable.sort.value if isinstance(variable.sort, MapSort) else variable.sort
    if sort not in (BOOL, INT) and not (isinstance(sort, SetSort) and sort is variable.sort):
        raise TypeError(f"no code for a {variable.sort}, the sort of {variable.name}")
