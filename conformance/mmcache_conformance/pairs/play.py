"""The calls of a case on two caches. The channel between them is here: it is the harness's."""

from __future__ import annotations

from collections.abc import Callable

from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    ProcessRequest,
    Withdraw,
)

from ..errors import describe_exception
from .bounded import NeverEnds, within
from .protocol import NotOffered, PairAnswer, PairCase, PairMiss, PairSides, RequestFailed

__all__ = ["play"]


def play(case: PairCase, sides: PairSides) -> tuple[PairAnswer, ...]:
    """One answer a call, up to the first that fails."""
    requests = {r.request_id: r for r in case.parameters.requests}
    behind: list[str] = []
    """What was withdrawn and travels all the same, with what is on its way, in order."""
    withdrawn: set[str] = set()

    def handed_over(request_id: str) -> PairAnswer:
        while behind:
            first = behind.pop(0)
            if first != request_id and first not in withdrawn:
                raise AssertionError(f"{first} is ahead of {request_id}")
            withdrawn.discard(first)
            data = sides.deliver(first)
            if first == request_id:
                return PairAnswer(data=data)
        raise AssertionError(f"{request_id} is not on its way")

    def done(call: PairCall) -> PairAnswer:
        match call:
            case ProcessRequest(request):
                sent = sides.process(requests[request])
                behind.append(request)
                return PairAnswer(sent=sent)
            case Deliver(request):
                return handed_over(request)
            case Withdraw(request):
                travels = sides.withdraw(request)
                if travels:
                    withdrawn.add(request)
                else:
                    behind.remove(request)
                return PairAnswer(travels=travels)
            case Invalidate(identifier):
                sides.invalidate(identifier)
            case ClearSender():
                sides.clear_sender()
            case ClearReceiver():
                sides.clear_receiver()
        return PairAnswer()

    answers: list[PairAnswer] = []
    for call in case.calls:
        answer = _answered(call, done)
        if answer.not_offered is None and not answer.hangs:
            answer = _with_keys(answer, sides)
        answers.append(answer)
        if answer.missed or answer.error is not None or answer.not_offered is not None:
            break
    return tuple(answers)


def _answered(call: PairCall, done: Callable[[PairCall], PairAnswer]) -> PairAnswer:
    try:
        return within(lambda: done(call))
    except PairMiss as miss:
        return PairAnswer(missed=miss.hashes)
    except NeverEnds as error:
        return PairAnswer(error=str(error), ended=True, hangs=True)
    except NotOffered as error:
        return PairAnswer(not_offered=str(error))
    except RequestFailed as error:
        return PairAnswer(error=str(error))
    except Exception as error:
        return PairAnswer(error=describe_exception(error), ended=isinstance(call, Deliver))


def _with_keys(answer: PairAnswer, sides: PairSides) -> PairAnswer:
    keys = sides.keys()
    return PairAnswer(
        sent=answer.sent,
        data=answer.data,
        travels=answer.travels,
        missed=answer.missed,
        error=answer.error,
        ended=answer.ended,
        hangs=answer.hangs,
        sender=keys.sender,
        receiver=keys.receiver,
        ordered=keys.ordered,
    )
