"""From the text that names managers to the target.

`reference` · `module:Class[,module:Class]` · `vllm` · `vllm:PATH` · `vllm:VERSION` · `cmd:COMMAND`;
behind the three of vLLM, `:Class[,Class]` names other classes of the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from types import FunctionType

from ..errors import TargetError, TargetNameError, UnknownTargetError, describe_exception
from .command import DEFAULT_TIMEOUT, CommandTarget
from .isolated import Classes, IsolatedTarget, VllmFile
from .protocol import ALLOCATE_AGAIN, ManagerTarget
from .python import ManagerClasses, PythonTarget

__all__ = ["CONFIGURATION", "MANAGER_FORMS", "REFERENCE", "load_target", "open_manager"]

REFERENCE = "reference"
REFERENCE_CLASSES = "mmcache:EncoderCacheManager,mmcache:EncoderDecoderCacheManager"

MANAGER_FORMS = (
    "reference, module:Class, vllm, vllm:PATH, vllm:VERSION, either with :Class, or cmd:COMMAND"
)

CONFIGURATION = "MMCACHE_VLLM_CONFIG"
"""The environment variable that says the same as `--vllm-config`."""


def open_manager(
    name: str,
    *,
    timeout: float | None = None,
    trace: Callable[[str, bytes], None] | None = None,
    configuration: str | None = None,
    in_process: bool = False,
    refresh: bool = False,
) -> ManagerTarget:
    """The target, not yet started.

    Args:
        name: As on the command line.
        timeout: What a command, or the process of a class, has for one vector, in seconds.
        trace: Gets every line that goes to a command (`>`) or comes from it (`<`).
        configuration: `module:NAME` of the `vllm_config` that a Python class is made with, or of
            a function that makes it; without it, what `MMCACHE_VLLM_CONFIG` says, or None.
        in_process: Run a foreign Python class in this process, and not in one of its own: faster,
            and whatever it does to its process it does to this one.
        refresh: Read a release of vLLM anew, and not from the cache.

    Raises:
        TargetNameError: A text names nothing.
    """
    if name == REFERENCE:
        return PythonTarget(name, lambda: _import_classes(REFERENCE_CLASSES))
    given = configuration or os.environ.get(CONFIGURATION) or None
    config = _configuration(given)
    scheme, colon, rest = name.partition(":")
    if scheme == "cmd" and colon:
        return CommandTarget(name, rest, timeout=timeout or DEFAULT_TIMEOUT, trace=trace)
    load: Callable[[], Classes | VllmFile]
    if scheme == "vllm" and (rest or not colon):
        load = partial(_vllm_file, rest or None, refresh)
    else:
        modules = [names[0] for names in _class_names(name) if names is not None]
        in_process = in_process or all(module.split(".")[0] == "mmcache" for module in modules)
        load = partial(Classes, name)
    if in_process:
        return PythonTarget(name, lambda: _loaded(load()), config)
    return IsolatedTarget(
        name, load, timeout=timeout or DEFAULT_TIMEOUT, configuration=given, trace=trace
    )


def load_target(what: Classes | VllmFile, configuration: str | None) -> PythonTarget:
    """The target in this process, which executes its code. Raises `TargetNameError`."""
    return PythonTarget("", lambda: _loaded(what), _configuration(configuration))


def _loaded(what: Classes | VllmFile) -> ManagerClasses:
    if isinstance(what, Classes):
        return _import_from_here(what.name)
    from .vllm.source import Source, load_classes

    source = Source(what.name, what.file, what.version, what.content, what.package)
    return load_classes(source, what.named, what.target)


def _vllm_file(where: str | None, refresh: bool) -> VllmFile:
    """The file, which is read and not executed. Raises `TargetError`."""
    from .vllm.source import find_source, split_classes

    path, named = (None, ()) if where is None else split_classes(where)
    found = find_source(path or None, refresh=refresh)
    return VllmFile(
        found.name,
        found.file,
        found.version,
        found.content,
        found.package,
        named,
        "vllm" if where is None else f"vllm:{path}",
    )


def _configuration(text: str | None) -> Callable[[], object]:
    """What makes the `vllm_config` that the text names. Raises `TargetNameError`."""
    if text is None:
        return lambda: None
    module_name, _, attribute = text.partition(":")
    if not all(w.isidentifier() for w in [*module_name.split("."), *attribute.split(".")]):
        raise TargetNameError(f"{text!r} does not name a configuration: module:NAME")

    def make() -> object:
        _look_here()
        found = _imported(module_name, attribute)
        try:
            return found() if isinstance(found, type | FunctionType) else found
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise TargetError(f"{text}() failed: {describe_exception(error)}") from None

    return make


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


def _look_here() -> None:
    """As `python -m` does: the working directory comes first."""
    try:
        here = os.getcwd()
    except OSError:  # it was deleted: there is nothing to be found in it
        return
    if here not in sys.path:
        sys.path.insert(0, here)


def _import_from_here(name: str) -> ManagerClasses:
    _look_here()
    return _import_classes(name)


def _import_classes(name: str) -> ManagerClasses:
    encoder_cache, encoder_decoder = (_import(names) for names in _class_names(name))
    ours = all(part.startswith("mmcache:") for part in name.split(",") if part)
    return ManagerClasses(
        name=name if name != REFERENCE_CLASSES else "the reference",
        encoder_cache=encoder_cache,
        encoder_decoder=encoder_decoder,
        adds=frozenset({ALLOCATE_AGAIN}) if ours else frozenset(),
    )


def _import(names: tuple[str, str] | None) -> type | None:
    if names is None:
        return None
    module_name, class_name = names
    found = _imported(module_name, class_name)
    if not isinstance(found, type):
        raise TargetError(f"{module_name}:{class_name} is not a class")
    return found


def _imported(module_name: str, class_name: str) -> object:
    import importlib

    try:
        found: object = importlib.import_module(module_name)
        for name in class_name.split("."):
            found = getattr(found, name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(f"{module_name}:{class_name}: {describe_exception(error)}") from None
    return found
