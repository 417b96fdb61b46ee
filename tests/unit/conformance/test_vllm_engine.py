"""The mirrored worker, on a scheduler that orders what it is told to; vLLM itself is not needed.

What the real scheduler does with it is tested in `end_to_end/test_vllm_scheduler.py`.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from mmcache_conformance.engines.protocol import NotSupported
from mmcache_conformance.engines.vllm import engine as module
from mmcache_conformance.engines.vllm.engine import (
    EncoderCacheMiss,
    SchedulerSettings,
    VllmEngine,
)
from mmcache_conformance.engines.vllm.mirror import Mirror
from mmcache_conformance.engines.vllm.target import VllmScheduler
from mmcache_conformance.errors import TargetNameError


@dataclass(frozen=True)
class Feature:
    """An item, as vLLM hands it to a worker."""

    identifier: str
    mm_position: SimpleNamespace
    data: object = "pixels"


def feature(mm_hash: str, offset: int, length: int = 4, data: object = "pixels") -> Feature:
    return Feature(mm_hash, SimpleNamespace(offset=offset, length=length), data)


@dataclass
class Output:
    """What a scheduler orders in a pass, under vLLM's names."""

    scheduled_encoder_inputs: dict[str, list[int]] = field(default_factory=dict)
    num_scheduled_tokens: dict[str, int] = field(default_factory=dict)
    free_encoder_mm_hashes: list[str] = field(default_factory=list)
    scheduled_new_reqs: list[SimpleNamespace] = field(default_factory=list)
    scheduled_cached_reqs: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(req_ids=[], num_computed_tokens=[])
    )
    finished_req_ids: set[str] = field(default_factory=set)
    encoder_input_updates: dict[str, dict[int, object]] = field(default_factory=dict)


class Orders:
    """A scheduler that orders the outputs that it was given."""

    def __init__(self, *outputs: Output | Exception) -> None:
        self.outputs = list(outputs)
        self.updated = 0
        self.requests: dict[str, object] = {}
        self.running: list[object] = []
        self.encoder_cache_manager = SimpleNamespace(
            cached={},
            allocate=lambda request, input_id: None,
            check_and_update_cache=lambda request, input_id: input_id == 0,
            get_freed_mm_hashes=list,
        )

    def schedule(self) -> Output:
        found = self.outputs.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def update_from_output(self, output: Output, done: object) -> None:
        self.updated += 1

    def has_unfinished_requests(self) -> bool:
        return bool(self.outputs)

    def _preempt_request(self, request: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_worker_output", lambda scheduler, output: None)


def engine(
    monkeypatch: pytest.MonkeyPatch, *outputs: Output | Exception, second_runner: bool = False
) -> VllmEngine:
    monkeypatch.setattr(module, "make_scheduler", lambda settings: Orders(*outputs))
    return VllmEngine(SchedulerSettings(), second_runner=second_runner)


def first(
    *features: Feature, tokens: int, encode: tuple[int, ...], computed: int = 0, **more: Any
) -> Output:
    """A pass in which the request `r` runs for the first time."""
    new = SimpleNamespace(req_id="r", mm_features=list(features), num_computed_tokens=computed)
    return Output(
        scheduled_encoder_inputs={"r": list(encode)} if encode else {},
        num_scheduled_tokens={"r": tokens},
        scheduled_new_reqs=[new],
        **more,
    )


def then(computed: int, tokens: int, **more: Any) -> Output:
    """A later pass of `r`."""
    cached = SimpleNamespace(req_ids=["r"], num_computed_tokens=[computed])
    return Output(num_scheduled_tokens={"r": tokens}, scheduled_cached_reqs=cached, **more)


def test_it_encodes_gathers_and_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = engine(
        monkeypatch,
        first(feature("A", 4), feature("B", 8), tokens=8, encode=(0,)),
        then(8, 4, scheduled_encoder_inputs={"r": [1]}, free_encoder_mm_hashes=["A"]),
    )
    one, two = tested.run()
    assert (one.number, one.gathered, one.worker, one.peak) == (0, ("A",), ("A",), 4)
    assert one.scheduled_encoder_inputs == {"r": (0,)}
    assert one.starts == {"r": 0}
    assert (two.held_before, two.report, two.gathered) == (("A",), ("A",), ("B",))
    assert (two.number, two.worker, two.starts) == (1, ("B",), {"r": 8})
    assert tested.scheduler.updated == 2


@pytest.mark.parametrize(
    ("tokens", "computed", "gathered"), [(4, 0, ()), (5, 0, ("A",)), (4, 7, ("A",)), (4, 8, ())]
)
def test_what_the_tokens_overlap_is_gathered(
    tokens: int, computed: int, gathered: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The item takes the positions 4 to 7."""
    output = first(feature("A", 4), tokens=tokens, encode=(0,), computed=computed)
    assert engine(monkeypatch, output).record().gathered == gathered


def test_a_miss_is_told_and_ends_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    output = first(feature("A", 0), tokens=4, encode=())
    tested = engine(monkeypatch, output)
    record = tested.record()
    assert (record.missed, record.error) == (("A",), None)
    assert tested.scheduler.updated == 0
    with pytest.raises(EncoderCacheMiss, match="Encoder cache miss for A"):
        engine(monkeypatch, output).step()
    with pytest.raises(EncoderCacheMiss):
        engine(monkeypatch, output).run()


def test_what_has_no_payload_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    output = first(feature("A", 0, data=None), tokens=4, encode=(0,))
    record = engine(monkeypatch, output).record()
    assert (record.without_payload, record.worker, record.missed) == (("A",), (), ("A",))


def test_a_payload_that_is_sent_later_is_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    output = first(
        feature("A", 0, data=None),
        tokens=4,
        encode=(0,),
        encoder_input_updates={"r": {0: "pixels"}},
    )
    record = engine(monkeypatch, output).record()
    assert (record.without_payload, record.worker, record.missed) == ((), ("A",), ())


@pytest.mark.parametrize(("second_runner", "without"), [(False, ("A",)), (True, ())])
def test_the_second_runner_does_not_encode_what_it_holds(
    second_runner: bool, without: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    tested = engine(
        monkeypatch,
        first(feature("A", 0), feature("A", 8, data=None), tokens=4, encode=(0,)),
        then(4, 8, scheduled_encoder_inputs={"r": [1]}),
        second_runner=second_runner,
    )
    tested.record()
    assert tested.record().without_payload == without
    assert tested.scheduler.use_v2_model_runner is second_runner


def test_what_a_scheduler_raises_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = engine(monkeypatch, ValueError("no blocks"))
    tested.worker.held.add("A")
    record = tested.record()
    assert str(record.error).startswith("ValueError: no blocks")
    assert record.held_before == ("A",)
    with pytest.raises(RuntimeError, match="no blocks"):
        engine(monkeypatch, ValueError("no blocks")).step()


def test_it_listens_at_the_ledger_and_at_preemptions(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = engine(monkeypatch)
    request = SimpleNamespace(request_id="r")

    def schedule(self: Orders) -> Output:
        manager = self.encoder_cache_manager
        manager.cached["A"] = {"r"}
        manager.allocate(request, 1)
        assert manager.check_and_update_cache(request, 0) is True
        assert manager.check_and_update_cache(request, 2) is False
        self._preempt_request(request)
        manager.get_freed_mm_hashes()
        return Output()

    tested.scheduler.schedule = types.MethodType(schedule, tested.scheduler)
    for _ in range(2):
        record = tested.record()
        assert (record.allocated, record.hits) == ((("r", 1),), (("r", 0),))
        assert (record.preempted, record.cached) == (("r",), ("A",))
        assert record.references == {"A": ("r",)}


@pytest.mark.parametrize(
    ("held", "gathered", "missed", "told"),
    [
        ("A", "A", "", None),
        ("AB", "A", "", "it holds A, B, not A"),
        ("", "A", "", "it holds nothing, not A"),
        ("A", "", "", "it gathers nothing, not A"),
        ("A", "A", "A", "it misses A, not nothing"),
        ("B", "AB", "", "it holds B, not A, and gathers A, B, not A"),
    ],
)
def test_a_runner_that_does_not_as_its_mirror_does(
    monkeypatch: pytest.MonkeyPatch, held: str, gathered: str, missed: str, told: str | None
) -> None:
    tested = engine(monkeypatch, first(feature("A", 0), tokens=4, encode=(0,)))
    output = tested.scheduler.schedule()
    mirror = Mirror()
    said = mirror.unlike(mirror.step(output), set(held), set(gathered), missed)
    assert (said is None) == (told is None)
    assert (told or "") in (said or "")


def test_what_a_runner_gathers_after_a_miss_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = engine(monkeypatch, first(feature("A", 0), feature("B", 4), tokens=8, encode=()))
    mirror = Mirror()
    work = mirror.step(tested.scheduler.schedule())
    assert work.missed == ("A", "B")
    assert mirror.unlike(work, set(), {"A"}, "A") is None


def test_a_reset_forgets_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = engine(monkeypatch)
    tested.worker.held.add("A")
    with pytest.raises(NotSupported, match="cannot reset"):
        tested.reset()
    tested.scheduler.reset_encoder_cache = lambda: None
    tested.reset()
    assert tested.worker.held == set()


@pytest.mark.parametrize(
    "words", ["scheduler=", "scheduler=a", "scheduler=a:", "scheduler=a:B:scheduler=a:C", "a:B",
              "scheduler=a b:C", "scheduler=a:B:C"],
)  # fmt: skip
def test_what_names_no_scheduler_class_is_said(words: str) -> None:
    with pytest.raises(TargetNameError, match=r"give one scheduler|does not name a scheduler"):
        VllmScheduler(f"vllm-scheduler:{words}")


def test_the_name_of_a_scheduler_class_is_kept_apart_from_the_words() -> None:
    target = VllmScheduler("vllm-scheduler:v2:scheduler=a.b:C.D:skip")
    assert (target._class, target._words) == ("a.b:C.D", frozenset({"v2", "skip"}))
