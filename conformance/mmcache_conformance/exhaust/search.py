"""Every reachable state of a real manager and of the specified one, together.

A breadth-first search over pairs (state of the real object, state of the spec). From each pair,
every call that the spec's guards allow is made on both, and compared: the return value, and what
can be observed afterwards. If no pair disagrees, the real manager does within the scope what the
spec says, on every sequence of calls: that is a bisimulation, not a sample.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import msgspec

from mmcache_spec.evaluate.compiled import Packed
from mmcache_vectors.manager import Call, Expect, Parameters

from ..errors import AdapterError, TargetError, describe_exception
from ..exits import ExitCode
from ..implementation import Implementation
from ..oracle.blame import blamed
from ..oracle.decisions import taken_by
from ..oracle.garbage import without_collections
from ..oracle.known import Known, Seen, Sieve, nothing_known
from ..targets.open import open_manager
from ..targets.protocol import ALLOCATE_AGAIN, CALLS, Answer, Case, ManagerTarget
from ..verdicts.judge import answer_differences, observed_differences
from ..verdicts.model import Difference
from .sides import Arrival, side_of
from .snapshots import NotPlain
from .world import SearchScope, SpecifiedManager

__all__ = ["Exhausted", "SearchProgress", "ShortestDifference", "exhaust"]

_AT_ONCE = 500
"""Pairs between two reports of progress."""

_TWINS = 3
"""States that differ only in an order, and that are gone on from."""
_LOOKS = 12
"""So often a pair that was met again is looked at for another order."""
_UNSEEN_TWINS = 2
"""The same of states that show the same, where no more is known of them."""


class ShortestDifference(msgspec.Struct, frozen=True):
    """The first difference: the calls that led there, the last one being the one that differs."""

    calls: tuple[Call, ...]
    differences: tuple[Difference, ...]
    clauses: tuple[str, ...]
    """What the specification claims and the answer breaks."""
    decisions: tuple[str, ...]
    """The known wrong decisions any of which explains it."""


class Exhausted(msgspec.Struct, frozen=True, kw_only=True):
    """What the search found. It is complete if nothing differs and no bound was met."""

    target: str
    implementation: Implementation
    scope: SearchScope
    parameters: Parameters
    left_out: tuple[str, ...]
    """Calls and capabilities that the target lacks, and which were therefore not made."""
    opaque: bool
    """The target's own state cannot be read: states are told apart by what they show."""
    kept_as: str
    """How its states are kept: copies, snapshots of the program, or calls made again."""
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
    known: int
    """Calls that differ as expected. What only they lead to was not searched."""
    disagreement: ShortestDifference | None

    @property
    def uncompared(self) -> tuple[str, ...]:
        """What this manager shows and nobody could compare, each with the reason."""
        about = f"{self.scope.manager}: "
        return tuple(said for said in self.implementation.uncompared if said.startswith(about))

    @property
    def complete(self) -> bool:
        """Whether every state of the specification was met, and all that is shown there compared.

        What is known to differ is no excuse: a state that lies behind it only was not searched.
        """
        reached = self.spec_states == self.spec_states_expected
        return reached and not self.bounded and not self.uncompared

    @property
    def exit_code(self) -> ExitCode:
        """1 if something differs that is not known, 3 if the search was not complete, else 0."""
        if self.disagreement is not None:
            return ExitCode.FAILED
        return ExitCode.OK if self.complete else ExitCode.COULD_NOT


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
    known: Known = nothing_known,
    timeout: float | None = None,
    on_progress: Callable[[SearchProgress], None] = lambda progress: None,
) -> Exhausted:
    """Search the whole scope.

    Args:
        target: What is searched, as on the command line: a class or a command.
        scope: How large the world is.
        max_states: Give up beyond so many pairs.
        known: What the target is known to do otherwise: it is counted and passed over.
        timeout: What a command has for one call, in seconds.
        on_progress: Called now and then.

    Raises:
        TargetNameError: The text names no target.
        TargetError: It cannot be started, or its states cannot be kept so that they stay the same.
    """
    started = time.perf_counter()
    opened = open_manager(target, timeout=timeout, in_process=True)
    try:
        implementation = opened.start()
        with without_collections():
            search = _Search(opened, implementation, scope, max_states, known, on_progress)
            try:
                search.run()
            except NotPlain:  # a later state is of another make than the first
                search = _Search(
                    opened, implementation, scope, max_states, known, on_progress, opaque=True
                )
                search.run()
            expected = len(_states(search.specified, max_states))
    except AdapterError as error:
        raise TargetError(str(error)) from None
    finally:
        with contextlib.suppress(AdapterError):  # what it says last is no answer to anything
            opened.stop()
    return Exhausted(
        target=target,
        implementation=implementation,
        scope=scope,
        parameters=search.specified.parameters,
        left_out=search.left_out,
        opaque=search.side.opaque,
        kept_as=search.side.how,
        pairs=len(search.seen),
        spec_states=len({state for state, _ in search.seen}),
        spec_states_expected=expected,
        transitions=search.transitions,
        depth=search.depth,
        seconds=round(time.perf_counter() - started, 3),
        bounded=search.bounded,
        known=search.known,
        disagreement=search.disagreement,
    )


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


@dataclass(slots=True)
class _Met:
    """What is known of a pair beyond itself."""

    orders: frozenset[Hashable]
    """Those in the states of it that were gone on from."""
    twins: int = 1
    """How many these are."""
    looks: int = 0


@dataclass(frozen=True)
class _Pair:
    """A pair that waits for its calls to be made."""

    number: int
    state: Packed
    place: Any


class _Search:
    """The search over pairs, level by level."""

    def __init__(
        self,
        target: ManagerTarget,
        implementation: Implementation,
        scope: SearchScope,
        max_states: int,
        known: Known,
        on_progress: Callable[[SearchProgress], None],
        *,
        opaque: bool = False,
    ) -> None:
        self._offered = implementation.capabilities.get(scope.manager)
        if self._offered is None:
            raise TargetError(f"{implementation.name} has no {scope.manager} manager")
        self.left_out = tuple(c for c in (*CALLS, ALLOCATE_AGAIN) if c not in self._offered)
        if scope.manager == "encoder_decoder":
            self.left_out = tuple(c for c in self.left_out if c != ALLOCATE_AGAIN)
        self.specified = SpecifiedManager(scope, frozenset(self._offered))
        self._target, self._manager = target, scope.manager
        world, calls = self.specified.parameters, self.specified.calls
        self.side = side_of(target, scope.manager, world, calls, opaque=opaque)
        self._max_states, self._on_progress = max_states, on_progress
        self._sieve = Sieve(known)
        self.seen: dict[tuple[Packed, Hashable], _Met] = {}
        self.transitions = self.depth = self.known = 0
        self.bounded = False
        self.disagreement: ShortestDifference | None = None
        self._parents: list[tuple[int, int]] = []
        """By the number of a pair: the pair that it was found from, and the index of the call."""
        self._next_level: list[_Pair] = []

    def run(self) -> None:
        """Raises `NotPlain` where a state cannot be copied piece by piece, and `TargetError`."""
        initial, start = self.specified.initial(), self.side.start()
        if start is not None:
            self._new(initial, start, -1, -1)
        else:
            self._parents.append((-1, -1))
            self._next_level.append(_Pair(0, initial, self.side.initial()))
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
                self.side.leave(pair.place)
            self.depth += 1

    def _over(self) -> bool:
        self.bounded = len(self.seen) > self._max_states
        return self.bounded or self.disagreement is not None

    def _expand(self, pair: _Pair) -> None:
        """Make every call from a pair."""
        state, side = pair.state, self.side
        successors = self.specified.successors(state)
        arrivals = side.arrivals(pair.place, [k for k, _, _ in successors])
        first: Arrival | None = None
        for (call_index, expected, after), came in zip(successors, arrivals, strict=True):
            self.transitions += 1
            first = first or came
            if came.error is not None:
                wrong = Difference("error", None, came.error)
                self._differs(pair.number, call_index, after, (wrong,))
            else:
                got = came.returns
                if expected is not None and got is not expected:
                    plain = side.plain(got)
                    same = expected == set(plain) if isinstance(plain, tuple) else plain is expected
                    if not same:
                        shown = _listed(expected)
                        wrong = Difference("returns", shown, plain)
                        self._differs(pair.number, call_index, after, (wrong,))
                if self.disagreement is None and not (came.unchanged and after == state):
                    self._arrived(after, came, pair, call_index)
            if self.disagreement is not None:
                return
        if first is not None and side.opaque:
            self._same_again(pair.place, successors[0][0], first)

    def _arrived(self, after: Packed, came: Arrival, pair: _Pair, call_index: int) -> None:
        """The pair that a call led to, if it is a new one, or an old one in a new order."""
        known = self.seen.get((after, came.fingerprint))
        if known is None:
            self._new(after, came, pair.number, call_index)
            return
        known.looks += 1
        most = _UNSEEN_TWINS if self.side.opaque else _TWINS
        if known.twins < most and known.looks <= _LOOKS:
            new = self._orders(came, call_index)
            if not new <= known.orders:
                known.twins += 1
                known.orders |= new
                self._new(after, came, pair.number, call_index)

    def _orders(self, came: Arrival, call_index: int) -> frozenset[Hashable]:
        """What may differ between states of one fingerprint; unseen, it may be the way to it."""
        return frozenset({call_index}) if self.side.opaque else came.orders()

    def _new(
        self,
        state: Packed,
        came: Arrival,
        parent: int,
        call_index: int,
    ) -> None:
        """A pair that was not seen before, or in another order; what it shows is compared."""
        key = state, came.fingerprint
        if key not in self.seen:
            self.seen[key] = _Met(self._orders(came, call_index))
        number = len(self._parents)
        self._parents.append((parent, call_index))
        place = self.side.keep(came)
        try:
            differences = observed_differences(
                self.specified.observed(state), self.side.shown(came)
            )
        except (KeyboardInterrupt, TargetError):
            raise
        except BaseException as error:
            differences = (Difference("error", None, describe_exception(error)),)
        if differences:
            self._differs(parent, call_index, state, differences)
        else:
            self._next_level.append(_Pair(number, state, place))

    def _same_again(self, place: Any, call_index: int, first: Arrival) -> None:
        """What the calls were made on must be as it was. Raises `TargetError`."""
        (again,) = self.side.arrivals(place, [call_index])
        one, other = ((a.error, self.side.plain(a.returns), a.fingerprint) for a in (first, again))
        if one != other:
            raise TargetError(
                "a call changed the state that its copy was taken from: its state cannot be kept "
                "faithfully, so nothing is judged"
            )

    # --- what differs ---------------------------------------------------------------------------

    def _differs(
        self,
        number: int,
        call_index: int,
        after: Packed,
        differences: tuple[Difference, ...],
    ) -> None:
        """The calls are made again, on a new manager: what differs in a copy only is not judged."""
        path = [call_index]
        while number >= 0:
            number, call_index = self._parents[number]
            path.append(call_index)
        specified = self.specified
        calls = tuple(specified.calls[k] for k in reversed(path) if k >= 0)
        if calls and self._sieve.passes_over(calls[-1], differences):
            self.known += 1
            return
        answers = self._answered_anew(calls, path, after)
        world = specified.parameters
        if self._sieve.covers(Seen(self._manager, world, calls, answers, differences)):
            self.known += 1
            return
        clauses = blamed(specified.system, world, calls, differences)
        shows = self._offered or ()
        taken = taken_by(self._manager, world, calls, differences, shows)
        decisions = tuple(decision.name for decision in taken)
        self.disagreement = ShortestDifference(calls, differences, clauses, decisions)

    def _answered_anew(
        self, calls: tuple[Call, ...], path: list[int], after: Packed
    ) -> tuple[Answer, ...]:
        """The answers of a new manager. Raises `TargetError` if the last is as specified."""
        if not calls:
            return ()
        case = Case("exhaust", self._manager, self.specified.parameters, calls)
        try:
            answers = self._target.run(case)
        except AdapterError as error:
            return (Answer(error=f"the adapter broke down: {error}"),)
        expected = self._expected(path, after)
        if len(answers) == len(calls) and not answer_differences(expected, answers[-1]):
            raise TargetError(
                f"a copy of its state differs at call {len(calls)}, and a new manager that gets "
                "the same calls does not: its state cannot be kept faithfully, so nothing is judged"
            )
        return answers

    def _expected(self, path: list[int], after: Packed) -> Expect:
        """What the spec answers to the last call of a path, which is written backwards."""
        state = self.specified.initial()
        result: Any = None
        for k in reversed([k for k in path if k >= 0]):
            found = (s for s in self.specified.successors(state) if s[0] == k)
            _, result, state = next(found)
        assert state == after
        returns = _listed(result)
        return Expect(returns, self.specified.observed(after))


def _listed(result: Any) -> Any:
    """A result of the spec as an answer has it."""
    return tuple(sorted(result)) if isinstance(result, frozenset) else result
