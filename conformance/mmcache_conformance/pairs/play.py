"""The calls of a case on two caches. The channel between them is here: it is the harness's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairCall,
    PairRequest,
    ProcessRequest,
    Withdraw,
)

from ..errors import AdapterError, describe_exception
from .bounded import NeverEnds, within
from .protocol import (
    NotOffered,
    PairAnswer,
    PairCase,
    PairMiss,
    PairSides,
    RequestFailed,
    SideEnded,
)

__all__ = ["answered", "asked", "play", "with_keys"]


def play(case: PairCase, sides: PairSides, *, guarded: bool = True) -> tuple[PairAnswer, ...]:
    """One answer a call, up to the first that fails.

    A call that may never come back is `guarded`. Raises `AdapterError` if a side does.
    """
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
            answer = asked(Deliver(first), sides, requests)
            if first == request_id:
                return answer
        raise AssertionError(f"{request_id} is not on its way")

    def done(call: PairCall) -> PairAnswer:
        """With what the channel has to do with it."""
        if isinstance(call, Deliver):
            return handed_over(call.request)
        answer = asked(call, sides, requests)
        if isinstance(call, ProcessRequest):
            behind.append(call.request)
        elif isinstance(call, Withdraw) and answer.travels:
            withdrawn.add(call.request)
        elif isinstance(call, Withdraw):
            behind.remove(call.request)
        return answer

    answers: list[PairAnswer] = []
    for call in case.calls:
        answer = answered(partial(done, call), delivers=isinstance(call, Deliver), guarded=guarded)
        if answer.not_offered is None and not answer.hangs:
            answer = with_keys(answer, sides)
        answers.append(answer)
        if answer.missed or answer.error is not None or answer.not_offered is not None:
            break
    return tuple(answers)


def asked(call: PairCall, sides: PairSides, requests: Mapping[str, PairRequest]) -> PairAnswer:
    """The call, made as it is. Raises what the side raises."""
    match call:
        case ProcessRequest(request):
            return PairAnswer(sent=sides.process(requests[request]))
        case Deliver(request):
            return PairAnswer(data=sides.deliver(request))
        case Withdraw(request):
            return PairAnswer(travels=sides.withdraw(request))
        case Invalidate(identifier):
            sides.invalidate(identifier)
        case ClearSender():
            sides.clear_sender()
        case ClearReceiver():
            sides.clear_receiver()
    return PairAnswer()


def answered(call: Callable[[], PairAnswer], *, delivers: bool, guarded: bool = True) -> PairAnswer:
    """What the call answers, or how it failed. Raises `AdapterError` if it does."""
    try:
        return within(call) if guarded else call()
    except AdapterError:
        raise
    except PairMiss as miss:
        return PairAnswer(missed=miss.hashes)
    except NeverEnds as error:
        return PairAnswer(error=str(error), ended=True, hangs=True)
    except NotOffered as error:
        return PairAnswer(not_offered=str(error))
    except RequestFailed as error:
        return PairAnswer(error=str(error))
    except SideEnded as error:
        return PairAnswer(error=str(error), ended=True)
    except Exception as error:
        return PairAnswer(error=describe_exception(error), ended=delivers)


def with_keys(answer: PairAnswer, sides: PairSides) -> PairAnswer:
    """The answer, and what the sides hold after it."""
    keys = sides.keys()
    return msgspec.structs.replace(
        answer, sender=keys.sender, receiver=keys.receiver, ordered=keys.ordered
    )
