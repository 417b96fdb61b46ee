"""From the text that names what is tested to the target: a manager, a whole engine, or a pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict, Unpack

from .engine_command import CommandEngine
from .engines.open import ENGINE_FORMS, is_engine_name, open_engine
from .engines.protocol import EngineTarget
from .errors import UnknownTargetError
from .pairs.command import CommandPair
from .pairs.open import PAIR_FORMS, is_pair_name, open_pair
from .pairs.protocol import PairTarget
from .suites.load import ENGINES, MANAGERS, PAIRS, VectorFormat
from .targets.command import CommandTarget
from .targets.isolated import IsolatedTarget
from .targets.open import open_manager
from .targets.protocol import MANAGERS as MANAGER_KINDS
from .targets.protocol import ManagerTarget

__all__ = ["Target", "format_for", "open_target", "open_targets"]

Target = ManagerTarget | EngineTarget | PairTarget


def open_target(
    name: str,
    *,
    timeout: float | None = None,
    trace: Callable[[str, bytes], None] | None = None,
    configuration: str | None = None,
    in_process: bool = False,
    refresh: bool = False,
) -> Target:
    """The target, not yet started (but a command, which is asked whether it is an engine).

    Args:
        name: As on the command line.
        timeout: What a command, or the process of a class, has for one vector, in seconds.
        trace: Gets every line that goes to a command (`>`) or comes from it (`<`).
        configuration: `module:NAME` of the `vllm_config` of a Python class.
        in_process: Run a foreign Python class in this process, and not in one of its own.
        refresh: Read a release of vLLM anew, and not from the cache.

    Raises:
        TargetNameError: The text names nothing.
    """
    if is_engine_name(name):
        return open_engine(name)
    if is_pair_name(name):
        return open_pair(name, timeout=timeout, trace=trace, in_process=in_process, refresh=refresh)
    try:
        found = open_manager(
            name,
            timeout=timeout,
            trace=trace,
            configuration=configuration,
            in_process=in_process,
            refresh=refresh,
        )
        if isinstance(found, CommandTarget) and not isinstance(found, IsolatedTarget):
            return next(_declared(found), found)
        return found
    except UnknownTargetError as error:
        raise UnknownTargetError(
            f"{error}; or an engine: {ENGINE_FORMS}; or a pair of processor caches: {PAIR_FORMS}"
        ) from None


class _Opening(TypedDict, total=False):
    """The arguments of `open_target`."""

    timeout: float | None
    trace: Callable[[str, bytes], None] | None
    configuration: str | None
    in_process: bool
    refresh: bool


def open_targets(name: str, **how: Unpack[_Opening]) -> tuple[Target, ...]:
    """All that the name stands for: a program may be a manager and an engine, each by itself.

    The arguments and what is raised are those of `open_target`.
    """
    found = open_target(name, **how)
    if not isinstance(found, CommandEngine | CommandPair) or is_pair_name(name):
        return (found,)
    is_manager = any(map(found.command.declares, MANAGER_KINDS))
    parts: list[Target] = [open_manager(name, **how)] if is_manager else []
    parts.append(found)
    if isinstance(found, CommandEngine) and found.command.declares("processor_cache"):
        again = open_manager(name, **how)
        assert isinstance(again, CommandTarget)
        parts.append(CommandPair(again))
    return tuple(parts)


def _declared(command: CommandTarget) -> Iterator[Target]:
    """What the program says that it is besides a manager."""
    if command.declares("engine"):
        yield CommandEngine(command)
    if command.declares("processor_cache"):
        yield CommandPair(command)


def format_for(target: Target) -> VectorFormat[Any]:
    """Which vectors are about such a target."""
    if isinstance(target, PairTarget):
        return PAIRS
    return ENGINES if isinstance(target, EngineTarget) else MANAGERS
