"""Pair vectors: what they expect, what passes and what fails, and by which clause."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from mmcache_conformance.errors import TargetError, TargetNameError
from mmcache_conformance.oracle.decisions import explained
from mmcache_conformance.oracle.pair_decisions import model_answers
from mmcache_conformance.pairs.clauses import judge_pair
from mmcache_conformance.pairs.open import open_pair
from mmcache_conformance.suites.load import PAIRS, load_all, load_suite
from mmcache_conformance.verdicts.model import PairFailure, TargetReport
from mmcache_conformance.verdicts.run import exit_code, run_target
from mmcache_spec.evaluate.interpreter import ActionCall, Interpreter, State
from mmcache_spec.generate.pairs import design_of
from mmcache_spec.model.processor_cache import ProcessorCacheDesign, processor_cache
from mmcache_spec.model.processor_cache_variants import WRONG_PROCESSOR_CACHES
from mmcache_spec.pair import PairSystem, world_of
from mmcache_vectors import pair
from mmcache_vectors.manager import VectorError
from mmcache_vectors.pair import (
    ClearReceiver,
    ClearSender,
    Deliver,
    Invalidate,
    PairExpect,
    PairStep,
    PairVector,
    ProcessRequest,
    Withdraw,
    origin,
)

VECTORS = load_suite(None, PAIRS)
SHORT = [v for v in VECTORS if len(v.steps) <= 12]
BY_NAME = {v.name: v for v in WRONG_PROCESSOR_CACHES}


def run(name: str, vectors: Sequence[PairVector] = VECTORS) -> TargetReport:
    """In this process: to start one for every pair would take longer than all vectors."""
    return run_target(open_pair(name, in_process=True), vectors)


SENDER = "mmcache.processor_cache:Sender"


def bad(sender: str = SENDER, receiver: str = "") -> str:
    own = "tests.known_bad.pairs"
    sender = sender if ":" in sender else f"{own}:{sender}"
    receiver = f"{own}:{receiver}" if receiver else "mmcache.processor_cache:Receiver"
    return f"pair:{sender},{receiver}"


# --- what is expected ---------------------------------------------------------------------------


@pytest.mark.parametrize("vector", SHORT, ids=lambda v: v.id)
def test_the_interpreter_answers_as_the_vector_expects(vector: PairVector) -> None:
    """The answers were made by compiled calls; here the definitions are walked, item by item."""
    interpreter = Interpreter(processor_cache(), world_of(vector.parameters))
    state: State = interpreter.initial()
    requests = {r.request_id: r for r in vector.parameters.requests}
    travelling: list[str] = []

    def do(action: str, **arguments: str) -> object:
        nonlocal state
        step = interpreter.call(state, ActionCall(action, arguments))
        assert not step.refused_by, (action, arguments)
        assert not [p for p in interpreter.breaks(step) if p.clause]
        state = step.after
        return step.result

    def delivered(request: str) -> tuple[str, ...]:
        found: list[str] = []
        for place, item in enumerate(requests[request].items):
            do("deliver", input=origin(request, place))
            stored = [j for h, j in state["data_of"] if h == item.identifier]
            there = (item.identifier,) in state["receiver"]
            found += stored if there else [origin(request, place)]
        return tuple(found)

    for step in vector.steps:
        match step.call:
            case ProcessRequest(request):
                do("begin", request=request)
                places = range(len(requests[request].items))
                taken = [do("take", input=origin(request, place)) for place in places]
                assert step.expect.sent == tuple(not hit for hit in taken)
            case Deliver(request):
                while travelling:
                    delivered(travelling.pop())
                assert step.expect.data == delivered(request)
            case Withdraw(request):
                do("withdraw", request=request)
                travelling.append(request)
            case Invalidate(identifier):
                do("invalidate", hash=identifier)
            case ClearSender():
                do("clear_sender")
            case ClearReceiver():
                do("clear_receiver")


def test_every_wrong_decision_that_a_pair_can_take_has_a_vector() -> None:
    """P1 to P10."""
    killed = {name for vector in VECTORS for name in vector.kills}
    # When a message arrives is the harness's to decide.
    assert killed == BY_NAME.keys() - {"processor_delivers_out_of_order"}


@pytest.mark.parametrize("vector", SHORT, ids=lambda v: v.id)
def test_the_judge_finds_what_the_model_finds(vector: PairVector) -> None:
    """On the answers of each variant, by its own formulas on what was seen."""
    assert judge_pair(vector, model_answers(ProcessorCacheDesign(), vector)) is None
    for name in vector.kills:
        wrong = judge_pair(vector, model_answers(design_of(BY_NAME[name]), vector))
        assert wrong is not None, name
        if name == vector.variant:
            # P5 goes on to be broken; the judge tells it once, where the keys or an answer show it.
            assert set(vector.clauses) - {"P5"} <= {b.clause for b in wrong.breaches}


# --- what passes and what fails -----------------------------------------------------------------


def test_the_reference_passes() -> None:
    report = run("reference-pair")
    assert {v.outcome for v in report.verdicts} == {"pass"}
    assert exit_code([report]) == 0


def test_a_pair_that_undoes_what_it_recorded_passes() -> None:
    """A rejected request need not travel, if nothing of it is left, nor of what was built on it."""
    built_on = [v for v in VECTORS if _is_built_on_what_is_withdrawn(v)]
    others = [v for v in VECTORS if v not in built_on]
    assert {v.outcome for v in run(bad("UndoingSender"), others).verdicts} == {"pass"}
    assert {v.outcome for v in run(bad("UndoingSender"), built_on).verdicts} == {"fail"}


def _is_built_on_what_is_withdrawn(vector: PairVector) -> bool:
    last = ""
    for step in vector.steps:
        if isinstance(step.call, ProcessRequest):
            last = step.call.request
        elif isinstance(step.call, Withdraw) and step.call.request != last:
            return True
    return False


@pytest.mark.parametrize(
    ("sender", "receiver", "clause"),
    [
        ("BareSender", "", "P1"),
        ("", "UnorderedReceiver", "P2"),
        ("", "ClearingReceiver", "P2"),
        ("", "UnboundedReceiver", "P3"),
        ("EagerSender", "", "P4"),
        ("LosingSender", "", "P5"),
        ("MuteSender", "", "P6"),
        ("", "StaleReceiver", "P7"),
        ("ForgetfulSender", "", "P8"),
        ("", "AssertingReceiver", "P9"),
        ("", "CarelessReceiver", "P2"),
    ],
)
def test_a_wrong_pair_fails_by_its_clause(sender: str, receiver: str, clause: str) -> None:
    report = run(bad(sender or SENDER, receiver))
    broken = {c for v in report.verdicts if v.outcome == "fail" for c in v.broke or ()}
    assert clause in broken
    assert exit_code([report]) == 1


def test_a_call_that_never_ends_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10."""
    monkeypatch.setattr("mmcache_conformance.pairs.bounded.within.__defaults__", (0.2,))
    report = run(bad(receiver="WaitingReceiver"), VECTORS[:1])
    assert {c for v in report.verdicts for c in v.broke or ()} >= {"P10"}


def test_a_difference_that_breaks_no_clause_is_told_as_such() -> None:
    report = run(bad("HidingSender"))
    failing = [v for v in report.verdicts if v.outcome == "fail"]
    assert failing
    assert {v.broke for v in failing} == {()}
    failure = failing[0].failure
    assert isinstance(failure, PairFailure)
    assert [d.what for d in failure.differences] == ["sent"]


def test_the_decision_of_a_wrong_pair_is_named() -> None:
    """P5."""
    found = explained(run(bad("LosingSender")), VECTORS)
    names = {n for d in found.decisions for n in (d.name, *d.alternatives)}
    assert "processor_rejected_is_lost" in names
    assert not found.unexplained


def test_a_call_that_the_pair_does_not_have_is_no_failure() -> None:
    found = run(bad("tests.unit.conformance.test_pairs:WithoutInvalidate"))
    skipped = [v for v in found.verdicts if v.outcome == "skip"]
    assert skipped
    assert all("invalidate" in (v.reason or "") for v in skipped)
    assert {v.outcome for v in found.verdicts} == {"pass", "skip"}


class WithoutInvalidate:
    """A sender that is told of no miss."""

    def __init__(self, capacity: int) -> None:
        from mmcache.processor_cache import Sender

        sender: Sender[str] = Sender(capacity)
        self.process, self.clear, self.keys = sender.process, sender.clear, sender.keys


# --- names and files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pair:one", "give two classes"),
        ("pair:a:B,c", "give two classes"),
        ("vllm-processor-cache", "any of the words order, spare, travel, tell"),
        ("vllm-processor-cache:0.33.0:other", "does not name processor caches"),
        ("reference-pair:x", "does not name a pair"),
    ],
)
def test_a_name_that_is_none_is_refused(name: str, says: str) -> None:
    with pytest.raises(TargetNameError, match=says):
        open_pair(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vllm-processor-cache:0.10.2", "out of scope"),
        ("vllm-processor-cache:newest", "not a release"),
        ("pair:nowhere:A,nowhere:B", "nowhere:A"),
    ],
)
def test_what_cannot_be_started_says_why(name: str, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        open_pair(name).start()


def _changed(vector: PairVector, steps: tuple[PairStep, ...]) -> bytes:
    id = pair.content_id("pair-x", vector.parameters, steps)
    return pair.encode(msgspec.structs.replace(vector, id=id, steps=steps))


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ((PairStep(ProcessRequest("no"), PairExpect(sent=())),), "no request 'no'"),
        ((PairStep(Deliver("r1"), PairExpect(data=("r1/0",))),), "is not on its way"),
        ((PairStep(ProcessRequest("r1"), PairExpect(sent=())),), "0 answers about"),
        ((PairStep(ProcessRequest("r1")),), "is expected of this call"),
        ((PairStep(ClearSender(), PairExpect(sent=())),), "is no answer to it"),
        ((PairStep(Invalidate("no")),), "no item 'no'"),
    ],
)
def test_a_vector_that_contradicts_itself_is_refused(
    steps: tuple[PairStep, ...], says: str
) -> None:
    vector = next(v for v in VECTORS if v.id.startswith("pair-serial-mixed"))
    with pytest.raises(VectorError, match=says):
        pair.decode(_changed(vector, steps), "here.json")


def test_a_folder_may_have_all_kinds(tmp_path: Path) -> None:
    for vector in VECTORS[:2]:
        (tmp_path / f"{vector.id}.json").write_bytes(pair.encode(vector))
    assert load_all(tmp_path) == VECTORS[:2]
    assert load_suite(tmp_path, PAIRS) == VECTORS[:2]
    with pytest.raises(VectorError, match="no vectors here"):
        load_suite(tmp_path)


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(v, marks=[pytest.mark.slow] if len(v.steps) > 6 else [], id=v.id)
        for v in SHORT[::3]
    ],
)
def test_what_is_interpreted_and_what_is_compiled_answer_alike(
    vector: PairVector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call is interpreted at first, and compiled once it is made often."""
    for name in (None, *vector.kills):
        design = ProcessorCacheDesign() if name is None else design_of(BY_NAME[name])
        told: list[object] = []
        for often in (1, 10**6):
            monkeypatch.setattr("mmcache_spec.pair._OFTEN", often)
            system = PairSystem(vector.parameters, design, judged=True)
            answers = system.answers([step.call for step in vector.steps]) or []
            told.append([(answer, answer.broke) for answer in answers])
        assert told[0] == told[1]
