"""The campaign: random sequences on a target, in units of work that can be done anywhere.

A unit is many worlds of one size. What a unit does follows from the seed and
its number alone, so a campaign is the same wherever it runs.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

from mmcache_spec.kernel.digest import digest
from mmcache_spec.model.decisions import DECISIONS, system_of
from mmcache_spec.oracle import Replay, answers_otherwise
from mmcache_vectors.manager import Expect, Manager, Provenance, Step, Vector, content_id

from ..errors import AdapterError, TargetError
from ..implementation import Implementation
from ..oracle.blame import blamed
from ..oracle.decisions import agreeing
from ..oracle.garbage import without_collections
from ..oracle.known import Choice, Known, Seen, Sieve, nothing_known
from ..oracle.systems import specified
from ..oracle.taken import decisions_about
from ..targets.command import Posted
from ..targets.open import open_manager
from ..targets.protocol import ALLOCATE_AGAIN, CALLS, MANAGERS, OBSERVABLES, Case
from ..verdicts.changes import largest_number
from ..verdicts.judge import answer_differences
from ..verdicts.model import Difference
from ..verdicts.signature import Signature, signature_of
from .kinds import Kind, kind_of
from .lanes import Answered, Lane, lane_to
from .probe import Differing, play_through
from .report import Finding
from .shrink import Candidate, Shrunk, shrink, without_parts
from .units import plan_of
from .walks import Edge, WalkedWorld
from .worlds import draw_parameters, draw_shape, in_one_line

__all__ = ["Campaign", "Done", "left_out", "search"]

_MADE_SHORT = {True: 6, False: 12}
"""Those that a unit makes short to see whether they are of a kind that was found: fewer of those
that have the calls of a least sequence among theirs. The rest are taken to be."""


@dataclass(frozen=True)
class Campaign:
    """What is to be played. `calls` is the length of a sequence; None for what the unit plans."""

    target: str
    seed: int = 0
    calls: int | None = None
    managers: tuple[Manager, ...] = MANAGERS
    known: Known = nothing_known
    found: frozenset[Kind] = frozenset()
    """The kinds of what was found before."""
    timeout: float | None = None
    in_process: bool = False
    shrinks: bool = True
    """Whether what is found is made as short as it can be."""


@dataclass(frozen=True)
class Done:
    """What one unit did, and the first difference that is not known."""

    sequences: int
    calls: int
    worlds: int
    known: int
    finding: Finding | None = None
    choices: frozenset[Choice] = frozenset()
    """The known decisions, as far as this unit knows which of several it is."""


_NOTHING = Done(0, 0, 0, 0)


def left_out(implementation: Implementation) -> tuple[str, ...]:
    """The calls that some manager of the target lacks."""
    offered = implementation.capabilities.items()
    lacking = [
        c
        for manager, has in offered
        for c in (*CALLS, *((ALLOCATE_AGAIN,) if manager == "encoder_cache" else ()))
        if c not in has
    ]
    return tuple(dict.fromkeys(lacking))


def search(
    campaign: Campaign,
    unit: int,
    most: int | None = None,
    until: float | None = None,
    on_progress: Callable[[int], None] = lambda sequences: None,
) -> Done:
    """One unit of a campaign, with a target of its own.

    Args:
        campaign: What is to be played.
        unit: Which part of it.
        most: No more sequences than these.
        until: No new batch after this time, by `time.time()`.
        on_progress: Called with the number of sequences after each batch.

    Raises:
        TargetNameError: The text names no target.
        TargetError: It cannot be started, or has none of the managers.
    """
    target = open_manager(campaign.target, timeout=campaign.timeout, in_process=campaign.in_process)
    try:
        implementation = target.start()
        has = [m for m in campaign.managers if m in implementation.capabilities]
        if not has:
            raise TargetError(f"{implementation.name} has no {' and no '.join(campaign.managers)}")
        # The smaller protocol gets every eighth unit.
        manager = has[-1] if len(has) > 1 and unit % 8 == 3 else has[0]
        work = _Unit(campaign, unit, manager, implementation, lane_to(target))
        with without_collections():
            done = work.run(most, until, on_progress)
        return replace(done, choices=work.choices)
    finally:
        with contextlib.suppress(AdapterError):  # what it says last is no answer to anything
            target.stop()


@dataclass(frozen=True)
class _Sequence:
    """One walk, as it is sent and as it is judged."""

    world: WalkedWorld
    manager: Manager
    edges: tuple[Edge, ...]

    @property
    def posted(self) -> Posted:
        calls = b",".join([edge.encoded for edge in self.edges])
        encoded = b'{"id":"differ","manager":"%b","parameters":%b,"calls":[%b]}' % (
            self.manager.encode(),
            self.world.encoded,
            calls,
        )
        return Posted(encoded, self.manager, len(self.edges))

    @property
    def case(self) -> Case:
        calls = tuple(edge.call for edge in self.edges)
        return Case("differ", self.manager, self.world.parameters, calls)

    @property
    def candidate(self) -> Candidate:
        return Candidate(self.world.parameters, tuple(edge.call for edge in self.edges))


class _Unit:
    """The work of one unit on a started target."""

    def __init__(
        self,
        campaign: Campaign,
        unit: int,
        manager: Manager,
        implementation: Implementation,
        lane: Lane,
    ) -> None:
        self._campaign, self._manager, self._lane = campaign, manager, lane
        self._plan = plan_of(unit)
        self._most = largest_number(implementation.language)
        offered = implementation.capabilities[manager]
        self._capabilities = frozenset(offered)
        self._shown = frozenset(name for name in OBSERVABLES if name in offered)
        self._random = Random(f"differ {campaign.seed} {unit}")
        self._sieve = Sieve(campaign.known)
        self._made_short: dict[tuple[Signature, bool], int] = {}
        self._done = _NOTHING

    @property
    def choices(self) -> frozenset[Choice]:
        """What the campaign is to know of the known decisions."""
        return self._sieve.choices

    def run(
        self, most: int | None, until: float | None, on_progress: Callable[[int], None]
    ) -> Done:
        wanted = self._plan.sequences
        batches = self._batches(wanted if most is None else min(most, wanted))
        on_its_way: list[_Sequence] = []
        ready: list[_Sequence] = []
        played: list[_Sequence] = []
        while True:
            over = until is not None and time.time() > until
            ready = ready or ([] if over else next(batches, []))
            answers = self._lane.receive() if on_its_way else []
            done, rest = on_its_way[: len(answers)], on_its_way[len(answers) :]
            ahead = ready if not rest else []  # after a breakdown, first see whether to go on
            if ahead:
                self._lane.send(ahead)
            judged, interrupted = 0, False
            while (new := self._judge(done, answers, judged)) is not None:
                if ahead and not interrupted:
                    self._lane.receive()
                index, found = new
                finding = self._finding(played + done[:index], done[index], found)
                if not self._is_of_found_kind(finding):
                    return replace(self._done, finding=finding)
                self._done = replace(self._done, known=self._done.known + 1)
                judged, interrupted = index + 1, True
            if ahead and interrupted:
                self._lane.send(ahead)
            on_progress(len(done))
            played += done
            if rest:
                self._lane.send(rest)
                on_its_way = rest
            else:
                on_its_way, ready = ahead, []
            if not on_its_way:
                return self._done

    @property
    def _longest(self) -> int:
        return self._campaign.calls or max(self._plan.calls)

    def _batches(self, wanted: int) -> Iterator[list[_Sequence]]:
        """Sequences of several worlds; a batch of each."""
        random = self._random
        while wanted > 0:
            longest = self._longest
            shape = draw_shape(random, self._plan.largest)
            parameters = draw_parameters(random, shape, self._most)
            parameters = in_one_line(parameters, longest)
            world = WalkedWorld(self._manager, parameters, self._capabilities, self._shown)
            batch = [self._sequence(world) for _ in range(min(self._plan.batch, wanted))]
            world.forget()
            wanted -= len(batch)
            self._done = replace(self._done, worlds=self._done.worlds + 1)
            yield batch

    def _sequence(self, world: WalkedWorld) -> _Sequence:
        length = self._campaign.calls or self._random.choice(self._plan.calls)
        walk = world.walk(self._random, length, self._longest)
        return _Sequence(world, self._manager, tuple(walk))

    def _judge(
        self, batch: list[_Sequence], answers: list[Answered], judged: int
    ) -> tuple[int, Shrunk[Differing]] | None:
        """The first sequence that differs in a way that is not known, by its index, and how.

        Those that were judged are not looked at again.
        """
        calls = known = 0
        new: tuple[int, Shrunk[Differing]] | None = None
        for k, (sequence, answered) in enumerate(zip(batch, answers, strict=True)):
            if k < judged:
                continue
            calls += len(sequence.edges)
            differing = _first_difference(sequence, answered)
            if differing is None:
                continue
            if not self._is_known(differing):
                new = k, differing
                break
            known += 1
        done = self._done
        self._done = replace(
            done,
            sequences=done.sequences + (len(batch) if new is None else new[0] + 1) - judged,
            calls=done.calls + calls,
            known=done.known + known,
        )
        return new

    def _is_known(self, found: Shrunk[Differing]) -> bool:
        return self._sieve.covers(self._seen(found)) or self._is_as_found(found)

    def _is_as_found(self, found: Shrunk[Differing]) -> bool:
        """Whether it is taken to be of a kind that was found, without making it short."""
        calls = found.candidate.calls
        if not calls:
            return False
        signature = signature_of(calls[-1], found.found.differences)
        alike = [kind for kind in self._campaign.found if kind.signature == signature]
        if not alike:
            return False
        likely = any(kind.may_be(calls) for kind in alike)
        short = self._made_short.get((signature, likely), 0)
        self._made_short[signature, likely] = short + 1
        return short >= _MADE_SHORT[likely]

    def _is_of_found_kind(self, finding: Finding) -> bool:
        kind = kind_of([s.call for s in finding.vector.steps], finding.differences)
        return kind in self._campaign.found

    def _seen(self, found: Shrunk[Differing]) -> Seen:
        made, differing = found.candidate, found.found
        answers, wrong = differing.answers, differing.differences
        return Seen(self._manager, made.parameters, made.calls, answers, wrong)

    # --- what was found, made small -------------------------------------------------------------

    def _finding(
        self, before: list[_Sequence], culprit: _Sequence, found_at_first: Shrunk[Differing]
    ) -> Finding:
        """The difference again, by itself if that is possible, and as short as possible."""
        number = self._done.sequences - 1

        def probe(candidate: Candidate) -> Shrunk[Differing] | None:
            found = play_through(self._lane, self._manager, self._capabilities, candidate)
            if found is None or self._is_known_now(found):
                return None
            return found

        self._lane.fresh()
        alone = probe(culprit.candidate)
        if alone is not None:
            self._lane.fresh()
            least = shrink(alone, probe) if self._campaign.shrinks else alone
            return self._told(least, (), number, len(culprit.edges))
        if not self._campaign.shrinks:
            return self._told(found_at_first, (), number, len(culprit.edges))
        found, needed = self._after_others(tuple(before), culprit.candidate, probe)
        return self._told(found, needed, number, len(culprit.edges))

    def _is_known_now(self, found: Shrunk[Differing]) -> bool:
        return bool(found.candidate.calls) and self._sieve.explains(self._seen(found))

    def _after_others(
        self,
        needed: tuple[_Sequence, ...],
        culprit: Candidate,
        probe: Callable[[Candidate], Shrunk[Differing] | None],
    ) -> tuple[Shrunk[Differing], tuple[_Sequence, ...]]:
        """The fewest sequences after which, in one process, the culprit differs."""

        def after(those: tuple[_Sequence, ...]) -> Shrunk[Differing] | None:
            self._lane.fresh()
            for k in range(0, len(those), self._plan.batch):
                self._lane.send(those[k : k + self._plan.batch])
                self._lane.receive()
            return probe(culprit)

        found = after(needed)
        if found is None:
            raise TargetError(
                "it answered otherwise than specified, and as specified when the same calls were "
                "made again: it decides by something other than its calls"
            )
        smaller = True
        while smaller:
            smaller = False
            for fewer in without_parts(needed):
                again = after(fewer)
                if again is not None:
                    needed, found, smaller = fewer, again, True
                    break
        return found, needed

    def _told(
        self,
        least: Shrunk[Differing],
        needed: tuple[_Sequence, ...],
        number: int,
        calls_at_first: int,
    ) -> Finding:
        manager = self._manager
        candidate, found = least.candidate, least.found
        decisions = agreeing(manager, candidate.parameters, candidate.calls, found.answers)
        clauses = blamed(
            specified(manager), candidate.parameters, candidate.calls, found.differences
        )
        name = decisions[0] if decisions else (clauses[0] if clauses else "difference")
        return Finding(
            vector=self._vector(candidate, name, decisions, clauses),
            differences=found.differences,
            clauses=clauses,
            decisions=decisions,
            sequence=number,
            calls_at_first=calls_at_first,
            after=tuple(self._vector(one.candidate, "before", (), ()) for one in needed),
        )

    def _vector(
        self,
        candidate: Candidate,
        name: str,
        decisions: tuple[str, ...],
        clauses: tuple[str, ...],
    ) -> Vector:
        manager, system = self._manager, specified(self._manager)
        replay = Replay(system, candidate.parameters)
        steps = []
        for call in candidate.calls:
            answer = replay.answer(call)
            if answer is not None:
                steps.append(Step(call, answer))
        seed = self._campaign.seed
        slug = f"differ-{name.lower().replace('_', '-')}"
        kills = tuple(
            name
            for name in decisions_about(manager)
            if name in DECISIONS
            and answers_otherwise(system_of([name]), candidate.parameters, steps)
        )
        return Vector(
            format="mmcache/vector",
            format_version=1,
            id=content_id(slug, manager, candidate.parameters, tuple(steps)),
            description="Found by a random walk and made as short as it could be.",
            manager=manager,
            goal=f"differ, seed {seed}",
            variant=decisions[0] if decisions else "specified",
            clauses=clauses,
            kills=kills,
            requires=(ALLOCATE_AGAIN,) if ALLOCATE_AGAIN in replay.used else (),
            provenance=Provenance(spec_digest=digest(system), solver="none", seed=seed),
            parameters=candidate.parameters,
            steps=tuple(steps),
        )


def _first_difference(sequence: _Sequence, answered: Answered) -> Shrunk[Differing] | None:
    """Quick where all is as expected, exact where it is not."""
    if isinstance(answered, AdapterError):
        broken = Differing((), (), (_breakdown(answered),))
        return Shrunk(sequence.candidate, broken)
    for k, (edge, answer) in enumerate(zip(sequence.edges, answered, strict=False)):
        observed, node = answer.observed, edge.node
        right = answer.returns == edge.returns or edge.returns is None
        if right and answer.error is None:
            if observed is node.right:
                continue
            if observed == edge.observed:
                node.right = observed
                continue
        wrong = answer_differences(_expected(edge), answer)
        if wrong:
            calls = tuple(e.call for e in sequence.edges[: k + 1])
            candidate = Candidate(sequence.world.parameters, calls)
            expected = tuple(_expected(e) for e in sequence.edges[: k + 1])
            return Shrunk(candidate, Differing(expected, answered[: k + 1], wrong))
    return None


def _expected(edge: Edge) -> Expect:
    return Expect(edge.returns, edge.observed)


def _breakdown(error: AdapterError) -> Difference:
    return Difference("error", None, f"the adapter broke down: {error}")
