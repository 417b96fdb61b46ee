"""What the last proofs of the specified systems were found with, in a file: see `checks.hints`.

`mmcache-spec prove --record` writes it. One that is missing, or of other definitions, makes
`prove` slower and changes nothing of what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from ..checks import complete
from ..checks.bounded import Trace
from ..checks.hints import NO_HINTS, Hints, about, enough_for, enough_for_the_answer
from ..checks.induction import obligations
from ..checks.known_paths import KnownPath, few_paths
from ..checks.vacuity import goals_of
from ..evaluate.interpreter import ActionCall, World
from ..kernel.system import TransitionSystem
from .arenas import situations

__all__ = ["HINTS", "find_hints", "hints_for", "read_hints", "write_hints"]

HINTS = Path(str(files("mmcache_spec.generate") / "hints.json"))


class _World(msgspec.Struct, frozen=True):
    universe: dict[str, list[str]]
    constants: dict[str, int]
    functions: dict[str, dict[str, int | str | bool]]


class _Path(msgspec.Struct, frozen=True):
    world: int
    """Its place in the list of worlds."""
    calls: list[tuple[str, dict[str, int | str | bool]]]
    reaches: dict[str, int]


class _OfASystem(msgspec.Struct, frozen=True):
    enough: dict[str, list[str]]
    worlds: list[_World]
    paths: list[_Path]


_Document = dict[str, _OfASystem]
"""By the name of the system."""


@cache
def hints_for(system: str) -> Hints:
    """What is known of the specified system of this name; nothing, where there is no such file."""
    return read_hints(HINTS).get(system, NO_HINTS)


def read_hints(path: Path) -> dict[str, Hints]:
    """The hints of a file, by system. A file that cannot be read has none: they are not needed."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
        return {name: _hints(known) for name, known in document.items()}
    except (OSError, msgspec.MsgspecError, IndexError):
        return {}


def find_hints(system: TransitionSystem, witnesses: Mapping[str, Trace | None]) -> Hints:
    """Look for what is enough for each proof, and for few paths that reach what these reach."""
    enough = {about(o): enough_for(o) for o in obligations(system)}
    enough |= {about(q): enough_for_the_answer(q) for q in complete.questions(system)}
    goals = goals_of(system, situations(system))
    traces = [trace for trace in witnesses.values() if trace is not None]
    paths = tuple(few_paths(system, goals, traces))
    return Hints({name: names for name, names in enough.items() if names is not None}, paths)


def write_hints(found: Mapping[str, Hints], path: Path = HINTS) -> None:
    """Replace what the file says of these systems.

    Raises:
        OSError: The file cannot be written.
    """
    known = {**read_hints(path), **found}
    document = {name: _as_written(known[name]) for name in sorted(known)}
    text = msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1)
    path.write_bytes(text + b"\n")


def _hints(known: _OfASystem) -> Hints:
    worlds = [_world(world) for world in known.worlds]
    paths = [
        KnownPath(worlds[p.world], tuple(ActionCall(*call) for call in p.calls), p.reaches)
        for p in known.paths
    ]
    return Hints({name: frozenset(names) for name, names in known.enough.items()}, paths)


def _world(world: _World) -> World:
    universe = {sort: tuple(elements) for sort, elements in world.universe.items()}
    return World(universe, world.constants, world.functions)


def _as_written(hints: Hints) -> _OfASystem:
    worlds: list[_World] = []
    paths = []
    for path in hints.paths:
        universe = {sort: list(elements) for sort, elements in path.world.universe.items()}
        functions = {name: dict(table) for name, table in path.world.functions.items()}
        world = _World(universe, dict(path.world.constants), functions)
        if world not in worlds:
            worlds.append(world)
        calls = [(call.action, dict(call.arguments)) for call in path.calls]
        paths.append(_Path(worlds.index(world), calls, dict(path.reaches)))
    return _OfASystem({k: sorted(names) for k, names in hints.enough.items()}, worlds, paths)
