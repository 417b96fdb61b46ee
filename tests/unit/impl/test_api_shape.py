"""The calls have the names and parameters that vLLM 0.33.0 gives them; `withdraw` is ours."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, Literal, get_origin

import pytest

import mmcache
from mmcache import EncoderCacheManager, EncoderDecoderCacheManager

BOTH = [EncoderCacheManager, EncoderDecoderCacheManager]

ITEM = ("request", "input_id")
CALLS = {
    "__init__": ("cache_size",),
    "reset": (),
    "check_and_update_cache": ITEM,
    "get_cached_num_encoder_embeds": ITEM,
    "can_allocate": (*ITEM, "encoder_compute_budget", "num_embeds_to_schedule"),
    "allocate": ITEM,
    "get_cached_input_ids": ("request",),
    "free_encoder_input": ITEM,
    "free": ("request",),
    "get_freed_mm_hashes": (),
    "withdraw": ITEM,
    "get_manager_metadata": (),
}


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("call", CALLS)
def test_parameters(cls: type[EncoderCacheManager], call: str) -> None:
    own, *parameters = inspect.signature(getattr(cls, call)).parameters.values()
    assert own.name == "self"
    assert tuple(p.name for p in parameters) == CALLS[call]
    assert {p.kind for p in parameters} <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert all(p.default is inspect.Parameter.empty for p in parameters)


@pytest.mark.parametrize("cls", BOTH)
def test_create_manager(cls: type[EncoderCacheManager]) -> None:
    parameters = inspect.signature(cls.create_manager).parameters
    assert tuple(parameters) == ("cache_size", "vllm_config")
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    manager = cls.create_manager(cache_size=7, vllm_config=object())
    assert type(manager) is cls
    assert manager.cache_size == 7


@pytest.mark.parametrize("cls", BOTH)
def test_public_names_are_these_and_no_more(cls: type[EncoderCacheManager]) -> None:
    attributes = {"cache_size", "num_free_slots", "num_freeable_slots"}
    attributes |= {"cached", "freeable", "freed"}
    if cls is EncoderDecoderCacheManager:
        attributes |= {"allocated", "to_free"}
    public = {name for name in dir(cls(1)) if not name.startswith("_")}
    assert public == attributes | set(CALLS) - {"__init__"} | {"create_manager"}


def test_the_encoder_decoder_manager_is_an_encoder_cache_manager() -> None:
    assert issubclass(EncoderDecoderCacheManager, EncoderCacheManager)


@pytest.mark.parametrize("cls", BOTH)
def test_what_is_read_of_a_request(cls: type[EncoderCacheManager]) -> None:
    """`request_id`, `mm_features[i].identifier` and `get_num_encoder_embeds(i)`, nothing more."""

    class Features:
        def __getitem__(self, input_id: int) -> Any:
            return SimpleNamespace(identifier="AB"[input_id])

    class Request:
        __slots__ = ()
        request_id = "r1"
        mm_features = Features()

        def get_num_encoder_embeds(self, input_id: int) -> int:
            return 4

    manager, request = cls(10), Request()
    for input_id in (1, 0):
        assert not manager.check_and_update_cache(request, input_id)
        assert manager.get_cached_num_encoder_embeds(request, input_id) is None
        assert manager.can_allocate(request, input_id, 4, 0)
        manager.allocate(request, input_id)
    assert manager.get_cached_input_ids(request) == {0, 1}
    manager.free_encoder_input(request, 1)
    manager.free(request)
    assert manager.num_freeable_slots == 10


def test_types_of_what_vllm_reads() -> None:
    manager = EncoderCacheManager(1)
    assert type(manager.get_freed_mm_hashes()) is list
    assert type(EncoderDecoderCacheManager(1).get_freed_mm_hashes()) is list
    assert type(manager.freed) is list
    assert type(manager.cached) is dict


def test_importing_it_imports_nothing_else_of_ours_and_no_dependency() -> None:
    script = "import sys; old = set(sys.modules); import mmcache; print(*set(sys.modules) - old)"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    foreign = {name.partition(".")[0] for name in ran.stdout.split()} - sys.stdlib_module_names
    assert foreign == {"mmcache"}


def test_everything_exported_is_documented() -> None:
    for name in mmcache.__all__:
        thing = getattr(mmcache, name)
        if get_origin(thing) is Literal:
            continue  # A type alias has no docstring of its own.
        assert inspect.getdoc(thing), name
        for call in CALLS:
            if call in vars(thing):
                assert vars(thing)[call].__doc__ or call == "__init__", f"{name}.{call}"
