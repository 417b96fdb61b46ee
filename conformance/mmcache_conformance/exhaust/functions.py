"""Functions in a state: what they are bound to is of the state, what they do is not."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from types import (
    BuiltinFunctionType,
    CellType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

from .kinds import NotPlain, is_scalar

__all__ = [
    "CALLABLES",
    "bound_to",
    "function_of",
    "is_constant_callable",
    "rebound",
]

_BOUND: tuple[type, ...] = (BuiltinFunctionType, MethodType, MethodWrapperType)
CALLABLES = frozenset({*_BOUND, FunctionType, partial, CellType})
"""Functions, and what they are made of: of the state is what they are bound to."""


def is_constant_callable(value: Any) -> bool:
    """Whether it is a function that has nothing but its arguments and its module."""
    return type(value) in CALLABLES and all(
        is_scalar(x.__class__) or is_constant_callable(x) for x in bound_to(value)
    )


def bound_to(value: Any) -> tuple[Any, ...]:
    """What a function, or a cell of a closure, has of the state. Raises `NotPlain`."""
    kind: Any = value.__class__
    if kind in _BOUND:
        owner: Any = getattr(value, "__self__", None)
        return () if owner is None or isinstance(owner, ModuleType | type) else (owner,)
    if kind is partial:
        return value.func, value.args, value.keywords, vars(value)
    if kind is CellType:
        try:
            return (value.cell_contents,)
        except ValueError:
            return ()  # nothing was written to it yet
    if vars(value):
        raise NotPlain("a function with attributes in the state")
    defaults = *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()
    if not all(is_scalar(x.__class__) for x in defaults):
        raise NotPlain("a function with a default that may change in the state")
    return value.__closure__ or ()


def function_of(value: Any) -> Hashable:
    """What a function does, whatever it is bound to."""
    kind: Any = value.__class__
    if kind is MethodType:
        return value.__func__  # type: ignore[no-any-return]
    if kind is FunctionType:
        return value.__code__ if value.__closure__ else value  # type: ignore[no-any-return]
    if kind in _BOUND:
        return value.__name__ if bound_to(value) else value  # type: ignore[no-any-return]
    return kind  # type: ignore[no-any-return]


def rebound(value: Any, copied: Callable[[Any], Any], memory: dict[int, Any]) -> Any:
    """The function, bound to what `copied` makes of what it is bound to; noted in `memory`."""
    kind: Any = value.__class__
    if kind is CellType:
        memory[id(value)] = cell = CellType()
        for inside in bound_to(value):
            cell.cell_contents = copied(inside)
        return cell
    if kind is FunctionType:
        if value.__closure__ is None:
            return value
        cells = tuple(copied(cell) for cell in value.__closure__)
        new: Any = FunctionType(
            value.__code__, value.__globals__, value.__name__, value.__defaults__, cells
        )
        new.__kwdefaults__, new.__qualname__ = value.__kwdefaults__, value.__qualname__
        return memory.setdefault(id(value), new)
    if kind is partial:
        function, arguments, named, known = (copied(x) for x in bound_to(value))
        new = partial(function, *arguments, **named)
        vars(new).update(known)
        return memory.setdefault(id(value), new)
    owners = bound_to(value)
    if not owners:
        return value
    owner = copied(owners[0])
    if kind is MethodType:
        return MethodType(value.__func__, owner)
    return getattr(owner, value.__name__)
