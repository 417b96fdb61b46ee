"""One manager of a log: its ledger, its orders and its worker, and how far each could be judged.

Where an event is illegal, what the manager is in from then on is not known. Nothing is guessed:
what rests on it is not judged any more, until a `reset`, which the specification says is the
beginning again (L10). What does not rest on it goes on: the ledger does not depend on what a worker
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mmcache import EncoderCacheManager
from mmcache_vectors.manager import Manager

from .audit import answered_wrongly, can_be_audited, perform, perform_audited
from .explain import Wrong, duty_broken, hashes_of
from .follow import Follower, OutOfWorld, Refusal
from .format import (
    NEEDED_CALLS,
    Allocated,
    Asked,
    Created,
    Ended,
    Header,
    LogEvent,
    LookedUp,
    PassEnded,
    Reported,
    WasReset,
    WorkerStepped,
)
from .worker import DROPS, ENCODES, PASS_BEGINS, PAYLOADS, Order, Orders, Worker

__all__ = ["Followed", "References"]

_REPORTS_OF_A_PASS = 8
"""A scheduler reads one report a pass; after so many without a pass, passes are missing."""

_ANSWERED = {"check_and_update_cache", "can_allocate", "get_freed_mm_hashes", "worker_step"}

_UNKNOWN_CALLS = "and the first line of the log does not say which calls it records"

References = Mapping[Manager, type[EncoderCacheManager]]


class _Stretches:
    """The lines between an illegal event and the reset that makes an end of it."""

    def __init__(self) -> None:
        self.since: int | None = None
        self._over: list[tuple[int, int]] = []

    def begin(self, line: int) -> None:
        self.since = line

    def end(self, line: int) -> None:
        if self.since is not None:
            self._over.append((self.since, line))
            self.since = None

    def told(self, of: str) -> Iterator[str]:
        """What was not judged, by line."""
        for first, last in self._over:
            yield f"{of} from line {first} to the reset at line {last}, after what is illegal"
        if self.since is not None:
            yield f"{of} from line {self.since} on, after what is illegal"


class Followed:
    """One manager of the log."""

    def __init__(self, created: Created, references: References) -> None:
        self.follower = Follower(created, references)
        self.next_seq = 1
        self.ended = False
        self.began_at = 0
        """The line of the reset from which on it is followed; 0 if from its beginning."""
        self.calls = 0
        """Its calls and worker steps that were judged."""
        self._seen: set[str] = set()
        self._shares = created.kind == "encoder_cache"
        capacity = created.cache_size
        self._worker = Worker(capacity, shares=self._shares) if created.worker else None
        self._orders = Orders(capacity)
        self._ledger_stops, self._orders_stop, self._worker_stops = (_Stretches() for _ in range(3))
        self._allocated: set[str] = set()
        """What became cached since the last report."""
        self._allocated_in_pass: set[str] = set()
        """What became cached since the last pass."""
        self._reports: list[frozenset[str]] = []
        """Those of the pass that is not over."""
        self._passes_lost = 0
        """The line at which it is clear that passes are missing, until the next pass."""

    def can_be_audited(self, event: LogEvent) -> bool:
        """Whether the interpreter can be asked about the event, too."""
        return self._ledger_stops.since is None and can_be_audited(self.follower, event)

    def take(self, event: LogEvent, line: int, audit: bool = False) -> Wrong | None:
        """Follow the event. If something is wrong with it, the follower stays as it was before."""
        if isinstance(event, Ended):
            self.ended = True
            return None
        if self._ledger_stops.since is not None and not isinstance(event, WasReset):
            return None
        self._seen.add(event.__struct_config__.tag)  # type: ignore[arg-type]
        self.calls += not isinstance(event, (Created, PassEnded))
        wrong = self._ledger(event, line, audit)
        if wrong is not None:
            self._ledger_stops.begin(line)
            return wrong
        match event:
            case PassEnded():
                wrong = self._pass(event, line)
                if wrong is not None:
                    self._orders_stop.begin(line)
            case WorkerStepped() if self._worker is not None and self._worker_stops.since is None:
                wrong = self._worker.step(event)
                if wrong is not None:
                    self._worker_stops.begin(line)
        return wrong

    def _ledger(self, event: LogEvent, line: int, audit: bool) -> Wrong | None:
        follower = self.follower
        try:
            answer = follower.answer(event)
        except OutOfWorld as error:
            return Wrong(str(error), hashes_of(event))
        if isinstance(event, (LookedUp, Asked)) and answer is event.returns:
            pass  # what most events are
        elif isinstance(answer, Refusal):
            return duty_broken(answer, event)
        elif isinstance(event, (LookedUp, Asked)):
            return answered_wrongly(follower, event, answer)
        elif isinstance(event, Reported):
            if answer != set(event.returns):
                return answered_wrongly(follower, event, answer)
            self._reports_made(event, line)
        elif isinstance(event, Created):
            return Wrong("this manager began before", ())
        elif isinstance(event, WasReset):
            self._was_reset(line)
        elif isinstance(event, WorkerStepped) and self._worker is None:
            return Wrong('a worker step, but "new" did not say "worker": true', ())
        if isinstance(event, Allocated) and event.identifier not in follower.manager.cached:
            self._allocated.add(event.identifier)
            if not self._passes_lost:
                self._allocated_in_pass.add(event.identifier)
        if audit:
            perform_audited(follower, event, answer)
        else:
            perform(follower, event, answer)
        return None

    def _was_reset(self, line: int) -> None:
        if self._ledger_stops.since is not None:
            self.began_at = line
        for stretches in (self._ledger_stops, self._orders_stop, self._worker_stops):
            stretches.end(line)
        self._allocated, self._allocated_in_pass, self._reports = set(), set(), []
        self._orders.reset()
        if self._worker is not None:
            self._worker.reset()

    def _reports_made(self, event: Reported, line: int) -> None:
        """A report is made: what the ledger has cached now is what the step that obeys it makes."""
        report, allocated = frozenset(event.returns), frozenset(self._allocated)
        self._allocated = set()
        self._reports.append(report)
        if len(self._reports) > _REPORTS_OF_A_PASS:  # nobody says where its passes end
            self._reports, self._allocated_in_pass = [], set()
            if not self._passes_lost:
                self._passes_lost = line
                self._orders.gaps.unsaid(PASS_BEGINS, line)
        if self._worker is not None:
            self._worker.order(self._order(report, allocated))

    def _order(self, report: frozenset[str], allocated: frozenset[str]) -> Order:
        manager, size_of = self.follower.manager, self.follower.size_of
        cached = {h: size_of(h) or 0 for h in manager.cached} if self._shares else {}
        return Order(report, cached, allocated)

    def _pass(self, event: PassEnded, line: int) -> Wrong | None:
        reports, self._reports = self._reports, []
        allocated, self._allocated_in_pass = frozenset(self._allocated_in_pass), set()
        lost, self._passes_lost = self._passes_lost, 0
        if self._worker is not None and event.encode is not None and reports:
            self._worker.told_to_encode(event.encode)
        if not self._shares or self._orders_stop.since is not None:
            return None
        order = self._order(frozenset[str]().union(*reports), allocated)
        # Of several reports the last one may be that of this pass, and the others those of passes
        # that the log does not show.
        several = len(reports) > 1 and (event.drop is None or frozenset(event.drop) == reports[-1])
        return self._orders.take(event, order, line, certain=not (several or lost))

    # --- how far it could be judged -----------------------------------------------------------

    def not_judged(self) -> Iterator[str]:
        """What of this manager the log does not show, and what comes after something illegal."""
        if not self.calls:
            yield "anything: there is no call"
            return
        yield from self._ledger_stops.told("everything")
        yield from self._orders_stop.told("S2, S3, S4, S8, S10, S11 of what passes order")
        yield from self._worker_stops.told("S1 to S4, S10, S11 of what the worker does")
        if not self._shares:
            yield "S1 to S12: of encoder-decoder models only the ledger is judged"
            return
        gaps, stepped = self._orders.gaps, self._steps()
        if not stepped:
            yield "S1: no step of a worker is in the log"
        if not stepped and gaps.never(ENCODES):
            yield (
                "S2, S3, S4, S10, S11: no pass says what it orders to encode, and no worker what "
                "it does"
            )
        elif not stepped and gaps.never(DROPS):
            yield "S3, in part: no pass says what it orders to drop"
        if not gaps.never(ENCODES) and gaps.never(PAYLOADS):
            yield "S8: no pass says whose raw item was never sent"
        if self._orders.loads_unknown:
            yield "S2, in part: what a connector loads is not in the log"
        if not stepped and not gaps.never(ENCODES) and self._reports and not self._passes_lost:
            yield "S2, S3, S4 of the last pass: its end is not in the log"
        waiting = self._worker.waiting if self._worker is not None else 0
        if stepped and 0 < waiting <= _REPORTS_OF_A_PASS:
            yield f"S1 to S4 of the last {waiting} reports: no step of the worker obeys them"

    def holes(self) -> Iterator[str]:
        """What the log shows at times and at others not, so that a breach may have slipped through.

        It is more than `not_judged`: such a log is not called allowed.
        """
        if not self._shares or self._worker_stops.since or self._orders_stop.since:
            return
        texts = {PAYLOADS: "S8 of a pass that does not say whose raw item was never sent"}
        if not self._steps():
            texts |= {
                ENCODES: "S2, S3, S4, S10, S11 of a pass that does not say what it encodes",
                DROPS: "S3, in part, of a pass that does not say what it drops",
            }
        yield from self._orders.gaps.told(texts)
        if not self._steps() and not self._orders.gaps.never(ENCODES):
            several = "S2, S3, S4 of passes whose beginning the log does not show: several reports"
            yield from self._orders.gaps.told_always({PASS_BEGINS: several})
        waiting = self._worker.waiting if self._worker is not None else 0
        if self._steps() and waiting > _REPORTS_OF_A_PASS:
            yield f"S1 to S4 of the last {waiting} reports: no step of the worker obeys them"

    def doubt(self, created: Created, header: Header) -> str | None:
        """Why nothing follows from what is recorded of it, although nothing in it is illegal."""
        records = header.records if created.records is None else created.records
        if not self._seen & (set(NEEDED_CALLS) | {"reset", "worker_step"}):
            return None if records is not None else f"no call is in it, {_UNKNOWN_CALLS}"
        if not self._seen & _ANSWERED:
            return "none of its calls has an answer that could be wrong"
        if records is not None:
            return None
        lacking = [c for c in ("allocate", "get_freed_mm_hashes") if c not in self._seen]
        lacking += (
            [] if self._seen & {"check_and_update_cache", "can_allocate"} else ["can_allocate"]
        )
        if not lacking:
            return None
        words = " and ".join(f"`{c}`" for c in lacking)
        return f"there is no {words} in it, {_UNKNOWN_CALLS}"

    def _steps(self) -> bool:
        return self._worker is not None and self._worker.steps > 0
