"""The clauses of a pair, checked on what its calls answered and showed. It knows no pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from mmcache_vectors.pair import (
    ClearSender,
    Deliver,
    Invalidate,
    PairExpect,
    PairRequest,
    PairVector,
    ProcessRequest,
    Withdraw,
    origin,
)

from .protocol import PairAnswer

__all__ = ["PairBreach", "PairWrong", "judge_pair"]


class PairBreach(msgspec.Struct, frozen=True):
    """A clause that a call did not keep."""

    clause: str
    says: str
    """What was found, for people."""


@dataclass(frozen=True)
class PairWrong:
    """The first step that went wrong."""

    step: int
    breaches: tuple[PairBreach, ...]
    due: PairExpect
    """What was expected there; of a request that does not travel, as if it had not been."""


def judge_pair(vector: PairVector, answers: Sequence[PairAnswer]) -> PairWrong | None:
    """The first step that breaks a clause; if none does, the first not answered as specified.

    None if there is neither. `breaches` is empty where the answer only differs.
    """
    judge = _Judge(vector)
    differs: PairWrong | None = None
    for k, answer in enumerate(answers):
        due = judge.due(k)
        breaches = tuple(judge.step(k, answer))
        if breaches:
            return PairWrong(k, breaches, due)
        if differs is None and not _as_expected(due, answer):
            differs = PairWrong(k, (), due)
    return differs


def _as_expected(due: PairExpect, answer: PairAnswer) -> bool:
    failed = bool(answer.missed) or answer.error is not None
    return not failed and answer.sent == due.sent and answer.data == due.data


@dataclass
class _Judge:
    """What an observer has noted down."""

    vector: PairVector
    requests: dict[str, PairRequest] = field(init=False)
    sizes: dict[str, int] = field(init=False)
    last: PairAnswer = field(default_factory=lambda: PairAnswer(sender=(), receiver=()))
    line: list[str] = field(default_factory=list)
    sent: dict[str, tuple[bool, ...]] = field(default_factory=dict)
    undone: bool = False
    """Whether a withdrawn request does not travel."""
    travelling: set[str] = field(default_factory=set)
    before: tuple[str, tuple[str, ...] | None] = ("", None)
    """The request that was processed in the call before, and what P0 held before that."""
    forgotten: set[str] = field(default_factory=set)
    missed: set[str] = field(default_factory=set)
    overtaken: set[str] = field(default_factory=set)
    renewed: set[str] | None = None
    """What P1 has handled of what was recorded since P0 was cleared; None before that."""

    def __post_init__(self) -> None:
        self.requests = {r.request_id: r for r in self.vector.parameters.requests}
        items = (i for r in self.vector.parameters.requests for i in r.items)
        self.sizes = {item.identifier: item.size for item in items}

    def due(self, k: int) -> PairExpect:
        """What is expected of the step."""
        step = self.vector.steps[k]
        return step.if_undone if self.undone and step.if_undone is not None else step.expect

    def step(self, k: int, answer: PairAnswer) -> Iterator[PairBreach]:
        """What the call breaks; then it is noted."""
        call = self.vector.steps[k].call
        last, before = self.last, self.before
        self.before = "", None
        match call:
            case ProcessRequest(request):
                self.before = request, last.sender
                yield from self._processed(self.requests[request], answer, k)
            case Withdraw(request):
                yield from self._withdrawn(request, answer, before)
            case Deliver(request):
                yield from self._delivered(request, answer)
            case Invalidate(identifier):
                self.missed.add(identifier)
                self._forgets(last, answer)
            case ClearSender():
                self._forgets(last, answer)
                self.overtaken, self.renewed = set(self.line), set()
        if answer.hangs:
            yield PairBreach("P10", str(answer.error))
        yield from self._held(answer)
        self.last = answer

    def _forgets(self, last: PairAnswer, answer: PairAnswer) -> None:
        if last.sender is not None and answer.sender is not None:
            self.forgotten |= set(last.sender) - set(answer.sender)

    def _processed(self, request: PairRequest, answer: PairAnswer, k: int) -> Iterator[PairBreach]:
        held = self.last.sender
        hashes = [item.identifier for item in request.items]
        if answer.error is not None:
            gone = set(hashes).intersection(held or ()) - set(answer.sender or held or ())
            if gone:
                says = f"P0 had said that it has {_names(gone)}, and then had not: {answer.error}"
                yield PairBreach("P4", says)
            if held is not None and answer.sender is not None and held != answer.sender:
                says = f"P0 holds {_names(answer.sender)} now, and sends nothing"
                yield PairBreach("P5", says)
            return
        sent = answer.sent or ()
        for place, (h, data) in enumerate(zip(hashes, sent, strict=False)):
            if not data and h in self.missed and h not in hashes[:place]:
                yield PairBreach("P8", f"{h} was missed, and is sent without data again")
            if data and held is not None and h in held and h not in hashes[:place]:
                yield PairBreach("P4", f"P0 had said that it has {h}, and sends its data")
            if not data and self.undone and (self.due(k).sent or sent)[place]:
                says = f"{h} is sent without data, and its last data was never sent"
                yield PairBreach("P5", says)
        self.missed -= set(hashes)
        self.line.append(request.request_id)
        self.sent[request.request_id] = tuple(sent)
        self.overtaken.discard(request.request_id)
        if hashes:
            self.forgotten.clear()

    def _withdrawn(
        self, request: str, answer: PairAnswer, before: tuple[str, tuple[str, ...] | None]
    ) -> Iterator[PairBreach]:
        if answer.travels:
            self.travelling.add(request)
            return
        self.undone = True
        if request in self.line:
            self.line.remove(request)
        processed, held = before
        if processed == request and None not in (held, answer.sender) and held != answer.sender:
            says = f"{request} is not sent; P0 held {_names(held)} before it, and holds "
            yield PairBreach("P5", says + _names(answer.sender))

    def _delivered(self, request: str, answer: PairAnswer) -> Iterator[PairBreach]:
        if request in self.line:
            passed = self.line[: self.line.index(request) + 1]
            self.line = self.line[len(passed) :]
        else:
            passed = [request]
        recent = [r for r in passed if r not in self.overtaken]
        items = {i.identifier for r in recent for i in self.requests[r].items}
        sent = self.sent.get(request, ())
        if answer.missed:
            yield PairBreach("P1", f"sent without data and not there: {_names(answer.missed)}")
        if answer.error is not None:
            if not all(sent):
                says = f"P1 fails at a request with an item without data: {answer.error}"
                yield PairBreach("P1", says)
            if answer.ended:
                yield PairBreach("P9", f"P1 ends, and not this request alone: {answer.error}")
        for place, (data, got) in enumerate(zip(sent, answer.data or (), strict=False)):
            own = origin(request, place)
            if data and got != own:
                yield PairBreach("P7", f"{own} was sent with its data, and P1 takes {got}")
        if answer.missed or answer.error is not None:
            return
        # A request without items is no item that was recorded after the clear.
        if self.renewed is not None and items:
            self.renewed |= items
            if answer.receiver is not None:
                old = set(answer.receiver) - self.renewed
                if old:
                    yield PairBreach("P6", f"P1 still holds {_names(old)} from before the clear")

    def _held(self, answer: PairAnswer) -> Iterator[PairBreach]:
        capacity = self.vector.parameters.capacity
        for side, keys in (("P0", answer.sender), ("P1", answer.receiver)):
            size = sum(self.sizes.get(h, 0) for h in keys or ())
            if size > capacity:
                yield PairBreach("P3", f"{side} holds {size} bytes of {capacity}")
        held, ordered = answer.receiver, answer.ordered
        if held is not None and ordered is not None and set(ordered) != set(held):
            yield PairBreach("P10", f"P1 holds {_names(held)}, and orders {_names(ordered)}")
        if not self.line and answer.sender is not None and answer.receiver is not None:
            mirrored = tuple(h for h in answer.receiver if h not in self.forgotten)
            if mirrored != answer.sender:
                says = f"P0 holds {_names(answer.sender)}, P1 holds {_names(answer.receiver)}"
                yield PairBreach("P2", says)


def _names(names: Sequence[str] | set[str] | None) -> str:
    listed = sorted(names) if isinstance(names, set) else list(names or ())
    return ", ".join(listed) or "nothing"
