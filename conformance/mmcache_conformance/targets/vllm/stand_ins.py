"""Execute one Python file of vLLM without vLLM.

The file's own imports of vLLM, and of anything else that is not installed, get *stand-ins*: good
for annotations and loggers, and an error the moment the file's work depends on one. They are
handed out by the import hook of that one module. Nothing is left in `sys.modules`: the module is
there only while it runs, since `dataclasses` looks for it.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

__all__ = ["StandInUsed", "execute"]


class StandInUsed(ImportError):
    """The file needs something of vLLM, or of another package, that has only a stand-in here."""


def execute(
    source: bytes, filename: str, module_name: str, *, package: str = "vllm"
) -> dict[str, Any]:
    """The globals of the file after its execution. Raises whatever the file raises.

    Args:
        source: What the file says.
        filename: Its name, for tracebacks.
        module_name: What its classes say that they are of.
        package: The top-level package that the file is of; vLLM, or a fork of another name. Of
            it, and of every package that the file takes for a vLLM, only stand-ins are given.
    """
    # Not with the future imports of this very file, and with those that it has itself.
    code = compile(source, filename, "exec", dont_inherit=True)
    own = frozenset({"vllm", package} | _forks(source))
    module = ModuleType(module_name)
    module.__dict__.update(
        __file__=filename,
        __package__=f"{package}.v1.core",
        __builtins__=_builtins_with_stand_ins(own),
    )
    before = sys.modules.get(module_name)
    sys.modules[module_name] = module
    try:
        exec(code, module.__dict__)
    finally:
        if before is None:
            sys.modules.pop(module_name, None)
        else:
            sys.modules[module_name] = before
    return module.__dict__


def _forks(source: bytes) -> set[str]:
    """The packages of which the file imports a `v1`, as of vLLM: forks under other names."""
    imported = [
        alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0)
        for alias in node.names
    ]
    return {name.split(".")[0] for name in imported if name.split(".")[1:2] == ["v1"]}


def _builtins_with_stand_ins(own: frozenset[str]) -> dict[str, Any]:
    def import_(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        top = name.partition(".")[0]
        stand_in = _StandIn(name if fromlist else top)
        # An installed vLLM is another release than the file: never mix the two.
        if level or top in own:
            return stand_in
        try:
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        except ModuleNotFoundError as error:
            if error.name != top:
                raise
            return stand_in

    return {**vars(builtins), "__import__": import_}


class _StandIn:
    """A module, class or function that is not there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn(f"{self._name}.{name}")

    def __call__(self, *arguments: object, **named: object) -> _Silence:
        if not self._name.endswith(".init_logger"):
            self._refuse("calls")
        return _Silence()

    def __mro_entries__(self, bases: object) -> NoReturn:
        self._refuse("derives a class from")

    def __or__(self, other: object) -> _StandIn:
        return self

    __ror__ = __getitem__ = __or__

    def _refuse(self, does: str) -> NoReturn:
        raise StandInUsed(
            f"the file {does} {self._name}, which is not read with it; "
            "to test it as installed, name its class: module:Class"
        )


class _Silence:
    """A logger that says nothing."""

    def __getattr__(self, name: str) -> _Silence:
        return self

    def __call__(self, *arguments: object, **named: object) -> None:
        return None
