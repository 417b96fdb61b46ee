"""Execute one Python file of vLLM without vLLM.

The file's own imports of vLLM, and of anything else that is not installed, get *stand-ins*: good
for annotations and loggers, and an error the moment the file's work depends on one. They are
handed out by the import hook of that one module, so `sys.modules` is never touched.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

__all__ = ["StandInUsed", "execute"]


class StandInUsed(ImportError):
    """The file needs something of vLLM, or of another package, that has only a stand-in here."""


def execute(source: bytes, filename: str, module_name: str) -> dict[str, Any]:
    """The globals of the file after its execution. Raises whatever the file raises."""
    module = ModuleType(module_name)
    module.__dict__.update(
        __file__=filename, __package__="vllm.v1.core", __builtins__=_builtins_with_stand_ins()
    )
    exec(compile(source, filename, "exec"), module.__dict__)
    return module.__dict__


def _builtins_with_stand_ins() -> dict[str, Any]:
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
        if level or top == "vllm":
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
