"""Every reachable state of a real manager and of the specified one, together.

A breadth-first search over pairs (state of the real object, state of the spec). From each pair,
every call that the spec's guards allow is made on both, and compared: the return value, and what
can be observed afterwards. If no pair disagrees, the real manager does within the scope what the
spec says, on every sequence of calls: that is a bisimulation, not a sample.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from mmcache_spec.evaluate.compiled import Packed
from mmcache_vectors.manager import Call, Observed, Parameters

from ..errors import TargetError, describe_exception
from ..exits import ExitCode
from ..implementation import Implementation
from ..oracle.blame import blamed
from ..targets.open import open_manager
from ..targets.protocol import ALLOCATE_AGAIN, CALLS
from ..targets.python import PythonTarget, plain_answer
from ..verdicts.judge import observed_differences
from ..verdicts.model import Difference
from .snapshots import NotPlain, Opaque, Snapshots, snapshots_for
from .world import SearchScope, SpecifiedManager

__all__ = ["Exhausted", "SearchProgress", "ShortestDifference", "exhaust"]

_AT_ONCE = 500
"""Pairs between two reports of progress."""


class ShortestDifference(msgspec.Struct, frozen=True):
    """The first difference: the calls that led there, the last one being the one that differs."""

    calls: tuple[Call, ...]
    differences: tuple[Difference, ...]
    clauses: tuple[str, ...]
    """What the specification claims and the answer breaks."""


class Exhausted(msgspec.Struct, frozen=True, kw_only=True):
    """What the search found. It is complete if nothing differs and no bound was met."""

    target: str
    implementation: Implementation
    scope: SearchScope
    parameters: Parameters
    left_out: tuple[str, ...]
    """Calls and capabilities that the target lacks, and which were therefore not made."""
    opaque: bool
    """The object's own state cannot be read: states are told apart by what they show."""
    pairs: int
    spec_states: int
    """The states of the spec that occur in pairs."""
    spec_states_expected: int
    """The states that the spec reaches by itself; if the search was given up, as many at least."""
    transitions: int
    depth: int
    seconds: float
    bounded: bool
    """The search was given up at `--max-states`."""
    disagreement: ShortestDifference | None

    @property
    def exit_code(self) -> ExitCode:
        """1 if something differs, 3 if the search was not complete, else 0."""
        if self.disagreement is not None:
            return ExitCode.FAILED
        complete = not self.bounded and self.spec_states == self.spec_states_expected
        return ExitCode.OK if complete else ExitCode.COULD_NOT


@dataclass(frozen=True)
class SearchProgress:
    """How far the search is."""

    pairs: int
    transitions: int
    depth: int
    waiting: int


def exhaust(
    target: str,
    scope: SearchScope,
    *,
    max_states: int,
    on_progress: Callable[[SearchProgress], None] = lambda progress: None,
) -> Exhausted:
    """Search the whole scope.

    Args:
        target: What is searched, as on the command line; it must be a Python class.
        scope: How large the world is.
        max_states: Give up beyond so many pairs.
        on_progress: Called now and then.

    Raises:
        TargetNameError: The text names no target.
        TargetError: It cannot be started, or is no Python class.
    """
    started = time.perf_counter()
    with _without_garbage_collection():
        search = _Search(target, scope, max_states, on_progress)
        try:
            search.run()
        except NotPlain:  # a later state is of another make than the first
            search = _Search(target, scope, max_states, on_progress, opaque=True)
            search.run()
        expected = len(_states(search.specified, max_states))
    return Exhausted(
        target=target,
        implementation=search.implementation,
        scope=scope,
        parameters=search.specified.parameters,
        left_out=search.left_out,
        opaque=not search.snapshots.plain,
        pairs=len(search.seen),
        spec_states=len({state for state, _ in search.seen}),
        spec_states_expected=expected,
        transitions=search.transitions,
        depth=search.depth,
        seconds=round(time.perf_counter() - started, 3),
        bounded=search.bounded,
        disagreement=search.disagreement,
    )


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Nothing that is kept here has cycles, there is a lot of it, and the collector would look
    through all of it again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _states(specified: SpecifiedManager, most: int) -> set[Packed]:
    """The states that the spec reaches by itself; of more than `most`, some more than these."""
    seen = {specified.initial()}
    waiting = list(seen)
    while waiting and len(seen) <= most:
        for _, _, after in specified.successors(waiting.pop()):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return seen


@dataclass(frozen=True)
class _Pair:
    """A pair that waits for its calls to be made."""

    number: int
    state: Packed
    snapshot: Any


class _Search:
    """The search over pairs, level by level."""

    def __init__(
        self,
        name: str,
        scope: SearchScope,
        max_states: int,
        on_progress: Callable[[SearchProgress], None],
        *,
        opaque: bool = False,
    ) -> None:
        target = open_manager(name, in_process=True)
        if not isinstance(target, PythonTarget):
            raise TargetError("only a Python class can be exhausted: its states are copied")
        self.implementation = target.start()
        offered = self.implementation.capabilities.get(scope.manager)
        if offered is None:
            raise TargetError(f"{self.implementation.name} has no {scope.manager} manager")
        self.left_out = tuple(c for c in (*CALLS, ALLOCATE_AGAIN) if c not in offered)
        if scope.manager == "encoder_decoder":
            self.left_out = tuple(c for c in self.left_out if c != ALLOCATE_AGAIN)
        self.specified = SpecifiedManager(scope, frozenset(offered))
        try:
            self._live = target.open(scope.manager, self.specified.parameters)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise TargetError(describe_exception(error)) from None
        manager = self._live.manager
        self.snapshots: Snapshots = Opaque() if opaque else snapshots_for(manager)
        self._calls = [self._live.bind(call) for call in self.specified.calls]
        self._max_states, self._on_progress = max_states, on_progress
        self.seen: set[tuple[Packed, Hashable]] = set()
        self.transitions = self.depth = 0
        self.bounded = False
        self.disagreement: ShortestDifference | None = None
        self._parents: list[tuple[int, int]] = []
        """By the number of a pair: the pair that it was found from, and the index of the call."""
        self._next_level: list[_Pair] = []

    def run(self) -> None:
        """Raises `NotPlain` where a state cannot be copied piece by piece."""
        start = self.snapshots.take(self._live.manager)
        self._keep(self.specified.initial(), self._fingerprint(start), start, -1, -1)
        while self._next_level and not self._over():
            level, self._next_level = self._next_level, []
            for done, pair in enumerate(level):
                if done % _AT_ONCE == 0:
                    left = len(level) - done + len(self._next_level)
                    self._on_progress(
                        SearchProgress(len(self.seen), self.transitions, self.depth, left)
                    )
                self._expand(pair)
                if self._over():
                    return
            self.depth += 1

    def _over(self) -> bool:
        self.bounded = len(self.seen) > self._max_states
        return self.bounded or self.disagreement is not None

    def _expand(self, pair: _Pair) -> None:
        """Make every call from a pair."""
        snapshots, calls = self.snapshots, self._calls
        state, pristine = pair.state, pair.snapshot
        fingerprint_before = self._fingerprint(pristine)
        scratch = None
        for call_index, expected, after in self.specified.successors(state):
            self.transitions += 1
            if scratch is None:
                scratch = snapshots.copy(pristine)
            try:
                got = calls[call_index](snapshots.manager(scratch))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a SystemExit is a call that failed, too
                wrong = Difference("error", None, describe_exception(error))
                return self._differs(pair.number, call_index, (wrong,))
            if expected is not None and got is not expected:
                plain = plain_answer(got)
                same = expected == set(plain) if isinstance(plain, tuple) else plain is expected
                if not same:
                    shown = tuple(sorted(expected)) if isinstance(expected, frozenset) else expected
                    wrong = Difference("returns", shown, plain)
                    return self._differs(pair.number, call_index, (wrong,))
            if snapshots.same(scratch, pristine):
                if after == state:
                    continue
                fingerprint = fingerprint_before
            else:
                fingerprint = self._fingerprint(scratch)
            if (after, fingerprint) not in self.seen:
                self._keep(after, fingerprint, scratch, pair.number, call_index)
                if self.disagreement is not None:
                    return None
                scratch = None
            elif fingerprint is not fingerprint_before:
                scratch = None
        return None

    def _keep(
        self, state: Packed, fingerprint: Hashable, snapshot: Any, parent: int, call_index: int
    ) -> None:
        """A pair that was not seen before; what it shows is compared."""
        self.seen.add((state, fingerprint))
        number = len(self._parents)
        self._parents.append((parent, call_index))
        self.snapshots.learn(snapshot)
        expected = self.specified.observed(state)
        try:
            shown = self._observe(self.snapshots.copy(snapshot))
            differences = observed_differences(expected, shown)
        except (KeyboardInterrupt, NotPlain):
            raise
        except BaseException as error:
            differences = (Difference("error", None, describe_exception(error)),)
        if differences:
            self._differs(parent, call_index, differences)
        else:
            self._next_level.append(_Pair(number, state, snapshot))

    def _differs(self, number: int, call_index: int, differences: tuple[Difference, ...]) -> None:
        path = [call_index]
        while number >= 0:
            number, call_index = self._parents[number]
            path.append(call_index)
        specified = self.specified
        calls = tuple(specified.calls[k] for k in reversed(path) if k >= 0)
        clauses = blamed(specified.system, specified.parameters, calls, differences)
        self.disagreement = ShortestDifference(calls, differences, clauses)

    def _fingerprint(self, snapshot: Any) -> Hashable:
        return self.snapshots.fingerprint(snapshot, self._observe)

    def _observe(self, snapshot: Any) -> Observed:
        return self._live.around(self.snapshots.manager(snapshot)).observed()
