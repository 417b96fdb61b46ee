"""The recorder sees everything, changes nothing, and never harms."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mmcache_conformance.logs.check import check_log
from mmcache_conformance.logs.record import VARIABLE, Recorder, record_class, vllm_plugin
from tests.support.logs import SIZES, fresh_classes, work
from tests.support.requests import Item, Request


def log_of(directory: Path) -> Any:
    (path,) = directory.glob("*.jsonl")
    return path.read_bytes().splitlines(keepends=True)


def ops(directory: Path) -> list[str]:
    import json

    return [json.loads(line).get("op", "header") for line in log_of(directory)]


@pytest.fixture
def ledger(tmp_path: Path) -> Any:
    """A class that is recorded, and its recorder."""
    cls, _ = fresh_classes()
    recorder = Recorder(tmp_path, "a test")
    record_class(cls, "encoder_cache", recorder)
    return cls, recorder


def test_calls_that_a_manager_makes_of_itself_are_its_own_affair(
    ledger: Any, tmp_path: Path
) -> None:
    cls, recorder = ledger

    class Deep(cls):  # type: ignore[valid-type, misc]  # a class that is made when it is asked for
        def __init__(self, cache_size: int) -> None:
            super().__init__(cache_size)
            self.ready = True

        def free(self, request: Any) -> None:
            for input_id in list(self.get_cached_input_ids(request)):
                self.free_encoder_input(request, input_id)

    record_class(Deep, "encoder_cache", recorder)
    manager, request = Deep(8), Request("r", (Item("A", 4),))
    manager.allocate(request, 0)
    manager.free(request)
    recorder.close()
    assert ops(tmp_path) == ["header", "new", "allocate", "free", "end"]


def test_a_recorded_manager_answers_as_before(ledger: Any, tmp_path: Path) -> None:
    recorded, recorder = ledger
    plain, _ = fresh_classes()
    one, other = recorded(12), plain(12)
    for manager in (one, other):
        work(manager, 100, 5, SIZES)
    shown = ("cached", "freeable", "freed", "num_free_slots", "num_freeable_slots")
    assert all(getattr(one, name) == getattr(other, name) for name in shown)
    recorder.close()
    lines = log_of(tmp_path)
    assert check_log(lambda: lines, "log").illegal is None


def test_arguments_may_be_named(ledger: Any, tmp_path: Path) -> None:
    cls, recorder = ledger
    manager, request = cls(8), Request("r", (Item("A", 4),))
    assert manager.check_and_update_cache(request=request, input_id=0) is False
    assert manager.can_allocate(request, 0, encoder_compute_budget=8, num_embeds_to_schedule=0)
    recorder.close()
    assert ops(tmp_path)[2:] == ["check_and_update_cache", "can_allocate", "end"]


def test_an_exception_of_the_manager_passes_and_ends_its_recording(
    ledger: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cls, recorder = ledger
    manager, request = cls(2), Request("r", (Item("A", 4),))
    with pytest.raises(ValueError, match="needs 4 embeddings"):
        manager.allocate(request, 0)
    manager.get_freed_mm_hashes()
    recorder.close()
    assert ops(tmp_path) == ["header", "new"]
    assert "allocate raised NoRoomError" in caplog.text


def test_a_request_of_another_shape_ends_the_recording_only(
    ledger: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cls, recorder = ledger

    class Other:
        request_id = "r"
        mm_features = ("A",)

    manager = cls(8)
    with pytest.raises(AttributeError):
        manager.check_and_update_cache(Other(), 0)
    other = cls(8)
    other.free(type("Nameless", (), {"request_id": 7})())
    other.get_freed_mm_hashes()
    recorder.close()
    assert "ends" in caplog.text


def test_a_full_or_missing_disk_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cls, _ = fresh_classes()
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    record_class(cls, "encoder_cache", Recorder(in_the_way / "below", "a test"))
    manager = cls(8)
    assert manager.get_freed_mm_hashes() == []
    assert "not recorded" in caplog.text


def test_a_class_with_another_api_is_refused(tmp_path: Path) -> None:
    class Changed:
        def check_and_update_cache(self, request: Any) -> bool:
            return False

    with pytest.raises(TypeError, match="not the method that it used to be"):
        record_class(Changed, "encoder_cache", Recorder(tmp_path, "a test"))


# --- the plugin --------------------------------------------------------------------------------


@pytest.fixture
def fake_vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A vLLM of which only the manager module exists."""
    names = ("vllm", "vllm.v1", "vllm.v1.core", "vllm.v1.core.encoder_cache_manager")
    modules = {name: ModuleType(name) for name in names}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    managers = modules[names[-1]]
    kinds = ("EncoderCacheManager", "EncoderDecoderCacheManager")
    vars(managers).update(zip(kinds, fresh_classes(), strict=True))
    return managers


def test_without_the_variable_nothing_happens(
    fake_vllm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    before = fake_vllm.EncoderCacheManager.free
    vllm_plugin()
    assert fake_vllm.EncoderCacheManager.free is before


def test_with_the_variable_managers_are_recorded(
    fake_vllm: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "logs"))
    vllm_plugin()
    manager = fake_vllm.EncoderCacheManager(8)
    work(manager, 20, 1, SIZES)
    fake_vllm.EncoderDecoderCacheManager(8)
    lines = log_of(tmp_path / "logs")
    found = check_log(lambda: lines, "log")
    assert found.illegal is None
    assert found.managers == 2
    assert len(found.unfinished) == 2


def test_another_api_is_a_warning(
    fake_vllm: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    del fake_vllm.EncoderCacheManager.can_allocate
    monkeypatch.setattr(fake_vllm, "EncoderCacheManager", type("Empty", (), {}))
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with caplog.at_level(logging.WARNING):
        vllm_plugin()
    assert "nothing is recorded" in caplog.text
    assert list(tmp_path.iterdir()) == []


def test_no_vllm_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    vllm_plugin()
    assert "nothing is recorded" in caplog.text


def test_the_entry_point_is_the_plugin() -> None:
    from importlib.metadata import entry_points

    (found,) = entry_points(group="vllm.general_plugins", name="mmcache_record")
    assert found.load() is vllm_plugin


# --- the real one ------------------------------------------------------------------------------


def test_a_real_scheduler_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vLLM is installed: its own plugin loader, its own scheduler."""
    pytest.importorskip("vllm.v1.core.sched.scheduler")
    from vllm import plugins

    from mmcache_conformance.engines.vllm import engine as real

    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setattr(plugins, "plugins_loaded", False)
    plugins.load_general_plugins()
    engine = real.VllmEngine(real.SchedulerSettings())
    engine.add("a", 8, [real.WorkloadItem("X", 2, 4)], max_tokens=3)
    engine.add("b", 10, [real.WorkloadItem("X", 1, 4), real.WorkloadItem("Y", 5, 4)], max_tokens=3)
    assert set(engine.run(50)[-1].worker) == {"X", "Y"}
    lines = log_of(tmp_path)
    found = check_log(lambda: lines, "log")
    assert found.illegal is None
    assert found.events > 5
