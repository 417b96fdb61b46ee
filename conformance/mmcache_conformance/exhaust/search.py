"""Every reachable state of a real manager and of the specified one, together.

A breadth-first search over pairs (state of the real object, state of the spec). From each pair,
every call that the spec's guards allow is made on both, and compared: the return value, and what
can be observed afterwards. If no pair disagrees, the real manager does within the scope what the
spec says, on every sequence of calls: that is a bisimulation, not a sample.

The pairs are shared out among processes by the spec's half; each process keeps its own, and sends
the others what it finds for them, level by level.
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from mmcache_spec.evaluate.compiled import Packed
from mmcache_vectors.manager import Call, Observed, Parameters

from ..errors import TargetError, describe_exception
from ..oracle.blame import blamed, observed_differences
from ..targets.open import open_target
from ..targets.protocol import ALLOCATE_AGAIN, CALLS, Implementation
from ..targets.python import PythonTarget, plain_answer
from ..verdicts.model import Difference
from .snapshots import NotPlain, Snapshots, snapshots_for
from .world import Scope, SpecSide

__all__ = ["Disagreement", "Exhausted", "Progress", "exhaust"]

_AT_ONCE = 500
"""Pairs that a process goes through between two signs of life."""


class Disagreement(msgspec.Struct, frozen=True):
    """The first difference: the calls that led there, the last one being the one that differs."""

    calls: tuple[Call, ...]
    differences: tuple[Difference, ...]
    clauses: tuple[str, ...]
    """What the specification claims and the answer breaks."""


class Exhausted(msgspec.Struct, frozen=True, kw_only=True):
    """What the search found. It is complete if nothing differs and no bound was met."""

    target: str
    implementation: Implementation
    scope: Scope
    parameters: Parameters
    left_out: tuple[str, ...]
    """Calls and capabilities that the target lacks, and which were therefore not made."""
    opaque: bool
    """The object's own state cannot be read: states are told apart by what they show."""
    pairs: int
    spec_states: int
    """The states of the spec that occur in pairs."""
    spec_states_expected: int
    """The states that the spec reaches by itself."""
    transitions: int
    depth: int
    seconds: float
    bounded: bool
    """The search was given up at `--max-states`."""
    disagreement: Disagreement | None


class Progress(msgspec.Struct, frozen=True):
    pairs: int
    transitions: int
    depth: int
    waiting: int


_Key = tuple[Packed, Hashable]

_Found = tuple[Packed, Hashable, Any, int, int]
"""A pair for its owner: the spec's half, fingerprint, snapshot, the parent's number, the call's."""


def exhaust(
    spec: str,
    scope: Scope,
    *,
    processes: int,
    max_states: int,
    tell: Callable[[Progress], None] = lambda progress: None,
) -> Exhausted:
    """Search the whole scope. Raises `TargetError`, and `TargetSpecError` for the text."""
    started = time.perf_counter()
    first = _Explorer(spec, scope, 0, 1)
    if not first.snapshots.plain:
        processes = 1
    with _explorers(first, spec, scope, processes) as explorers:
        expected = _spec_states(explorers)
        search = _Search(explorers, max_states, tell)
        search.run()
        disagreement = None
        if search.wrong is not None:
            number, letter, differences = search.wrong
            letters = [*search.path(number), letter]
            calls = tuple(first.side.calls[k] for k in letters if k >= 0)
            about = (first.side.system, first.side.parameters, calls, differences)
            disagreement = Disagreement(calls, differences, blamed(*about))
        occurring = sum(explorers.each("occurring"))
    return Exhausted(
        target=spec,
        implementation=first.implementation,
        scope=scope,
        parameters=first.side.parameters,
        left_out=first.left_out,
        opaque=not first.snapshots.plain,
        pairs=search.pairs,
        spec_states=occurring,
        spec_states_expected=expected,
        transitions=search.transitions,
        depth=search.depth,
        seconds=round(time.perf_counter() - started, 3),
        bounded=search.bounded,
        disagreement=disagreement,
    )


def _spec_states(explorers: _Explorers) -> int:
    """How many states the spec reaches by itself."""
    waiting: list[list[Packed]] = explorers.call("spec_begin")[0]
    while any(waiting):
        outgoing = explorers.call("spec_expand", waiting)
        waiting = [[s for out in outgoing for s in out[w]] for w in range(len(waiting))]
    return sum(explorers.each("spec_states"))


_Wrong = tuple[int, int, tuple[Difference, ...]]
"""The pair's number, the call's, and what differs."""


class _Search:
    """The levels of the search, over however many processes."""

    def __init__(
        self, explorers: _Explorers, max_states: int, tell: Callable[[Progress], None]
    ) -> None:
        self._explorers = explorers
        self._max_states = max_states
        self._tell = tell
        self.pairs = self.transitions = self.depth = 0
        self.bounded = False
        self.wrong: _Wrong | None = None

    def run(self) -> None:
        waiting: list[list[bytes]] = self._explorers.call("begin")[0]
        while True:
            received: list[tuple[int, _Wrong | None]] = self._explorers.call("receive", waiting)
            new = sum(count for count, _ in received)
            self.pairs += new
            if self._stop([wrong for _, wrong in received]) or not new:
                return
            if self.pairs > self._max_states:
                self.bounded = True
                return
            waiting = self._expand_level()
            if self.wrong is not None:
                return
            self.depth += 1

    def _expand_level(self) -> list[list[bytes]]:
        waiting: list[list[bytes]] = [[] for _ in range(len(self._explorers))]
        while True:
            expanded: list[_Expanded] = self._explorers.call("expand")
            self.transitions += sum(e.made for e in expanded)
            for e in expanded:
                for inbox, found in zip(waiting, e.outgoing, strict=True):
                    inbox.append(found)
            left = sum(e.left for e in expanded)
            self._tell(Progress(self.pairs, self.transitions, self.depth, left))
            if self._stop([e.wrong for e in expanded]) or not left:
                return waiting

    def _stop(self, wrong: Sequence[_Wrong | None]) -> bool:
        found = [w for w in wrong if w is not None]
        if found:
            self.wrong = min(found, key=lambda w: w[:2])
        return bool(found)

    def path(self, number: int) -> list[int]:
        """The calls that led to a pair."""
        letters: list[int] = []
        while number >= 0:
            owner = number % len(self._explorers)
            number, letter = self._explorers.ask(owner, "parent", number)
            letters.append(letter)
        return letters[::-1]


class _Expanded(msgspec.Struct, frozen=True):
    outgoing: list[bytes]
    """Pairs for each process, pickled: whoever passes them on need not read them."""
    made: int
    left: int
    wrong: _Wrong | None = None


class _Explorer:
    """The pairs of one process."""

    def __init__(self, spec: str, scope: Scope, index: int, of: int) -> None:
        target = open_target(spec)
        if not isinstance(target, PythonTarget):
            raise TargetError("only a Python class can be exhausted: its states are copied")
        self.implementation = target.start()
        offered = self.implementation.capabilities.get(scope.manager)
        if offered is None:
            raise TargetError(f"{self.implementation.name} has no {scope.manager} manager")
        self.left_out = tuple(c for c in (*CALLS, ALLOCATE_AGAIN) if c not in offered)
        if scope.manager == "encoder_decoder":
            self.left_out = tuple(c for c in self.left_out if c != ALLOCATE_AGAIN)
        self.side = SpecSide(scope, frozenset(offered))
        self._index, self._of = index, of
        try:
            self._live = target.open(scope.manager, self.side.parameters)
        except Exception as error:
            raise TargetError(describe_exception(error)) from None
        self.snapshots: Snapshots = snapshots_for(self._live.manager)
        self._calls = [self._live.bind(call) for call in self.side.calls]
        self._spec_seen: set[Packed] = set()
        self._seen: set[_Key] = set()
        """The pairs that are kept here."""
        self._sent: set[_Key] = set()
        """The pairs that were found here, whoever keeps them."""
        self._parents: list[tuple[int, int]] = []
        self._waiting: list[tuple[int, Packed, Any]] = []
        self._mine: list[_Found] = []
        """Found here and kept here, for the next level."""

    # The spec by itself.

    def spec_begin(self) -> list[list[Packed]]:
        return self._shared_out([self.side.initial()])

    def spec_expand(self, states: list[Packed]) -> list[list[Packed]]:
        new = set(states) - self._spec_seen
        self._spec_seen |= new
        after = {s for state in new for _, _, s in self.side.successors(state)}
        return self._shared_out(after - self._spec_seen)

    def spec_states(self) -> int:
        return len(self._spec_seen)

    def _shared_out(self, states: Sequence[Packed] | set[Packed]) -> list[list[Packed]]:
        outgoing: list[list[Packed]] = [[] for _ in range(self._of)]
        for state in states:
            outgoing[hash(state) % self._of].append(state)
        return outgoing

    # Pairs.

    def begin(self) -> list[list[bytes]]:
        state, snapshot = self.side.initial(), self.snapshots.take(self._live.manager)
        outgoing: list[list[_Found]] = [[] for _ in range(self._of)]
        found = (state, self._fingerprint(snapshot), snapshot, -1, -1)
        outgoing[hash(state) % self._of].append(found)
        return [[pickle.dumps(found)] for found in outgoing]

    def receive(self, inbox: list[bytes]) -> tuple[int, _Wrong | None]:
        """Keep the new pairs; what of them differs from the spec in what it shows."""
        before = len(self._seen)
        mine, self._mine = self._mine, []
        for state, fingerprint, snapshot, parent, letter in chain(mine, *map(pickle.loads, inbox)):
            key = (state, fingerprint)
            if key in self._seen:
                continue
            number = len(self._parents) * self._of + self._index
            self._seen.add(key)
            self._parents.append((parent, letter))
            self.snapshots.learn(snapshot)
            differences = self._shown_differs(state, snapshot)
            if differences:
                return len(self._seen) - before, (parent, letter, differences)
            self._waiting.append((number, state, snapshot))
        return len(self._seen) - before, None

    def expand(self) -> _Expanded:
        """Make every call from some of the waiting pairs."""
        outgoing: list[list[_Found]] = [[] for _ in range(self._of)]
        now, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
        made, wrong = 0, None
        for number, state, snapshot in now:
            successors = self.side.successors(state)
            made += len(successors)
            found = self._expand_one(number, state, snapshot, successors, outgoing)
            if found is not None:
                wrong = (number, *found)
                break
        self._mine += outgoing[self._index]
        outgoing[self._index] = []
        packed = [pickle.dumps(found, pickle.HIGHEST_PROTOCOL) for found in outgoing]
        return _Expanded(packed, made, len(self._waiting), wrong)

    def _expand_one(
        self,
        number: int,
        state: Packed,
        pristine: Any,
        successors: list[tuple[int, Any, Packed]],
        outgoing: list[list[_Found]],
    ) -> tuple[int, tuple[Difference, ...]] | None:
        snapshots, calls, sent = self.snapshots, self._calls, self._sent
        fingerprint_before = self._fingerprint(pristine)
        scratch = None
        for letter, expected, after in successors:
            if scratch is None:
                scratch = snapshots.copy(pristine)
            try:
                got = calls[letter](snapshots.manager(scratch))
            except Exception as error:
                return letter, (Difference("error", None, describe_exception(error)),)
            if expected is not None and got is not expected:
                plain = plain_answer(got)
                if isinstance(expected, bool) or not (
                    isinstance(plain, tuple) and expected == set(plain)
                ):
                    shown = tuple(sorted(expected)) if isinstance(expected, frozenset) else expected
                    return letter, (Difference("returns", shown, plain),)
            if snapshots.same(scratch, pristine):
                if after == state:
                    continue
                fingerprint = fingerprint_before
            else:
                fingerprint = self._fingerprint(scratch)
            key = (after, fingerprint)
            if key in sent:
                if fingerprint is not fingerprint_before:
                    scratch = None
                continue
            sent.add(key)
            outgoing[hash(after) % self._of].append((after, fingerprint, scratch, number, letter))
            scratch = None
        return None

    def _fingerprint(self, snapshot: Any) -> Hashable:
        return self.snapshots.fingerprint(snapshot, self._observe)

    def _observe(self, snapshot: Any) -> Observed:
        return self._live.around(self.snapshots.manager(snapshot)).observed()

    def _shown_differs(self, state: Packed, snapshot: Any) -> tuple[Difference, ...]:
        expected = self.side.observed(state)
        try:
            shown = self._observe(self.snapshots.copy(snapshot))
        except Exception as error:
            return (Difference("error", None, describe_exception(error)),)
        return observed_differences(expected, shown)

    def parent(self, number: int) -> tuple[int, int]:
        return self._parents[number // self._of]

    def occurring(self) -> int:
        return len({state for state, _ in self._seen})


# --- processes ---------------------------------------------------------------------------------


class _Explorers:
    """The explorer of this process, or one in each of several others."""

    def __init__(self, here: _Explorer | None, pipes: Sequence[Connection]) -> None:
        self._here = here
        self._pipes = pipes

    def __len__(self) -> int:
        return 1 if self._here is not None else len(self._pipes)

    def call(self, method: str, inboxes: Sequence[Any] | None = None) -> list[Any]:
        """The same method of all, at the same time, each with its own argument."""
        arguments = [()] * len(self) if inboxes is None else [(inbox,) for inbox in inboxes]
        if self._here is not None:
            try:
                return [getattr(self._here, method)(*arguments[0])]
            except NotPlain as error:
                raise TargetError(_uncopied(error)) from None
        for pipe, given in zip(self._pipes, arguments, strict=True):
            pipe.send((method, given))
        return [_reply(pipe) for pipe in self._pipes]

    def each(self, method: str) -> list[int]:
        return self.call(method)

    def ask(self, owner: int, method: str, argument: int) -> tuple[int, int]:
        if self._here is not None:
            found: tuple[int, int] = getattr(self._here, method)(argument)
            return found
        self._pipes[owner].send((method, (argument,)))
        answer: tuple[int, int] = _reply(self._pipes[owner])
        return answer


def _uncopied(error: NotPlain) -> str:
    return f"its states cannot be copied: {error}"


def _reply(pipe: Connection) -> Any:
    try:
        fine, answer = pipe.recv()
    except EOFError:
        raise TargetError("a process of the search died; is there enough memory?") from None
    if not fine:
        raise TargetError(answer)
    return answer


@contextmanager
def _explorers(first: _Explorer, spec: str, scope: Scope, processes: int) -> Iterator[_Explorers]:
    if processes == 1:
        yield _Explorers(first, ())
        return
    # Forked, a process has everything imported; elsewhere it imports anew.
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    pipes, workers = [], []
    for index in range(processes):
        mine, theirs = context.Pipe()
        worker = context.Process(
            target=_serve, args=(theirs, spec, scope, index, processes), daemon=True
        )
        worker.start()
        theirs.close()
        pipes.append(mine)
        workers.append(worker)
    try:
        yield _Explorers(None, pipes)
    finally:
        for pipe in pipes:
            with suppress(OSError):
                pipe.send(None)
            pipe.close()
        for worker in workers:
            worker.join(timeout=1)
            if worker.is_alive():
                worker.terminate()


def _serve(pipe: Connection, spec: str, scope: Scope, index: int, of: int) -> None:
    """What a process does: calls of its explorer, until the pipe is closed."""
    gc.disable()  # nothing that is kept here has cycles, and there is a lot of it
    explorer: _Explorer | None = None
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if asked is None:
            return
        method, given = asked
        try:
            explorer = explorer or _Explorer(spec, scope, index, of)
            answer = True, getattr(explorer, method)(*given)
        except NotPlain as error:
            answer = False, _uncopied(error)
        except KeyboardInterrupt:
            return
        except TargetError as error:
            answer = False, str(error)
        except Exception as error:
            answer = False, f"the search itself failed: {describe_exception(error)}"
        try:
            pipe.send(answer)
        except (BrokenPipeError, OSError):
            return
