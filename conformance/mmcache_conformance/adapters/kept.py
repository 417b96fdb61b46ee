"""Snapshots of Python managers, as the adapter keeps them for whoever goes through their states."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ..errors import TargetError
from ..exhaust.snapshots import NotPlain, Opaque, Snapshots, snapshots_for
from ..targets.python import LiveManager, PythonTarget
from ..targets.wire import Ran, Run

__all__ = ["KeptManagers"]


@dataclass(frozen=True)
class _Kept:
    """A manager as it was, and how it is copied."""

    live: LiveManager
    snapshots: Snapshots
    snapshot: Any

    def manager(self) -> LiveManager:
        """A copy of it, to make calls on."""
        copied = self.snapshots.manager(self.snapshots.copy(self.snapshot))
        return self.live.around(copied)


class KeptManagers:
    """Copies of the managers of a target, by the numbers that the harness gives them."""

    def __init__(self, target: PythonTarget) -> None:
        self._target = target
        self._kept: dict[int, _Kept] = {}

    def ran(self, request: Run) -> Ran:
        """The reply to a request that restores, keeps or drops.

        Raises:
            TargetError: It names a snapshot that is not kept.
            Exception: Whatever the manager raises where it cannot be copied.
        """
        for number in request.drop:
            self._kept.pop(number, None)
        before = None
        if request.restore is not None:
            if request.restore not in self._kept:
                raise TargetError(f"no snapshot {request.restore} is kept")
            before = self._kept[request.restore].manager()
        live, answers = self._target.play_on(before, request.case)
        if answers and answers[-1].error is not None:
            return Ran(request.seq, answers)  # in what state it is now, nobody will ask
        kept = _kept(live)
        if request.snapshot is not None:
            self._kept[request.snapshot] = kept
        return Ran(request.seq, answers, state=_state(kept))


def _kept(live: LiveManager) -> _Kept:
    """The manager is not used any more."""
    snapshots = snapshots_for(live.manager)
    return _Kept(live, snapshots, snapshots.take(live.manager))


def _state(kept: _Kept) -> str | None:
    """The same text for the same state, within this process; None where it cannot be read."""
    if isinstance(kept.snapshots, Opaque):
        return None
    try:
        found = kept.snapshots.fingerprint(kept.snapshot, lambda snapshot: kept.live.observed())
    except NotPlain:
        return None
    return _text_of(found)


def _text_of(found: Any) -> str:
    """A fingerprint as a text: what has no order in it is put in order."""
    return sha256(_ordered(found).encode()).hexdigest()[:32]


def _ordered(found: Any) -> str:
    if isinstance(found, frozenset):
        return "{" + ",".join(sorted(map(_ordered, found))) + "}"
    if isinstance(found, tuple):
        return "(" + ",".join(map(_ordered, found)) + ")"
    if isinstance(found, type):
        return f"{found.__module__}.{found.__qualname__}"
    return repr(found)
