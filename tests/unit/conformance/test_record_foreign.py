"""The recorder sees managers and schedulers of any class, and says what it could not see."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmcache import EncoderCacheManager
from mmcache_conformance.cli import cli
from mmcache_conformance.logs.format import NEEDED_CALLS
from mmcache_conformance.logs.record import Recorder, record_class, record_scheduler
from tests.support.logs import SIZES, fresh_classes, work
from tests.support.plain_managers import Manager as Plain
from tests.support.requests import Item, Request


def events_in(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(x) for p in sorted(directory.glob("*.jsonl")) for x in p.open()]


def check(directory: Path, *words: str) -> Result:
    paths = [str(p) for p in sorted(directory.glob("*.jsonl"))]
    return CliRunner().invoke(cli, ["check", *paths, *words])


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path, "a test")


@pytest.fixture
def base(recorder: Recorder) -> type[EncoderCacheManager]:
    """vLLM's class, as far as the recorder knows, which is recorded."""
    cls, _ = fresh_classes()
    record_class(cls, "encoder_cache", recorder)
    return cls


# --- managers of other classes -----------------------------------------------------------------


def overriding(base: Any) -> type[Any]:
    """It inherits from vLLM's class, and does everything itself, as a plugged-in manager does."""

    class Foreign(base):  # type: ignore[misc]
        def __init__(self, cache_size: int) -> None:
            super().__init__(cache_size)
            self._own = Plain(cache_size)

        def check_and_update_cache(self, request: Any, input_id: int) -> bool:
            return self._own.check_and_update_cache(request, input_id)

        def can_allocate(self, request: Any, input_id: int, budget: int, pending: int = 0) -> bool:
            return self._own.can_allocate(request, input_id, budget, pending)

        def allocate(self, request: Any, input_id: int) -> None:
            self._own.allocate(request, input_id)

        def free_encoder_input(self, request: Any, input_id: int) -> None:
            self._own.free_encoder_input(request, input_id)

        def free(self, request: Any) -> None:
            self._own.free(request)

        def get_freed_mm_hashes(self) -> list[str]:
            return self._own.get_freed_mm_hashes()

        def reset(self) -> None:
            if hasattr(self, "_own"):
                self._own.reset()

        def get_cached_input_ids(self, request: Any) -> set[int]:
            return self._own.get_cached_input_ids(request)

    return Foreign


def evicting_the_used(base: Any) -> type[Any]:
    """The same, and it evicts what a request still needs."""

    class Broken(overriding(base)):  # type: ignore[misc]
        def can_allocate(self, request: Any, input_id: int, budget: int, pending: int = 0) -> bool:
            self._own.idle += [h for h in self._own.sizes if h not in self._own.idle]
            return bool(self._own.can_allocate(request, input_id, budget, pending))

    return Broken


def test_a_class_that_overrides_everything_is_recorded_whole(
    base: Any, recorder: Recorder, tmp_path: Path
) -> None:
    work(overriding(base)(12), 40, 3, SIZES)
    recorder.close()
    seen = {e.get("op") for e in events_in(tmp_path)}
    assert seen >= set(NEEDED_CALLS)
    done = check(tmp_path)
    assert (done.exit_code, ": allowed;" in done.output) == (0, True)


def test_its_faults_are_found(base: Any, recorder: Recorder, tmp_path: Path) -> None:
    manager = evicting_the_used(base)(4)
    one, other = Request("r1", (Item("A", 3),)), Request("r2", (Item("B", 3),))
    for request in (one, other):
        assert not manager.check_and_update_cache(request, 0)
        assert manager.can_allocate(request, 0, 10, 0)
        manager.allocate(request, 0)
    manager.get_freed_mm_hashes()
    recorder.close()
    done = check(tmp_path)
    assert (done.exit_code, ": allowed;" in done.output) == (1, False)


def test_two_classes_in_one_process_are_recorded_once_each(
    base: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """The methods of the class above are wrapped, too: its calls from below are its own affair."""

    class Extending(base):  # type: ignore[misc]
        def allocate(self, request: Any, input_id: int) -> None:
            super().allocate(request, input_id)

    request = Request("r", (Item("A", 1),))
    for cls in (base, Extending, base):
        cls(4).allocate(request, 0)
    recorder.close()
    ops = [e["op"] for e in events_in(tmp_path)[1:]]
    assert ops == ["new", "allocate"] * 3 + ["end"] * 3


def test_named_arguments_may_have_other_names(
    base: Any, recorder: Recorder, tmp_path: Path
) -> None:
    manager = overriding(base)(4)
    manager.can_allocate(Request("r", (Item("A", 1),)), 0, pending=1, budget=7)
    recorder.close()
    (asked,) = (e for e in events_in(tmp_path) if e.get("op") == "can_allocate")
    assert (asked["encoder_compute_budget"], asked["num_embeds_to_schedule"]) == (7, 1)


def uncallable(base: Any) -> type[Any]:
    class Uncallable(base):  # type: ignore[misc]
        allocate = property(lambda self: lambda request, input_id: None)

    return Uncallable


def on_the_object(base: Any) -> type[Any]:
    class OnTheObject(base):  # type: ignore[misc]
        def __init__(self, cache_size: int) -> None:
            super_allocate = super().allocate
            self.allocate = lambda request, input_id: super_allocate(request, input_id)
            super().__init__(cache_size)

    return OnTheObject


def another_signature(base: Any) -> type[Any]:
    class Another(base):  # type: ignore[misc]
        def allocate(self, request: Any) -> None:
            pass

    return Another


@pytest.mark.parametrize("make", [uncallable, on_the_object, another_signature])
def test_what_cannot_be_recorded_is_never_called_allowed(
    make: Callable[[Any], Any],
    base: Any,
    recorder: Recorder,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = make(base)(4)
    manager.get_freed_mm_hashes()
    recorder.close()
    assert "allocate cannot be recorded" in caplog.text
    done = check(tmp_path)
    assert (done.exit_code, ": allowed;" in done.output) == (2, False)
    assert "`allocate` was not recorded" in done.output


def test_the_first_line_says_what_is_recorded(
    base: Any, recorder: Recorder, tmp_path: Path
) -> None:
    base(4)
    uncallable(base)(4)
    recorder.close()
    header, first, second, *_ = events_in(tmp_path)
    assert set(header["records"]) == {*NEEDED_CALLS, "reset"}
    assert first["records"] is None
    assert set(second["records"]) == {*NEEDED_CALLS, "reset"} - {"allocate"}


# --- schedulers --------------------------------------------------------------------------------


class Scheduler:
    """As much of a scheduler as the recorder looks at. `keeps` is the phantom entry."""

    manager_class: Any = None

    def __init__(self, capacity: int, *, keeps: bool = False, connector: object = None) -> None:
        self.encoder_cache_manager = self.manager_class(capacity)
        self.requests: dict[str, Request] = {}
        self.ec_connector = connector
        self.keeps = keeps

    def schedule(
        self,
        *requests: Request,
        preempted: str = "",
        new: dict[str, tuple[object, ...]] | None = None,
        updates: dict[str, dict[int, object]] | None = None,
        finished: tuple[str, ...] = (),
    ) -> Any:
        """`new`: by request, the raw items that the worker gets; None is none."""
        manager = self.encoder_cache_manager
        orders: dict[str, list[int]] = {}
        for request in requests:
            self.requests[request.request_id] = request
            for k in range(len(request.mm_features)):
                if manager.check_and_update_cache(request, k):
                    continue
                if manager.can_allocate(request, k, 10**6, 0):
                    manager.allocate(request, k)
                    orders.setdefault(request.request_id, []).append(k)
        if preempted:
            gone = orders.pop(preempted, [])
            manager.free(self.requests[preempted])
            if not self.keeps:
                for k in gone:
                    orders.setdefault("other", []).append(k)
                self.requests["other"] = self.requests[preempted]
        freed = manager.get_freed_mm_hashes()
        output = SimpleNamespace(scheduled_encoder_inputs=orders, free_encoder_mm_hashes=freed)
        if new is not None:
            output.finished_req_ids = finished
            output.encoder_input_updates = updates
            output.scheduled_new_reqs = [
                SimpleNamespace(req_id=r, mm_features=[SimpleNamespace(data=d) for d in data])
                for r, data in new.items()
            ]
        return output


@pytest.fixture
def scheduler(recorder: Recorder) -> type[Any]:
    ledger, _ = fresh_classes()
    record_class(ledger, "encoder_cache", recorder)
    cls = type("Recorded", (Scheduler,), {"manager_class": ledger})
    record_scheduler(cls, recorder)
    return cls


A = Request("r1", (Item("A", 2), Item("B", 1)))
C = Request("r2", (Item("C", 3),))


def test_the_orders_of_the_passes_are_recorded_and_judged(
    scheduler: Any, recorder: Recorder, tmp_path: Path
) -> None:
    made = scheduler(4)
    made.schedule(A)
    made.encoder_cache_manager.free(A)
    made.schedule(C)
    recorder.close()
    passes = [e for e in events_in(tmp_path) if e.get("op") == "pass"]
    assert [e["encode"] for e in passes] == [["A", "B"], ["C"]]
    assert [e["drop"] for e in passes] == [[], ["A"]]
    assert passes[0]["load"] == []
    done = check(tmp_path)
    assert done.exit_code == 0
    assert "not judged: S1: no step of a worker" in done.output
    assert "S2" not in done.output


def test_the_phantom_entry_is_seen_in_the_pass_that_makes_it(
    scheduler: Any, recorder: Recorder, tmp_path: Path
) -> None:
    made = scheduler(4, keeps=True)
    made.schedule(A, preempted="r1")
    made.schedule(A)
    recorder.close()
    done = check(tmp_path)
    assert done.exit_code == 1
    assert "the ledger has cached what the pass orders nobody to make: A, B" in done.output
    assert "S2 hit_is_materialised" in done.output
    last = next(k for k, e in enumerate(events_in(tmp_path), 1) if e.get("op") == "pass")
    assert f"ILLEGAL at line {last}: pass" in done.output


def test_handed_over_it_is_allowed(scheduler: Any, recorder: Recorder, tmp_path: Path) -> None:
    scheduler(4).schedule(A, preempted="r1")
    recorder.close()
    assert check(tmp_path).exit_code == 0


def test_what_a_connector_may_have_loaded_is_not_judged_and_said(
    scheduler: Any, recorder: Recorder, tmp_path: Path
) -> None:
    scheduler(4, keeps=True, connector=object()).schedule(A, preempted="r1")
    recorder.close()
    done = check(tmp_path)
    assert done.exit_code == 0
    assert "not judged: S2, in part: what a connector loads is not in the log" in done.output


def test_a_scheduler_below_and_a_manager_of_another_make_are_recorded(
    scheduler: Any, recorder: Recorder, tmp_path: Path
) -> None:
    class Below(scheduler):  # type: ignore[misc]
        manager_class = Plain  # inherits from nothing that is known

        def schedule(self, *requests: Request, preempted: str = "") -> Any:
            return super().schedule(*requests, preempted=preempted)

    scheduler(4).schedule(A)
    Below(4, keeps=True).schedule(A, preempted="r1")
    recorder.close()
    ops = [e.get("op") for e in events_in(tmp_path)]
    assert (ops.count("new"), ops.count("pass")) == (2, 2)
    assert check(tmp_path).exit_code == 1


def test_a_scheduler_of_another_make_goes_on(
    recorder: Recorder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Other:
        def __init__(self) -> None:
            self.cache = 1

        def schedule(self) -> int:
            return self.cache

    record_scheduler(Other, recorder)
    with caplog.at_level(logging.WARNING):
        assert Other().schedule() == 1
    assert "Other is not recorded" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_an_output_of_another_shape_ends_the_recording_only(
    scheduler: Any, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    class Below(scheduler):  # type: ignore[misc]
        def schedule(self) -> int:
            return 7

    assert Below(4).schedule() == 7
    assert "ends" in caplog.text


# --- logs from which nothing follows -----------------------------------------------------------


def log(directory: Path, records: object, *ops: str) -> Path:
    path = directory / "a.jsonl"
    header = {"format": "mmcache/log", "format_version": 1, "producer": "a test"}
    lines: list[dict[str, Any]] = [header if records is None else {**header, "records": records}]
    lines.append({"op": "new", "kind": "encoder_cache", "cache_size": 4})
    item = {"request": "r", "input_id": 0, "identifier": "A", "num_embeds": 1}
    of: dict[str, dict[str, Any]] = {
        "check_and_update_cache": {**item, "returns": False},
        "can_allocate": {
            **item, "encoder_compute_budget": 4, "num_embeds_to_schedule": 0, "returns": True
        },
        "allocate": item,
        "free_encoder_input": {"request": "r", "input_id": 0},
        "free": {"request": "r"},
        "get_freed_mm_hashes": {"returns": []},
    }  # fmt: skip
    lines += [{"op": op, **of.get(op, {})} for op in ops]
    for seq, line in enumerate(lines[1:]):
        line |= {"manager": "m", "seq": seq}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


WHOLE = ("check_and_update_cache", "can_allocate", "allocate", "get_freed_mm_hashes", "end")
ALL = [*NEEDED_CALLS, "reset"]


@pytest.mark.parametrize(
    ("records", "ops", "code"),
    [
        (ALL, WHOLE, 0),
        (None, WHOLE, 0),
        (None, ("free", "free", "end"), 3),
        (ALL, ("free", "free", "end"), 3),
        (ALL, ("free_encoder_input", "allocate"), 3),
        (ALL, (), 3),
        (ALL, ("end",), 3),
        (ALL, ("pass", "end"), 3),
        (None, ("check_and_update_cache", "get_freed_mm_hashes"), 3),
        (None, ("check_and_update_cache", "allocate"), 3),
        (None, ("allocate", "get_freed_mm_hashes"), 3),
        ([], WHOLE, 2),
        *(([c for c in ALL if c != lost], WHOLE, 2) for lost in NEEDED_CALLS),
        (["allocate"], ("free",), 2),
        (list(NEEDED_CALLS), WHOLE, 0),
    ],
)
def test_a_log_is_called_allowed_only_if_something_follows(
    tmp_path: Path, records: object, ops: tuple[str, ...], code: int
) -> None:
    done = CliRunner().invoke(cli, ["check", str(log(tmp_path, records, *ops))])
    assert done.exit_code == code, done.output
    assert (": allowed;" in done.output) is (code == 0)


class TestPayloads:
    """Whether the worker was ever sent the raw item of what it is ordered to encode."""

    @staticmethod
    def lacking(scheduler: Any, recorder: Recorder, folder: Path, *passes: dict[str, Any]) -> Any:
        made = scheduler(9)
        for given in passes:
            made.schedule(*given.pop("of", ()), **given)
        recorder.close()
        return [e["without_payload"] for e in events_in(folder) if e.get("op") == "pass"]

    def test_a_stripped_one_is_noted_when_it_is_ordered(
        self, scheduler: Any, recorder: Recorder, tmp_path: Path
    ) -> None:
        first = {"new": {"r1": (None, "raw")}}
        assert self.lacking(scheduler, recorder, tmp_path, first, {"of": [A], "new": {}}) == [
            [],
            ["A"],
        ]
        told = check(tmp_path)
        assert told.exit_code == 1
        assert "S8 scheduled_encode_has_payload" in told.output
        assert "payload_stripped_under_prefix_hit" in told.output.splitlines()[1]

    @pytest.mark.parametrize(
        "passes",
        [
            [{"of": [A], "new": {"r1": ("raw", "raw")}}],
            [{"new": {"r1": (None, "raw")}}, {"of": [A], "new": {}, "updates": {"r1": {0: "raw"}}}],
            [{"new": {"r1": (None, None)}}, {"of": [A], "new": {"r1": ("raw", "raw")}}],
            [
                {"new": {"r1": (None, None)}},
                {"new": {}, "finished": ("r1",)},
                {"of": [A], "new": {"r1": ("raw", "raw")}},
            ],
        ],
        ids=["sent", "sent with the order", "sent again", "a request of the same name"],
    )
    def test_what_was_sent_in_time(
        self, scheduler: Any, recorder: Recorder, tmp_path: Path, passes: list[dict[str, Any]]
    ) -> None:
        assert self.lacking(scheduler, recorder, tmp_path, *passes)[-1] == []
        assert check(tmp_path).exit_code == 0

    def test_outputs_that_do_not_say(
        self, scheduler: Any, recorder: Recorder, tmp_path: Path
    ) -> None:
        assert self.lacking(scheduler, recorder, tmp_path, {"of": [A]}) == [None]
