"""The manager that answers quickly answers as the interpreter's does."""

from __future__ import annotations

from random import Random

import pytest

from mmcache_conformance.suites.load import load_suite
from mmcache_spec.answering import Answering
from mmcache_spec.kernel.system import TransitionSystem
from mmcache_spec.model.decisions import DECISIONS, system_of
from mmcache_spec.model.encoder_decoder import encoder_decoder
from mmcache_spec.model.ledger import ledger
from mmcache_spec.oracle import Replay, input_name
from mmcache_vectors.manager import (
    Allocate,
    Call,
    CanAllocate,
    CheckAndUpdateCache,
    Free,
    FreeEncoderInput,
    GetFreedMmHashes,
    Item,
    Parameters,
    Request,
    Reset,
    Vector,
)

_SYSTEMS = {"ledger": ledger(), "encoder_decoder": encoder_decoder()}
_SHORT = 20
SUITE = {v.id: v for v in load_suite() if isinstance(v, Vector)}


def _alike(system: TransitionSystem, parameters: Parameters, calls: list[Call]) -> int:
    """How many of the calls are answered; every answer and state is compared."""
    slow, quick = Replay(system, parameters, record=False), Answering(system, parameters)
    for call in calls:
        assert quick.answer(call) == slow.answer(call), call
    if "references" in slow.state:
        world = slow.interpreter.world
        for request in parameters.requests:
            for k in range(len(request.items)):
                pair = world.functions["hash_of"][input_name(request.request_id, k)]
                expected = (pair, request.request_id) in slow.state["references"]
                assert quick.references(request.request_id, k) == expected
    return len(slow.steps)


@pytest.mark.parametrize(
    "name", [*_SYSTEMS, *(pytest.param(n, marks=pytest.mark.slow) for n in DECISIONS)]
)
def test_it_answers_the_calls_of_the_vectors_alike(name: str) -> None:
    """The calls after one that is refused as well; a decision goes where no vector is about it."""
    system = _SYSTEMS[name] if name in _SYSTEMS else system_of([name])
    kind = "encoder_decoder" if system.name == "encoder_decoder" else "encoder_cache"
    vectors = [v for v in SUITE.values() if v.manager == kind and len(v.steps) <= _SHORT]
    assert len(vectors) > 10
    assert all(_alike(system, v.parameters, [s.call for s in v.steps]) for v in vectors)


@pytest.mark.slow
def test_it_answers_all_vectors_alike() -> None:
    for vector in SUITE.values():
        system = _SYSTEMS["ledger" if vector.manager == "encoder_cache" else "encoder_decoder"]
        assert _alike(system, vector.parameters, [s.call for s in vector.steps])


@pytest.mark.parametrize("name", _SYSTEMS)
def test_one_identifier_with_two_sizes(name: str) -> None:
    """Refused while the other is known, and any call in any state besides."""
    random, refused = Random(name), 0
    requests = (
        Request("a", (Item("X", 1), Item("Y", 2), Item("X", 1))),
        Request("b", (Item("X", 2), Item("Z", 1))),
        Request("c", ()),
    )
    for _ in range(80):
        calls = [_any_call(random, requests) for _ in range(30)]
        made = _alike(_SYSTEMS[name], Parameters(3, requests), calls)
        refused += len(calls) - made
    assert refused > 20


def _any_call(random: Random, requests: tuple[Request, ...]) -> Call:
    request = random.choice(requests)
    if not request.items or random.random() < 0.15:
        return random.choice((Free(request.request_id), GetFreedMmHashes(), Reset()))
    k = random.randrange(len(request.items))
    place = request.request_id, k
    amounts = random.randrange(4), random.randrange(3)
    return random.choice(
        (
            CheckAndUpdateCache(*place),
            CanAllocate(*place, *amounts),
            Allocate(*place),
            FreeEncoderInput(*place),
        )
    )


def test_without_the_state_it_answers_the_same() -> None:
    parameters = Parameters(2, (Request("a", (Item("X", 1),)),))
    quick, shown = (Answering(ledger(), parameters) for _ in range(2))
    for call in (Allocate("a", 0), Allocate("a", 0), FreeEncoderInput("a", 0), GetFreedMmHashes()):
        bare, whole = quick.answer(call, shown=False), shown.answer(call)
        assert bare is not None
        assert whole is not None
        assert bare.returns == whole.returns
        assert bare.observe.cached is None
    assert quick.made(CheckAndUpdateCache("a", 0))
    assert not quick.made(CanAllocate("a", 0, 1, 0))
