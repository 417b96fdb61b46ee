"""What stands between the runner and whatever is tested.

A *target* gets one *case* at a time, which is a vector without its expectations, and gives back
one *answer* a call. It never learns what is expected of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from mmcache_vectors.manager import Call, Manager, Observed, Parameters, Vector

from ..implementation import Implementation

__all__ = [
    "ALLOCATE_AGAIN",
    "CALLS",
    "CAPABILITIES",
    "MANAGERS",
    "OBSERVABLES",
    "Answer",
    "Case",
    "ManagerTarget",
    "TogetherTarget",
    "call_name",
    "case_of",
    "missing_capability",
]

# --- the names of the capabilities -------------------------------------------------------------

MANAGERS: tuple[Manager, ...] = ("encoder_cache", "encoder_decoder")

CALLS = (
    "check_and_update_cache",
    "can_allocate",
    "allocate",
    "free_encoder_input",
    "free",
    "get_freed_mm_hashes",
    "reset",
)
"""A vector needs every call that it makes."""

OBSERVABLES = Observed.__struct_fields__
"""Never needed: what a target does not expose is not compared."""

ALLOCATE_AGAIN = "allocate_again"
"""`allocate` of a resident hash takes a reference and charges nothing."""

CAPABILITIES: dict[Manager, tuple[str, ...]] = {
    "encoder_cache": (*CALLS, *OBSERVABLES, ALLOCATE_AGAIN),
    "encoder_decoder": (*CALLS, "num_free_slots"),
}
"""All that a manager of each kind can be asked to have. A name of somebody's own begins with `x-`;
any other is a misspelling, which would make a target lose vectors in silence."""


# --- what goes to a target, and what comes back ------------------------------------------------


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """A vector without its expectations."""

    id: str
    manager: Manager
    parameters: Parameters
    calls: tuple[Call, ...]
    watched: tuple[int, ...] | None = None
    """The calls after which the state is compared, by their numbers; after the others it need not
    be shown. None for all of them."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came back from one call."""

    returns: bool | tuple[str, ...] | str | None = None
    """A Boolean, the hashes of a report, or nothing; a text describes anything else."""
    observed: Observed = Observed()
    error: str | None = None
    """The call failed, and why; then there are no answers after this one."""


class ManagerTarget(Protocol):
    """One implementation under test. `start` comes first, `stop` last, whatever happened."""

    @property
    def name(self) -> str:
        """The text that names this target on the command line."""

    def start(self) -> Implementation:
        """Make ready for cases. Raises `TargetError`."""

    def run(self, case: Case) -> tuple[Answer, ...]:
        """Make the calls on a fresh manager, in order, up to the first that fails.

        A failing call is an answer. An exception from here is a fault of the adapter
        (`AdapterError`) or of the harness. A target with an attribute `log` shows in it the end of
        what was written to standard error meanwhile.
        """

    def stop(self) -> None:
        """Let go of everything. Called once, also after a failed `start`.

        Raises `AdapterError` if what came last shows that the last answers cannot be trusted.
        """


@runtime_checkable
class TogetherTarget(Protocol):
    """A target in which several managers can be alive at a time."""

    @property
    def runs_together(self) -> bool:
        """Whether this one can, as it said when it was started."""

    def run_together(self, cases: Sequence[Case]) -> tuple[tuple[Answer, ...], ...]:
        """Make one manager a case; then the first call of each, the second of each, and so on."""


def case_of(vector: Vector) -> Case:
    """The vector as a target may see it."""
    calls = tuple(step.call for step in vector.steps)
    watched = tuple(k for k, step in enumerate(vector.steps) if step.expect.observe != Observed())
    all_of_them = len(watched) == len(calls)
    shown = None if all_of_them else watched
    return Case(vector.id, vector.manager, vector.parameters, calls, shown)


def call_name(call: Call) -> str:
    """The name of the method, which is also the `op` of the format."""
    return str(call.__struct_config__.tag)


def missing_capability(vector: Vector, implementation: Implementation) -> str | None:
    """The first thing that the vector needs and the implementation lacks; `None` if it applies."""
    offered = implementation.capabilities.get(vector.manager)
    if offered is None:
        return vector.manager
    needed = (*(call_name(step.call) for step in vector.steps), *vector.requires)
    return next((name for name in needed if name not in offered), None)
