"""From the text that names a target to the target.

`reference` · `module:Class[,module:Class]` · `vllm` · `vllm:PATH` · `vllm:VERSION` · `cmd:COMMAND`
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from ..errors import TargetError, TargetSpecError, describe_exception
from .protocol import ALLOCATE_AGAIN, Target
from .python import ManagerClasses, PythonTarget

__all__ = ["REFERENCE", "open_target"]

REFERENCE = "reference"
REFERENCE_CLASSES = "mmcache:EncoderCacheManager,mmcache:EncoderDecoderCacheManager"

_FORMS = "reference, module:Class, vllm, vllm:PATH, vllm:VERSION or cmd:COMMAND"


def open_target(
    spec: str,
    *,
    timeout: float | None = None,
    trace: Callable[[str, bytes], None] | None = None,
) -> Target:
    """The target, not yet started. Raises `TargetSpecError`.

    For a command, `timeout` is what it has for one vector, in seconds, and `trace` gets every line
    that goes to it (`>`) or comes from it (`<`).
    """
    if spec == REFERENCE:
        return PythonTarget(spec, lambda: _import_classes(REFERENCE_CLASSES))
    scheme, colon, rest = spec.partition(":")
    if scheme == "vllm" and (rest or not colon):
        return PythonTarget(spec, lambda: _vllm_classes(rest or None))
    if scheme == "cmd" and colon:
        from .command import DEFAULT_TIMEOUT, CommandTarget

        return CommandTarget(spec, rest, timeout=timeout or DEFAULT_TIMEOUT, trace=trace)
    _class_names(spec)
    return PythonTarget(spec, lambda: _import_from_here(spec))


def _vllm_classes(where: str | None) -> ManagerClasses:
    from .vllm.source import find_source, load_classes

    return load_classes(find_source(where))


def _class_names(spec: str) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    """The (module, class) of either manager; the second is the encoder-decoder manager."""
    parts = spec.split(",")
    names: list[tuple[str, str] | None] = []
    for part in parts:
        module, _, name = part.partition(":")
        dotted = [*module.split("."), *name.split(".")]
        if part and not all(word.isidentifier() for word in dotted):
            raise TargetSpecError(f"{spec!r} does not name a target: {_FORMS}")
        names.append((module, name) if part else None)
    if len(names) > 2 or not any(names):
        raise TargetSpecError(
            f"{spec!r} does not name a target: a class, or two with a comma between them, the "
            "second for encoder-decoder models"
        )
    return names[0], names[1] if len(names) == 2 else None


def _import_from_here(spec: str) -> ManagerClasses:
    """As `python -m` would: the working directory comes first."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return _import_classes(spec)


def _import_classes(spec: str) -> ManagerClasses:
    encoder_cache, encoder_decoder = (_import(names) for names in _class_names(spec))
    ours = spec.startswith("mmcache:")
    return ManagerClasses(
        name=spec if spec != REFERENCE_CLASSES else "the reference",
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
