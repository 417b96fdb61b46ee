"""Can a manager be driven at all? Where its API is another one, no clause is judged.

A manager that takes other arguments, or that lets its caller admit and charge in another way, does
something other than the protocol's calls: what comes back says nothing about a clause. So this is
asked before the first vector, and told as what it is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from ..errors import TargetError
from ..implementation import Implementation, Kind
from .protocol import CALLS, CAPABILITIES

__all__ = [
    "CANNOT",
    "NEEDED_CALLS",
    "charges_elsewhere",
    "driven",
    "is_api_error",
    "lacks_of",
    "near_to",
    "other_answer",
    "other_signature",
    "without",
]

CANNOT = "Cannot be driven: "
"""What every such sentence begins with, also as the `error` of an answer."""

NEEDED_CALLS = (
    "check_and_update_cache",
    "can_allocate",
    "allocate",
    "free_encoder_input",
    "get_freed_mm_hashes",
)
"""Every vLLM since 0.10.2 has them. `free` and `reset` may be missing, and are then not tested."""

_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "check_and_update_cache": ("request", "input_id"),
    "can_allocate": ("request", "input_id", "encoder_compute_budget", "num_embeds_to_schedule"),
    "allocate": ("request", "input_id"),
    "free_encoder_input": ("request", "input_id"),
    "free": ("request",),
    "get_freed_mm_hashes": (),
    "reset": (),
}
"""What each call is given, by position."""

_KIN = {
    "check_and_update_cache": "check|cache|hit|look|has_",
    "can_allocate": "alloc|admit|reserve",
    "allocate": "alloc|insert|add|put",
    "free_encoder_input": "free|release|consume",
    "get_freed_mm_hashes": "freed|evict|report",
}
"""What the names of other APIs for the same purpose have in them."""

_MEND = "put a class with the calls of docs/protocol.md before it, and name that"

_API_ERROR = re.compile(
    r"NotImplementedError\b"
    r"|TypeError: .*(?:\btakes\b.* arguments?\b|\bmissing \d+ required|unexpected keyword argument)"
    r"|.* is not a function\b"
    r"|AttributeError: .*(?:\brequest\b|Request).* has no attribute",
    re.IGNORECASE,
)
"""The words of Python and JavaScript for a call that does not fit."""


def is_api_error(error: str) -> bool:
    """Whether a failed call says by its text that it could not be made as the protocol has it."""
    return error.startswith(CANNOT) or _API_ERROR.match(error) is not None


def driven(found: Implementation) -> Implementation:
    """The same, without the kinds of manager that lack a call which nothing can be done without.

    Raises:
        TargetError: No kind is left, or it says that it has what nobody knows.
    """
    why = dict(found.undriven)
    for kind, offered in found.capabilities.items():
        if kind in ("engine", "processor_cache") or kind in why:
            continue
        for name in offered:
            if not name.startswith("x-") and name not in CAPABILITIES["encoder_cache"]:
                raise TargetError(
                    f"its {kind} names the capability {name!r}, which is none{near_to(name)}; "
                    "the name of one of your own begins with x-"
                )
        lacking = [name for name in NEEDED_CALLS if name not in offered]
        if lacking:
            why[kind] = f"{CANNOT}it has no {_quoted(lacking)}"
    return without(found, why)


def near_to(name: str) -> str:
    """What was meant, if it can be guessed."""
    near = get_close_matches(name, CAPABILITIES["encoder_cache"], n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def without(found: Implementation, why: Mapping[Kind, str]) -> Implementation:
    """The same, without the kinds of manager that cannot be driven.

    Raises:
        TargetError: No kind is left; the text says why not.
    """
    left = {kind: names for kind, names in found.capabilities.items() if kind not in why}
    if why and not left:
        raise TargetError("; ".join(dict.fromkeys(why.values())))
    return msgspec.structs.replace(found, capabilities=left, undriven=dict(why))


# --- what a Python class shows of its API ------------------------------------------------------


def lacks_of(cls: type, offered: Collection[str]) -> str | None:
    """Why a class without some call cannot be driven, and what it has instead; None if it can."""
    lacking = [name for name in NEEDED_CALLS if name not in offered]
    if not lacking:
        return None
    own = [
        n for n in dir(cls) if not n.startswith("_") and n not in CALLS and n != "create_manager"
    ]
    kin = [
        name
        for name in own
        if callable(getattr(cls, name, None)) and any(re.search(_KIN[m], name) for m in lacking)
    ]
    instead = f"; it has {_quoted(kin)}, which is another API" if kin else ""
    return f"{CANNOT}it has no {_quoted(lacking)}{instead}. To test it, {_MEND}"


def other_signature(manager: object, calls: Iterable[str]) -> str | None:
    """The first call that takes other arguments than the protocol gives it; None if all fit."""
    for name in calls:
        method: Any = getattr(manager, name)
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            return f"{CANNOT}`{name}` is asynchronous. To test it, {_MEND}"
        try:
            signature = inspect.signature(method)
        except (TypeError, ValueError):  # written in another language: the first call tells
            continue
        said = _does_not_fit(name, signature)
        if said is not None:
            return f"{CANNOT}`{name}` {said}. To test it, {_MEND}"
    return None


def other_answer(name: str, answer: object) -> str | None:
    """Why this answer is none of a call that answers yes or no; None if it is one, or may be."""
    if name not in {"check_and_update_cache", "can_allocate"}:
        return None
    if answer is not None and not isinstance(answer, tuple | list | dict | set | str):
        return None
    what = "nothing" if answer is None else f"a {type(answer).__qualname__}"
    return f"{CANNOT}`{name}` answers {what}, not yes or no. To test it, {_MEND}"


def charges_elsewhere(free: Sequence[object], cache_size: int) -> str | None:
    """Whether admission charges, and allocation does not: one call where the protocol has two.

    `free` are the free slots after each of the first calls: report, look-up, admission, allocation,
    of one embedding in an empty cache.
    """
    if list(free[:4]) != [cache_size, cache_size, cache_size - 1, cache_size - 1]:
        return None
    return f"{CANNOT}`can_allocate` charges already, and `allocate` does not. To test it, {_MEND}"


def _does_not_fit(name: str, signature: inspect.Signature) -> str | None:
    given = _ARGUMENTS[name]
    parameters = list(signature.parameters.values())
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variable = any(p.kind == p.VAR_POSITIONAL for p in parameters)
    needed = sum(p.default is p.empty for p in by_position)
    if len(given) < needed or (len(given) > len(by_position) and not variable):
        most = len(by_position)
        takes = str(most) if needed == most else f"{needed} to {most}"
        return f"takes {takes} argument{'s' * (takes != '1')}, not {len(given)}"
    named = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        return f"needs {_quoted(named)} by name"
    order = [_meaning(p.name) for p in by_position[: len(given)]]
    wanted = [_meaning(n) for n in given]
    if any(word in wanted and wanted.index(word) != k for k, word in enumerate(order)):
        return f"takes its arguments in another order: {', '.join(p.name for p in by_position)}"
    return None


def _meaning(parameter: str) -> str:
    """What a parameter is by its name, whatever the release; nothing if the name does not say."""
    for word in ("budget", "schedule", "input_id", "request"):
        if word in parameter:
            return word
    return ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
