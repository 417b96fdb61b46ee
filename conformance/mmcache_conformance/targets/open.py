"""From the text that names managers to the target.

`reference` · `module:Class[,module:Class]` · `vllm` · `vllm:PATH` · `vllm:VERSION` · `cmd:COMMAND`
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ..errors import TargetError, TargetNameError, UnknownTargetError, describe_exception
from .protocol import ALLOCATE_AGAIN, ManagerTarget
from .python import ManagerClasses, PythonTarget

__all__ = ["MANAGER_FORMS", "REFERENCE", "open_manager"]

REFERENCE = "reference"
REFERENCE_CLASSES = "mmcache:EncoderCacheManager,mmcache:EncoderDecoderCacheManager"

MANAGER_FORMS = "reference, module:Class, vllm, vllm:PATH, vllm:VERSION or cmd:COMMAND"


def open_manager(
    name: str,
    *,
    timeout: float | None = None,
    trace: Callable[[str, bytes], None] | None = None,
) -> ManagerTarget:
    """The target, not yet started. Raises `TargetNameError`.

    For a command, `timeout` is what it has for one vector, in seconds, and `trace` gets every line
    that goes to it (`>`) or comes from it (`<`).
    """
    if name == REFERENCE:
        return PythonTarget(name, lambda: _import_classes(REFERENCE_CLASSES))
    scheme, colon, rest = name.partition(":")
    if scheme == "vllm" and (rest or not colon):
        return PythonTarget(name, lambda: _vllm_classes(rest or None))
    if scheme == "cmd" and colon:
        from .command import DEFAULT_TIMEOUT, CommandTarget

        return CommandTarget(name, rest, timeout=timeout or DEFAULT_TIMEOUT, trace=trace)
    _class_names(name)
    return PythonTarget(name, lambda: _import_from_here(name))


def _vllm_classes(where: str | None) -> ManagerClasses:
    from .vllm.source import find_source, load_classes

    return load_classes(find_source(where))


def _class_names(name: str) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """The (module, class) of either manager; the second is the encoder-decoder manager."""
    parts = name.split(",")
    names: list[tuple[str, str] | None] = []
    for part in parts:
        module, _, class_name = part.partition(":")
        dotted = [*module.split("."), *class_name.split(".")]
        if part and not all(word.isidentifier() for word in dotted):
            raise UnknownTargetError(f"{name!r} does not name a target: {MANAGER_FORMS}")
        names.append((module, class_name) if part else None)
    if len(names) > 2 or not any(names):
        raise TargetNameError(
            f"{name!r} does not name a target: a class, or two with a comma between them, the "
            "second for encoder-decoder models"
        )
    return names[0], names[1] if len(names) == 2 else None


def _import_from_here(name: str) -> ManagerClasses:
    """As `python -m` would: the working directory comes first."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return _import_classes(name)


def _import_classes(name: str) -> ManagerClasses:
    encoder_cache, encoder_decoder = (_import(names) for names in _class_names(name))
    ours = name.startswith("mmcache:")
    return ManagerClasses(
        name=name if name != REFERENCE_CLASSES else "the reference",
        encoder_cache=encoder_cache,
        encoder_decoder=encoder_decoder,
        adds=frozenset({ALLOCATE_AGAIN}) if ours else frozenset(),
    )


def _import(names: tuple[str, str] | None) -> type | None:
    if names is None:
        return None
    import importlib

    module_name, class_name = names
    try:
        found: object = importlib.import_module(module_name)
        for name in class_name.split("."):
            found = getattr(found, name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(f"{module_name}:{class_name}: {describe_exception(error)}") from None
    if not isinstance(found, type):
        raise TargetError(f"{module_name}:{class_name} is not a class")
    return found
